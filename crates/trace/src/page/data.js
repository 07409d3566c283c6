"use strict";
// Columns of the page become typed arrays. Times are nanoseconds from the first call.
const D = JSON.parse(document.getElementById("data").textContent);
const NONE = -2147483648;

function raw(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Numbers of seven bits a byte.
function plain(text, n, Kind) {
  const out = new Kind(n);
  if (!text) return out;
  const bytes = raw(text);
  for (let i = 0, at = 0; i < n; i++) {
    let value = 0, scale = 1, b = bytes[at++];
    while (b >= 128) { value += (b - 128) * scale; scale *= 128; b = bytes[at++]; }
    out[i] = value + b * scale;
  }
  return out;
}

function delta(text, n, Kind) {
  const coded = plain(text, n, Float64Array), out = new Kind(n);
  for (let i = 0, last = 0; i < n; i++) {
    const odd = coded[i] % 2;
    last += odd ? -(coded[i] + 1) / 2 : coded[i] / 2;
    out[i] = last;
  }
  return out;
}

function option(text, n) {
  const coded = plain(text, n, Float64Array), out = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    const c = coded[i] - 1;
    out[i] = c < 0 ? NONE : c % 2 ? -(c - 1) / 2 : c / 2;
  }
  return out;
}

const Name = D.names.length > 65535 ? Uint32Array : Uint16Array;
const calls = (() => {
  const c = D.calls, n = c.n;
  return {
    n, begin: delta(c.begin, n, Float64Array), time: plain(c.time, n, Float64Array), depth: plain(c.depth, n, Uint16Array),
    open: plain(c.open, n, Uint8Array), fn: plain(c.fn, n, Name), at: plain(c.at, n, Name), dest: option(c.dest, n),
    source: option(c.source, n), tag: option(c.tag, n), root: option(c.root, n), comm: plain(c.comm, n, Name),
    bytes: plain(c.bytes, n, Float64Array), requests: plain(c.requests, n, Uint32Array), op: plain(c.op, n, Name),
    mode: plain(c.mode, n, Name), coll: plain(c.coll, n, Float64Array), commid: plain(c.commid, n, Uint32Array),
    target: option(c.target, n),
    thread: new Uint32Array(n), wait: new Int32Array(n).fill(-1),
  };
})();
const waits = (() => {
  const w = D.waits, n = w.n;
  const all = { n, call: delta(w.call, n, Uint32Array), kind: plain(w["class"], n, Uint8Array), time: plain(w.time, n, Float64Array), cause: delta(w.cause, n, Uint32Array) };
  for (let i = 0; i < n; i++) calls.wait[all.call[i]] = i;
  return all;
})();
const messages = (() => {
  const m = D.messages, n = m.n;
  const all = {
    n, send: delta(m.send, n, Uint32Array), receive: delta(m.receive, n, Uint32Array), sent: new Float64Array(n),
    received: plain(m.received, n, Float64Array), bytes: plain(m.bytes, n, Float64Array), tag: option(m.tag, n),
    comm: plain(m.comm, n, Name), posted: plain(m.posted, n, Float64Array), rendezvous: plain(m.rendezvous, n, Uint8Array),
  };
  for (let i = 0; i < n; i++) { all.sent[i] = calls.begin[all.send[i]]; all.received[i] += all.sent[i]; }
  return all;
})();
const path = (() => {
  const p = D.path, n = p.n;
  return { n, thread: plain(p.thread, n, Uint32Array), begin: delta(p.begin, n, Float64Array), time: plain(p.time, n, Float64Array) };
})();
const ranks = D.ranks.map(([number, name, labels, lost, clock]) => ({ number, name, labels, lost, clock }));
const threads = D.threads.map(([rank, name, from, to], index) => {
  calls.thread.fill(index, from, to);
  return { rank, name, from, to, first: index === 0 || D.threads[index - 1][0] !== rank };
});
const total = Math.max(1, D.time);
const rankOf = call => threads[calls.thread[call]].rank;
const functionOf = call => D.names[calls.fn[call]];
const placeOf = call => D.names[calls.at[call]];

const KINDS = D.kinds.slice(1).map(([name]) => name); // a wait's number is its place here
const CLASSES = ["", "send", "receive", "wait, test", "barrier", "collective", "one-sided", "file", "other"];

// The first place in a sorted array, from `from` to `to`, whose value is not below this one.
function lower(array, value, from, to) {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (array[middle] < value) from = middle + 1; else to = middle;
  }
  return from;
}

const three = v => v < 9.995 ? v.toFixed(2) : v < 99.95 ? v.toFixed(1) : v.toFixed(0);
function time(ns) {
  if (ns < 1e3) return ns.toFixed(0) + " ns";
  if (ns < 1e6) return three(ns / 1e3) + " µs";
  if (ns < 1e9) return three(ns / 1e6) + " ms";
  return three(ns / 1e9) + " s";
}
function size(bytes) {
  if (bytes < 1e3) return bytes.toFixed(0) + " B";
  if (bytes < 1e6) return three(bytes / 1e3) + " KB";
  if (bytes < 1e9) return three(bytes / 1e6) + " MB";
  return three(bytes / 1e9) + " GB";
}
const count = n => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, " ");
const share = (part, whole) => (whole > 0 ? (100 * part / whole).toFixed(1) : "0.0") + " %";
