// The interval over draws and test pictures on these datasets, as in kshot.stats.crossed. Where the page carries a part of
// the test pictures, what pictures add to the variance is estimated from that part.
function hitsOf(method, cell) {
  if (!method.offsets) {
    let at = 0;
    method.bits = new Uint8Array(bytes(method.hits));
    method.offsets = allCells.map((one) => (Number.isFinite(method.accuracy[one]) ? (at += data.hit_bytes[one]) - data.hit_bytes[one] : -1));
  }
  return method.bits.subarray(method.offsets[cell], method.offsets[cell] + data.hit_bytes[cell]);
}

// `first` and `second` give the method of a cell.
function crossedVariance(cells, first, second) {
  const seeds = [...new Set(cells.map((cell) => axes.seed.codes[cell]))], S = seeds.length, n = facts.n_test[cells[0]], p = data.hit_counts[cells[0]];
  if (S < data.least_draws || p < 2 || cells.some((cell) => facts.n_test[cell] !== n)) return null;
  // The page's accuracies have seven digits; their hits are whole.
  const right = (method, cell) => Math.round((method.accuracy[cell] * n) / 100);
  const gap = (cell) => (right(first(cell), cell) - right(second(cell), cell)) / n;
  const scale = S / cells.length, mean = cells.reduce((sum, cell) => sum + gap(cell), 0) / cells.length;
  const rows = seeds.map(() => new Float64Array(p)), exact = new Float64Array(S);
  for (const cell of cells) {
    const row = seeds.indexOf(axes.seed.codes[cell]), [one, two] = [hitsOf(first(cell), cell), hitsOf(second(cell), cell)];
    exact[row] += scale * (gap(cell) - mean);
    for (let i = 0; i < p; i++) rows[row][i] += scale * (((one[i >> 3] >> (7 - (i & 7))) & 1) - ((two[i >> 3] >> (7 - (i & 7))) & 1) - mean);
  }
  const centre = rows.map((row) => row.reduce((sum, value) => sum + value, 0) / p), grand = centre.reduce((a, b) => a + b, 0) / S;
  let byPicture = 0, all = 0;
  for (let i = 0; i < p; i++) {
    let sum = 0;
    for (const row of rows) { sum += row[i] - grand; all += (row[i] - grand) ** 2; }
    byPicture += sum ** 2 / S;
  }
  const byDraw = p * centre.reduce((sum, value) => sum + (value - grand) ** 2, 0);
  const A = (n * exact.reduce((sum, value) => sum + value ** 2, 0)) / (S - 1), B = byPicture / (p - 1);
  const E = Math.max(all - byDraw - byPicture, 0) / ((S - 1) * (p - 1));
  return { variance: (E + Math.max(A - E, 0) + Math.max(B - E, 0)) / (S * n),
    uncertainty: ((A > data.tie * E) * A ** 2 / (S - 1) + (B > data.tie * E) * B ** 2 / (p - 1) + E ** 2 / ((S - 1) * (p - 1))) / (S * n) ** 2 };
}

// Student's t for any degrees of freedom: the page carries it at equal steps of their inverse.
function quantile(freedom) {
  const last = data.t_inverse.length - 1, at = last / freedom, below = Math.min(Math.floor(at), last - 1);
  return data.t_inverse[below] + (at - below) * (data.t_inverse[below + 1] - data.t_inverse[below]);
}

function withDrawsAndPictures(found, cells, first, second) {
  if (!found.n || found.clusters > data.few_datasets || !data.hit_bytes) return found;
  const groups = new Map();
  for (const cell of cells.filter((one) => Number.isFinite(first(one).accuracy[one] - second(one).accuracy[one]))) {
    const code = axes.dataset.codes[cell];
    groups.set(code, [...(groups.get(code) ?? []), cell]);
  }
  let variance = 0, uncertainty = 0;
  for (const own of groups.values()) {
    const part = crossedVariance(own, first, second), share = own.length / found.n;
    if (!part) return found;
    variance += share ** 2 * part.variance;
    uncertainty += share ** 4 * part.uncertainty;
  }
  const half = uncertainty ? 100 * Math.sqrt(variance) * quantile(Math.max(variance ** 2 / uncertainty, 1)) : 0;
  const here = { ...found, low: found.mean - half, high: found.mean + half };
  return found.clusters < data.least_datasets ? here : { ...found, beside: here };
}
