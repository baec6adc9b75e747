// Small SVG charts: linear scales, axes, marks that answer to pointer and keyboard.
const tooltip = document.getElementById("tooltip");

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return made;
}

function readable(mark, words) {
  mark.setAttribute("tabindex", "0");
  mark.setAttribute("role", "img");
  mark.setAttribute("aria-label", words.replaceAll("\n", ", "));
  mark.classList.add("mark");
  const show = () => {
    tooltip.textContent = words;
    tooltip.hidden = false;
    const box = mark.getBoundingClientRect(), own = tooltip.getBoundingClientRect();
    const left = Math.min(Math.max(4, box.left + box.width / 2 - own.width / 2), innerWidth - own.width - 4);
    const above = box.top - own.height - 8;
    tooltip.style.left = `${left}px`;
    tooltip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
  };
  const hide = () => { tooltip.hidden = true; };
  mark.addEventListener("pointerenter", show);
  mark.addEventListener("pointerleave", hide);
  mark.addEventListener("focus", show);
  mark.addEventListener("blur", hide);
  return mark;
}
addEventListener("keydown", (event) => { if (event.key === "Escape") tooltip.hidden = true; });

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
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label });
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

// Eight colours with circles, the same eight dashed with squares, then dotted with triangles: never colour alone.
const COLOURS = 8;
const colour = (method) => method.place % COLOURS;
const round = (method) => Math.floor(method.place / COLOURS);

function dot(method, x, y, size = 4) {
  const kind = `${method.reference ? `hollow s${colour(method)}` : `f${colour(method)}`}`;
  if (round(method) === 0) return svg("circle", { class: kind, cx: x, cy: y, r: size });
  if (round(method) === 1) return svg("rect", { class: kind, x: x - size, y: y - size, width: 2 * size, height: 2 * size });
  return svg("path", { class: kind, d: `M${x - size} ${y + size}L${x + size} ${y + size}L${x} ${y - size}Z` });
}

function line(method, points) {
  const broken = round(method) > 1 ? " dotted" : round(method) || method.reference ? " dashed" : "";
  return svg("path", { class: `line s${colour(method)}${broken}`, d: pathOf(points) });
}
