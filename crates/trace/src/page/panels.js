// What lies below the picture: tables of the visible part.
const panel = document.getElementById("panel");
const TABS = { losses: "Largest losses", call: "Chosen call", waits: "Waits", functions: "Functions", balance: "Balance", matrix: "Senders and receivers", sizes: "Message sizes", path: "Critical path", counters: "Counters" };
let tab = "losses";

function el(name, content, attributes) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) k.startsWith("on") ? e.addEventListener(k.slice(2), v) : k === "style" ? e.style.cssText = v : e.setAttribute(k, v);
  for (const c of [content].flat()) if (c !== undefined && c !== null) e.append(c);
  return e;
}
const button = (text, act, label) => el("button", text, { onclick: act, ...(label ? { "aria-label": label } : {}) });
// Columns that begin with # are numbers.
function table(head, body) {
  const cls = h => h.startsWith("#") ? { class: "n" } : {};
  return el("table", [
    el("thead", el("tr", head.map(h => el("th", h.replace("#", ""), { ...cls(h), scope: "col" })))),
    el("tbody", body.map(row => el("tr", row.map((c, i) => el("td", c, cls(head[i])))))),
  ]);
}
const site = (fn, at) => D.names[fn] + (at ? " at " + D.names[at] : "");
const placeKey = c => calls.fn[c] * D.names.length + calls.at[c];
const rankName = r => "rank " + ranks[r].number;
const inView = (from, to) => Math.max(0, Math.min(to, view.end) - Math.max(from, view.begin));
const visible = () => view.end - view.begin;

// Calls that have a part in the visible time.
function eachCall(act) {
  threads.forEach((t, i) => {
    for (let c = firstCall(i, view.begin); c < t.to && calls.begin[c] < view.end; c++) act(c, t.rank, inView(calls.begin[c], calls.begin[c] + calls.time[c]));
  });
}

