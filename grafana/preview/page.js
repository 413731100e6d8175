// Draws one dashboard from its JSON and the answers of Prometheus. Not Grafana: a preview.
"use strict";

const PALETTE = ["#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a"];
const CELL = 38, GAP = 8, HEAD = 46;

function element(kind, parent, className, text) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}

// ---- fields: what defaults and overrides say of a name ---------------------------------------

function fieldOf(panel, name) {
  const field = JSON.parse(JSON.stringify(panel.fieldConfig.defaults));
  field.custom = field.custom || {};
  for (const override of panel.fieldConfig.overrides) {
    if (!new RegExp(override.matcher.options).test(name)) continue;
    for (const { id, value } of override.properties) {
      if (id.startsWith("custom.")) field.custom[id.slice(7)] = value;
      else field[id] = value;
    }
  }
  return field;
}

function mapped(field, value) {
  for (const mapping of field.mappings || []) {
    const found = mapping.options[String(value)];
    if (found) return found;
  }
  return null;
}

function threshold(field, value) {
  const steps = (field.thresholds || { steps: [{ color: "#73bf69", value: null }] }).steps;
  let colour = steps[0].color;
  for (const step of steps) if (step.value !== null && value >= step.value) colour = step.color;
  return colour === "text" ? "#ccccdc" : colour;
}

function legend(target, labels) {
  if (target.legendFormat === "__auto") return Object.values(labels).join(" ");
  return target.legendFormat.replace(/\{\{(\w+)\}\}/g, (_, name) => labels[name] ?? "");
}

