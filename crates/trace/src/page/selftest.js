// With #selftest behind its address the page drives itself, and writes what came of it as JSON into the
// document, for tests in a browser. #show=NAME opens a table, #zoom=BEGIN,END (parts of the run) a part.
function selftest() {
  const result = { calls: calls.n, messages: messages.n, waits: waits.n, ranks: ranks.length, frames: [] };
  const key = k => line.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));
  const frame = () => { draw(); result.frames.push(+view.took.toFixed(2)); };
  const painted = () => {
    const seen = new Set(), data = pen.getImageData(0, 0, line.width, line.height).data;
    for (let i = 0; i < data.length; i += 4 * 7) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
    return seen.size;
  };
  frame();
  result.colours = painted();
  result.sum = 0;
  const sums = new Sums(0, total / 100, 100);
  sums.take("waits", 0);
  for (const v of sums.time) result.sum += v;
  result.exact = 0;
  for (let c = threads[0].from; c < threads[0].to; c++) if (!calls.depth[c]) result.exact += calls.time[c];
  line.focus();
  for (let i = 0; i < 6; i++) { key("+"); frame(); }
  result.zoomed = visible() / total;
  key("ArrowRight"); frame();
  result.panned = view.begin;
  key("f"); frame();
  result.fitted = visible() / total;
  key("n"); result.chosen = view.call >= 0 ? functionOf(view.call) : "";
  key("w"); result.wait = view.call >= 0 && calls.wait[view.call] >= 0 ? detail.textContent : "";
  key("o"); result.cause = view.call >= 0 ? functionOf(view.call) : "";
  key("Enter"); result.arguments = panel.querySelectorAll("dt").length;
  result.tabs = {};
  for (const b of list.children) { b.click(); result.tabs[b.id.slice(4)] = panel.textContent.length; }
  byId("search").value = "MPI_ rank 1"; search(byId("search").value);
  result.hits = hits.length;
  nextHit(1); frame();
  result.hit = view.call >= 0 ? ranks[rankOf(view.call)].number : -1;
  key("c"); frame(); result.path = view.path;
  key("m"); frame(); result.arrows = view.arrows;
  byId("mode").value = "calls"; byId("mode").onchange({ target: byId("mode") }); frame();
  result.draws = view.draws;
  const out = byId("selftest");
  out.hidden = false; out.textContent = JSON.stringify(result);
}
if (location.hash.includes("selftest")) try { selftest(); } catch (e) { byId("selftest").textContent = JSON.stringify({ error: String(e), stack: e.stack }); }
else for (const part of location.hash.slice(1).split("&")) {
  const [name, value] = part.split("=");
  if (name === "show" && PANELS[value]) show(value);
  if (name === "zoom") { const [a, b] = value.split(",").map(Number); look(a * total, b * total); draw(); }
  if (name === "path") { view.path = byId("path").checked = true; draw(); }
}
