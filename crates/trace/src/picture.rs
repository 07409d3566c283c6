//! The timeline of a trace as a picture (SVG) for pages and papers: the page's (`page/draw.js`)
//! view of the whole run, in the same colours, without interaction.
//!
//! Each row is a thread, and a column of half a pixel or more is divided in proportion to its time:
//! waits below, the rest of MPI above them, computation on top.

mod columns;

use std::fmt::Write;

use crate::analysis::Analysis;
use crate::colours::{KINDS, MARK, parts};
use crate::model::Trace;
use crate::words;
use columns::Columns;

/// Pixels: of the picture, of the names of rows, of the axis, of the right edge, of a line of text.
const WIDE: f64 = 960.0;
const LABELS: f64 = 74.0;
const AXIS: f64 = 24.0;
const EDGE: f64 = 10.0;
const LINE: f64 = 20.0;
const PLOT: f64 = WIDE - LABELS - EDGE;
/// Approximate maximum of columns in all rows together, which determines the size of the file.
const COLUMNS: usize = 9000;
/// Above this number of messages, arrows would hide the calls below them.
const ARROWS: usize = 150;
/// Most calls that are drawn with their names and edges.
const NAMED: usize = 400;
const TEXT: &str = "#1c2126";
const SOFT: &str = "#5b646d";
const GROUND: &str = "#fbfbf9";
const STRONG: &str = "#111111";

/// The picture; `title` is its name for people who cannot see it.
pub fn svg(trace: &Trace, analysis: &Analysis, title: &str) -> String {
    let mut picture = Picture::new(trace, analysis);
    picture.rows();
    picture.names();
    picture.arrows();
    picture.axis();
    picture.legend();
    picture.text(title)
}

/// A colour of the table on this picture's ground.
fn colour(kind: usize) -> &'static str {
    match KINDS[kind].1 {
        MARK => STRONG,
        other => other,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

struct Picture<'a> {
    trace: &'a Trace,
    analysis: &'a Analysis,
    row: f64,
    used: [bool; KINDS.len()],
    legend_lines: f64,
    out: String,
}

impl<'a> Picture<'a> {
    fn new(trace: &'a Trace, analysis: &'a Analysis) -> Self {
        let rows = trace.threads.len().max(1) as f64;
        let mut used = [false; KINDS.len()];
        used[0] = true;
        Picture {
            trace,
            analysis,
            row: (440.0 / rows).floor().clamp(3.0, 26.0),
            used,
            legend_lines: 1.0,
            out: String::new(),
        }
    }

    fn x(&self, time: u64) -> f64 {
        let all = self.trace.time().max(1) as f64;
        LABELS + PLOT * time.saturating_sub(self.trace.span.start) as f64 / all
    }

    fn y(&self, thread: usize) -> f64 {
        AXIS + self.row * thread as f64
    }

    /// Height of a row: a gap remains between rows.
    fn bar(&self) -> f64 {
        self.row - if self.row > 9.0 { 2.0 } else { 1.0 }
    }

    fn middle(&self, call: u32) -> f64 {
        let thread = self.trace.calls[call as usize].thread as usize;
        self.y(thread) + self.bar() / 2.0
    }

    fn put(&mut self, text: std::fmt::Arguments) {
        // writing to a string cannot fail
        let _ = self.out.write_fmt(text);
    }

    /// Activity of each thread.
    fn rows(&mut self) {
        let count = (COLUMNS / self.trace.threads.len().max(1)).clamp(200, 2 * PLOT as usize);
        for thread in 0..self.trace.threads.len() {
            let (y, high) = (self.y(thread), self.bar());
            self.put(format_args!(
                "<rect x=\"{LABELS}\" y=\"{y}\" width=\"{PLOT}\" height=\"{high}\" fill=\"{}\"/>\n",
                colour(0)
            ));
            let columns = self.columns(thread, count);
            let wide = PLOT / count as f64;
            for (kind, path) in paths(&columns, LABELS, y, wide, high) {
                self.used[kind] = true;
                let fill = colour(kind);
                self.put(format_args!("<path fill=\"{fill}\" d=\"{path}\"/>\n"));
            }
        }
    }

