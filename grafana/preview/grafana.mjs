// Panels as Grafana prepares them before it draws: frames of its Prometheus data source, transformations, field
// overrides, texts, colours and links, all by Grafana's own libraries. The preview and the tests share it.
// The pieces of scenes are taken by their path: the package as a whole wants all of Grafana's user interface.
import {
  FieldConfigOptionsRegistry, FieldType, applyFieldOverrides, booleanOverrideProcessor, createDataFrame, createTheme,
  dataLinksOverrideProcessor, displayNameOverrideProcessor, fieldMatchers, getFieldDisplayValues, identityOverrideProcessor,
  numberOverrideProcessor, renderLegendFormat, selectOverrideProcessor, standardTransformers, standardTransformersRegistry,
  stringOverrideProcessor, thresholdsOverrideProcessor, transformDataFrame, unitOverrideProcessor, valueMappingsOverrideProcessor,
} from '@grafana/data';
import { formatRegistry } from './node_modules/@grafana/scenes/dist/esm/variables/interpolation/formatRegistry.js';
import { DataMacro, FieldMacro, SeriesMacro, ValueMacro } from './node_modules/@grafana/scenes/dist/esm/variables/macros/dataMacros.js';
import { VARIABLE_REGEX } from './node_modules/@grafana/scenes/dist/esm/variables/constants.js';
import { lastValueFrom } from 'rxjs';

export * from '@grafana/data';

// Outside of a browser: it is asked whether a scene is there, and which languages are wanted.
globalThis.window ??= globalThis;
globalThis.navigator ??= { languages: ['en-GB'] };

export const theme = createTheme({ colors: { mode: 'dark' } });
export const ALL = '$__all';
const TIME_ZONE = 'utc';

// ---- what Grafana's front end registers when it starts --------------------------------------------

standardTransformersRegistry.setInit(() =>
  ['merge', 'organize'].map((id) => {
    const { [`${id}FieldsTransformer`]: fields, [`${id}Transformer`]: transformer = fields } = standardTransformers;
    return { id, name: id, editor: null, transformation: () => transformer };
  }),
);

const STANDARD = {
  unit: unitOverrideProcessor, min: numberOverrideProcessor, max: numberOverrideProcessor, decimals: numberOverrideProcessor,
  displayName: displayNameOverrideProcessor, color: identityOverrideProcessor, noValue: stringOverrideProcessor,
  links: dataLinksOverrideProcessor, mappings: valueMappingsOverrideProcessor, thresholds: thresholdsOverrideProcessor,
  fieldMinMax: booleanOverrideProcessor,
};
// Properties of the panels' own, of those that the dashboards use; the schema test knows which panel has which.
const CUSTOM = [
  'axisLabel', 'axisSoftMax', 'cellOptions', 'drawStyle', 'fillOpacity', 'hidden', 'lineInterpolation', 'lineStyle', 'lineWidth', 'minWidth',
  'scaleDistribution', 'showPoints', 'spanNulls', 'stacking', 'thresholdsStyle', 'width', 'wrapHeaderText',
];

export const registry = new FieldConfigOptionsRegistry(() => [
  ...Object.entries(STANDARD).map(([id, process]) => property(id, id, process)),
  ...CUSTOM.map((path) => property(`custom.${path}`, path, selectOverrideProcessor, true)),
]);

function property(id, path, process, isCustom = false) {
  const settings = id === 'displayName' ? { expandTemplateVars: true } : {};
  return { id, path, name: id, isCustom, process, settings, shouldApply: () => true, editor: null, override: null };
}

// ---- variables ------------------------------------------------------------------------------------

const MACROS = { __data: DataMacro, __field: FieldMacro, __series: SeriesMacro, __value: ValueMacro };

