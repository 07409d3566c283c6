//! One page of HTML with the timeline of a trace: everything in one file, no network.
//!
//! The figures are in the page as columns (`pack`), from which its script makes typed arrays. The
//! script is in pieces: `data.js` unpacks, `lod.js` sums time by pixel, `draw.js` draws,
//! `panels.js` has the tables, `main.js` handles mouse and keys, `selftest.js` tests it in a
//! browser.

mod pack;

use std::collections::BTreeMap;

use crate::analysis::Analysis;
use crate::colours;
use crate::export::quoted;
use crate::functions;
use crate::model::{Name, Trace};
use crate::summary;
use pack::Column;

const HTML: &str = include_str!("page.html");
const CSS: &str = include_str!("page.css");
const SCRIPTS: [&str; 6] = [
    include_str!("data.js"),
    include_str!("lod.js"),
    include_str!("draw.js"),
    include_str!("panels.js"),
    include_str!("main.js"),
    include_str!("selftest.js"),
];

/// The page of a trace; `title` is its name, that of a file.
pub fn page(trace: &Trace, analysis: &Analysis, title: &str) -> String {
    let mut out = String::new();
    for part in HTML.split_inclusive("}}") {
        let (text, word) = match part.split_once("{{") {
            Some((text, word)) => (text, word.trim_end_matches("}}")),
            None => (part, ""),
        };
        out += text;
        match word {
            "title" => out += &escaped(title),
            "css" => out += CSS,
            "data" => out += &data(trace, analysis, title),
            "script" => SCRIPTS.iter().for_each(|s| out += s),
            _ => {}
        }
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The parts of the object at the beginning of the page.
struct Object(String);

impl Object {
    fn put(&mut self, name: &str, value: &str) {
        let comma = if self.0.is_empty() { "" } else { ",\n" };
        self.0 += &format!("{comma}{}:{value}", quoted(name));
    }

    fn list(&mut self, name: &str, values: impl Iterator<Item = String>) {
        let all: Vec<String> = values.collect();
        self.put(name, &format!("[{}]", all.join(",")));
    }

    fn columns(&mut self, name: &str, rows: usize, columns: &[(&str, Column)]) {
        let mut object = Object(String::new());
        object.put("n", &rows.to_string());
        for (name, column) in columns {
            object.put(name, &quoted(&column.text()));
        }
        self.put(name, &format!("{{{}}}", object.0));
    }
}

fn data(trace: &Trace, analysis: &Analysis, title: &str) -> String {
    let mut names = Used::default();
    let mut object = Object(String::new());
    object.put("title", &quoted(title));
    object.put("time", &trace.time().to_string());
    object.list("notes", trace.notes.iter().map(|n| quoted(n)));
    object.put("overview", &quoted(&summary::overview(trace, analysis)));
    object.put("critical", &quoted(&summary::critical(trace, analysis)));
    let kinds = colours::KINDS.iter();
    let kind = |(name, colour): &(&str, &str)| format!("[{},{}]", quoted(name), quoted(colour));
    object.list("kinds", kinds.map(kind));
    losses(&mut object, trace, analysis);
    ranks(&mut object, trace);
    calls(&mut object, trace, &mut names);
    messages(&mut object, trace, &mut names);
    waits(&mut object, analysis);
    path(&mut object, trace, analysis);
    counters(&mut object, trace);
    marks(&mut object, trace);
    let classes = names.order.iter().map(|n| classed(trace, *n).to_string());
    object.list("classes", classes);
    object.list(
        "names",
        names.order.iter().map(|n| quoted(trace.names.text(*n))),
    );
    format!("{{{}}}", object.0)
}

/// Texts that the page needs, in the order of their first use; the empty one is the first.
struct Used {
    order: Vec<Name>,
    place: BTreeMap<Name, u64>,
}

impl Default for Used {
    fn default() -> Self {
        Used {
            order: vec![Name::default()],
            place: BTreeMap::from([(Name::default(), 0)]),
        }
    }
}

impl Used {
    fn place(&mut self, name: Name) -> u64 {
        let order = &mut self.order;
        *self.place.entry(name).or_insert_with(|| {
            order.push(name);
            order.len() as u64 - 1
        })
    }
}

/// The class of a name, if it is taken as a function's.
fn classed(trace: &Trace, name: Name) -> u8 {
    let text = trace.names.text(name);
    let other = functions::Pattern::AllToAll;
    let collective = functions::pattern(text) != other
        || ["all", "reduce", "gather"]
            .iter()
            .any(|w| text.to_ascii_lowercase().contains(w));
    functions::class(text, collective) as u8
}

fn losses(object: &mut Object, trace: &Trace, analysis: &Analysis) {
    let reported = summary::reported(trace, analysis);
    object.list(
        "losses",
        reported.iter().map(|t| {
            let (head, what, help) = (quoted(&t.head), quoted(&t.what), quoted(&t.help));
            format!("[{head},{what},{help},{}]", t.example)
        }),
    );
}

fn ranks(object: &mut Object, trace: &Trace) {
    let rank = |r: &crate::model::Rank| {
        let labels = quoted(&r.labels.join(", "));
        format!(
            "[{},{},{labels},{},{}]",
            r.number,
            quoted(&r.name),
            r.lost,
            r.clock_error
        )
    };
    object.list("ranks", trace.ranks.iter().map(rank));
    let thread = |t: &crate::model::Thread| {
        format!(
            "[{},{},{},{}]",
            t.rank,
            quoted(&t.name),
            t.calls.start,
            t.calls.end
        )
    };
    object.list("threads", trace.threads.iter().map(thread));
}

fn calls(object: &mut Object, trace: &Trace, names: &mut Used) {
    let list = [
        "begin", "time", "depth", "open", "fn", "at", "dest", "source", "tag", "root", "comm",
        "bytes", "requests", "op", "mode", "coll", "commid", "target",
    ];
    let mut columns: Vec<(&str, Column)> = list.map(|n| (n, Column::default())).into();
    let mut comms: BTreeMap<u64, u64> = BTreeMap::new();
    let start = trace.span.start;
    for call in &trace.calls {
        let args = &call.args;
        let comm = args.comm_id.map(|id| {
            let next = comms.len() as u64 + 1;
            *comms.entry(id).or_insert(next)
        });
        columns[0].1.push_delta(call.begin.saturating_sub(start));
        columns[1].1.push(call.time());
        columns[2].1.push(call.depth.into());
        columns[3].1.push(call.open.into());
        for (at, name) in [
            (4, call.function),
            (5, call.at),
            (10, args.comm),
            (13, args.op),
            (14, args.mode),
        ] {
            columns[at].1.push(names.place(name));
        }
        for (at, value) in [
            (6, args.dest),
            (7, args.source),
            (8, args.tag),
            (9, args.root),
            (17, args.target),
        ] {
            columns[at].1.push_option(value.map(i64::from));
        }
        columns[11]
            .1
            .push(args.bytes.map_or(0, |b| b.saturating_add(1)));
        columns[12].1.push(args.requests.unwrap_or(0));
        columns[15]
            .1
            .push(args.coll.map_or(0, |c| c.saturating_add(1)));
        columns[16].1.push(comm.unwrap_or(0));
    }
    object.columns("calls", trace.calls.len(), &columns);
}

fn messages(object: &mut Object, trace: &Trace, names: &mut Used) {
    let list = [
        "send",
        "receive",
        "received",
        "bytes",
        "tag",
        "comm",
        "posted",
        "rendezvous",
    ];
    let mut columns: Vec<(&str, Column)> = list.map(|n| (n, Column::default())).into();
    let start = trace.span.start;
    for m in &trace.messages {
        columns[0].1.push_delta(m.send.into());
        columns[1].1.push_delta(m.receive.into());
        columns[2].1.push(m.received - m.sent);
        columns[3].1.push(m.bytes);
        columns[4].1.push_option(Some(i64::from(m.tag)));
        columns[5].1.push(names.place(m.comm));
        columns[6].1.push(
            m.posted
                .map_or(0, |p| p.saturating_sub(start).saturating_add(1)),
        );
        columns[7].1.push(m.rendezvous.into());
    }
    object.columns("messages", trace.messages.len(), &columns);
}

fn waits(object: &mut Object, analysis: &Analysis) {
    let list = ["call", "class", "time", "cause"];
    let mut columns: Vec<(&str, Column)> = list.map(|n| (n, Column::default())).into();
    for w in &analysis.waits {
        columns[0].1.push_delta(w.call.into());
        columns[1].1.push(w.class as u64);
        columns[2].1.push(w.time());
        columns[3].1.push_delta(w.cause.into());
    }
    object.columns("waits", analysis.waits.len(), &columns);
}

fn path(object: &mut Object, trace: &Trace, analysis: &Analysis) {
    let list = ["thread", "begin", "time"];
    let mut columns: Vec<(&str, Column)> = list.map(|n| (n, Column::default())).into();
    for piece in &analysis.critical.pieces {
        columns[0].1.push(piece.thread.into());
        columns[1]
            .1
            .push_delta(piece.begin.saturating_sub(trace.span.start));
        columns[2].1.push(piece.end - piece.begin);
    }
    object.columns("path", analysis.critical.pieces.len(), &columns);
}

fn counters(object: &mut Object, trace: &Trace) {
    let counter = |c: &crate::model::Counter| {
        let mut times = Column::default();
        c.values
            .iter()
            .for_each(|v| times.push_delta(v.0.saturating_sub(trace.span.start)));
        let finite = |v: f64| if v.is_finite() { v } else { 0.0 };
        let values: Vec<String> = c.values.iter().map(|v| finite(v.1).to_string()).collect();
        format!(
            "{{\"rank\":{},\"name\":{},\"n\":{},\"times\":{},\"values\":[{}]}}",
            c.rank,
            quoted(&c.name),
            c.values.len(),
            quoted(&times.text()),
            values.join(",")
        )
    };
    object.list(
        "counters",
        trace
            .counters
            .iter()
            .filter(|c| !c.values.is_empty())
            .map(counter),
    );
}

/// Phases of the program; the library's events are too many for a picture.
fn marks(object: &mut Object, trace: &Trace) {
    let user = |m: &&crate::model::Mark| trace.names.text(m.category) == "user";
    let mark = |m: &crate::model::Mark| {
        let level = m.args.level.map_or(String::new(), |l| format!(" {l}"));
        let text = quoted(&format!("{}{level}", trace.names.text(m.name)));
        format!(
            "[{},{},{text}]",
            m.rank,
            m.time.saturating_sub(trace.span.start)
        )
    };
    object.list("marks", trace.marks.iter().filter(user).map(mark));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyse;
    use crate::{example, read};

    #[test]
    fn a_page_is_whole_and_asks_nobody() {
        let trace = read::read(example::ring(3, 2).as_slice()).unwrap();
        let page = page(&trace, &analyse(&trace), "a<b>.trace");
        assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
        assert!(page.contains("a&lt;b&gt;.trace") && !page.contains("a<b>"));
        for word in ["http:", "https:", "src=", "@import", "{{"] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