    fn columns(&self, thread: usize, count: usize) -> Columns {
        let mut columns = Columns::new(&self.trace.span, count);
        for index in self.trace.threads[thread].calls.clone() {
            let call = &self.trace.calls[index];
            if call.depth > 0 {
                continue;
            }
            for (from, to, kind) in parts(call.begin, call.end, self.wait(index as u32)) {
                columns.add(from, to, kind);
            }
        }
        columns
    }

    fn wait(&self, call: u32) -> Option<&'a crate::analysis::waits::Wait> {
        let waits = &self.analysis.waits;
        let at = waits.binary_search_by_key(&call, |w| w.call).ok()?;
        Some(&waits[at])
    }

    /// Edges and names of calls that are wide enough.
    fn names(&mut self) {
        if self.row < 12.0 {
            return;
        }
        let outer = |c: &usize| self.trace.calls[*c].depth == 0;
        let wide = |c: &usize| {
            let call = &self.trace.calls[*c];
            self.x(call.end) - self.x(call.begin) >= 5.0
        };
        let all: Vec<usize> = (0..self.trace.calls.len())
            .filter(outer)
            .filter(wide)
            .take(NAMED + 1)
            .collect();
        if all.len() > NAMED {
            return;
        }
        for index in all {
            self.name(index);
        }
    }

    fn name(&mut self, index: usize) {
        let call = &self.trace.calls[index];
        let from = self.x(call.begin);
        let (y, high) = (self.y(call.thread as usize), self.bar());
        self.put(format_args!(
            "<rect x=\"{from:.1}\" y=\"{y}\" width=\"1\" height=\"{high}\" fill=\"{GROUND}\"/>\n"
        ));
        let name = self.trace.function(index as u32);
        let name = name.strip_prefix("MPI_").unwrap_or(name);
        let parts = parts(call.begin, call.end, self.wait(index as u32));
        let longest = parts.iter().max_by_key(|p| p.1 - p.0);
        let kind = longest.map_or(0, |p| p.2);
        let room = longest.map_or(0.0, |p| self.x(p.1) - self.x(p.0));
        if name.len() as f64 * 6.3 + 8.0 > room {
            return;
        }
        let start = longest.map_or(from, |p| self.x(p.0)) + 4.0;
        let ink = if is_dark(colour(kind)) {
            "#fff"
        } else {
            STRONG
        };
        let base = y + high / 2.0 + 4.0;
        let name = escaped(name);
        self.put(format_args!(
            "<text x=\"{start:.1}\" y=\"{base:.1}\" fill=\"{ink}\">{name}</text>\n"
        ));
    }

    /// Messages, from the call that sent to the end of their receive, if there are few.
    fn arrows(&mut self) {
        let messages = &self.trace.messages;
        if messages.len() > ARROWS || messages.is_empty() {
            return;
        }
        let mut lines = String::new();
        let mut heads = String::new();
        for m in messages {
            let from = (self.x(m.sent), self.middle(m.send));
            let to = (self.x(m.received), self.middle(m.receive));
            arrow(&mut lines, &mut heads, from, to);
        }
        self.put(format_args!(
            "<g opacity=\".5\"><path fill=\"none\" stroke=\"{TEXT}\" d=\"{lines}\"/><path fill=\"{TEXT}\" d=\"{heads}\"/></g>\n"
        ));
    }

    /// Times, names of ranks, phases.
    fn axis(&mut self) {
        let step = step(self.trace.time());
        let (unit, scale) = unit(self.trace.time(), step);
        let mut at = 0;
        while at <= self.trace.time() {
            let x = self.x(self.trace.span.start + at);
            let y = AXIS - 6.0;
            self.put(format_args!(
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"1\" height=\"6\" fill=\"{SOFT}\"/>\n"
            ));
            if x < WIDE - 50.0 {
                let value = at as f64 / scale;
                let x = x + 4.0;
                self.put(format_args!(
                    "<text x=\"{x:.1}\" y=\"14\" fill=\"{SOFT}\">{value} {unit}</text>\n"
                ));
            }
            at += step;
        }
        self.phases();
        let each = (11.0 / self.row).ceil() as usize;
        for (at, thread) in self.trace.threads.iter().enumerate().step_by(each) {
            let rank = &self.trace.ranks[thread.rank as usize];
            let name = if rank.threads.first() == Some(&(at as u32)) {
                format!("rank {}", rank.number)
            } else {
                escaped(&thread.name.chars().take(12).collect::<String>())
            };
            let (x, y) = (LABELS - 8.0, self.y(at) + self.row.max(8.0) / 2.0 + 3.0);
            self.put(format_args!(
                "<text x=\"{x}\" y=\"{y}\" fill=\"{SOFT}\" text-anchor=\"end\">{name}</text>\n"
            ));
        }
    }

    fn phases(&mut self) {
        let mut heads = String::new();
        for mark in &self.trace.marks {
            if self.trace.names.text(mark.category) == "user" {
                let (x, y) = (self.x(mark.time), AXIS - 8.0);
                let _ = write!(heads, "M{:.1} {y}h8l-4 7z", x - 4.0);
            }
        }
        if !heads.is_empty() {
            self.put(format_args!("<path fill=\"#0060a8\" d=\"{heads}\"/>\n"));
        }
    }

    /// The colours in the picture.
    fn legend(&mut self) {
        let top = self.y(self.trace.threads.len()) + 10.0;
        let mut x = LABELS;
        for (kind, (name, _)) in KINDS.iter().enumerate() {
            if !self.used[kind] {
                continue;
            }
            let wide = 26.0 + 6.2 * name.len() as f64;
            if x + wide > WIDE {
                (x, self.legend_lines) = (LABELS, self.legend_lines + 1.0);
            }
            let y = top + LINE * (self.legend_lines - 1.0);
            let (fill, base, after) = (colour(kind), y + 10.0, x + 17.0);
            self.put(format_args!(
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{fill}\" stroke=\"#0003\"/>\
                 <text x=\"{after:.1}\" y=\"{base}\" fill=\"{SOFT}\">{name}</text>\n"
            ));
            x += wide;
        }
    }

    fn text(self, title: &str) -> String {
        let high = self.y(self.trace.threads.len()) + 10.0 + LINE * self.legend_lines;
        let title = escaped(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDE}\" height=\"{high}\" viewBox=\"0 0 {WIDE} {high}\" \
             role=\"img\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"11\">\n<title>{title}</title>\n\
             <rect width=\"{WIDE}\" height=\"{high}\" fill=\"{GROUND}\"/>\n{}</svg>\n",
            self.out
        )
    }
}

