// Values as Grafana shows them, for the units that the dashboards use.
"use strict";

function round(value, decimals) {
  if (decimals !== undefined) return value.toFixed(decimals);
  const size = Math.abs(value);
  const digits = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

function scaled(value, base, names, decimals) {
  let step = 0;
  while (Math.abs(value) >= base && step < names.length - 1) {
    value /= base;
    step += 1;
  }
  return round(value, step || decimals === undefined ? undefined : decimals) + names[step];
}

function many(value, word) {
  const shown = round(value);
  return shown + " " + word + (shown === "1" ? "" : "s");
}

function seconds(value, decimals) {
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 1e-3) return round(value * 1e6) + " µs";
  if (size < 1) return round(value * 1e3, decimals) + " ms";
  if (size < 60) return round(value, decimals) + " s";
  if (size < 3600) return many(value / 60, "min");
  if (size < 86400) return many(value / 3600, "hour");
  return many(value / 86400, "day");
}

const UNITS = {
  s: seconds,
  m: (value, decimals) => seconds(value * 60, decimals),
  none: (value, decimals) => (decimals === undefined ? String(Math.round(value * 100) / 100) : value.toFixed(decimals)),
  short: (value, decimals) => scaled(value, 1000, ["", " K", " Mil", " Bil"], decimals),
  percentunit: (value, decimals) => round(value * 100, decimals) + "%",
  bytes: (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]),
  Bps: (value) => scaled(value, 1000, [" B/s", " kB/s", " MB/s", " GB/s"]),
  dateTimeFromNow: (value) => seconds(DATA.end - value / 1000) + " ago",
};

// On 24 hours, in the browser's zone; seconds where they tell two marks apart.
function clock(time, seconds = true) {
  return new Date(time * 1000).toTimeString().slice(0, seconds ? 8 : 5);
}

function format(value, unit, decimals) {
  if (value === null || value === undefined || !isFinite(value)) return "";
  if (!UNITS[unit]) throw new Error("no unit " + unit);
  return UNITS[unit](value, decimals);
}
