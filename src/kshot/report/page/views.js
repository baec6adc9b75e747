// The figures of the report as charts that follow the filters.
const shown = new Set(data.order.slice(0, COLOURS));
// Of a board with hundreds of entries the charts offer the best.
const MOST = 40;
const charted = methods.filter((method) => method.place < MOST);

function swatch(method) {
  const picture = svg("svg", { width: 26, height: 12, "aria-hidden": "true" });
  picture.append(line(method, [[1, 6], [25, 6]]), dot(method, 13, 6, 3.5));
  return picture;
}

function buildLegend() {
  document.getElementById("legend").append(...charted.map((method) =>
    element("button", { type: "button", "data-legend": method.key, onclick: () => {
      if (shown.has(method.key)) shown.delete(method.key); else shown.add(method.key);
      renderShots(chosenCells());
      remember();
    } }, swatch(method), method.title)));
  keepChosen("line", charted.map((method) => method.key), shown);
}

function renderBars(cells) {
  const place = document.getElementById("bars"), caption = document.getElementById("bars-caption");
  const late = guarded(cells, shotsOf(cells)).filter((cell) => axes.shots.at(cell) >= 4);
  const rows = charted.map((method) => ({ method, found: { mean: meanOver(late, method), n: late.length, clusters: datasetsOf(late) } }))
    .filter((row) => Number.isFinite(row.found.mean)).sort((a, b) => b.found.mean - a.found.mean);
  const absent = charted.filter((method) => rows.every((row) => row.method !== method)).map((method) => method.title);
  const x = extent(rows.map((row) => row.found.mean), 0.25).map((end) => Math.max(0, end));
  caption.textContent = rows.length ? `Mean accuracy, K ≥ 4, over ${late.length} cells, the same for every bar; the dashed line is the oracle ratio${x[0] > 0 ? ". The axis does not start at zero" : ""}`
    + (absent.length ? `. Not in all of these cells, so without a bar: ${absent.join(", ")}` : "")
    : "Mean accuracy: no cell with K ≥ 4 is left by the filters";
  if (!rows.length) return place.replaceChildren();
  const width = 560, step = 26, left = 226, height = rows.length * step + 40;
  const { root, sx } = frame({ width, height, left, right: 60, x, y: [0, 1], label: caption.textContent, xName: "%" });
  root.querySelectorAll("text[text-anchor=end]").forEach((text) => text.remove());
  root.querySelectorAll("line.grid").forEach((grid) => { if (grid.getAttribute("y1") === grid.getAttribute("y2")) grid.remove(); });
  rows.forEach(({ method, found }, index) => {
    const y = 12 + index * step;
    const words = `${method.title}: ${number(found.mean)} %\n${found.n} cells, ${found.clusters} datasets`;
    root.append(svg("text", { x: left - 20, y: y + 14, "text-anchor": "end", class: method.reference ? "" : "strong" }, clipped(method.title, 27)));
    root.append(dot(method, left - 10, y + 9, 3.5));
    root.append(readable(svg("rect", { class: method.reference ? `hollow s${colour(method)}` : `f${colour(method)}`, x: left, y, rx: 2,
      width: Math.max(1, sx(found.mean) - left), height: step - 8 }), words));
  });
  const oracle = rows.find((row) => row.method.key === "oracle_lambda");
  if (oracle) root.append(svg("line", { class: "handle dash1", x1: sx(oracle.found.mean), x2: sx(oracle.found.mean), y1: 6, y2: height - 34 }));
  rows.forEach(({ found }, index) => root.append(svg("text", { x: width - 50, y: 26 + index * step }, number(found.mean))));
  place.replaceChildren(root);
}