/// The path of each kind in a row: one rectangle for each run of equal columns.
fn paths(columns: &Columns, left: f64, top: f64, wide: f64, high: f64) -> Vec<(usize, String)> {
    let grain = (2.0 * high).clamp(6.0, 24.0); // at least half a pixel, so that low rows are small
    let mut paths = vec![String::new(); KINDS.len()];
    for (from, to, stack) in columns.runs(grain as u32) {
        let (x, run) = (left + from as f64 * wide, (to - from) as f64 * wide);
        let mut below = 0;
        for kind in (1..KINDS.len()).rev() {
            let share = stack[kind];
            if share == 0 {
                continue;
            }
            let part = high * f64::from(share) / grain;
            let y = top + high - high * f64::from(below + share) / grain;
            let path = &mut paths[kind];
            let _ = write!(path, "M{x:.1} {y:.1}h{run:.1}v{part:.1}h-{run:.1}z");
            below += share;
        }
    }
    let all = paths.into_iter().enumerate();
    all.filter(|p| !p.1.is_empty()).collect()
}

fn arrow(lines: &mut String, heads: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = write!(
        lines,
        "M{:.1} {:.1}L{:.1} {:.1}",
        from.0, from.1, to.0, to.1
    );
    let angle = (to.1 - from.1).atan2(to.0 - from.0);
    let _ = write!(heads, "M{:.1} {:.1}", to.0, to.1);
    for turn in [2.75, -2.75] {
        let (x, y) = (angle + turn).sin_cos();
        let _ = write!(heads, "L{:.1} {:.1}", to.0 + 5.0 * y, to.1 + 5.0 * x);
    }
    heads.push('z');
}