const PANELS = {
  losses: () => {
    if (!D.losses.length) return [el("p", "No significant wait time found.")];
    const item = ([head, what, help, call]) => el("li", [el("b", head), " ", button("Show", () => goTo(call), "Show an example of: " + head), el("p", what), el("p", ["What would help: ", help], { style: "color:var(--soft)" })]);
    return [el("ol", D.losses.map(item), { class: "losses" }), el("p", D.critical)];
  },
  call: () => view.call < 0 ? [el("p", "No call is chosen: click on one, or press n on the time line.")] : [callPanel(view.call)],
  waits: () => {
    const sums = new Map();
    for (let w = 0; w < waits.n; w++) {
      const c = waits.call[w], part = inView(calls.begin[c], calls.begin[c] + waits.time[w]);
      if (!part) continue;
      const key = [waits.kind[w], rankOf(c), calls.fn[c], calls.at[c]].join();
      const s = sums.get(key) || sums.set(key, { w, n: 0, time: 0, most: 0 }).get(key);
      s.n++; s.time += part;
      if (part > s.most) { s.most = part; s.w = w; }
    }
    const all = [...sums.values()].sort((a, b) => b.time - a.time), c = s => waits.call[s.w];
    return [table(["Wait", "Rank", "Where", "#Times", "#Time", "#Share of the rank", "Longest wait", ""], all.slice(0, 200).map(s => [
      chip(waits.kind[s.w] + 1, KINDS[waits.kind[s.w]]), rankName(rankOf(c(s))), site(calls.fn[c(s)], calls.at[c(s)]), count(s.n), time(s.time),
      share(s.time, visible()), "for " + rankName(rankOf(waits.cause[s.w])), button("Show", () => goTo(c(s)), "Show the longest")])), more(all, 200)];
  },
  functions: () => {
    const sums = new Map();
    eachCall((c, r, part) => {
      const key = placeKey(c);
      const s = sums.get(key) || sums.set(key, { c, n: 0, time: 0, bytes: 0, by: new Float64Array(ranks.length) }).get(key);
      s.n++; s.time += part; s.bytes += Math.max(0, calls.bytes[c] - 1); s.by[r] += part;
    });
    const all = [...sums.values()].sort((a, b) => b.time - a.time), whole = visible() * ranks.length;
    const most = s => { let m = 0; s.by.forEach((v, r) => { if (v > s.by[m]) m = r; }); return rankName(m) + " (" + time(s.by[m]) + ")"; };
    return [table(["Function", "Where", "#Calls", "#Time", "#Share", "#Bytes", "Most on"], all.slice(0, 200).map(s => [functionOf(s.c), placeOf(s.c), count(s.n), time(s.time), share(s.time, whole), s.bytes ? size(s.bytes) : "", most(s)])), more(all, 200)];
  },
  balance: () => {
    const sums = ranks.map(() => new Float64Array(K));
    threads.forEach((t, i) => {
      if (!t.first) return;
      const s = new Sums(view.begin, visible(), 1);
      s.takeCalls("waits", i, view.end);
      sums[t.rank] = s.time;
    });
    const row = (s, r) => {
      const inside = s.reduce((a, b) => a + b, 0), waiting = inside - s[1];
      const bars = [0, ...KINDS.keys()].map((_, k) => k && s[k] ? el("i", "", { style: `width:${100 * s[k] / visible()}%;background:${colours.waits[k]}`, title: LEGEND.waits[k] + " " + time(s[k]) }) : null);
      return [rankName(r), el("div", bars.reverse(), { class: "stack" }), time(Math.max(0, visible() - inside)), time(s[1]), time(waiting), share(waiting, visible())];
    };
    const shown = sums.slice(0, 256).map(row);
    return [table(["Rank", "Waiting, in MPI, outside", "#Outside", "#In MPI", "#Waiting", "#Waits"], shown), more(sums, 256)];
  },
  matrix: matrixPanel,
  sizes: () => {
    const bins = new Map();
    eachMessage(m => {
      const b = messages.bytes[m] < 1 ? -1 : Math.floor(Math.log2(messages.bytes[m]));
      const s = bins.get(b) || bins.set(b, [0, 0]).get(b);
      s[0]++; s[1] += messages.bytes[m];
    });
    const all = [...bins].sort((a, b) => a[0] - b[0]), most = Math.max(...all.map(b => b[1][0]), 1);
    const bar = n => el("span", "", { class: "bar", style: `width:${Math.max(2, 320 * n / most)}px;background:#0072b2` });
    return [table(["Bytes", "", "#Messages", "#Bytes together"], all.map(([b, [n, bytes]]) => [b < 0 ? "0" : size(2 ** b) + " and more", bar(n), count(n), size(bytes)]))];
  },
  path: () => {
    const by = new Map(), per = new Float64Array(ranks.length);
    let outside = 0, whole = 0;
    for (let p = 0; p < path.n; p++) {
      const from = Math.max(path.begin[p], view.begin), to = Math.min(path.begin[p] + path.time[p], view.end), t = threads[path.thread[p]];
      if (to <= from) continue;
      whole += to - from; per[t.rank] += to - from;
      let rest = to - from;
      for (let c = firstCall(path.thread[p], from); c < t.to && calls.begin[c] < to; c++) {
        if (calls.depth[c]) continue;
        const part = Math.max(0, Math.min(calls.begin[c] + calls.time[c], to) - Math.max(calls.begin[c], from));
        rest -= part;
        const key = placeKey(c);
        by.set(key, (by.get(key) || 0) + part);
      }
      outside += rest;
    }
    const functions = [["outside MPI", outside], ...[...by].map(([k, v]) => [site(Math.floor(k / D.names.length), k % D.names.length), v])].filter(f => f[1] > 0).sort((a, b) => b[1] - a[1]);
    const order = [...per.keys()].filter(r => per[r] > 0).sort((a, b) => per[b] - per[a]);
    return [
      el("p", ["What the end of the run depended on: only what lies on this path makes the run shorter when it gets shorter. ", button(view.path ? "Hide it" : "Show it in the time line", () => toggle("path"))]),
      el("div", [
        table(["Rank", "#On the path", "#Share"], order.slice(0, 40).map(r => [rankName(r), time(per[r]), share(per[r], whole)])),
        table(["What", "#On the path", "#Share"], functions.slice(0, 40).map(([f, v]) => [f, time(v), share(v, whole)])),
      ], { class: "beside" })];
  },
  counters: () => {
    if (!D.counters.length) return [el("p", "The trace has no counters.")];
    const names = [...new Set(D.counters.map(c => c.name))];
    return names.flatMap(name => [el("h2", name), counterPicture(D.counters.filter(c => c.name === name))]);
  },
};

