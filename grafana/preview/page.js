// Draws one dashboard from its JSON and the answers of Prometheus. Not Grafana: a preview. What is drawn (texts, colours,
// names, columns) is prepared by Grafana's own library; how it is drawn is ours.
import uPlot from "uplot";
import { formattedValueToString, framesOf, getFieldDisplayName, getFieldSeriesColor, getValueFormat, interpolator, prepared, theme, valuesOf } from "./grafana.mjs";

const CELL = 38, GAP = 8, HEAD = 46;
const fill = interpolator(
  { job: ["spark"], app: ["shop"], query: ["query"], datasource: "prometheus", traces: "tempo", runbooks: "" },
  { from: DATA.begin * 1000, to: DATA.end * 1000 },
);

function element(kind, parent, className, text) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}

// On 24 hours, in the browser's zone; seconds where they tell two marks apart.
function clock(time, seconds = true) {
  return new Date(time * 1000).toTimeString().slice(0, seconds ? 8 : 5);
}

function format(value, unit, decimals) {
  const shown = getValueFormat(unit)(value, decimals);
  return formattedValueToString(decimals === undefined ? { ...shown, text: String(Number(shown.text)) } : shown);
}

// ---- fields: as Grafana's library prepares them ----------------------------------------------

async function fieldsOf(panel) {
  const data = await prepared(panel, framesOf(panel, DATA.answers[panel.id]), fill);
  return { data, lines: data.flatMap((frame) => frame.fields.filter((field) => field.type === "number").map((field) => lineOf(field, frame, data))) };
}

function lineOf(field, frame, data) {
  const times = frame.fields[0].values;
  return {
    field,
    name: getFieldDisplayName(field, frame, data),
    points: times.map((time, index) => [time / 1000, field.values[index]]).filter(([, value]) => isFinite(value)),
  };
}

function nothing(body, panel) {
  element("div", body, "empty", panel.fieldConfig.defaults.noValue);
}

function traces(panel, body) {
  const found = DATA.traces[panel.id];
  if (!found.length) return nothing(body, panel);
  const grid = element("table", body);
  const head = element("tr", grid);
  for (const title of ["Trace ID", "Start time", "Service", "Name", "Duration"]) {
    element("th", head, title === "Duration" ? "number" : "", title);
  }
  for (const one of found) {
    const line = element("tr", grid);
    element("a", element("td", line), "", one.trace);
    element("td", line, "", clock(one.start));
    element("td", line, "", one.service);
    element("td", line, "", one.name);
    element("td", line, "number", format(one.seconds, "s"));
  }
  fit(body, grid);
}

// Takes the lines for which there is no room out of a table, and says how many; Grafana scrolls.
function fit(body, grid) {
  const all = grid.rows.length;
  let note;
  while (body.scrollHeight > body.clientHeight && grid.rows.length > 2) {
    note = note || element("div", body, "more");
    grid.deleteRow(-1);
    note.textContent = `+${all - grid.rows.length} more`;
  }
}

// ---- stat, bar gauge ---------------------------------------------------------------------------

async function stat(panel, body) {
  const { data } = await fieldsOf(panel);
  const all = valuesOf(panel, data, fill);
  const box = element("div", body, "stats");
  for (const { display } of all) {
    const cell = element("div", box, "stat");
    cell.style.background = display.color;
    if (!data.length) cell.classList.add("absent");
    const shown = formattedValueToString(display);
    if (panel.options.textMode === "value_and_name" && display.title) element("small", cell, "", display.title);
    const number = element("strong", cell, "", shown);
    number.style.fontSize = Math.min(34, (panel.gridPos.w * 62) / all.length / Math.max(shown.length, 3) + 4) + "px";
  }
}

async function bargauge(panel, body) {
  const { data } = await fieldsOf(panel);
  const box = element("div", body, "bars");
  for (const { display, field } of valuesOf(panel, data, fill).sort((a, b) => b.display.numeric - a.display.numeric)) {
    const line = element("div", box, "bar");
    if (!data.length) line.classList.add("absent");
    element("div", line, "name", display.title ?? "");
    const bar = element("div", element("div", line, "track"));
    const share = (display.numeric - Math.min(field.min ?? 0, 0)) / ((field.max || 1) - Math.min(field.min ?? 0, 0));
    bar.style.width = 100 * Math.min(1, Math.max(0, data.length ? share : 0)) + "%";
    bar.style.background = display.color;
    element("div", line, "value", formattedValueToString(display)).style.color = display.color;
  }
}

// ---- table -------------------------------------------------------------------------------------