/// A step of the axis: 1, 2 or 5 times a power of ten, at least 90 pixels.
fn step(time: u64) -> u64 {
    let least = time as f64 * 90.0 / PLOT;
    let mut scale = 1;
    loop {
        for of in [1, 2, 5] {
            if (of * scale) as f64 >= least {
                return of * scale;
            }
        }
        scale *= 10;
    }
}

fn unit(time: u64, step: u64) -> (&'static str, f64) {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)];
    let fits = |u: &&(&str, u64)| time >= u.1 && step >= u.1 / 10_000;
    let (name, scale) = units.iter().find(fits).copied().unwrap_or(("ns", 1));
    (name, scale as f64)
}

fn is_dark(colour: &str) -> bool {
    let part = |at: usize| {
        let digits = colour.get(at..at + 2).unwrap_or("0");
        f64::from(u32::from_str_radix(digits, 16).unwrap_or(0))
    };
    0.3 * part(1) + 0.59 * part(3) + 0.11 * part(5) < 120.0
}

/// Title of the picture.
pub fn title(trace: &Trace, name: &str) -> String {
    format!(
        "{name}: the time line of {} for {}",
        words::several(trace.ranks.len() as u64, "rank"),
        words::time(trace.time())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyse;
    use crate::example::{Made, Maker, Stencil, ring};
    use crate::read;

    fn drawn(trace: &Trace) -> String {
        svg(trace, &analyse(trace), "a <b> & c")
    }

    #[test]
    fn a_wait_has_its_colour_and_its_length() {
        let mut maker = Maker::new(2);
        for (rank, begin) in [(0, 0), (1, 500)] {
            maker.call(
                rank,
                Made::new("MPI_Allreduce", begin, 1000, "a.c:1").collective(0, 8),
            );
        }
        let svg = drawn(&maker.trace());
        assert!(svg.contains("<title>a &lt;b> &amp; c</title>"), "{svg}");
        // half of rank 0's row is waiting, and the rest is in MPI
        let wait = format!("fill=\"#e69f00\" d=\"M74.0 24.0h{:.1}v24.0", PLOT / 2.0);
        assert!(svg.contains(&wait), "{svg}");
        assert!(svg.contains(">Allreduce</text>") && svg.contains(">wait at n-to-n</text>"));
        assert!(!svg.contains(">late sender</text>"), "{svg}");
        assert!(svg.contains(">0.4 us</text>"), "{svg}");
    }

    #[test]
    fn arrows_are_drawn_while_they_are_few() {
        let few = read::read(ring(3, 2).as_slice()).unwrap();
        assert!(drawn(&few).contains("<g opacity"));
        let many = read::read(ring(8, 200).as_slice()).unwrap();
        assert!(!drawn(&many).contains("<g opacity"));
    }

    #[test]
    fn a_picture_of_much_stays_small() {
        let stencil = Stencil {
            grid: (8, 8),
            steps: 64,
            work: 400_000,
            slow: 5,
            more: 35,
        };
        let trace = read::read(stencil.bytes().as_slice()).unwrap();
        let svg = drawn(&trace);
        assert!(svg.len() < 400_000, "{}", svg.len());
        assert_eq!(svg.matches(">rank ").count(), 32);
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(drawn(&Trace::default()).ends_with("</svg>\n"));
    }

    #[test]
    fn an_axis_has_round_steps() {
        assert_eq!(step(1000), 200);
        assert_eq!(unit(1_000_000, step(1_000_000)).0, "ms");
        assert_eq!(unit(999, 200).0, "ns");
    }
}