const more = (all, most) => all.length > most ? el("p", `${count(all.length - most)} more are not shown.`) : all.length ? null : el("p", "Nothing of it is in the visible part.");
const chip = (k, text) => el("span", [el("i", "", { style: `background:${colours.waits[k]};width:11px;height:11px;border-radius:3px;display:inline-block;margin-right:6px` }), text]);

function callPanel(c) {
  const w = calls.wait[c], rows = [];
  const put = (name, value) => value === undefined || value === "" || rows.push([name, value]);
  const world = v => v === NONE ? undefined : v === -1 ? "any" : v < 0 ? "none" : "rank " + v;
  put("Rank", ranks[rankOf(c)].name + (ranks[rankOf(c)].labels ? " (" + ranks[rankOf(c)].labels + ")" : ""));
  put("Thread", threads[calls.thread[c]].name);
  put("Where", placeOf(c));
  put("From", time(calls.begin[c]) + " to " + time(calls.begin[c] + calls.time[c]) + (calls.open[c] ? " (had not ended when the recording did)" : ""));
  put("Takes", time(calls.time[c]));
  put("Destination", world(calls.dest[c]));
  put("Source", world(calls.source[c]));
  put("Tag", calls.tag[c] === NONE ? undefined : calls.tag[c] === -1 ? "any" : String(calls.tag[c]));
  put("Root", world(calls.root[c]));
  put("Target", calls.target[c] === NONE ? undefined : calls.target[c] < 0 ? "none" : "rank " + calls.target[c] + (calls.commid[c] ? "" : " of the window"));
  put("Communicator or window", D.names[calls.comm[c]]);
  put("Bytes", calls.bytes[c] ? count(calls.bytes[c] - 1) : undefined);
  put("Requests", calls.requests[c] ? String(calls.requests[c]) : undefined);
  put("Operation", D.names[calls.op[c]]);
  put("Mode", D.names[calls.mode[c]]);
  put("Collective", calls.coll[c] ? "number " + count(calls.coll[c] - 1) + " of it" : undefined);
  if (w >= 0) put("Waits", [chip(waits.kind[w] + 1, KINDS[waits.kind[w]]), ` for ${rankName(rankOf(waits.cause[w]))}, ${time(waits.time[w])} of it `, button("Go there (o)", () => goTo(waits.cause[w]))]);
  const list = messagesOf(c);
  return el("div", [el("h2", functionOf(c)), el("dl", rows.flatMap(([k, v]) => [el("dt", k), el("dd", v)])),
    list.length ? table(["Message", "#Tag", "#Bytes", "#Sent", "#Receive posted", "#Received", ""], list.slice(0, 64).map(m => {
      const sends = messages.send[m] === c, other = sends ? messages.receive[m] : messages.send[m];
      return [(sends ? "to " : "from ") + rankName(rankOf(other)) + (messages.rendezvous[m] ? " (rendezvous)" : ""), messages.tag[m], count(messages.bytes[m]), time(messages.sent[m]),
        messages.posted[m] ? time(messages.posted[m] - 1) : "", time(messages.received[m]), button("Go there", () => goTo(other))];
    })) : null]);
}
function messagesOf(c) {
  const list = [];
  for (let m = 0; m < messages.n; m++) if (messages.send[m] === c || messages.receive[m] === c) list.push(m);
  return list;
}
function eachMessage(act) {
  for (let m = 0; m < messages.n; m++) if (messages.received[m] >= view.begin && messages.sent[m] <= view.end) act(m);
}

