// How much time of each class lies in each column of pixels. Where a column holds many calls, sums
// that were made once are taken instead: bins of time, each level with half as many as the one before.
const K = Math.max(D.kinds.length, CLASSES.length); // outside MPI, and classes of waits or of calls

const MODES = {
  // 1: in MPI, from 2 on: the kinds of waits
  waits: (c, add) => {
    const w = calls.wait[c], begin = calls.begin[c], end = begin + calls.time[c];
    const middle = w < 0 ? begin : begin + waits.time[w];
    if (middle > begin) add(begin, middle, waits.kind[w] + 1);
    if (end > middle) add(middle, end, 1);
  },
  calls: (c, add) => add(calls.begin[c], calls.begin[c] + calls.time[c], D.classes[calls.fn[c]]),
};

const pyramids = { waits: [], calls: [] };
function pyramid(mode, t) {
  return pyramids[mode][t] ||= build(mode, t);
}
function build(mode, t) {
  const { from, to } = threads[t];
  let bins = 64;
  while (bins * 2 < to - from && bins < 1 << 18) bins *= 2;
  const sums = new Sums(0, total / bins, bins);
  for (let c = from; c < to; c++) if (!calls.depth[c]) MODES[mode](c, sums.add);
  const levels = [sums.time];
  for (let n = bins; n > 32; n /= 2) {
    const last = levels[levels.length - 1], next = new Float32Array(n / 2 * K);
    for (let i = 0; i < n; i++) for (let k = 1; k < K; k++) next[(i >> 1) * K + k] += last[i * K + k];
    levels.push(next);
  }
  return levels;
}

// Columns of `width` nanoseconds from `begin` on.
class Sums {
  constructor(begin, width, n) {
    this.begin = begin; this.width = width; this.n = n;
    this.time = new Float32Array(n * K);
    this.add = (from, to, k) => {
      let a = (from - begin) / width, b = (to - begin) / width;
      if (b <= 0 || a >= n) return;
      a = Math.max(a, 0); b = Math.min(b, n);
      const time = this.time, first = Math.floor(a), last = Math.min(Math.floor(b), n - 1);
      if (first === last) { time[first * K + k] += (b - a) * width; return; }
      time[first * K + k] += (first + 1 - a) * width;
      for (let i = first + 1; i < last; i++) time[i * K + k] += width;
      time[last * K + k] += (b - last) * width;
    };
  }
  // Time of a thread in a mode, from calls or from sums.
  take(mode, t) {
    const levels = pyramid(mode, t), end = this.begin + this.n * this.width;
    let level = -1, bins = levels[0].length / K;
    while (level + 1 < levels.length && total / (levels[level + 1].length / K) <= this.width) level++;
    if (level < 0) return this.takeCalls(mode, t, end);
    bins = levels[level].length / K;
    const wide = total / bins, sums = levels[level];
    const first = Math.max(0, Math.floor(this.begin / wide)), last = Math.min(bins, Math.ceil(end / wide));
    for (let b = first; b < last; b++) {
      const from = (b * wide - this.begin) / this.width, a = Math.floor(from), part = Math.min(1, (a + 1 - from) * this.width / wide);
      for (let k = 1; k < K; k++) {
        const v = sums[b * K + k];
        if (v === 0) continue;
        if (a >= 0 && a < this.n) this.time[a * K + k] += v * part;
        if (part < 1 && a + 1 >= 0 && a + 1 < this.n) this.time[(a + 1) * K + k] += v * (1 - part);
      }
    }
  }
  takeCalls(mode, t, end) {
    const { to } = threads[t];
    for (let c = firstCall(t, this.begin); c < to && calls.begin[c] < end; c++) if (!calls.depth[c]) MODES[mode](c, this.add);
  }
}

// The first call of a thread, in no other, that ends after a time.
function firstCall(t, when) {
  const { from, to } = threads[t];
  let c = lower(calls.begin, when, from, to);
  while (c > from) {
    c--;
    if (!calls.depth[c]) return calls.begin[c] + calls.time[c] > when ? c : Math.min(c + 1, to);
  }
  return from;
}

// The innermost call of a thread at a time, or -1.
function callAt(t, when) {
  const { from, to } = threads[t];
  for (let c = lower(calls.begin, when + 1e-9, from, to) - 1; c >= from; c--) {
    if (calls.begin[c] + calls.time[c] >= when && calls.begin[c] <= when) return c;
    if (!calls.depth[c]) return -1;
  }
  return -1;
}
