// node <bundle> INPUT.json: what Grafana's own code makes of every panel, as JSON.
// INPUT has the dashboards, the answers of Prometheus by dashboard and panel, what is chosen, and the time range.
import { readFileSync } from 'node:fs';
import {
  ALL, formattedValueToString, framesOf, getFieldDisplayName, interpolator, meets, prepared, registry, valuesOf,
} from '../../grafana/preview/grafana.mjs';

const input = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const shown = ({ text, prefix, suffix, color, title }) => ({ text: formattedValueToString({ text, prefix, suffix }), color, title });


// What decides the text of a value.
function sort({ unit, mappings }) {
  const words = (mappings ?? []).filter((one) => one.type === 'value').map((one) => one.options);
  return { unit, words: Object.assign({}, ...words) };
}

async function report(board, panel) {
  const fill = interpolator(input.chosen[board.uid], input.range);
  const answers = input.answers[board.uid][panel.id];
  const frames = framesOf(panel, answers);
  const data = await prepared(panel, frames, fill);
  const fields = data.flatMap((frame) => frame.fields.map((field) => ({ field, frame })));
  const found = {
    board: board.uid,
    title: panel.title,
    type: panel.type,
    overrides: panel.fieldConfig.overrides.map((override) => ({
      pattern: override.matcher.options,
      met: fields.filter(({ field, frame }) => meets(override, field, frame, data)).length,
      unknown: override.properties.filter(({ id }) => !registry.getIfExists(id)).map(({ id }) => id),
    })),
    links: fields.flatMap(({ field, frame }) => linksOf(field, frame, data)),
  };
  if (panel.type === 'table') return { ...found, ...tableOf(data) };
  if (panel.type === 'stat' || panel.type === 'bargauge') {
    const values = valuesOf(panel, data, fill);
    const absent = valuesOf(panel, await prepared(panel, [], fill), fill)[0].display;
    const empty = await prepared(panel, framesOf(panel, answers.map(hollow)), fill);
    return {
      ...found,
      values: values.map(({ display, field }) => ({ ...shown(display), max: field.max, value: fields.length ? display.numeric : null, ...sort(field) })),
      absent: [shown(absent), ...valuesOf(panel, empty, fill).map(({ display }) => shown(display))],
    };
  }
  const lines = fields.filter(({ field }) => field.type === 'number');
  return {
    ...found,
    names: lines.map(({ field, frame }) => getFieldDisplayName(field, frame, data)),
    values: lines.flatMap(({ field }) => field.values.map((value) => ({ value, ...shown(field.display(value)), ...sort(field.config) }))),
    colours: lines.map(({ field }) => field.config.color ?? null),
    nothing: lines.map(({ field }) => shown(field.display(null))),
  };
}

// The same series with no value in any of them.
function hollow(answer) {
  return { result: answer.result.map((one) => ({ metric: one.metric, value: [0, 'NaN'] })) };
}

function linksOf(field, frame, data) {
  if (!field.config.links?.length || field.type === 'time') return [];
  const rows = [...Array(Math.min(frame.length, 50)).keys()];
  return rows.flatMap((row) =>
    field.getLinks({ valueRowIndex: row }).map(({ href, title }) => ({
      title, href, row: Object.fromEntries(frame.fields.map((one) => [getFieldDisplayName(one, frame, data), one.values[row]])), labels: field.labels ?? {},
    })),
  );
}

function tableOf(data) {
  const [frame] = data;
  if (!frame) return { columns: [], rows: [] };
  const cells = (row) => Object.fromEntries(frame.fields.map((field) => [getFieldDisplayName(field, frame, data), { value: field.values[row], ...shown(field.display(field.values[row])), ...sort(field.config) }]));
  return { columns: frame.fields.map((field) => getFieldDisplayName(field, frame, data)), rows: [...Array(frame.length).keys()].map(cells) };
}

// The menu as `getLinkUrl` of Grafana builds it: variables filled in, then time and, if asked for, all variables added.
function menuOf(board) {
  const chosen = input.chosen[board.uid];
  const fill = interpolator(chosen, input.range);
  const time = fill('${__url_time_range}');
  const all = Object.keys(chosen).filter((name) => !['traces', 'runbooks'].includes(name)).map((name) => fill(`\${${name}:queryparam}`));
  return board.links.flatMap((link) => {
    const targets = link.type === 'link' ? [fill(link.url)] : Object.values(input.boards).filter((one) => link.tags.every((tag) => one.tags.includes(tag))).map((one) => `/d/${one.uid}`);
    return targets.map((url) => {
      const added = [...(link.includeVars ? all : []), ...(link.keepTime ? [time] : [])].join('&');
      return { title: link.title, href: added ? url + (url.includes('?') ? '&' : '?') + added : url };
    });
  });
}

(async () => {
const panels = [];
const menus = {};
for (const board of Object.values(input.boards)) {
  menus[board.uid] = menuOf(board);
  for (const panel of board.panels.flatMap((one) => [one, ...(one.panels ?? [])])) {
    if (panel.type !== 'row' && input.answers[board.uid][panel.id]) panels.push(await report(board, panel));
  }
}
console.log(JSON.stringify({ all: ALL, panels, menus }));
})();
