// Drag the ratio on one cell: accuracy, prototype error, where the estimates sit, how the prototypes move.
const PICKS = ["dataset", "backbone", "tier", "shots", "seed", ...(severalProfiles ? ["profile"] : [])];
const explorer = { cell: 0 };
const slider = document.getElementById("lambda");
// The slider's places are the points of the stored curves.
if (data.curves.points) slider.max = data.curves.points - 1;
const lastPoint = Number(slider.max);
const ratioAt = (point) => point / lastPoint;
const pointAt = (ratio) => Math.round(lastPoint * ratio);

function buildPicker() {
  const form = document.getElementById("cell-picker");
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const name of PICKS) {
    const select = element("select", { id: `pick-${name}`, onchange: () => {
      const wanted = Object.fromEntries(PICKS.map((pick) => [pick, document.getElementById(`pick-${pick}`).value]));
      openExplorer(nearestCell(wanted, name));
    } });
    options(select, axes[name].names.map(String), String(axes[name].at(explorer.cell)));
    form.append(element("label", {}, name === "shots" ? "shots K" : name, select));
  }
}

// The chosen axis is kept; of the others as many as possible.
function nearestCell(wanted, kept) {
  let best = explorer.cell, most = -1;
  for (const cell of allCells) {
    if (String(axes[kept].at(cell)) !== wanted[kept]) continue;
    const same = PICKS.filter((name) => String(axes[name].at(cell)) === wanted[name]).length;
    if (same > most) { most = same; best = cell; }
  }
  return best;
}

function openExplorer(cell) {
  explorer.cell = cell;
  for (const name of PICKS) document.getElementById(`pick-${name}`).value = String(axes[name].at(cell));
  const start = ratioOf("loo_blend", cell);
  explorer.start = slider.value = String(pointAt(Number.isFinite(start) ? start : 0.5));
  renderProfile();
  renderPaths();
  remember();
}

const namesOf = (cell) => PICKS.map((name) => String(axes[name].at(cell)));
const cellOf = (names) => allCells.find((cell) => namesOf(cell).every((name, index) => name === names[index]));

function keepExplorer() {
  const first = explorer.cell;
  keep("cell", () => namesOf(explorer.cell), (names) => openExplorer(cellOf(names) ?? first));
  keep("ratio", () => (slider.value === explorer.start ? [] : [String(ratioAt(slider.value))]), ([ratio]) => {
    if (ratio) slider.value = pointAt(Number(ratio));
    moved();
  });
}

const prototypeError = (cell, ratio) =>
  ratio ** 2 * facts.v[cell] + (1 - ratio) ** 2 * Math.max(facts.d2[cell] - facts.v[cell], 0);

function renderProfile() {
  const place = document.getElementById("profile"), cell = explorer.cell;
  const test = curves("oracle", cell), loo = curves("loo", cell);
  if (!test && !loo) {
    const kept = data.curves.cells.length < data.curves.total;
    place.replaceChildren(element("p", {}, kept ? "This cell's curve is not carried by the page, which keeps those of the lowest seeds to stay small. Choose another seed."
      : "The records hold no accuracy curve for this cell: neither the oracle ratio nor the LOO blend ran on it."));
    explorer.move = null;
    return readout();
  }
  const y = extent([...(test ?? []), ...(loo ?? [])]);
  const chart = frame({ width: 560, height: 360, right: 46, top: 48, x: [0, 1], y, xTicks: [0, 0.25, 0.5, 0.75, 1], xName: "ratio λ", yName: "accuracy (%)",
    label: "Accuracy and prototype error against the ratio" });
  const { root, sx, sy } = chart;
  const errors = Array.from({ length: lastPoint + 1 }, (_, index) => prototypeError(cell, ratioAt(index)));
  if (Number.isFinite(errors[0])) {
    const [low, high] = extent(errors), ey = (value) => chart.height - chart.bottom - ((value - low) / (high - low)) * (chart.height - chart.top - chart.bottom);
    root.append(svg("path", { class: "line s7 dash1", d: pathOf(errors.map((value, index) => [sx(ratioAt(index)), ey(value)])) }));
    root.append(svg("text", { x: chart.width - 8, y: 190, "text-anchor": "middle", transform: `rotate(90 ${chart.width - 8} 190)` }, "prototype error (own scale)"));
  }
  const draw = (curve, ink, name) => {
    if (!curve) return;
    root.append(svg("path", { class: `line ${ink}`, d: pathOf(curve.map((value, index) => [sx(ratioAt(index)), sy(value)])) }, svg("title", {}, name)));
  };
  const leaving = byKey.get("loo_blend");
  draw(loo, leaving && inkOf(leaving), "leave-one-out accuracy on the shots");
  draw(test, "ink", "accuracy on the test set");
  const estimates = [["oracle_lambda", "oracle"], ["loo_blend", "LOO"], ["js_blend", "JS"]];
  estimates.forEach(([key, name], index) => {
    const ratio = ratioOf(key, cell), method = byKey.get(key);
    if (!Number.isFinite(ratio)) return;
    const on = (test ?? loo)[pointAt(ratio)];
    root.append(svg("line", { class: `line s${colour(method)} dash2`, x1: sx(ratio), x2: sx(ratio), y1: 12 + 13 * index, y2: chart.height - chart.bottom }));
    const mark = readable(dot(method, sx(ratio), sy(on), 6), `${method.title}: λ = ${number(ratio, 2)}, ${number(on)} %`);
    mark.setAttribute("data-ratio", key);
    root.append(mark);
    root.append(svg("text", { class: "strong", x: sx(ratio) + (ratio > 0.8 ? -5 : 5), y: 16 + 13 * index, "text-anchor": ratio > 0.8 ? "end" : "start" }, `${name} ${number(ratio, 2)}`));
  });
  const handle = svg("line", { class: "handle", y1: chart.top, y2: chart.height - chart.bottom });
  const knob = svg("circle", { class: "hollow handle", r: 7 });
  root.append(handle, knob);
  root.classList.add("dragging");
  explorer.move = () => {
    const ratio = ratioAt(slider.value), on = (test ?? loo)[Number(slider.value)];
    for (const [name, value] of [["x1", sx(ratio)], ["x2", sx(ratio)]]) handle.setAttribute(name, value);
    knob.setAttribute("cx", sx(ratio));
    knob.setAttribute("cy", sy(on));
  };
  const follow = (event) => {
    const box = root.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * chart.width;
    slider.value = pointAt(Math.min(1, Math.max(0, (at - chart.left) / (chart.width - chart.left - chart.right))));
    moved();
    remember();
  };
  root.addEventListener("pointerdown", (event) => { root.setPointerCapture(event.pointerId); follow(event); });
  root.addEventListener("pointermove", (event) => { if (event.buttons) follow(event); });
  const sample = (kind, words) => {
    const picture = svg("svg", { width: 26, height: 12, "aria-hidden": "true" }, svg("path", { class: `line ${kind}`, d: "M1 6L25 6" }));
    return element("span", {}, picture, words);
  };
  const key = element("p", { class: "legend" }, ...(test ? [sample("ink", "test accuracy")] : []), ...(loo ? [sample(inkOf(leaving), "leave-one-out accuracy on the shots")] : []),
    ...(Number.isFinite(errors[0]) ? [sample("s7 dash1", "expected squared prototype error, λ²v + (1−λ)²(d²−v)")] : []));
  place.replaceChildren(root, key);
  explorer.move();
  readout();
}