async function table(panel, body) {
  const { data: [frame] } = await fieldsOf(panel);
  if (!frame?.length) return nothing(body, panel);
  const columns = frame.fields.map((field) => ({ field, title: getFieldDisplayName(field, frame) }));
  const rows = [...Array(frame.length).keys()];
  for (const sort of (panel.options.sortBy || []).slice().reverse()) {
    const { values } = columns.find(({ title }) => title === sort.displayName).field;
    const order = (a, b) => (values[a] === values[b] ? 0 : values[a] === undefined ? 1 : values[b] === undefined ? -1 : values[a] < values[b] ? -1 : 1);
    rows.sort((a, b) => (sort.desc && values[a] !== undefined && values[b] !== undefined ? -order(a, b) : order(a, b)));
  }
  const grid = element("table", body);
  const head = element("tr", grid);
  for (const { field, title } of columns) {
    const cell = element("th", head, isNumber(field) ? "number" : "", title);
    cell.style.minWidth = (field.config.custom.width ?? field.config.custom.minWidth) + "px";
  }
  for (const row of rows) {
    const line = element("tr", grid);
    for (const { field } of columns) cell(line, field, field.values[row]);
  }
  fit(body, grid);
}

function isNumber(field) {
  return field.type === "number" && !field.config.mappings?.length;
}

function cell(line, field, value) {
  const shown = field.display(value);
  const box = element("td", line, isNumber(field) ? "number" : "");
  const target = field.config.links?.length ? element("a", box) : box;
  target.textContent = formattedValueToString(shown);
  const { type } = field.config.custom.cellOptions ?? {};
  if (field.config.custom.wrapText) box.classList.add("wrapped");
  if (value === undefined || !type) return;
  if (type === "color-background") {
    box.style.background = shown.color;
    target.style.color = "#fff";
  } else if (type === "color-text") {
    target.style.color = shown.color;
  }
}

// ---- time series -------------------------------------------------------------------------------

async function timeseries(panel, body) {
  const { lines: all } = await fieldsOf(panel);
  if (!all.some((one) => one.points.length)) return nothing(body, panel);
  const plot = element("div", body, "plot");
  const list = element("div", body, "legend");
  const times = [];
  for (let at = DATA.begin; at <= DATA.end + 0.001; at += DATA.step) times.push(at);
  const drawn = all.map(({ field, name, points }) => {
    const values = times.map(() => null);
    for (const [time, value] of points) {
      const slot = Math.round((time - DATA.begin) / DATA.step);
      if (slot >= 0 && slot < values.length) values[slot] = value;
    }
    const colour = getFieldSeriesColor(field, theme).color;
    const stacked = field.config.custom.stacking?.mode === "normal";
    return { name, field: field.config, colour, values, stacked };
  });
  const sum = times.map(() => 0);
  for (const one of drawn.filter((each) => each.stacked)) {
    one.values = one.values.map((value, slot) => (value === null ? null : (sum[slot] += value)));
  }
  for (const one of drawn) {
    const entry = element("span", list);
    element("i", entry).style.background = one.colour;
    entry.appendChild(document.createTextNode(one.name));
  }
  const order = [...drawn.filter((one) => one.stacked).reverse(), ...drawn.filter((one) => !one.stacked)];
  draw(panel, plot, times, order);
}

function strokeOf(one) {
  const { custom } = one.field;
  const opacity = one.stacked ? 0.75 : (custom.fillOpacity || 0) / 100;
  const made = {
    label: one.name,
    stroke: one.colour,
    width: custom.lineWidth || 1,
    points: { show: false },
    spanGaps: false,
  };
  if (opacity) made.fill = blend(one.colour, opacity, one.stacked);
  if (custom.lineStyle && custom.lineStyle.dash) made.dash = custom.lineStyle.dash;
  return made;
}

function blend(colour, opacity, solid) {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  if (!solid) return `rgba(${parts.join(",")},${opacity})`;
  const ground = [24, 27, 31];
  return `rgb(${parts.map((part, index) => Math.round(part * opacity + ground[index] * (1 - opacity))).join(",")})`;
}

