// The verdict again, in the report's own words, about the cells that the filters leave.
const said = (name, values = {}) => data.verdict.words[name].replace(/{(\w+)}/g, (_, key) => String(values[key]));

function verdictOf(cells) {
  if (!cells.length) return ["No cell is left; widen the filters."];
  const known = cells.some(hasText) ? cells.filter(hasText) : cells;
  const shots = shotsOf(known);
  const ranked = guarded(known, shots), left = [...cutShort(known, ranked, shots), ...notInTier()];
  if (!ranked.length) return [said("no leader"), ...left];
  return [...worthOf(ranked), ...probesOf(ranked), ...leaderOf(ranked), ...caveatsOf(ranked, left)];
}

const back = (options) => (options ? said("back", { options }) : "");
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
  const common = shots.filter((k) => [...found.values()].every((own) => own.has(k))), options = common.map((k) => `--shots ${k}`).join(" ");
  return named.length ? [said("at every K", { named: named.join(", "), back: back(options) })] : [];
}

// Chosen datasets that the records do not hold in the chosen tier.
function notInTier() {
  const there = new Set(allCells.filter((cell) => axes.tier.at(cell) === state.tier && (noneHasText || hasText(cell))).map((cell) => axes.dataset.at(cell)));
  const absent = [...state.datasets].filter((name) => !there.has(name)).sort();
  const theirs = allCells.filter((cell) => absent.includes(axes.dataset.at(cell)) && axes.profile.at(cell) === state.profile && hasText(cell));
  const options = [...new Set(theirs.map((cell) => `--tier ${axes.tier.at(cell)}`))].sort().join(" or ");
  return absent.length ? [said("in the tier", { tier: state.tier, named: absent.join(", "), back: back(options) })] : [];
}

function worthOf(cells) {
  const [oracle, text, pictures] = ["oracle_lambda", "zero_shot", "ncm"].map((key) => byKey.get(key));
  if (!hasResult(cells, oracle)) return [said("no oracle")];
  const better = (cell) => oracle.accuracy[cell] - Math.max(text.accuracy[cell], pictures.accuracy[cell]);
  const betterEnd = (cell) => (text.accuracy[cell] >= pictures.accuracy[cell] ? text : pictures);
  const overEnds = text && pictures ? withDrawsAndPictures(clusterMean(cells, better), cells, () => oracle, betterEnd) : { n: 0 };
  const overBoth = overEnds.n ? said("ends", { gain: inWords(overEnds) }) : "";
  const chosen = Object.entries(data.verdict.chosen).filter(([key]) => byKey.has(key)).map(([key, how]) => {
    const method = byKey.get(key), gap = paired(cells, method, oracle);
    return gap.n ? said("chosen", { how, title: method.title, gap: inWords(gap), n: gap.n }) : "";
  });
  const gain = text ? paired(cells, oracle, text) : { n: 0 }, worth = gain.n ? said("worth", { gain: inWords(gain), ends: overBoth, where: whereOf(cells) }) : "";
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
    return [said("probe", { title: method.title, stands: said(stands), where: whereOf(cells), overall: inWords(surplus),
      late: from4.n ? said("late", { late: inWords(from4) }) : "" })];
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
  const tied = compared.filter(ties).map((row) => `${row.method.title} ${inWords(row.against)}`);
  const most = data.verdict.most_tied, more = tied.length > most ? said("more", { n: tied.length - most }) : "";
  const over = onTheseDatasets(G) ? said("draws") : said("datasets", { G });
  const others = !compared.length ? said("only one") : !compared.some((row) => Number.isFinite(row.against.low)) ? said("no ties")
    : tied.length ? said("tied", { over, titles: tied.slice(0, most).join("; ") }) + more : said("alone", { where: whereOf(cells) });
  return [said("leader", { here: onTheseDatasets(G) || said("here"), title: leader.title, mean: number(free[0].mean), counted: countedShots(counted), others })];
}

const whereOf = (cells) => { const here = onTheseDatasets(datasetsOf(cells)); return here && ` ${here}`; };

function caveatsOf(cells, left) {
  const G = datasetsOf(cells);
  const here = onTheseDatasets(G), few = !here && G <= data.few_datasets ? [said("few")] : [];
  const cases = said(here ? "on these" : "cells", { tier: axes.tier.at(cells[0]), n: cells.length, G, where: here });
  const failed = data.failed ? [said("failed", { failed: data.failed })] : [], simulated = data.simulated ? [said("simulated")] : [];
  return [cases, ...few, ...left, ...failed, ...simulated];
}

// Sentences that a command put in front of the report stay as they are.
function renderVerdict(cells) {
  const place = document.getElementById("verdict-sentences");
  if (place) place.replaceChildren(...verdictOf(cells).map((sentence) => element("li", {}, sentence)));
}
