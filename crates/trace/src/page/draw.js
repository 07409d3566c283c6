// The picture: rows of ranks, the time axis, arrows, the critical path, the strip of the whole run.
const LABELS = 74, AXIS = 24; // pixels
const line = document.getElementById("line"), whole = document.getElementById("whole");
const pen = line.getContext("2d", { alpha: false }), strip = whole.getContext("2d", { alpha: false });
const view = { begin: 0, end: total, mode: "waits", arrows: true, path: false, call: -1, row: 0, top: 0, draws: 0, took: 0 };
const rows = threads.map((t, i) => ({ thread: i, label: t.first ? "rank " + ranks[t.rank].number : t.name }));
let colours, ratio, wide, high, rowHigh;

// Okabe and Ito's colours; no meaning hangs on red against green.
const PALETTE = {
  waits: D.kinds.map(([, colour]) => colour),
  calls: ["", "#e69f00", "#56b4e9", "#f0e442", "mark", "#009e73", "#0072b2", "#cc79a7", "#999999"],
};
const LEGEND = { waits: D.kinds.map(([name]) => name), calls: ["outside MPI", ...CLASSES.slice(1)] };

function style(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
function palette(mode) {
  return PALETTE[mode].map((c, k) => k === 0 ? style("--row") : c === "mark" ? style("--mark") : c);
}
function word(colour) { // as an entry of ImageData
  const n = parseInt(colour.slice(1), 16);
  return (0xff000000 | (n & 255) << 16 | (n >> 8 & 255) << 8 | n >> 16) >>> 0;
}

function measure() {
  ratio = Math.min(window.devicePixelRatio || 1, 2);
  wide = line.parentElement.clientWidth;
  const room = Math.max(240, Math.min(innerHeight * 0.62, 760)) - AXIS;
  rowHigh = Math.max(6, Math.min(30, Math.floor(room / rows.length)));
  high = AXIS + Math.min(room, rows.length * rowHigh);
  for (const [canvas, h] of [[line, high], [whole, 44]]) {
    canvas.width = Math.round(wide * ratio); canvas.height = Math.round(h * ratio);
  }
  line.style.height = high + "px";
  colours = { waits: palette("waits"), calls: palette("calls"), back: style("--back"), text: style("--text"), soft: style("--soft"), edge: style("--edge"), mark: style("--mark"), accent: style("--accent") };
  stripImage = null;
}

const perPixel = () => (view.end - view.begin) / (wide - LABELS);
const x = t => LABELS + (t - view.begin) / perPixel();
const timeAt = px => view.begin + (px - LABELS) * perPixel();
const y = row => AXIS + row * rowHigh - view.top;
const rowAt = py => Math.max(0, Math.min(rows.length - 1, Math.floor((py - AXIS + view.top) / rowHigh)));

// One row of columns into pixels: waits below, MPI above them, the rest on top.
function paint(pixels, stride, sums, y0, y1, x0, words) {
  const h = y1 - y0, time = sums.time, width = sums.width;
  for (let i = 0; i < sums.n; i++) {
    let from = y1, sum = 0;
    for (let k = K - 1; k > 0; k--) {
      const part = time[i * K + k];
      if (part === 0) continue;
      sum += part;
      const to = Math.max(y0, y1 - Math.round(Math.min(1, sum / width) * h));
      for (let py = to; py < from; py++) pixels[py * stride + x0 + i] = words[k];
      from = to;
    }
    for (let py = y0; py < from; py++) pixels[py * stride + x0 + i] = words[0];
  }
}

function drawRows() {
  const x0 = Math.round(LABELS * ratio), columns = line.width - x0, words = colours[view.mode].map(word);
  const top = Math.round(AXIS * ratio), tall = line.height - top;
  const image = pen.createImageData(columns, tall), pixels = new Uint32Array(image.data.buffer);
  pixels.fill(word(colours.back));
  const width = (view.end - view.begin) / columns, gap = rowHigh > 9 ? 2 : 1;
  rows.forEach((row, r) => {
    const y0 = Math.max(0, Math.round((y(r) - AXIS) * ratio)), y1 = Math.min(tall, Math.round((y(r) - AXIS + rowHigh - gap) * ratio));
    if (y1 <= y0) return;
    const sums = new Sums(view.begin, width, columns);
    sums.take(view.mode, row.thread);
    paint(pixels, columns, sums, y0, y1, 0, words);
  });
  pen.putImageData(image, x0, top);
}

// Names and edges of calls that are wide enough.
function drawCalls() {
  if (rowHigh < 12) return;
  pen.font = Math.min(11, rowHigh - 4) + "px system-ui, sans-serif";
  pen.textBaseline = "middle";
  rows.forEach((row, r) => {
    const { to } = threads[row.thread], first = firstCall(row.thread, view.begin);
    if (to - first > 20000 && calls.begin[Math.min(to - 1, first + 20000)] < view.end) return;
    for (let c = first; c < to && calls.begin[c] < view.end; c++) {
      const a = Math.max(LABELS, x(calls.begin[c])), b = Math.min(wide, x(calls.begin[c] + calls.time[c]));
      if (b - a < 5) continue;
      pen.fillStyle = colours.back;
      pen.fillRect(a, y(r), 1, rowHigh - 2);
      if (b - a < 46) continue;
      pen.save();
      pen.beginPath(); pen.rect(a + 3, y(r), b - a - 6, rowHigh - 2); pen.clip();
      const w = calls.wait[c], k = view.mode === "calls" ? D.classes[calls.fn[c]] : w < 0 ? 1 : waits.kind[w] + 1;
      pen.fillStyle = dark(colours[view.mode][k]) ? "#ffffff" : "#111111";
      pen.fillText(functionOf(c).replace(/^MPI_/, ""), a + 5, y(r) + rowHigh / 2 - 0.5);
      pen.restore();
    }
  });
}
function dark(colour) {
  const n = parseInt(colour.slice(1), 16);
  return 0.3 * (n >> 16) + 0.59 * (n >> 8 & 255) + 0.11 * (n & 255) < 120;
}

const STEPS = [1, 2, 5];
function ticks() {
  const least = perPixel() * 90;
  let scale = Math.pow(10, Math.floor(Math.log10(least)));
  for (;; scale *= 10) for (const s of STEPS) if (s * scale >= least) return s * scale;
}
function drawAxis() {
  pen.fillStyle = colours.back;
  pen.fillRect(0, 0, wide, AXIS); pen.fillRect(0, 0, LABELS, high);
  const step = ticks();
  pen.font = "11px system-ui, sans-serif"; pen.textBaseline = "middle";
  const unit = [["s", 1e9], ["ms", 1e6], ["µs", 1e3]].find(([, u]) => view.end >= u && step >= u / 1e4) || ["ns", 1];
  for (let t = Math.ceil(view.begin / step) * step; t <= view.end; t += step) {
    pen.fillStyle = colours.edge; pen.fillRect(x(t), AXIS - 6, 1, 6);
    pen.fillStyle = colours.soft;
    if (x(t) < wide - 50) pen.fillText(+(t / unit[1]).toPrecision(12) + " " + unit[0], x(t) + 4, 11);
  }
  for (const [, t, text] of D.marks) {
    if (t < view.begin || t > view.end) continue;
    pen.fillStyle = colours.accent;
    pen.beginPath(); pen.moveTo(x(t) - 4, AXIS - 8); pen.lineTo(x(t) + 4, AXIS - 8); pen.lineTo(x(t), AXIS - 1); pen.fill();
  }
  const each = Math.ceil(11 / rowHigh);
  rows.forEach((row, r) => {
    if (r % each || y(r) < AXIS - 2 || y(r) > high) return;
    pen.fillStyle = r === view.row ? colours.text : colours.soft;
    pen.font = (r === view.row ? "600 " : "") + "11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.fillText(row.label.slice(0, 12), LABELS - 8, y(r) + Math.max(rowHigh, 8) / 2 - 1);
    pen.textAlign = "left";
  });
  if (document.activeElement === line) {
    pen.fillStyle = colours.accent; pen.fillRect(0, y(view.row), 3, rowHigh - 1);
  }
}

// Messages with an end in the visible part, as long as they are few.
function visibleMessages(most) {
  const from = lower(messages.sent, view.begin, 0, messages.n), to = lower(messages.sent, view.end, from, messages.n);
  if (to - from > most) return { many: to - from, list: [] };
  const list = [];
  for (let i = from - 1; i >= 0 && i > from - 4000; i--) if (messages.received[i] >= view.begin) list.push(i);
  for (let i = from; i < to; i++) list.push(i);
  return { many: 0, list };
}
function arrow(a, b, head) {
  const angle = Math.atan2(b[1] - a[1], b[0] - a[0]);
  pen.beginPath(); pen.moveTo(a[0], a[1]); pen.lineTo(b[0], b[1]); pen.stroke();
  pen.beginPath(); pen.moveTo(b[0], b[1]);
  for (const turn of [2.75, -2.75]) pen.lineTo(b[0] + head * Math.cos(angle + turn), b[1] + head * Math.sin(angle + turn));
  pen.fill();
}
function ends(m) {
  const middle = call => y(calls.thread[call]) + rowHigh / 2 - 1;
  return [[x(messages.sent[m]), middle(messages.send[m])], [x(messages.received[m]), middle(messages.receive[m])]];
}
function drawArrows() {
  const { many, list } = visibleMessages(1500);
  if (view.arrows) {
    pen.strokeStyle = pen.fillStyle = colours.text;
    pen.globalAlpha = list.length > 400 ? 0.25 : 0.45; pen.lineWidth = 1;
    for (const m of list) arrow(...ends(m), 5);
    pen.globalAlpha = 1;
  }
  if (view.call >= 0) {
    pen.strokeStyle = pen.fillStyle = colours.mark; pen.lineWidth = 2;
    const w = calls.wait[view.call];
    const own = many ? [] : list.filter(m => messages.send[m] === view.call || messages.receive[m] === view.call);
    for (const m of own.slice(0, 64)) arrow(...ends(m), 9);
    if (w >= 0 && !own.length) {
      const middle = call => y(calls.thread[call]) + rowHigh / 2 - 1, end = x(calls.begin[view.call] + waits.time[w]);
      pen.setLineDash([4, 3]);
      arrow([end, middle(waits.cause[w])], [end, middle(view.call)], 9);
      pen.setLineDash([]);
    }
  }
  return many;
}

function drawPath() {
  pen.fillStyle = colours.back; pen.globalAlpha = 0.55;
  pen.fillRect(LABELS, AXIS, wide - LABELS, high - AXIS);
  pen.globalAlpha = 1;
  const first = Math.max(0, lower(path.begin, view.begin, 0, path.n) - 1);
  const shape = new Path2D();
  for (let p = first; p < path.n && path.begin[p] < view.end; p++) {
    const middle = y(path.thread[p]) + rowHigh / 2 - 1;
    if (p === first) shape.moveTo(x(path.begin[p]), middle); else shape.lineTo(x(path.begin[p]), middle);
    shape.lineTo(x(path.begin[p] + path.time[p]), middle);
  }
  for (const [width, colour] of [[6, colours.back], [3, colours.mark]]) { pen.lineWidth = width; pen.strokeStyle = colour; pen.lineJoin = "round"; pen.stroke(shape); }
}

function drawChosen() {
  if (view.call < 0) return;
  const c = view.call, a = x(calls.begin[c]), b = x(calls.begin[c] + calls.time[c]);
  pen.strokeStyle = colours.back; pen.lineWidth = 4;
  pen.strokeRect(a - 1, y(calls.thread[c]) - 1, Math.max(3, b - a + 1), rowHigh);
  pen.strokeStyle = colours.mark; pen.lineWidth = 2;
  pen.strokeRect(a - 1, y(calls.thread[c]) - 1, Math.max(3, b - a + 1), rowHigh);
}

let stripImage = null;
function drawStrip() {
  const columns = Math.round((wide - LABELS) * ratio), tall = Math.round(40 * ratio), x0 = Math.round(LABELS * ratio);
  strip.setTransform(1, 0, 0, 1, 0, 0);
  strip.fillStyle = colours.back; strip.fillRect(0, 0, whole.width, whole.height);
  if (!stripImage || stripImage.mode !== view.mode) {
    const sums = new Sums(0, total / columns, columns);
    const own = rows.filter(r => threads[r.thread].first);
    for (const row of own) sums.take(view.mode, row.thread);
    sums.width *= own.length || 1;
    const image = strip.createImageData(columns, tall);
    paint(new Uint32Array(image.data.buffer), columns, sums, 0, tall, 0, colours[view.mode].map(word));
    stripImage = { image, mode: view.mode };
  }
  strip.putImageData(stripImage.image, x0, 0);
  strip.setTransform(ratio, 0, 0, ratio, 0, 0);
  const a = LABELS + view.begin / total * (wide - LABELS), b = LABELS + view.end / total * (wide - LABELS);
  strip.fillStyle = colours.back; strip.globalAlpha = 0.6;
  strip.fillRect(LABELS, 0, a - LABELS, 40); strip.fillRect(b, 0, wide - b, 40);
  strip.globalAlpha = 1; strip.strokeStyle = colours.accent; strip.lineWidth = 2;
  strip.strokeRect(a + 1, 1, Math.max(2, b - a - 2), 39);
  strip.fillStyle = colours.soft; strip.font = "11px system-ui, sans-serif"; strip.textAlign = "right";
  strip.fillText("all ranks", LABELS - 8, 24); strip.textAlign = "left";
}

function draw() {
  const from = performance.now();
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.fillStyle = colours.back; pen.fillRect(0, 0, line.width, line.height);
  drawRows();
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.save(); pen.beginPath(); pen.rect(LABELS, AXIS, wide - LABELS, high - AXIS); pen.clip();
  drawCalls();
  if (view.path) drawPath();
  view.many = drawArrows();
  drawChosen();
  pen.restore();
  drawAxis();
  drawStrip();
  const hint = document.getElementById("many"), hidden = view.arrows && view.many;
  hint.textContent = hidden ? `${count(view.many)} messages are in this part; zoom in to see them` : "";
  view.draws++; view.took = performance.now() - from;
}
let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

function legend() {
  const box = document.getElementById("legend");
  box.replaceChildren();
  const seen = new Set(view.mode === "waits" ? [0, 1] : [0]);
  if (view.mode === "waits") for (let i = 0; i < waits.n; i++) seen.add(waits.kind[i] + 1);
  else for (let c = 0; c < calls.n; c++) seen.add(D.classes[calls.fn[c]]);
  LEGEND[view.mode].forEach((text, k) => {
    if (!seen.has(k)) return;
    const entry = document.createElement("span"), box1 = document.createElement("i");
    box1.style.background = colours[view.mode][k];
    entry.append(box1, text); box.append(entry);
  });
  box.append(el("span", "", { id: "many" }));
}
