// One cell: drag the ratio, and read what every method answered, took and chose. Names only ever become textContent.
const data = JSON.parse(document.getElementById("data").textContent);
const slider = document.getElementById("lambda"), readout = document.getElementById("lambda-readout"), profile = document.getElementById("profile");
const CHOICES = [["oracle_lambda", "oracle", 6], ["loo_blend", "LOO", 2], ["js_blend", "James–Stein", 3]];
const number = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits).replace("-", "−") : "–");
let cell = data.cells[0], move = () => {};

function make(name, attributes = {}, ...children) {
  const drawn = ["svg", "path", "circle", "line", "text", "title"].includes(name);
  const element = drawn ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function buildPicker() {
  data.axes.forEach((axis, place) => {
    const names = [...new Set(data.cells.map((one) => one.names[place]))];
    if (axis === "profile" && names.length < 2) return;
    const select = make("select", { id: `pick-${axis}` }, ...names.map((name) => make("option", {}, name)));
    select.addEventListener("change", () => { openCell(nearest(place, select.value)); view.cell = cell.names.join("/"); remember(); });
    document.getElementById("cell-picker").append(make("label", {}, axis === "shots" ? "shots K" : axis, select));
  });
  document.getElementById("cell-note").textContent = data.cells.length < data.total
    ? `The page carries ${data.cells.length} of ${data.total} cells, those of the lowest seeds.` : "";
}

// The chosen axis is kept; of the others as many as possible.
function nearest(place, name) {
  const alike = (one) => one.names.filter((other, index) => other === cell.names[index]).length;
  return data.cells.filter((one) => one.names[place] === name).reduce((best, one) => (alike(one) > alike(best) ? one : best));
}

function showCell(address) {
  const chosen = data.cells.find((one) => one.names.join("/") === address);
  view.cell = chosen ? address : "";
  if (chosen ?? cell) openCell(chosen ?? cell);
}

function openCell(chosen) {
  cell = chosen;
  data.axes.forEach((axis, place) => { const select = document.getElementById(`pick-${axis}`); if (select) select.value = cell.names[place]; });
  drawProfile();
  listMethods();
}

const prototypeError = (ratio) => ratio ** 2 * cell.facts.v + (1 - ratio) ** 2 * Math.max(cell.facts.d2 - cell.facts.v, 0);

function drawProfile() {
  const { oracle: test, loo } = cell.curves, curve = test ?? loo;
  slider.disabled = !curve;
  if (!curve) {
    readout.textContent = "The records hold no accuracy curve for this cell.";
    return profile.replaceChildren();
  }
  const last = curve.length - 1;
  slider.max = last;
  const accuracies = CHOICES.map(([key]) => accuracyOf(key)).filter(Number.isFinite);
  const values = [...(test ?? []), ...(loo ?? []), ...accuracies], low = Math.min(...values), high = Math.max(...values);
  const x = (ratio) => 44 + 500 * ratio, y = (value) => 270 - (250 * (value - low)) / (high - low || 1);
  const line = (points, ink) => make("path", { class: `line ${ink}`, d: `M${points.map((value, index) => `${x(index / last).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}` });
  const root = make("svg", { viewBox: "0 0 720 310", role: "img", "aria-label": "Accuracy along the ratio" });
  for (const ratio of [0, 0.25, 0.5, 0.75, 1]) root.append(make("path", { class: "grid", d: `M${x(ratio)} 20V270` }), make("text", { x: x(ratio), y: 287, "text-anchor": "middle" }, String(ratio)));
  for (const value of [low, high]) root.append(make("text", { x: 38, y: y(value) + 4, "text-anchor": "end" }, number(value, 1)));
  root.append(make("text", { x: 294, y: 305, "text-anchor": "middle" }, "ratio λ (accuracy in %)"));
  if (loo) root.append(line(loo, "s4 dash1"), make("text", { class: "t4", x: 552, y: y(loo[last]) + 4 }, "leave-one-out on shots"));
  if (test) root.append(line(test, "s0"), make("text", { class: "t0", x: 552, y: y(test[last]) + (Math.abs(y(test[last]) - y((loo ?? test)[last])) < 14 ? 18 : 4) }, "test accuracy"));
  for (const [key, name, ink] of CHOICES) {
    const ratio = cell.ratios[key], accuracy = accuracyOf(key);
    if (!Number.isFinite(ratio) || !Number.isFinite(accuracy)) continue;
    const words = `${name}: λ = ${number(ratio, 2)}, ${number(accuracy, 1)} %`;
    root.append(make("circle", { class: `f${ink}`, "data-ratio": key, cx: x(ratio), cy: y(accuracy), r: 6 }, make("title", {}, words)),
      make("text", { class: `t${ink}`, x: x(ratio), y: y(accuracy) - 10, "text-anchor": ratio > 0.8 ? "end" : "middle" }, name));
  }
  const handle = make("line", { class: "handle", y1: 20, y2: 270 });
  root.append(handle);
  move = () => {
    const point = Number(slider.value), ratio = point / last, parts = [`λ = ${number(ratio, 2)}`];
    handle.setAttribute("x1", x(ratio));
    handle.setAttribute("x2", x(ratio));
    if (test) parts.push(`${number(test[point], 1)} % on the test set`);
    if (cell.facts.v !== null && cell.facts.d2 !== null) parts.push(`expected squared prototype error λ²v + (1−λ)²(d²−v) = ${number(prototypeError(ratio), 3)}`);
    readout.textContent = parts.join("; ");
  };
  slider.value = Math.round(last * (cell.ratios.loo_blend ?? 0.5));
  move();
  profile.replaceChildren(root);
}

function accuracyOf(key) {
  const place = data.methods.findIndex((method) => method.key === key);
  return place < 0 ? NaN : cell.methods[place][0] ?? NaN;
}

function listMethods() {
  const head = ["Method", "accuracy %", "fit", "score", "what it chose, and from what"];
  const rows = data.methods.map((method, place) => ({ ...method, values: cell.methods[place] }));
  rows.sort((a, b) => a.reference - b.reference || (b.values[0] ?? -1) - (a.values[0] ?? -1));
  document.getElementById("cell-methods").replaceChildren(
    make("thead", {}, make("tr", {}, ...head.map((text, place) => make("th", { scope: "col", class: place > 3 ? "words" : "" }, text)))),
    make("tbody", {}, ...rows.map(({ key, title, reference, values: [accuracy, fit, score, words] }) => make("tr", { class: reference ? "reference" : "", "data-method": key },
      make("th", { scope: "row" }, title), make("td", {}, number(accuracy ?? NaN, 2)), make("td", {}, fit ?? "–"), make("td", {}, score ?? "–"), make("td", { class: "words" }, words)))));
}

slider.addEventListener("input", () => move());
if (data.cells.length) buildPicker();
readAddress();