function readout() {
  const ratio = ratioAt(slider.value), test = curves("oracle", explorer.cell);
  const parts = [`λ = ${ratio.toFixed(2)}`];
  if (test) parts.push(`${number(test[Number(slider.value)])} % on the test set, ${signed(test[Number(slider.value)] - Math.max(...test), 1)} from the best ratio`);
  const error = prototypeError(explorer.cell, ratio);
  if (Number.isFinite(error)) parts.push(`prototype error ${number(error, 3)}`);
  document.getElementById("lambda-readout").textContent = parts.join("; ");
}

function renderPaths() {
  const place = document.getElementById("paths"), caption = document.getElementById("paths-caption"), cell = explorer.cell;
  const wanted = ["dataset", "backbone", "tier"].map((name) => axes[name].at(cell));
  const sketch = data.sketches.find((one) => one.stratum.every((name, index) => name === wanted[index]) && axes.profile.at(cell) === "balanced");
  explorer.slide = null;
  if (!sketch) {
    caption.textContent = "Prototype paths";
    return place.replaceChildren(element("p", {}, `No picture of the prototypes: ${axes.profile.at(cell) === "balanced" ? data.sketches_absent : "only balanced shots are drawn"}.`));
  }
  const shots = String(axes.shots.at(cell)), ends = sketch.support[shots] ?? sketch.image;
  const what = sketch.support[shots] ? `means of the shots of seed ${sketch.seed}` : "pool means";
  caption.textContent = `Prototype paths, ${sketch.names.length} of ${sketch.classes} classes, first two principal directions (${number(100 * sketch.explained, 0)} % of the variance). Hollow: text. Filled: ${what}. Moving: the blend.`;
  const every = [...sketch.text, ...sketch.image, ...ends];
  const { root, sx, sy } = frame({ width: 560, height: 340, x: extent(every.map((p) => p[0])), y: extent(every.map((p) => p[1])), label: "Prototype paths" });
  const blends = sketch.text.map(([tx, ty], index) => {
    const [ix, iy] = ends[index], name = sketch.names[index];
    root.append(svg("line", { class: "line s7 thin dash1", x1: sx(tx), y1: sy(ty), x2: sx(ix), y2: sy(iy) }));
    root.append(readable(svg("circle", { class: "hollow s1", cx: sx(tx), cy: sy(ty), r: 4 }), `${name}\ntext prototype`, "text"));
    root.append(readable(svg("circle", { class: "f0", cx: sx(ix), cy: sy(iy), r: 4 }), `${name}\nmean of the shots`, "shots"));
    const blend = svg("circle", { class: "f2", r: 4.5 });
    root.append(blend);
    return (ratio) => {
      blend.setAttribute("cx", sx(ratio * ix + (1 - ratio) * tx));
      blend.setAttribute("cy", sy(ratio * iy + (1 - ratio) * ty));
    };
  });
  explorer.slide = () => blends.forEach((move) => move(ratioAt(slider.value)));
  place.replaceChildren(root);
  explorer.slide();
}

function moved() {
  explorer.move?.();
  explorer.slide?.();
  readout();
}
slider.addEventListener("input", () => { moved(); remember(); });