// What fills variables in: `chosen` has a list for each that may have several values, or ALL; `range` is from and to.
export function interpolator(chosen, range) {
  const times = { __from: range.from, __to: range.to };
  const urlTimeRange = `from=${range.from}&to=${range.to}`;
  return (text, scopedVars, format) =>
    String(text ?? '').replace(VARIABLE_REGEX, (match, plain, _, __, named, path, given) => {
      const name = plain || named;
      const form = given || format;
      if (name === '__url_time_range') return urlTimeRange;
      if (MACROS[name]) {
        const macro = new MACROS[name](name, null, match, scopedVars);
        return formatted(macro, macro.getValue(path ? path.replace(/^\./, '') : undefined), form);
      }
      const value = name in times ? times[name] : chosen[name];
      if (value === undefined) return match;
      const variable = { state: { name, type: 'query', isMulti: Array.isArray(value), includeAll: true } };
      if (value === ALL) return form === 'queryparam' ? formatted(variable, 'All', form) : '.+';
      return formatted(variable, value, form);
    });
}

function formatted(variable, value, form) {
  if (value === null || value === undefined) return '';
  if (typeof form === 'function') return form(value, variable.state);
  const [id, ...args] = (form || 'glob').split(':');
  return formatRegistry.get(id).formatter(!Array.isArray(value) && typeof value === 'object' ? String(value) : value, args, variable);
}

// ---- frames ---------------------------------------------------------------------------------------

// The answers of Prometheus to a panel's targets as the frames that Grafana's data source makes of them.
export function framesOf(panel, answers) {
  if (panel.type === 'table') return answers.map((answer, index) => tableFrame(panel.targets[index].refId, answer.result, answers.length > 1));
  return answers.flatMap((answer, index) => {
    const { refId, legendFormat } = panel.targets[index];
    return answer.result.map((one) => lineFrame(refId, legendFormat, one));
  });
}

function lineFrame(refId, legendFormat, one) {
  const points = one.values || [one.value];
  const config = { displayNameFromDS: renderLegendFormat(legendFormat, one.metric) };
  return createDataFrame({
    refId,
    meta: { type: 'timeseries-multi', typeVersion: [0, 1] },
    fields: [
      { name: 'Time', type: FieldType.time, config: {}, values: points.map(([time]) => time * 1000) },
      { name: 'Value', type: FieldType.number, config, labels: one.metric, values: points.map(([, value]) => Number(value.replace('Inf', 'Infinity'))) },
    ],
  });
}

function tableFrame(refId, result, several) {
  const labels = [...new Set(result.flatMap((one) => Object.keys(one.metric)))].sort();
  const texts = (label) => result.map((one) => one.metric[label] ?? '');
  return createDataFrame({
    refId,
    meta: { preferredVisualisationType: 'table' },
    fields: [
      { name: 'Time', type: FieldType.time, config: {}, values: result.map((one) => one.value[0] * 1000) },
      ...labels.map((label) => ({ name: label, type: FieldType.string, config: { filterable: true }, values: texts(label) })),
      { name: several ? `Value #${refId}` : 'Value', type: FieldType.number, config: {}, values: result.map((one) => Number(one.value[1])) },
    ],
  });
}

// ---- a panel, ready to draw -----------------------------------------------------------------------

export async function prepared(panel, frames, replaceVariables) {
  const transformed = panel.transformations?.length
    ? await lastValueFrom(transformDataFrame(panel.transformations, frames, { interpolate: (text) => replaceVariables(text) }))
    : frames;
  const fieldConfig = withInfinity(panel.fieldConfig);
  return applyFieldOverrides({ data: transformed, fieldConfig, fieldConfigRegistry: registry, replaceVariables, theme, timeZone: TIME_ZONE });
}

// JSON has no infinity: Grafana gives it to the first step when it loads a dashboard.
function withInfinity(fieldConfig) {
  const copy = structuredClone(fieldConfig);
  const all = [copy.defaults, ...copy.overrides.map((one) => Object.fromEntries(one.properties.map(({ id, value }) => [id, value])))];
  for (const { thresholds } of all) for (const step of thresholds?.steps ?? []) step.value ??= -Infinity;
  return copy;
}

export function valuesOf(panel, data, replaceVariables) {
  return getFieldDisplayValues({
    fieldConfig: withInfinity(panel.fieldConfig), reduceOptions: panel.options.reduceOptions, replaceVariables, theme, data, timeZone: TIME_ZONE,
  });
}

// Whether an override meets a field, by Grafana's own matcher.
export function meets(override, field, frame, frames) {
  return fieldMatchers.get(override.matcher.id).get(override.matcher.options)(field, frame, frames);
}
