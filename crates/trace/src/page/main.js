// Hands and keys: zoom, pan, choice, search.
const byId = id => document.getElementById(id);
const tip = byId("tip"), detail = byId("detail");

function look(begin, end) {
  const width = Math.min(total, Math.max(end - begin, 20));
  view.begin = Math.max(0, Math.min(begin, total - width));
  view.end = view.begin + width;
  tip.hidden = true;
  redraw(); follow();
}
const zoom = (by, at) => look(at - (at - view.begin) * by, at + (view.end - at) * by);
const pan = part => look(view.begin + visible() * part, view.end + visible() * part);
const middle = () => view.call >= 0 && calls.begin[view.call] > view.begin && calls.begin[view.call] < view.end ? calls.begin[view.call] : (view.begin + view.end) / 2;
const scroll = by => { view.top = Math.max(0, Math.min(rows.length * rowHigh - (high - AXIS), view.top + by)); redraw(); };

function choose(c) {
  view.call = c;
  if (c < 0) { detail.textContent = ""; redraw(); return; }
  view.row = calls.thread[c];
  const py = y(view.row);
  if (py < AXIS) scroll(py - AXIS); else if (py + rowHigh > high) scroll(py + rowHigh - high);
  const w = calls.wait[c];
  detail.textContent = `${rows[view.row].label}: ${functionOf(c)}${placeOf(c) ? " at " + placeOf(c) : ""}, ${time(calls.time[c])}` +
    (w >= 0 ? `; ${KINDS[waits.kind[w]]}: waits ${time(waits.time[w])} for ${rankName(rankOf(waits.cause[w]))}` : "");
  redraw();
  if (tab === "call") show();
}
// Chooses a call and brings it into view.
function goTo(c) {
  choose(c);
  const begin = calls.begin[c], wide = Math.max(calls.time[c], 200);
  if (begin < view.begin || begin + calls.time[c] > view.end || calls.time[c] < visible() / 200) look(begin - 2 * wide, begin + 3 * wide);
  else redraw();
}
function step(by, wanted) {
  const t = threads[view.row];
  let c = view.call >= 0 && calls.thread[view.call] === view.row ? view.call + by : firstCall(view.row, view.begin);
  while (c >= t.from && c < t.to && !wanted(c)) c += by;
  if (c < t.from || c >= t.to) return;
  choose(c);
  if (calls.begin[c] < view.begin || calls.begin[c] > view.end) look(calls.begin[c] - visible() / 2, calls.begin[c] + visible() / 2);
}
function toggle(what) {
  view[what] = !view[what];
  byId(what).checked = view[what];
  redraw();
  if (tab === "path") show();
}

let hits = [], hit = -1;
function search(text) {
  hits = []; hit = -1;
  let words = text.trim().toLowerCase();
  const wanted = {};
  words = words.replace(/\b(rank|tag|dest|source)\s*[:=]?\s*(-?\d+)/g, (_, name, n) => { wanted[name] = +n; return " "; }).trim();
  if (!text.trim()) return tellHits();
  const fits = D.names.map(n => !words || words.split(/\s+/).every(w => n.toLowerCase().includes(w)));
  for (let c = 0; c < calls.n; c++) {
    if (words && !fits[calls.fn[c]] && !fits[calls.at[c]]) continue;
    if (wanted.rank !== undefined && ranks[rankOf(c)].number !== wanted.rank) continue;
    if (wanted.tag !== undefined && calls.tag[c] !== wanted.tag) continue;
    if (wanted.dest !== undefined && calls.dest[c] !== wanted.dest) continue;
    if (wanted.source !== undefined && calls.source[c] !== wanted.source) continue;
    hits.push(c);
  }
  hits = Uint32Array.from(hits).sort((a, b) => calls.begin[a] - calls.begin[b]);
  tellHits();
}
function tellHits() {
  byId("hits").textContent = !byId("search").value.trim() ? "" : hits.length ? (hit < 0 ? "" : count(hit + 1) + " of ") + count(hits.length) : "none";
  byId("next").disabled = byId("previous").disabled = !hits.length;
}
function nextHit(by) {
  if (!hits.length) return;
  if (hit < 0) { hit = 0; while (by > 0 && hit < hits.length - 1 && calls.begin[hits[hit]] < view.begin) hit++; }
  else hit = (hit + by + hits.length) % hits.length;
  goTo(hits[hit]); tellHits();
}

const KEYS = {
  ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), "+": () => zoom(0.6, middle()), "=": () => zoom(0.6, middle()), "-": () => zoom(1 / 0.6, middle()),
  f: () => look(0, total), Home: () => look(0, visible()), End: () => look(total - visible(), total),
  ArrowUp: () => turn(-1), ArrowDown: () => turn(1), n: () => step(1, c => !calls.depth[c]), p: () => step(-1, c => !calls.depth[c]),
  w: () => step(1, c => calls.wait[c] >= 0), W: () => step(-1, c => calls.wait[c] >= 0),
  Enter: () => { if (view.call < 0) step(1, () => true); show("call"); panel.focus(); },
  z: () => { if (view.call >= 0) look(calls.begin[view.call] - calls.time[view.call] / 4 - 10, calls.begin[view.call] + calls.time[view.call] * 1.25 + 10); },
  o: () => { const w = view.call >= 0 ? calls.wait[view.call] : -1; if (w >= 0) goTo(waits.cause[w]); },
  m: () => toggle("arrows"), c: () => toggle("path"), Escape: () => choose(-1),
};
function turn(by) {
  view.row = Math.max(0, Math.min(rows.length - 1, view.row + by));
  const when = view.call >= 0 ? calls.begin[view.call] : middle(), c = callAt(view.row, when);
  const { from, to } = threads[view.row];
  if (from < to) choose(c >= 0 ? c : Math.min(firstCall(view.row, when), to - 1)); else redraw();
}
line.addEventListener("keydown", e => {
  if (e.ctrlKey || e.altKey || e.metaKey || !KEYS[e.key]) return;
  e.preventDefault(); KEYS[e.key]();
});
document.addEventListener("keydown", e => {
  if (/INPUT|SELECT|TEXTAREA/.test(e.target.tagName) || e.ctrlKey || e.altKey || e.metaKey) return;
  if (e.key === "/") { e.preventDefault(); byId("search").focus(); }
  if (e.key === "?") byId("keys").showModal();
});
line.addEventListener("focus", redraw); line.addEventListener("blur", redraw);

