// node validate.mjs DASHBOARD.json …: prints what Grafana's schema package does not know or allow.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Ajv from 'ajv';
import { createGenerator } from 'ts-json-schema-generator';

const here = dirname(fileURLToPath(import.meta.url));
const schema = createGenerator({
  path: join(here, 'wanted.ts'),
  type: 'Wanted',
  skipTypeCheck: true,
  additionalProperties: false,
  expose: 'none', // several of the package's types share a name
}).createSchema('Wanted');
const ajv = new Ajv({ strict: false, allErrors: true, allowUnionTypes: true });
const wanted = (schema.definitions?.Wanted ?? schema).properties;
const compiled = new Map();

function check(part, name, value, where) {
  const found = name ? wanted[part].properties[name] : wanted[part];
  if (!found) return value && Object.keys(value).length ? [`${where}: no schema for ${part} of ${name}`] : [];
  const key = `${part}/${name}`;
  if (!compiled.has(key)) {
    compiled.set(key, ajv.compile({ ...found, definitions: schema.definitions }));
  }
  const validate = compiled.get(key);
  if (validate(value)) return [];
  return validate.errors.map((e) => `${where}${e.instancePath}: ${e.message} ${JSON.stringify(e.params)}`);
}

// Of the Prometheus data source, which reads them from its annotations; the package knows no plugin's fields.
const PROMETHEUS = ['expr', 'step', 'textFormat', 'titleFormat', 'useValueForTime'];
const faults = [];
for (const file of process.argv.slice(2)) {
  const board = JSON.parse(readFileSync(file, 'utf8'));
  for (const mark of board.annotations.list) for (const name of PROMETHEUS) delete mark[name];
  faults.push(...check('board', '', board, board.uid));
  for (const panel of board.panels.filter((one) => one.type !== 'row')) {
    const where = `${board.uid}: ${panel.title}`;
    faults.push(...check('options', panel.type, panel.options, where));
    const custom = panel.fieldConfig.defaults.custom ?? {};
    faults.push(...check('custom', panel.type, custom, where));
    for (const { properties } of panel.fieldConfig.overrides) {
      for (const { id, value } of properties.filter((one) => one.id.startsWith('custom.'))) {
        faults.push(...check('custom', panel.type, { [id.slice(7)]: value }, `${where}, override`));
      }
    }
  }
}
console.log(faults.join('\n'));
process.exit(faults.length ? 1 : 0);
