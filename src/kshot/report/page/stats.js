// The cluster bootstrap of the report, again in the browser: datasets are resampled, Student-t on its standard error.
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const drawnCounts = new Map();
function draws(clusters) {
  if (!drawnCounts.has(clusters)) {
    const random = generator(20240607 + clusters);
    const counts = new Uint16Array(data.resamples * clusters);
    for (let r = 0; r < data.resamples; r++)
      for (let g = 0; g < clusters; g++) counts[r * clusters + Math.floor(random() * clusters)]++;
    drawnCounts.set(clusters, counts);
  }
  return drawnCounts.get(clusters);
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
  const sums = [...groups.values()];
  const n = sums.reduce((total, group) => total + group[1], 0);
  const mean = sums.reduce((total, group) => total + group[0], 0) / n;
  const found = { mean: n ? mean : NaN, low: NaN, high: NaN, n, clusters: sums.length };
  if (sums.length < 2 || sums.length > data.t.length) return found;
  const counts = draws(sums.length);
  let first = 0, second = 0;
  for (let r = 0; r < data.resamples; r++) {
    let above = 0, below = 0;
    for (let g = 0; g < sums.length; g++) {
      const times = counts[r * sums.length + g];
      above += times * sums[g][0];
      below += times * sums[g][1];
    }
    const off = above / below - mean;
    first += off;
    second += off * off;
  }
  const error = Math.sqrt((second - (first * first) / data.resamples) / (data.resamples - 1));
  const half = data.t[sums.length - 2] * error;
  return { ...found, low: mean - half, high: mean + half };
}

const interval = (found) =>
  !found.n ? ABSENT : Number.isFinite(found.low)
    ? `${signed(found.mean)} [${signed(found.low)}, ${signed(found.high)}]` : `${signed(found.mean)} [no interval]`;

// The combination guard: means by K use only the (dataset, backbone, tier) present at every K that is shown.
function guarded(cells, shots) {
  const seen = new Map();
  const combination = (cell) => `${axes.dataset.codes[cell]}/${axes.backbone.codes[cell]}/${axes.tier.codes[cell]}`;
  for (const cell of cells) {
    const key = combination(cell);
    if (!seen.has(key)) seen.set(key, new Set());
    seen.get(key).add(axes.shots.at(cell));
  }
  return cells.filter((cell) => seen.get(combination(cell)).size === shots.length);
}

// A mean counts only where the method exists in every cell of it: a mean over fewer is another mean.
function meanOver(cells, method) {
  let total = 0;
  for (const cell of cells) total += method.accuracy[cell];
  return cells.length ? total / cells.length : NaN;
}
