// The cluster bootstrap of the report, again in the browser: the same draws of datasets, so that a figure that stands
// in a table too has the same interval there; Student-t on its standard error.

// A resample of G datasets is 2·G bits: a 1 for each time that a dataset is drawn, a 0 before the next dataset.
const drawnCounts = new Map();
function draws(clusters) {
  if (!drawnCounts.has(clusters)) {
    const bits = new Uint8Array(bytes(data.draws[clusters])), counts = new Uint16Array(data.resamples * clusters);
    for (let at = 0, place = 0; place < counts.length; at++)
      if (bits[at >> 3] & (128 >> (at & 7))) counts[place]++; else place++;
    drawnCounts.set(clusters, counts);
  }
  return drawnCounts.get(clusters);
}

// The standard error of the mean: over the draws, or linearised where the page does not carry them.
function standardError(sums, mean, n) {
  if (!(sums.length in data.draws)) return Math.hypot(...sums.map(([sum, size]) => sum - mean * size)) / n;
  const counts = draws(sums.length), totals = Float64Array.from(sums, ([sum]) => sum), sizes = Float64Array.from(sums, ([, size]) => size);
  let first = 0, second = 0;
  for (let r = 0; r < data.resamples; r++) {
    let above = 0, below = 0;
    for (let g = 0, at = r * totals.length; g < totals.length; g++, at++) {
      above += counts[at] * totals[g];
      below += counts[at] * sizes[g];
    }
    const off = above / below - mean;
    first += off;
    second += off * off;
  }
  return Math.sqrt((second - (first * first) / data.resamples) / (data.resamples - 1));
}

function clusterMean(cells, valueOf) {
  const groups = new Map();
  for (const cell of cells) {
    const value = valueOf(cell);
    if (!Number.isFinite(value)) continue;
    const code = axes.dataset.codes[cell];
    const group = groups.get(code) ?? [0, 0];
    group[0] += value;
    group[1] += 1;
    groups.set(code, group);
  }
  const sums = [...groups].sort(([a], [b]) => a - b).map(([, group]) => group);
  const n = sums.reduce((total, group) => total + group[1], 0);
  const mean = sums.reduce((total, group) => total + group[0], 0) / n;
  const found = { mean: n ? mean : NaN, low: NaN, high: NaN, n, clusters: sums.length };
  if (sums.length < data.least_datasets) return found;
  const half = data.t[sums.length] * standardError(sums, mean, n);
  return { ...found, low: mean - half, high: mean + half };
}

const ends = (found, digits) => (Number.isFinite(found.low) ? `[${signed(found.low, digits)}, ${signed(found.high, digits)}]` : "[no interval]");
const interval = (found, digits = 2) => (found.n ? `${signed(found.mean, digits)} ${ends(found, digits)}` : ABSENT);
// For a sentence; with three to five datasets, `here` is the interval on these alone.
const inWords = (found) => interval(found) + (found.beside ? `, here ${ends(found.beside, 2)}` : "");

// The combination guard: means by K use only the (dataset, backbone, tier, profile) present at every K that is shown.
function guarded(cells, shots) {
  const seen = new Map();
  const combination = (cell) => `${axes.dataset.codes[cell]}/${axes.backbone.codes[cell]}/${axes.tier.codes[cell]}/${axes.profile.codes[cell]}`;
  for (const cell of cells) {
    const key = combination(cell);
    if (!seen.has(key)) seen.set(key, new Set());
    seen.get(key).add(axes.shots.at(cell));
  }
  return cells.filter((cell) => seen.get(combination(cell)).size === shots.length);
}

// A mean counts only where the method exists in every cell of it: a mean over fewer is another mean.
function meanOver(cells, method, metric = "accuracy") {
  let total = 0;
  for (const cell of cells) total += method.values[metric][cell];
  return cells.length ? total / cells.length : NaN;
}

// Means and differences count the cells from K = 2 on, where every method exists; all where only K = 1 is left.
function counting(cells) {
  const later = cells.filter((cell) => axes.shots.at(cell) >= 2);
  return later.length ? later : cells;
}
const countedShots = (cells) => (cells.some((cell) => axes.shots.at(cell) >= 2) ? "K≥2" : "K=1");

function paired(cells, method, baseline, metric = "accuracy") {
  const found = clusterMean(cells, (cell) => method.values[metric][cell] - baseline.values[metric][cell]);
  return metric === "accuracy" ? withDrawsAndPictures(found, cells, () => method, () => baseline) : found;
}
const onTheseDatasets = (clusters) => data.verdict.words[`where ${clusters}`] ?? "";

// Differences that may stand beside each other: all over the baseline's cells; none for a method that lacks one.
function sideBySide(cells, method, baseline, metric = "accuracy") {
  const known = (one) => (cell) => Number.isFinite(one.values[metric][cell]);
  const common = cells.filter(known(baseline));
  return paired(common.every(known(method)) ? common : [], method, baseline, metric);
}