function draw(panel, plot, times, series) {
  const { min, max, unit, decimals, thresholds } = panel.fieldConfig.defaults;
  const custom = panel.fieldConfig.defaults.custom || {};
  const { type, log: base } = custom.scaleDistribution || {};
  const log = type === "log";
  const soft = custom.axisSoftMax ?? -Infinity;
  const range = (_, low, high) => {
    if (log) {
      const power = (value, side) => base ** side(Math.log(value) / Math.log(base));
      return [power(low || 1, Math.floor), power(Math.max(high || base, soft), Math.ceil)];
    }
    const bottom = min !== undefined ? Math.min(min, low ?? min) : low ?? 0;
    const top = max !== undefined ? max : high || 1;
    const span = top - bottom || Math.abs(top) || 1;
    const above = max !== undefined ? max : top + span * 0.08;
    return [min !== undefined ? bottom : bottom - span * 0.05, Math.max(above, soft)];
  };
  const inMinutes = (splits) => splits.every((time) => time % 60 === 0);
  const binary = unit === "bytes" ? { incrs: Array.from({ length: 53 }, (_, power) => 2 ** power) } : {};
  const marks = (chart) => drawMarks(chart, panel, thresholds, custom);
  const axis = { stroke: "#9a9ba5", grid: { stroke: "#25272e", width: 1 }, ticks: { stroke: "#25272e", width: 1 }, font: "11px DejaVu Sans" };
  new uPlot(
    {
      width: plot.clientWidth,
      height: plot.clientHeight,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: true, range: () => [DATA.begin, DATA.end] }, y: { range, distr: log ? 3 : 1, log: base || 10 } },
      axes: [
        { ...axis, size: 26, values: (_, splits) => splits.map((time) => clock(time, !inMinutes(splits))) },
        { ...axis, ...binary, size: 80, values: (_, splits) => numbers(splits, unit, decimals), label: custom.axisLabel || undefined, labelSize: 16, labelFont: "11px DejaVu Sans", labelGap: 0 },
      ],
      series: [{}, ...series.map(strokeOf)],
      hooks: { draw: [marks] },
    },
    [times, ...series.map((one) => (log ? one.values.map((value) => (value > 0 ? value : null)) : one.values))],
    plot,
  );
}

function numbers(splits, unit, decimals) {
  const shown = (digits) => splits.map((value) => (value === null ? "" : format(value, unit, digits)));
  const texts = shown(decimals);
  return new Set(texts.filter(Boolean)).size === texts.filter(Boolean).length ? texts : shown(1);
}

function drawMarks(chart, panel, thresholds, custom) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const style = (custom.thresholdsStyle || {}).mode;
  if (style && style !== "off" && thresholds) {
    for (const step of thresholds.steps) {
      if (step.value === null) continue;
      line(ctx, bbox.left, chart.valToPos(step.value, "y", true), bbox.left + bbox.width, null, step.color, [6, 5]);
    }
  }
  for (const mark of DATA.marks) {
    line(ctx, chart.valToPos(mark.time, "x", true), bbox.top, null, bbox.top + bbox.height, mark.colour, [3, 4]);
  }
  for (const dot of DATA.exemplars[panel.id] || []) {
    diamond(ctx, chart.valToPos(dot.time, "x", true), chart.valToPos(dot.value, "y", true));
  }
  ctx.restore();
}

function line(ctx, x, y, right, bottom, colour, dash) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(right ?? x, bottom ?? y);
  ctx.stroke();
}

function diamond(ctx, x, y) {
  ctx.fillStyle = "#ff9830";
  ctx.beginPath();
  ctx.moveTo(x, y - 4);
  ctx.lineTo(x + 4, y);
  ctx.lineTo(x, y + 4);
  ctx.lineTo(x - 4, y);
  ctx.fill();
}

// ---- state timeline, status history, heatmap ---------------------------------------------------

function svg(kind, parent, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}

function timeAxis(root, left, width, y) {
  const parts = width < 500 ? 3 : 6;
  for (let part = 0; part <= parts; part += 1) {
    const at = DATA.begin + ((DATA.end - DATA.begin) * part) / parts;
    const anchor = part === 0 ? "start" : part === parts ? "end" : "middle";
    svg("text", root, { x: left + (width * part) / parts, y, "text-anchor": anchor }, clock(at));
  }
}

async function timeline(panel, body) {
  const { lines: all } = await fieldsOf(panel);
  if (!all.some((one) => one.points.length)) return nothing(body, panel);
  const plot = element("div", body, "plot");
  const list = element("div", body, "legend");
  const seen = new Map(all.flatMap((one) => one.points.map(([, value]) => [one.field.display(value).text, one.field.display(value).color])));
  for (const [name, colour] of seen) {
    const entry = element("span", list);
    element("i", entry).style.background = colour;
    entry.appendChild(document.createTextNode(name));
  }
  // Measured now that the legend has taken its place.
  const width = plot.clientWidth, height = plot.clientHeight - 18, left = 150;
  const root = svg("svg", plot, { width, height: height + 18 });
  const line = height / all.length;
  const gap = panel.type === "status-history" ? 1 : 0;
  all.forEach((one, index) => {
    svg("text", root, { x: left - 8, y: index * line + line / 2 + 4, "text-anchor": "end" }, one.name);
    for (const [time, value] of one.points) {
      const x = left + ((time - DATA.begin) / (DATA.end - DATA.begin)) * (width - left);
      const w = Math.min((DATA.step / (DATA.end - DATA.begin)) * (width - left), width - x);
      if (w <= 0) continue;
      svg("rect", root, { x, y: index * line + line * 0.08, width: w - gap + (gap ? 0 : 0.4), height: line * 0.84, fill: one.field.display(value).color });
    }
  });
  timeAxis(root, left, width - left, height + 14);
}

