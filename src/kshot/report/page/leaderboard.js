// Filters, and the table that is computed anew from what they leave.
const WITH_TEXT = " with text";
const state = { backbone: WITH_TEXT, tier: data.focus.tier, profile: data.focus.profile, shots: new Set(axes.shots.names), datasets: new Set(data.focus.datasets),
  baseline: byKey.has("oracle_lambda") ? "oracle_lambda" : methods[0].key, metric: "accuracy", sort: "mean", descending: true };
const listeners = [];

function chosenCells() {
  return allCells.filter((cell) =>
    (state.backbone === WITH_TEXT ? noneHasText || hasText(cell) : axes.backbone.at(cell) === state.backbone) &&
    axes.tier.at(cell) === state.tier && axes.profile.at(cell) === state.profile && state.shots.has(axes.shots.at(cell)) && state.datasets.has(axes.dataset.at(cell)));
}

function options(select, values, chosen, text = (value) => value) {
  select.replaceChildren(...values.map((value) => element("option", { value, selected: value === chosen }, text(value))));
}

function checkboxes(fieldset, values, chosen, text) {
  for (const value of values) {
    const box = element("input", { type: "checkbox", value, onchange: () => {
      if (box.checked) chosen.add(value); else chosen.delete(value);
      refresh();
    } });
    fieldset.append(element("label", {}, box, text(value)));
  }
  fieldset.append(allOrNone(fieldset.querySelector("legend").textContent, (wanted) => {
    for (const value of values) if (wanted) chosen.add(value); else chosen.delete(value);
    showFilters();
    refresh();
  }));
}

function allOrNone(what, choose) {
  const choice = (word, wanted) => button(word, () => choose(wanted), { "aria-label": `${what}: ${word}` });
  return element("span", { class: "tools" }, choice("all", true), choice("none", false));
}

// The controls say what the state is.
function showFilters() {
  for (const name of ["backbone", "tier", "profile", "baseline", "metric"]) document.getElementById(`filter-${name}`).value = state[name];
  for (const [name, chosen] of [["shots", state.shots], ["dataset", state.datasets]])
    document.querySelectorAll(`#filter-${name} input`).forEach((box, index) => { box.checked = chosen.has(axes[name].names[index]); });
}

function keepFilters() {
  const known = { backbone: [WITH_TEXT, ...axes.backbone.names], tier: axes.tier.names, profile: axes.profile.names, baseline: [...byKey.keys()], metric: Object.keys(data.metrics) };
  const first = { ...state };
  for (const [name, values] of Object.entries(known))
    keep(name, () => [state[name]], ([word]) => { state[name] = values.includes(word) ? word : first[name]; });
  keep("sort", () => [`${state.descending ? "-" : ""}${state.sort}`], ([word = ""]) => {
    const sort = /^-?(title|mean|against|beside|n|K\d+)$/.test(word) ? word : `-${first.sort}`;
    Object.assign(state, { sort: sort.replace("-", ""), descending: sort.startsWith("-") });
  });
  keepChosen("shots", axes.shots.names, state.shots);
  keepChosen("dataset", axes.dataset.names, state.datasets);
}

function buildFilters() {
  const pick = (id, name) => {
    const select = document.getElementById(id);
    select.addEventListener("change", () => { state[name] = select.value; refresh(); });
    return select;
  };
  options(pick("filter-backbone", "backbone"), [WITH_TEXT, ...axes.backbone.names], state.backbone,
    (value) => (value === WITH_TEXT ? (noneHasText ? "all" : "all with text") : value));
  options(pick("filter-tier", "tier"), axes.tier.names, state.tier);
  const profile = pick("filter-profile", "profile");
  options(profile, axes.profile.names, state.profile);
  profile.parentElement.hidden = !severalProfiles;
  options(pick("filter-baseline", "baseline"), methods.map((method) => method.key), state.baseline,
    (key) => byKey.get(key).title);
  const metric = document.getElementById("filter-metric");
  options(metric, Object.keys(data.metrics), state.metric, (key) => data.metrics[key].title);
  metric.addEventListener("change", () => {
    // The best stands first, whichever way the metric counts.
    Object.assign(state, { metric: metric.value, sort: "mean", descending: !data.metrics[metric.value].less });
    refresh();
  });
  checkboxes(document.getElementById("filter-shots"), axes.shots.names, state.shots, (value) => `K=${value}`);
  checkboxes(document.getElementById("filter-dataset"), axes.dataset.names, state.datasets, (value) => value);
  document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
  showFilters();
}

function standings(cells, baseline, metric = "accuracy") {
  const shots = shotsOf(cells);
  const kept = guarded(cells, shots), counted = counting(kept);
  const columns = new Map(shots.map((k) => [k, kept.filter((cell) => axes.shots.at(cell) === k)]));
  const rows = methods.map((method) => ({ method, means: shots.map((k) => meanOver(columns.get(k), method, metric)),
    mean: meanOver(counted, method, metric), against: sideBySide(counted, method, baseline, metric) }));
  return { shots, kept, counted, rows };
}