function seriesOf(panel) {
  const found = [];
  panel.targets.forEach((target, index) => {
    for (const one of DATA.answers[panel.id][index].result) {
      const points = one.values || [one.value];
      found.push({
        name: legend(target, one.metric),
        labels: one.metric,
        points: points.map(([time, value]) => [time, Number(value)]).filter(([, v]) => isFinite(v)),
      });
    }
  });
  return found.filter((one) => one.points.length);
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

function last(one) {
  return one.points[one.points.length - 1][1];
}

// ---- stat, bar gauge ---------------------------------------------------------------------------

function stat(panel, body) {
  const all = seriesOf(panel);
  if (!all.length) return nothing(body, panel);
  const box = element("div", body, "stats");
  for (const one of all) {
    const field = fieldOf(panel, one.name);
    const value = last(one);
    const text = mapped(field, value);
    const cell = element("div", box, "stat");
    cell.style.background = text ? text.color : threshold(field, value);
    const shown = text ? text.text : format(value, field.unit, field.decimals);
    const named = panel.options.textMode === "value_and_name";
    if (named) element("small", cell, "", one.name);
    const number = element("strong", cell, "", shown);
    number.style.fontSize = Math.min(34, (panel.gridPos.w * 62) / all.length / Math.max(shown.length, 3) + 4) + "px";
  }
}

function bargauge(panel, body) {
  const all = seriesOf(panel).sort((a, b) => last(b) - last(a));
  if (!all.length) return nothing(body, panel);
  const box = element("div", body, "bars");
  const most = Math.max(...all.map((one) => Math.abs(last(one))), 1e-9);
  for (const one of all) {
    const field = fieldOf(panel, one.name);
    const line = element("div", box, "bar");
    element("div", line, "name", one.name);
    const fill = element("div", element("div", line, "track"));
    fill.style.width = (100 * Math.max(0, last(one))) / most + "%";
    fill.style.background = threshold(field, last(one));
    const value = element("div", line, "value", format(last(one), field.unit, field.decimals));
    value.style.color = threshold(field, last(one));
  }
}

// ---- table -------------------------------------------------------------------------------------

function rowsOf(panel) {
  const rows = new Map();
  panel.targets.forEach((target, index) => {
    const field = panel.targets.length === 1 ? "Value" : "Value #" + target.refId;
    for (const one of DATA.answers[panel.id][index].result) {
      const labels = { ...one.metric };
      delete labels.__name__;
      const key = JSON.stringify(Object.entries(labels).sort());
      rows.set(key, { ...rows.get(key), ...labels, [field]: Number(one.value[1]) });
    }
  });
  return [...rows.values()];
}

function table(panel, body) {
  const organize = panel.transformations.find((one) => one.id === "organize").options;
  const names = Object.entries(organize.indexByName).sort((a, b) => a[1] - b[1]).map(([name]) => name);
  const columns = names.filter((name) => !organize.excludeByName[name]);
  const rows = rowsOf(panel);
  if (!rows.length) return nothing(body, panel);
  for (const sort of (panel.options.sortBy || []).slice().reverse()) {
    const by = columns.find((name) => organize.renameByName[name] === sort.displayName);
    const order = (a, b) => (a[by] === b[by] ? 0 : a[by] === undefined ? 1 : b[by] === undefined ? -1 : a[by] < b[by] ? -1 : 1);
    rows.sort((a, b) => (sort.desc && a[by] !== undefined && b[by] !== undefined ? -order(a, b) : order(a, b)));
  }
  const grid = element("table", body);
  const head = element("tr", grid);
  for (const name of columns) {
    const title = organize.renameByName[name];
    const number = name.startsWith("Value") && !fieldOf(panel, title).mappings;
    element("th", head, number ? "number" : "", title);
  }
  for (const row of rows) {
    const line = element("tr", grid);
    for (const name of columns) cell(panel, line, organize.renameByName[name], row[name]);
  }
  fit(body, grid);
}

function cell(panel, line, title, value) {
  const field = fieldOf(panel, title);
  const number = typeof value === "number";
  const text = mapped(field, value);
  const shown = text ? text.text : number ? format(value, field.unit, field.decimals) : (value ?? "");
  const box = element("td", line, number && !text ? "number" : "");
  const target = field.links ? element("a", box, "", shown) : box;
  if (!field.links) box.textContent = shown;
  const style = (field.custom.cellOptions || {}).type;
  if (value === undefined || !style) return;
  const colour = text ? text.color : threshold(field, value);
  if (style === "color-background") {
    box.style.background = colour;
    target.style.color = "#fff";
  } else {
    target.style.color = colour === "text" ? "#ccccdc" : colour;
  }
}

// ---- time series -------------------------------------------------------------------------------

function timeseries(panel, body) {
  const all = seriesOf(panel);
  if (!all.length) return nothing(body, panel);
  const plot = element("div", body, "plot");
  const list = element("div", body, "legend");
  const times = [];
  for (let at = DATA.begin; at <= DATA.end + 0.001; at += DATA.step) times.push(at);
  const drawn = all.map((one, index) => {
    const field = fieldOf(panel, one.name);
    const colour = field.color && field.color.fixedColor ? field.color.fixedColor : PALETTE[index % PALETTE.length];
    const values = times.map(() => null);
    for (const [time, value] of one.points) {
      const slot = Math.round((time - DATA.begin) / DATA.step);
      if (slot >= 0 && slot < values.length) values[slot] = value;
    }
    const stacked = (field.custom.stacking || {}).mode === "normal";
    return { name: one.name, field, colour, values, stacked };
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

function lineOf(one) {
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
      series: [{}, ...series.map(lineOf)],
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

function timeline(panel, body) {
  const all = seriesOf(panel);
  if (!all.length) return nothing(body, panel);
  const plot = element("div", body, "plot");
  const list = element("div", body, "legend");
  const field = fieldOf(panel, "");
  const textOf = (value) => mapped(field, value) || { text: format(value, field.unit), color: "#5794f2" };
  const seen = new Map(all.flatMap((one) => one.points.map(([, value]) => [textOf(value).text, textOf(value).color])));
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
      svg("rect", root, { x, y: index * line + line * 0.08, width: w - gap + (gap ? 0 : 0.4), height: line * 0.84, fill: textOf(value).color });
    }
  });
  timeAxis(root, left, width - left, height + 14);
}

function heatmap(panel, body) {
  const all = seriesOf(panel)
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

function start() {
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
    (panel.datasource.type === "prometheus" ? KINDS[panel.type] : traces)(panel, body);
    // A table's last column, a title or a bar's name that does not fit is a fault; the program that takes the picture reads it.
    const cut = [...body.querySelectorAll(".bar .name")].some((name) => name.scrollWidth > name.clientWidth);
    if (cut || box.querySelector("h2").scrollWidth > box.clientWidth || body.scrollWidth > box.clientWidth + 1) {
      DATA.faults.push(panel.title + ": clipped");
    }
    // Some have data only on a condition, which the description names and `make panels` produces.
    if (body.querySelector(".empty") && !panel.description.includes("Has data only when")) {
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