let amount = "bytes";
function matrixPanel() {
  const n = ranks.length, cells = Math.min(n, 128), each = Math.ceil(n / cells), pairs = new Map();
  eachMessage(m => {
    const key = rankOf(messages.send[m]) * n + rankOf(messages.receive[m]);
    const s = pairs.get(key) || pairs.set(key, [0, 0]).get(key);
    s[0]++; s[1] += messages.bytes[m];
  });
  const which = amount === "bytes" ? 1 : 0, spell = v => which ? size(v) : count(v);
  const grid = new Float64Array(cells * cells);
  for (const [key, s] of pairs) grid[Math.floor(Math.floor(key / n) / each) * cells + Math.floor(key % n / each)] += s[which];
  const most = grid.reduce((a, b) => Math.max(a, b), 0), scale = Math.max(1, Math.floor(440 / cells));
  const canvas = el("canvas", "", { id: "matrix", role: "img", "aria-label": "Matrix: senders are rows, receivers columns; the table beside it has the largest" });
  canvas.width = canvas.height = cells * scale;
  const brush = canvas.getContext("2d");
  for (let i = 0; i < cells; i++) for (let j = 0; j < cells; j++) {
    const v = grid[i * cells + j];
    brush.fillStyle = colours.waits[0];
    brush.globalAlpha = 1;
    brush.fillRect(j * scale, i * scale, scale - (scale > 5), scale - (scale > 5));
    if (v) { brush.globalAlpha = 0.2 + 0.8 * v / most; brush.fillStyle = "#0072b2"; brush.fillRect(j * scale, i * scale, scale - (scale > 5), scale - (scale > 5)); }
  }
  const hint = el("p", "Senders are rows, receivers columns.", { class: "range" });
  canvas.addEventListener("mousemove", e => {
    const i = Math.floor(e.offsetY / canvas.clientHeight * cells), j = Math.floor(e.offsetX / canvas.clientWidth * cells);
    hint.textContent = `rank ${ranks[i * each]?.number} to rank ${ranks[j * each]?.number}${each > 1 ? " and their neighbours" : ""}: ${spell(grid[i * cells + j] || 0)}`;
  });
  const all = [...pairs].sort((a, b) => b[1][which] - a[1][which]);
  const choose = el("select", [["bytes", "bytes"], ["messages", "messages"]].map(([v, t]) => el("option", t, v === amount ? { value: v, selected: "" } : { value: v })), { onchange: e => { amount = e.target.value; show(); }, "aria-label": "What is counted" });
  return [el("p", ["Colour: ", choose, most ? ` up to ${spell(most)} a ${each > 1 ? "field" : "pair"}` : ""]),
    el("div", [el("div", [canvas, hint]), table(["From", "To", "#Messages", "#Bytes"], all.slice(0, 20).map(([key, s]) => [rankName(Math.floor(key / n)), rankName(key % n), count(s[0]), size(s[1])]))], { class: "beside" }), more(all, 20)];
}

function counterPicture(list) {
  const canvas = el("canvas", "", { role: "img", "aria-label": "The counter over the visible time, a line for each rank", style: "height:110px" });
  canvas.width = wide * ratio; canvas.height = 110 * ratio;
  const brush = canvas.getContext("2d");
  brush.scale(ratio, ratio);
  let low = Infinity, top = -Infinity;
  for (const c of list) for (const v of c.values) { low = Math.min(low, v); top = Math.max(top, v); }
  for (const c of list) {
    const times = c.unpacked ||= delta(c.times, c.n, Float64Array);
    brush.strokeStyle = colours.accent; brush.globalAlpha = Math.max(0.25, 1 / list.length);
    brush.beginPath();
    for (let i = Math.max(0, lower(times, view.begin, 0, c.n) - 1); i < c.n && times[Math.max(0, i - 1)] < view.end; i++) {
      const py = 100 - 92 * (c.values[i] - low) / (top - low || 1), px = Math.max(LABELS, x(times[i]));
      if (i) brush.lineTo(px, 100 - 92 * (c.values[i - 1] - low) / (top - low || 1));
      brush.lineTo(px, py);
    }
    brush.stroke();
  }
  brush.globalAlpha = 1; brush.fillStyle = colours.soft; brush.font = "11px system-ui, sans-serif";
  brush.fillText(String(top), 8, 14); brush.fillText(String(low), 8, 104);
  return canvas;
}

let due = 0;
function show(name) {
  if (name) tab = name;
  for (const b of document.getElementById("tabs").children) {
    const own = b.id === "tab-" + tab;
    b.setAttribute("aria-selected", own); b.tabIndex = own ? 0 : -1;
  }
  panel.setAttribute("aria-labelledby", "tab-" + tab);
  const all = view.begin <= 0 && view.end >= total;
  const range = all || tab === "losses" || tab === "call" ? null : el("p", `Of the visible part, ${time(view.begin)} to ${time(view.end)}.`, { class: "range" });
  panel.replaceChildren(...[range, ...PANELS[tab]()].filter(e => e));
}
// The tables follow the picture when it has come to rest.
function follow() {
  clearTimeout(due);
  if (tab !== "losses" && tab !== "call") due = setTimeout(() => show(), 180);
}