function sortValue(row, shots) {
  if (state.sort === "title") return row.method.title;
  if (state.sort === "mean") return row.mean;
  if (state.sort === "against" || state.sort === "beside") return row.against.mean;
  if (state.sort === "n") return row.against.n;
  return row.means[shots.indexOf(Number(state.sort.slice(1)))] ?? NaN;
}

function compare(a, b) {
  const missing = (value) => typeof value === "number" && !Number.isFinite(value);
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const order = typeof a === "string" ? a.localeCompare(b) : a - b;
  return state.descending ? -order : order;
}

function renderBoard(cells) {
  const { shots, kept, counted, rows } = standings(cells, byKey.get(state.baseline), state.metric);
  const { digits, less, scale } = data.metrics[state.metric], finest = less ? Math.min : Math.max;
  const which = countedShots(kept), G = datasetsOf(kept), here = onTheseDatasets(G);
  const both = rows.some((row) => row.against.beside);
  const headings = [["title", "Method"], ...shots.map((k) => [`K${k}`, `K=${k}`]), ["mean", `mean ${which}`],
    ["against", `minus ${byKey.get(state.baseline).title}${here && ` ${here}`}, ${which}`],
    ...(both ? [["beside", `on these ${G} datasets`]] : []), ["n", "n"]];
  const head = element("tr", {}, ...headings.map(([key, text]) =>
    element("th", { scope: "col", "aria-sort": state.sort === key ? (state.descending ? "descending" : "ascending") : "none" },
      element("button", { type: "button", "data-sort": key, onclick: () => {
        state.descending = state.sort === key ? !state.descending : key !== "title";
        state.sort = key;
        refresh();
        document.querySelector(`#board [data-sort="${key}"]`).focus();
      } }, text))));
  rows.sort((a, b) => compare(sortValue(a, shots), sortValue(b, shots)));
  const free = rows.filter((row) => !row.method.reference);
  const best = [...shots.map((_, j) => finest(...free.map((r) => r.means[j]).filter(Number.isFinite)))];
  const bestMean = finest(...free.map((row) => row.mean).filter(Number.isFinite));
  const body = (part, kind) => element("tbody", { class: kind }, ...part.map((row) => element("tr", { "data-method": row.method.key },
    element("th", { scope: "row" }, element("a", { href: `#method-${row.method.key}` }, row.method.title)),
    ...row.means.map((value, j) => element("td", { class: !row.method.reference && value === best[j] ? "best" : null }, number(value, digits))),
    element("td", { class: !row.method.reference && row.mean === bestMean ? "best" : null }, number(row.mean, digits)),
    element("td", {}, row.method.key === state.baseline ? "the reference" : interval(row.against, digits + (scale === 100))),
    ...(both ? [element("td", { class: "beside" }, row.against.beside && row.method.key !== state.baseline ? ends(row.against.beside, digits + (scale === 100)) : ABSENT)] : []),
    element("td", {}, row.against.n))));
  const apart = (transductive) => rows.filter((row) => row.method.reference && row.method.transductive === transductive);
  document.getElementById("board").replaceChildren(element("thead", {}, head), body(free, null),
    body(apart(true), "transductive"), body(apart(false), "reference"));
  const ofAccuracy = state.metric === "accuracy" && data.hit_bytes;
  const intervals = !here ? `Intervals: Student-t on the cluster-bootstrap standard error over datasets, ${data.resamples.toLocaleString("en")} resamples` +
      (both ? "; beside them, over draws of shots and test pictures (crossed) on these datasets alone. " : ". ")
    : ofAccuracy ? `Intervals: over draws of shots and test pictures (crossed), ${here}; they say nothing about other datasets. `
    : "No intervals: fewer than three datasets; those over draws and pictures exist for accuracy, and where the page has room for hits. ";
  document.getElementById("board-note").textContent = kept.length
    ? `${kept.length} cells in ${G} dataset${G === 1 ? "" : "s"}, ${kept.length < cells.length ? `of ${cells.length} chosen; the others lack some of the shown K` : "all that were chosen"}. ` +
      `Mean and difference count the ${counted.length} with ${which}, the same in every row; a method that lacks one of them has no mean. ` +
      intervals + (data.hits_thinned && (both || (here && ofAccuracy)) ? `${data.hits_thinned} ` : "") +
      (apart(true).length ? "Below the first rule: transductive heads, which saw all test pictures at once; they are not ranked. " : "") +
      "Below the last rule: reference points, which look at what a user does not have; they are not ranked."
    : "No cell is left; widen the filters.";
}

function refresh() {
  const cells = chosenCells();
  renderBoard(cells);
  for (const listener of listeners) listener(cells);
  remember();
}
