// From a dataset to its cells to every fitted quantity and the split it was chosen from.
const PAGE = 60;
const opened = { dataset: null, cell: null };

function keepDrill() {
  keep("open", () => (opened.dataset === null ? [] : [opened.dataset]), ([name]) => renderCells(axes.dataset.names.includes(name) ? name : null, PAGE));
  keep("detail", () => (opened.cell === null ? [] : namesOf(opened.cell)), (names) => renderDetail(cellOf(names) ?? null));
}

function renderDatasets(chosen) {
  const probes = ["zero_shot", "loo_blend", "clap", "lpp", "oracle_lambda"].map((key) => byKey.get(key)).filter(Boolean);
  const rows = axes.dataset.names.map((name, code) => {
    const own = allCells.find((cell) => axes.dataset.codes[cell] === code);
    const cells = counting(chosen.filter((cell) => axes.dataset.codes[cell] === code));
    const open = () => { renderCells(name, PAGE); document.getElementById("cell-list-title").focus(); };
    return element("tr", { "data-dataset": name }, element("th", { scope: "row" }, name),
      ...dataCells([cells.length, number(facts.n_classes[own], 0), facts.n_test[own].toLocaleString("en"),
        ...probes.map((method) => number(meanOver(cells, method))), button("cells", open, { "aria-label": `cells of ${name}` })]));
  });
  const head = ["Dataset", `cells, ${countedShots(chosen)}`, "classes", "test pictures", ...probes.map((method) => method.title), ""];
  document.getElementById("dataset-table").replaceChildren(headOf(head), element("tbody", {}, ...rows));
}

function renderCells(name, limit) {
  opened.dataset = name;
  remember();
  if (name === null) return document.getElementById("cell-list").replaceChildren();
  const cells = allCells.filter((cell) => axes.dataset.at(cell) === name);
  const free = methods.filter((method) => !method.reference);
  const rows = cells.slice(0, limit).map((cell) => {
    const best = free.reduce((a, b) => ((b.accuracy[cell] || -1) > (a.accuracy[cell] || -1) ? b : a));
    const oracle = byKey.get("oracle_lambda")?.accuracy[cell] ?? NaN;
    const open = () => { renderDetail(cell); document.getElementById("cell-detail").focus(); };
    const where = ["tier", "shots", "seed", ...(severalProfiles ? ["profile"] : [])].map((axis) => axes[axis].at(cell));
    return element("tr", {}, element("th", { scope: "row" }, axes.backbone.at(cell)), ...dataCells([...where,
      `${best.title} ${number(best.accuracy[cell])}`, number(oracle), number(ratioOf("oracle_lambda", cell), 2),
      button("open", open, { "data-open": cell, "aria-label": `open ${cellName(cell)}` })]));
  });
  const head = ["Backbone", "tier", "K", "seed", ...(severalProfiles ? ["profile"] : []), "best validation-free head (%)", "oracle ratio (%)", "oracle λ", ""];
  const more = cells.length > limit ? element("p", {}, button(`show more of ${cells.length} cells`, () => renderCells(name, limit + 240))) : "";
  document.getElementById("cell-list").replaceChildren(element("h3", { tabindex: -1, id: "cell-list-title" }, `Cells of ${name}`),
    scrolling("Cells", headOf(head), element("tbody", {}, ...rows)), more);
}

function quantity(method, cell) {
  const origin = (name) => method.from[name] ?? method.from[name.split(".")[0]] ?? "unsaid";
  const numbers = Object.entries(method.fitted).filter(([, values]) => Number.isFinite(values[cell]))
    .map(([name, values]) => `${name} = ${Number(values[cell].toPrecision(4))} (from ${origin(name)})`);
  const words = Object.entries(method.words).filter(([, values]) => values.at(cell))
    .map(([name, values]) => `${name} = ${values.at(cell)} (from ${origin(name)})`);
  return [...numbers, ...words].join("; ") || "nothing fitted";
}

function renderDetail(cell) {
  const detail = document.getElementById("cell-detail");
  opened.cell = cell;
  remember();
  if (cell === null) return detail.replaceChildren();
  const rows = methods.map((method) => {
    const unusual = method.unusual.cells[cell];
    const known = Number.isFinite(method.accuracy[cell]);
    const words = known ? quantity(method, cell) : unusual === undefined ? "no record" : method.unusual.texts[unusual].join(": ");
    return element("tr", { class: method.reference ? "reference" : null, "data-detail": method.key }, element("th", { scope: "row" }, method.title),
      element("td", {}, number(method.accuracy[cell], 2)), element("td", {}, duration(method.fit_seconds[cell])),
      element("td", {}, duration(method.score_seconds[cell])), element("td", { class: "words" }, words));
  });
  rows.sort((a, b) => a.classList.contains("reference") - b.classList.contains("reference"));
  const geometry = [["James–Stein ratio (support)", facts.lambda_js], ["d² text to mean (support)", facts.d2], ["v of the mean (support)", facts.v],
    ["class-independent share (pool minus support)", facts.share]].map(([name, values]) => `${name}: ${number(values[cell], 4)}`).join("; ");
  const head = headOf(["Method", "accuracy %", "fit", "score", "fitted quantities, and the evidence each was chosen from"]);
  head.querySelector("th:last-child").className = "words";
  detail.replaceChildren(element("h3", {}, cellName(cell)), element("p", { class: "soft" }, geometry),
    element("p", {}, button("open in the ratio explorer", () => { openExplorer(cell); slider.focus(); })),
    scrolling("Methods on this cell", head, element("tbody", {}, ...rows)));
}

function duration(value) {
  if (!Number.isFinite(value)) return ABSENT;
  if (value >= 1) return `${value.toPrecision(3)} s`;
  return value >= 1e-3 ? `${(1e3 * value).toPrecision(3)} ms` : `${Number((1e6 * value).toPrecision(2))} µs`;
}