async function heatmap(panel, body) {
  const all = (await fieldsOf(panel)).lines
    .map((one) => ({ ...one, bound: Number(one.name.replace("+Inf", "Infinity")) }))
    .sort((a, b) => a.bound - b.bound);
  if (!all.length) return nothing(body, panel);
  const plot = element("div", body, "plot");
  const width = plot.clientWidth, height = plot.clientHeight - 18, left = 70;
  const root = svg("svg", plot, { width, height: height + 18 });
  const line = height / all.length;
  let most = 0;
  const below = new Map();
  const cells = [];
  all.forEach((one, index) => {
    for (const [time, value] of one.points) {
      const count = value - (below.get(time) || 0);
      below.set(time, value);
      if (count > 1e-6) cells.push([time, index, count]);
      most = Math.max(most, count);
    }
    const label = one.bound === Infinity ? "+Inf" : format(one.bound, "s");
    if (index % Math.ceil(all.length / 9) === 0) {
      svg("text", root, { x: left - 8, y: height - index * line - line / 2 + 4, "text-anchor": "end" }, label);
    }
  });
  const toX = (time) => left + ((time - DATA.begin) / (DATA.end - DATA.begin)) * (width - left);
  const w = (DATA.step / (DATA.end - DATA.begin)) * (width - left);
  for (const [time, index, count] of cells) {
    const share = 0.25 + (0.75 * count) / most;
    svg("rect", root, { x: toX(time), y: height - (index + 1) * line, width: Math.max(1, w - 0.5), height: line - 1, fill: blend("#5794f2", share, true) });
  }
  for (const dot of DATA.exemplars[panel.id] || []) {
    const index = all.findIndex((one) => dot.value <= one.bound);
    const y = height - index * line - line / 2;
    svg("path", root, { d: `M${toX(dot.time)} ${y - 4}l4 4l-4 4l-4 -4z`, fill: "#ff9830" });
  }
  timeAxis(root, left, width - left, height + 14);
}

// ---- the board ---------------------------------------------------------------------------------

const KINDS = { stat, bargauge, table, timeseries, heatmap, "state-timeline": timeline, "status-history": timeline };

async function start() {
  const { board } = DATA;
  const head = element("header", document.body);
  element("h1", head, "", board.title);
  for (const [name, value] of Object.entries(DATA.variables)) {
    const box = element("div", head, "variable");
    element("b", box, "", name);
    box.appendChild(document.createTextNode(value));
  }
  element("div", head, "note", "preview, not Grafana");
  const space = element("div", document.body);
  space.id = "board";
  const unit = 1600 / 24;
  let bottom = 0;
  for (const panel of board.panels) {
    const { x, y, w, h } = panel.gridPos;
    const box = element("div", space, panel.type === "row" ? "row" : "panel", panel.type === "row" ? panel.title : undefined);
    Object.assign(box.style, { left: x * unit + GAP / 2 + "px", top: y * CELL + "px", width: w * unit - GAP + "px", height: h * CELL - GAP + "px" });
    bottom = Math.max(bottom, (y + h) * CELL);
    if (panel.type === "row") continue;
    element("h2", box, "", panel.title);
    const body = element("div", box, "body");
    await (panel.datasource.type === "prometheus" ? KINDS[panel.type] : traces)(panel, body);
    // A table's last column, a title or a bar's name that does not fit is a fault; the program that takes the picture reads it.
    const cut = [...body.querySelectorAll(".bar .name")].some((name) => name.scrollWidth > name.clientWidth);
    if (cut || box.querySelector("h2").scrollWidth > box.clientWidth || body.scrollWidth > box.clientWidth + 1) {
      DATA.faults.push(panel.title + ": clipped");
    }
    // Some have data only on a condition, which the description names and `make panels` produces.
    if (body.querySelector(".empty, .absent") && !panel.description.includes("Has data only when")) {
      DATA.faults.push(panel.title + ": empty");
    }
  }
  space.style.height = bottom + "px";
  const told = element("script", document.body);
  told.type = "application/json";
  told.id = "told";
  told.textContent = JSON.stringify({ height: bottom + HEAD, faults: DATA.faults });
}

start();