line.addEventListener("wheel", e => {
  e.preventDefault();
  if (e.shiftKey) return scroll(e.deltaY || e.deltaX);
  if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) return pan(e.deltaX / wide);
  zoom(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.005), timeAt(Math.max(LABELS, e.offsetX)));
}, { passive: false });
let drag = null;
line.addEventListener("pointerdown", e => {
  line.setPointerCapture(e.pointerId);
  drag = { x: e.offsetX, y: e.offsetY, begin: view.begin, top: view.top, moved: false };
});
line.addEventListener("pointermove", e => {
  if (!drag) return hover(e.offsetX, e.offsetY);
  if (Math.abs(e.offsetX - drag.x) + Math.abs(e.offsetY - drag.y) < 4 && !drag.moved) return;
  drag.moved = true; line.classList.add("dragged");
  const by = (drag.x - e.offsetX) * perPixel(), width = visible();
  view.top = drag.top; scroll(drag.y - e.offsetY);
  look(drag.begin + by, drag.begin + by + width);
});
line.addEventListener("pointerup", e => {
  line.classList.remove("dragged");
  if (drag && !drag.moved && e.offsetX > LABELS && e.offsetY > AXIS) {
    const c = near(e.offsetX, e.offsetY);
    choose(c);
    if (c >= 0) show("call");
  }
  drag = null;
});
line.addEventListener("pointerleave", () => { tip.hidden = true; });
line.addEventListener("dblclick", () => look(0, total));

// The call at a place of the picture, or one within a few pixels.
function near(px, py) {
  const row = rowAt(py);
  for (const by of [0, -2, 2, -4, 4]) {
    const c = callAt(row, timeAt(px + by));
    if (c >= 0) return c;
  }
  return -1;
}
function hover(px, py) {
  const c = px > LABELS && py > AXIS ? near(px, py) : -1;
  tip.hidden = c < 0;
  if (c < 0) return;
  const w = calls.wait[c], lines = [el("b", functionOf(c)), ` ${time(calls.time[c])}, ${rows[calls.thread[c]].label}`];
  if (placeOf(c)) lines.push(el("div", placeOf(c)));
  if (calls.bytes[c] > 1) lines.push(el("div", size(calls.bytes[c] - 1)));
  if (w >= 0) lines.push(el("div", chip(waits.kind[w] + 1, `${KINDS[waits.kind[w]]}: ${time(waits.time[w])} for ${rankName(rankOf(waits.cause[w]))}`)));
  tip.replaceChildren(...lines);
  tip.style.left = Math.max(0, Math.min(px + 14, wide - tip.offsetWidth - 4)) + "px";
  tip.style.top = py + 18 + "px";
}

whole.addEventListener("pointerdown", e => { whole.setPointerCapture(e.pointerId); stripTo(e); });
whole.addEventListener("pointermove", e => { if (e.buttons) stripTo(e); });
function stripTo(e) {
  const at = (e.offsetX - LABELS) / (wide - LABELS) * total;
  look(at - visible() / 2, at + visible() / 2);
}

byId("in").onclick = () => zoom(0.5, middle());
byId("out").onclick = () => zoom(2, middle());
byId("fit").onclick = () => look(0, total);
byId("mode").onchange = e => { view.mode = e.target.value; legend(); redraw(); };
byId("arrows").onchange = e => { view.arrows = e.target.checked; redraw(); };
byId("path").onchange = e => { view.path = e.target.checked; redraw(); if (tab === "path") show(); };
byId("search").oninput = e => search(e.target.value);
byId("search").onkeydown = e => { if (e.key === "Enter") nextHit(e.shiftKey ? -1 : 1); };
byId("next").onclick = () => nextHit(1);
byId("previous").onclick = () => nextHit(-1);
byId("help").onclick = () => byId("keys").showModal();
const list = byId("tabs");
for (const [name, text] of Object.entries(TABS)) {
  if (name === "counters" && !D.counters.length) continue;
  list.append(el("button", text, { id: "tab-" + name, role: "tab", "aria-controls": "panel", onclick: () => show(name) }));
}
list.addEventListener("keydown", e => {
  const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
  if (!by) return;
  const all = [...list.children], next = all[(all.findIndex(b => b.id === "tab-" + tab) + by + all.length) % all.length];
  next.click(); next.focus();
});
function fresh() { measure(); legend(); draw(); show(); }
addEventListener("resize", fresh);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", fresh);
byId("overview").textContent = D.overview;
byId("notes").append(...D.notes.map(n => el("p", n)));
tellHits();
fresh();