const clipped = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function renderShots(cells) {
  const place = document.getElementById("shots");
  for (const button of document.querySelectorAll("#legend [data-legend]")) button.setAttribute("aria-pressed", shown.has(button.dataset.legend));
  const backbone = state.backbone === WITH_TEXT ? data.focus.backbone : state.backbone;
  const names = [...new Set(cells.map((cell) => axes.dataset.at(cell)))];
  document.getElementById("shots-caption").textContent = `Accuracy (%) against shots, ${backbone} where a dataset has it, tier ${state.tier}, means over seeds`;
  place.replaceChildren(...names.map((name) => {
    const all = cells.filter((cell) => axes.dataset.at(cell) === name);
    const by = all.some((cell) => axes.backbone.at(cell) === backbone) ? backbone : axes.backbone.at(all[0]);
    const here = all.filter((cell) => axes.backbone.at(cell) === by);
    const shots = shotsOf(here);
    const series = methods.filter((method) => shown.has(method.key)).map((method) => ({ method, points: shots.map((k) =>
      [k, meanOver(here.filter((cell) => axes.shots.at(cell) === k), method)]).filter(([, value]) => Number.isFinite(value)) }));
    const { root, sx, sy } = frame({ width: 300, height: 210, left: 34, bottom: 34, label: `${name}: accuracy against shots`,
      x: [Math.log2(shots[0]) - 0.2, Math.log2(shots[shots.length - 1]) + 0.2], xTicks: shots.map(Math.log2), xText: (v) => 2 ** v,
      y: extent(series.flatMap((one) => one.points.map((point) => point[1]))), xName: "shots per class" });
    for (const { method, points } of series) root.append(line(method, points.map(([k, v]) => [sx(Math.log2(k)), sy(v)])));
    for (const { method, points } of series)
      for (const [k, value] of points)
        root.append(readable(dot(method, sx(Math.log2(k)), sy(value), 3.5), `${method.title}\n${name}, K=${k}: ${number(value)} %`, method.key));
    return element("div", {}, element("h3", {}, by === backbone ? name : `${name}, ${by}`), root);
  }));
}

function renderRatios(cells) {
  const place = document.getElementById("ratios"), caption = document.getElementById("ratios-caption");
  const kinds = ["js_blend", "loo_blend"].map((key) => byKey.get(key)).filter(Boolean);
  const points = kinds.flatMap((method) => cells.map((cell) => ({ method, cell, x: ratioOf("oracle_lambda", cell), y: ratioOf(method.key, cell) })))
    .filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
  caption.textContent = points.length ? "Estimated against oracle ratio, one mark per cell; Enter or a click opens the cell in the explorer"
    : "Estimated against oracle ratio: the filters leave no cell with an oracle and an estimate";
  if (!points.length) return place.replaceChildren();
  const limit = 1500, used = points.length > limit ? points.filter((_, index) => index % Math.ceil(points.length / limit) === 0) : points;
  const { root, sx, sy } = frame({ width: 520, height: 420, x: [-0.03, 1.03], y: [-0.03, 1.03], xTicks: [0, 0.25, 0.5, 0.75, 1],
    xName: "oracle ratio", yName: "estimated ratio", label: caption.textContent });
  root.append(svg("line", { class: "axis dash1", x1: sx(0), y1: sy(0), x2: sx(1), y2: sy(1) }));
  for (const point of used) {
    const mark = readable(dot(point.method, sx(point.x), sy(point.y), 3.5),
      `${point.method.title}: λ = ${number(point.y, 2)}, oracle ${number(point.x, 2)}\n${cellName(point.cell)}`, point.method.key,
      () => { openExplorer(point.cell); slider.focus(); });
    mark.setAttribute("fill-opacity", "0.6");
    mark.setAttribute("data-cell", point.cell);
    root.append(mark);
  }
  const key = element("p", { class: "legend" }, ...kinds.map((method) => element("span", {}, swatch(method), ` ${method.title}`)));
  place.replaceChildren(key, root);
}

function renderHeadroom() {
  const clap = byKey.get("clap"), oracle = byKey.get("oracle_lambda");
  if (!data.headroom.length || !clap || !oracle) return;
  const points = data.headroom.map(([dataset, backbone, headroom]) => {
    const cells = allCells.filter((cell) => axes.dataset.at(cell) === dataset && axes.backbone.at(cell) === backbone && axes.tier.at(cell) === data.focus.tier);
    return { dataset, backbone, headroom, surplus: clusterMean(cells, (cell) => clap.accuracy[cell] - oracle.accuracy[cell]).mean };
  }).filter((point) => Number.isFinite(point.surplus));
  const { root, sx, sy } = frame({ width: 520, height: 340, x: extent(points.map((p) => p.headroom)), y: extent(points.map((p) => p.surplus)),
    xName: "predicted headroom (points)", yName: "CLAP − oracle (points)", label: "Headroom against surplus" });
  for (const p of points) root.append(readable(dot(clap, sx(p.headroom), sy(p.surplus)), `${p.dataset}, ${p.backbone}\nheadroom ${number(p.headroom, 2)}, surplus ${signed(p.surplus)}`));
  document.getElementById("headroom-caption").textContent = "Predicted headroom against CLAP's measured surplus over the oracle ratio, one mark per stratum";
  document.getElementById("headroom").replaceChildren(root);
  document.getElementById("headroom-figure").hidden = false;
}
