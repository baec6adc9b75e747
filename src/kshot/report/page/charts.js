// Small SVG charts: linear scales, axes, marks that answer to pointer and keyboard.
const tooltip = document.getElementById("tooltip");

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return made;
}

// What a mark says and, where there is something to open, how. The chart listens for all of its marks.
const marks = new WeakMap();

function readable(mark, words, series = "", open = null) {
  for (const [name, value] of [["tabindex", "-1"], ["role", open ? "button" : "img"], ["aria-label", words.replaceAll("\n", ", ")]]) mark.setAttribute(name, value);
  mark.classList.add("mark");
  marks.set(mark, { words, series, open });
  return mark;
}

function showTooltip(mark) {
  tooltip.textContent = marks.get(mark).words;
  tooltip.hidden = false;
  const box = mark.getBoundingClientRect(), own = tooltip.getBoundingClientRect();
  const left = Math.min(Math.max(4, box.left + box.width / 2 - own.width / 2), innerWidth - own.width - 4);
  const above = box.top - own.height - 8;
  tooltip.style.left = `${left}px`;
  tooltip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
}
const hideTooltip = () => { tooltip.hidden = true; };
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTooltip(); });

// Left and right go along the marks, up and down from one series to the next.
const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
function nextMark(chart, from, key) {
  const all = [...chart.querySelectorAll(".mark")];
  if (key === "End") return all[all.length - 1];
  if (key === "Home" || !marks.has(from)) return all[0];
  const groups = new Map();
  for (const mark of all) {
    const { series } = marks.get(mark);
    if (!groups.has(series)) groups.set(series, []);
    groups.get(series).push(mark);
  }
  if (groups.size < 2 || key === "ArrowLeft" || key === "ArrowRight") return all[all.indexOf(from) + STEPS[key]];
  const lines = [...groups.values()], own = lines.findIndex((line) => line.includes(from));
  const other = lines[(own + STEPS[key] + lines.length) % lines.length];
  return other[Math.min(lines[own].indexOf(from), other.length - 1)];
}

// One stop of the Tab key for a chart, however many marks it has.
function listen(chart) {
  const on = (kind, act) => chart.addEventListener(kind, (event) => { if (marks.has(event.target)) act(event.target); });
  for (const kind of ["pointerover", "focusin"]) on(kind, showTooltip);
  for (const kind of ["pointerout", "focusout"]) on(kind, hideTooltip);
  on("click", (mark) => marks.get(mark).open?.());
  chart.addEventListener("keydown", (event) => {
    if (event.key === "Enter") return marks.get(event.target)?.open?.();
    if (!(event.key in STEPS) && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    nextMark(chart, event.target, event.key)?.focus();
  });
}

function extent(values, pad = 0.06) {
  const known = values.filter(Number.isFinite);
  if (!known.length) return [0, 1];
  const low = Math.min(...known), high = Math.max(...known), room = (high - low || 1) * pad;
  return [low - room, high + room];
}

function ticks([low, high], about = 5) {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9; value += step) found.push(Number(value.toFixed(6)));
  return found;
}

function frame({ width, height, left = 46, right = 14, top = 10, bottom = 34, x, y, xTicks, xName, yName, label, xText }) {
  const sx = (value) => left + ((value - x[0]) / (x[1] - x[0])) * (width - left - right);
  const sy = (value) => height - bottom - ((value - y[0]) / (y[1] - y[0])) * (height - top - bottom);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "chart", role: "group", tabindex: 0, "aria-label": label });
  listen(root);
  for (const value of ticks(y)) {
    root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: sy(value), y2: sy(value) }));
    root.append(svg("text", { x: left - 6, y: sy(value) + 4, "text-anchor": "end" }, value));
  }
  for (const value of xTicks ?? ticks(x)) {
    root.append(svg("line", { class: "grid", x1: sx(value), x2: sx(value), y1: top, y2: height - bottom }));
    root.append(svg("text", { x: sx(value), y: height - bottom + 16, "text-anchor": "middle" }, xText ? xText(value) : value));
  }
  root.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  if (xName) root.append(svg("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" }, xName));
  if (yName) root.append(svg("text", { x: 12, y: (top + height - bottom) / 2, "text-anchor": "middle",
    transform: `rotate(-90 12 ${(top + height - bottom) / 2})` }, yName));
  return { root, sx, sy, left, right, top, bottom, width, height };
}

const pathOf = (points) => points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// Eight colours, six marks and a dash for each round of eight: no two of 48 methods look alike, and few need colour for it.
const COLOURS = 8;
const colour = (method) => method.place % COLOURS;
const shapeOf = (method) => SHAPES[(method.place + Math.floor(method.place / 24)) % SHAPES.length];
const SHAPES = [null, [[-1, -1], [1, -1], [1, 1], [-1, 1]], [[-1.1, 1], [1.1, 1], [0, -1.1]], [[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]],
  [[-1.1, -1], [1.1, -1], [0, 1.1]], [[-1.3, -.4], [-.4, -.4], [-.4, -1.3], [.4, -1.3], [.4, -.4], [1.3, -.4], [1.3, .4], [.4, .4], [.4, 1.3], [-.4, 1.3], [-.4, .4], [-1.3, .4]]];

function dot(method, x, y, size = 4) {
  const kind = `${method.reference ? `hollow s${colour(method)}` : `f${colour(method)}`}`, shape = shapeOf(method);
  if (!shape) return svg("circle", { class: kind, cx: x, cy: y, r: size });
  return svg("path", { class: kind, d: `${pathOf(shape.map(([right, down]) => [x + size * right, y + size * down]))}Z` });
}

const inkOf = (method) => `s${colour(method)} dash${Math.floor(method.place / COLOURS) || Number(method.reference)}`;
const line = (method, points) => svg("path", { class: `line ${inkOf(method)}`, d: pathOf(points) });
