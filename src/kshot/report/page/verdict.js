// The verdict again, in the report's own words, about the cells that the filters leave.
const said = (name, values = {}) => data.verdict.words[name].replace(/{(\w+)}/g, (_, key) => String(values[key]));

function verdictOf(cells) {
  if (!cells.length) return ["No cell is left; widen the filters."];
  const known = cells.filter(hasText);
  if (!known.length) return [said("no text")];
  return [...worthOf(known), ...probesOf(known), ...leaderOf(known), ...caveatsOf(known)];
}

function worthOf(cells) {
  const [oracle, text, pictures] = ["oracle_lambda", "zero_shot", "ncm"].map((key) => byKey.get(key));
  if (!oracle) return [said("no oracle")];
  const better = (cell) => oracle.accuracy[cell] - Math.max(text.accuracy[cell], pictures.accuracy[cell]);
  const ends = text && pictures ? said("ends", { gain: interval(clusterMean(cells, better)) }) : "";
  const chosen = Object.entries(data.verdict.chosen).filter(([key]) => byKey.has(key)).map(([key, how]) => {
    const method = byKey.get(key), gap = paired(cells, method, oracle);
    return gap.n ? said("chosen", { how, title: method.title, gap: interval(gap), n: gap.n }) : "";
  });
  const worth = text ? said("worth", { gain: interval(paired(cells, oracle, text)), ends }) : "";
  return [worth, ...chosen].filter(Boolean);
}

function probesOf(cells) {
  const oracle = byKey.get("oracle_lambda"), late = cells.filter((cell) => axes.shots.at(cell) >= 4);
  return data.verdict.probes.flatMap((key) => {
    const method = byKey.get(key);
    if (!method) return ["clap", "lpp"].includes(key) ? [said("no probe", { method: key })] : [];
    if (!oracle) return [];
    const surplus = paired(cells, method, oracle);
    const stands = !Number.isFinite(surplus.low) ? "unsure" : surplus.low > 0 ? "above" : surplus.high < 0 ? "below" : "level";
    return [said("probe", { title: method.title, stands: said(stands), overall: interval(surplus), late: interval(paired(late, method, oracle)) })];
  });
}

function leaderOf(cells) {
  const free = standings(cells, methods[0]).rows.filter((row) => !row.method.reference && Number.isFinite(row.mean))
    .sort((a, b) => b.mean - a.mean || (a.method.key < b.method.key ? -1 : 1));
  if (!free.length) return [];
  const leader = free[0].method;
  const { counted, rows } = standings(cells, leader);
  const ties = (row) => row.method !== leader && Number.isFinite(row.against.low) && row.against.low <= 0 && row.against.high >= 0;
  const tied = free.slice(1).map((row) => rows.find((other) => other.method === row.method)).filter(ties).map((row) => row.method.title);
  const most = data.verdict.most_tied, more = tied.length > most ? said("more", { n: tied.length - most }) : "";
  const others = tied.length ? said("tied", { titles: tied.slice(0, most).join(", ") }) + more : said("alone");
  return [said("leader", { title: leader.title, mean: number(free[0].mean), counted: countedShots(counted), others })];
}

function caveatsOf(cells) {
  const datasets = new Set(cells.map((cell) => axes.dataset.codes[cell])).size;
  return [said("cells", { tier: axes.tier.at(cells[0]), n: cells.length, G: datasets }),
    ...(datasets === 1 ? [said("one dataset")] : []), ...(data.failed ? [said("failed", {failed: data.failed})] : []),
    ...(data.simulated ? [said("simulated")] : [])];
}

// Sentences that a command put in front of the report stay as they are.
function renderVerdict(cells) {
  const place = document.getElementById("verdict-sentences");
  if (place) place.replaceChildren(...verdictOf(cells).map((sentence) => element("li", {}, sentence)));
}
