// Decoding of the embedded columns. Names from the records only ever reach the page as textContent.
const data = JSON.parse(document.getElementById("data").textContent);

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
}

function column(stored, length) {
  return typeof stored === "number" ? new Float32Array(length).fill(stored) : new Float32Array(bytes(stored));
}

function axis(stored) {
  const codes = new Uint16Array(bytes(stored.codes));
  return { names: stored.names, codes, at: (cell) => stored.names[codes[cell]] };
}

const axes = Object.fromEntries(Object.entries(data.axes).map(([name, stored]) => [name, axis(stored)]));
const severalProfiles = axes.profile.names.length > 1;
const cellCount = axes.dataset.codes.length;
const allCells = Array.from({ length: cellCount }, (_, cell) => cell);
const facts = Object.fromEntries(Object.entries(data.facts).map(([name, stored]) => [name, column(stored, cellCount)]));
const methods = data.methods.map((method) => ({
  ...method,
  place: data.order.indexOf(method.key),
  accuracy: column(method.accuracy, cellCount),
  values: Object.fromEntries([["accuracy", method.accuracy], ...Object.entries(method.measured)]
    .map(([name, stored]) => [name, column(stored, cellCount)])),
  fit_seconds: column(method.fit_seconds, cellCount),
  score_seconds: column(method.score_seconds, cellCount),
  fitted: Object.fromEntries(Object.entries(method.fitted).map(([name, stored]) => [name, column(stored, cellCount)])),
  words: Object.fromEntries(Object.entries(method.words).map(([name, stored]) => [name, axis(stored)])),
}));
const byKey = new Map(methods.map((method) => [method.key, method]));
const hasText = (cell) => facts.has_text[cell] === 1;
const noneHasText = !facts.has_text.includes(1);

function ratioOf(key, cell) {
  const method = byKey.get(key);
  if (!method) return NaN;
  const found = data.ratios.map((name) => method.fitted[name]).find((column) => column);
  return found ? found[cell] : NaN;
}

const curves = (() => {
  const { points } = data.curves;
  const place = new Map(data.curves.cells.map((cell, index) => [cell, index]));
  const stored = { oracle: new Uint16Array(bytes(data.curves.oracle)), loo: new Uint16Array(bytes(data.curves.loo)) };
  return (which, cell) => {
    const index = place.get(cell);
    if (index === undefined || !points) return null;
    const part = stored[which].subarray(points * index, points * (index + 1));
    return part[0] === 65535 ? null : Array.from(part, (value) => value / 100);
  };
})();

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return made;
}

const button = (text, onclick, more = {}) => element("button", { type: "button", onclick, ...more }, text);
const dataCells = (values) => values.map((value) => element("td", {}, value));
const headOf = (texts) => element("thead", {}, element("tr", {}, ...texts.map((text) => element("th", { scope: "col" }, text))));
const scrolling = (label, ...parts) =>
  element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, element("table", {}, ...parts));

const shotsOf = (cells) => [...new Set(cells.map((cell) => axes.shots.at(cell)))].sort((a, b) => a - b);
const datasetsOf = (cells) => new Set(cells.map((cell) => axes.dataset.codes[cell])).size;

const ABSENT = "–";
const number = (value, digits = 1) => (Number.isFinite(value) ? value.toFixed(digits).replace("-", "−") : ABSENT);
const signed = (value, digits = 2) =>
  !Number.isFinite(value) ? ABSENT : (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
const cellName = (cell) => {
  const profile = severalProfiles ? `, ${axes.profile.at(cell)}` : "";
  return `${axes.dataset.at(cell)}, ${axes.backbone.at(cell)}, ${axes.tier.at(cell)}, K=${axes.shots.at(cell)}, seed ${axes.seed.at(cell)}${profile}`;
};
