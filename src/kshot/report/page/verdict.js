// The verdict again, in the report's own words, about the cells that the filters leave.
const said = (name, values = {}) => data.verdict.words[name].replace(/{(\w+)}/g, (_, key) => String(values[key]));

function verdictOf(cells) {
  if (!cells.length) return ["No cell is left; widen the filters."];
  const known = cells.filter(hasText);
  if (!known.length) return [said("no text")];
  const shots = [...new Set(known.map((cell) => axes.shots.at(cell)))].sort((a, b) => a - b);
  const ranked = guarded(known, shots), left = [...cutShort(known, ranked, shots), ...notInTier()];
  if (!ranked.length) return [said("no leader"), ...left];
  return [...worthOf(ranked), ...probesOf(ranked), ...leaderOf(ranked), ...caveatsOf(ranked, left)];
}

const hasResult = (cells, method) => Boolean(method) && cells.some((cell) => Number.isFinite(method.accuracy[cell]));

// Combinations that are not there at every K, each with what it lacks.
function cutShort(known, ranked, shots) {
  const kept = new Set(ranked), found = new Map();
  for (const cell of known.filter((one) => !kept.has(one))) {
    const name = `${axes.dataset.at(cell)} with ${axes.backbone.at(cell)}`;
    found.set(name, (found.get(name) ?? new Set()).add(axes.shots.at(cell)));
  }
  const named = [...found.keys()].sort((a, b) => (a < b ? -1 : 1))
    .map((name) => `${name} (without ${shots.filter((k) => !found.get(name).has(k)).map((k) => `K=${k}`).join(", ")})`);
  return named.length ? [said("at every K", { named: named.join(", ") })] : [];
}

// Chosen datasets that the records do not hold in the chosen tier.
function notInTier() {
  const there = new Set(allCells.filter((cell) => axes.tier.at(cell) === state.tier && hasText(cell)).map((cell) => axes.dataset.at(cell)));
  const absent = [...state.datasets].filter((name) => !there.has(name)).sort();
  return absent.length ? [said("in the tier", { tier: state.tier, named: absent.join(", ") })] : [];
}

function worthOf(cells) {
  const [oracle, text, pictures] = ["oracle_lambda", "zero_shot", "ncm"].map((key) => byKey.get(key));
  if (!hasResult(cells, oracle)) return [said("no oracle")];
  const better = (cell) => oracle.accuracy[cell] - Math.max(text.accuracy[cell], pictures.accuracy[cell]);
  const overEnds = text && pictures ? clusterMean(cells, better) : { n: 0 }, ends = overEnds.n ? said("ends", { gain: interval(overEnds) }) : "";
  const chosen = Object.entries(data.verdict.chosen).filter(([key]) => byKey.has(key)).map(([key, how]) => {
    const method = byKey.get(key), gap = paired(cells, method, oracle);
    return gap.n ? said("chosen", { how, title: method.title, gap: interval(gap), n: gap.n }) : "";
  });
  const gain = text ? paired(cells, oracle, text) : { n: 0 }, worth = gain.n ? said("worth", { gain: interval(gain), ends }) : "";
  return [worth, ...chosen].filter(Boolean);
}

function probesOf(cells) {
  const oracle = byKey.get("oracle_lambda"), late = cells.filter((cell) => axes.shots.at(cell) >= 4);
  return data.verdict.probes.flatMap((key) => {
    const method = byKey.get(key);
    if (!hasResult(cells, method)) return method || ["clap", "lpp"].includes(key) ? [said("no probe", { method: method?.title ?? key })] : [];
    const surplus = oracle ? paired(cells, method, oracle) : { n: 0 }, from4 = oracle ? paired(late, method, oracle) : { n: 0 };
    if (!surplus.n) return [];
    const stands = !Number.isFinite(surplus.low) ? "unsure" : surplus.low > 0 ? "above" : surplus.high < 0 ? "below" : "level";
    return [said("probe", { title: method.title, stands: said(stands), overall: interval(surplus),
      late: from4.n ? said("late", { late: interval(from4) }) : "" })];
  });
}

function leaderOf(cells) {
  const free = standings(cells, methods[0]).rows.filter((row) => !row.method.reference && Number.isFinite(row.mean))
    .sort((a, b) => b.mean - a.mean || (a.method.key < b.method.key ? -1 : 1));
  if (!free.length) return [said("no leader")];
  const leader = free[0].method, G = datasetsOf(cells);
  const { counted, rows } = standings(cells, leader);
  const compared = free.slice(1).map((row) => rows.find((other) => other.method === row.method)).filter((row) => row.against.n);
  const ties = (row) => Number.isFinite(row.against.low) && row.against.low <= 0 && row.against.high >= 0;
  const tied = compared.filter(ties).map((row) => `${row.method.title} ${interval(row.against)}`);
  const most = data.verdict.most_tied, more = tied.length > most ? said("more", { n: tied.length - most }) : "";
  const others = !compared.length ? said("only one") : G === 1 ? said("no ties")
    : tied.length ? said("tied", { G, titles: tied.slice(0, most).join(", ") }) + more : said("alone");
  return [said("leader", { title: leader.title, mean: number(free[0].mean), counted: countedShots(counted), others })];
}

const datasetsOf = (cells) => new Set(cells.map((cell) => axes.dataset.codes[cell])).size;

function caveatsOf(cells, left) {
  const G = datasetsOf(cells);
  return [said(G === 1 ? "one dataset" : "cells", { tier: axes.tier.at(cells[0]), n: cells.length, G }), ...left, ...(data.failed ? [said("failed", {failed: data.failed})] : []),
    ...(data.simulated ? [said("simulated")] : [])];
}

// Sentences that a command put in front of the report stay as they are.
function renderVerdict(cells) {
  const place = document.getElementById("verdict-sentences");
  if (place) place.replaceChildren(...verdictOf(cells).map((sentence) => element("li", {}, sentence)));
}
