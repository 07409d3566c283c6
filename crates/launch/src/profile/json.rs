//! The profile for programs.

use super::function;
use super::page::place;
use super::table::{Line, RankTimes, Site, Table, percent};
use crate::sites::Sites;
use std::fmt::Write;

/// The text of the file; `size`: ranks of the job. Times are in seconds.
pub fn json(table: &Table, size: usize, sites: &mut Sites) -> String {
    let mut ranks: Vec<&RankTimes> = table.ranks.iter().collect();
    ranks.sort_by_key(|r| r.rank);
    let ranks: Vec<String> = ranks.into_iter().map(rank).collect();
    let calls = table.sorted();
    let calls: Vec<String> = calls
        .iter()
        .map(|(s, l)| call(table, s, l, sites))
        .collect();
    format!(
        "{{\n\"version\": 1,\n\"size\": {size},\n\"ranks\": [\n{}\n],\n\"calls\": [\n{}\n]\n}}\n",
        ranks.join(",\n"),
        calls.join(",\n")
    )
}

fn rank(r: &RankTimes) -> String {
    format!(
        "  {{\"rank\": {}, \"run\": {}, \"mpi\": {}, \"waiting\": {}, \"files\": {}, \"file_access\": {}, \"file_exchange\": {}, \"finalized\": {}}}",
        r.rank,
        seconds(r.run),
        seconds(r.inside),
        seconds(r.waiting),
        seconds(r.files),
        seconds(r.file_access),
        seconds(r.file_exchange),
        r.over
    )
}

fn call(table: &Table, site: &Site, line: &Line, sites: &mut Sites) -> String {
    let place = place(table, site, sites);
    let (name, waits) = function(site.function);
    let file = table.files.get(site.file as usize).map_or("", |f| f);
    let (source, number) = place.line.rsplit_once(':').unwrap_or(("", ""));
    let number = number
        .parse::<u32>()
        .map_or("null".into(), |n| n.to_string());
    let mean = line.time / table.ranks.len().max(1) as u64;
    format!(
        "  {{\"function\": {}, \"waits\": {waits}, \"source\": {}, \"line\": {number}, \"caller\": {}, \"file\": {}, \"offset\": {}, \
         \"count\": {}, \"bytes\": {}, \"time\": {}, \"share\": {:.6}, \"mean\": {}, \"most\": {}, \"most_rank\": {}}}",
        text(name),
        text(source),
        text(&place.function),
        text(file),
        site.offset,
        line.count,
        line.bytes,
        seconds(line.time),
        percent(line.time, table.run()) / 100.0,
        seconds(mean),
        seconds(line.most),
        line.rank
    )
}

fn seconds(nanoseconds: u64) -> String {
    format!(
        "{}.{:09}",
        nanoseconds / 1_000_000_000,
        nanoseconds % 1_000_000_000
    )
}

fn text(words: &str) -> String {
    let mut out = String::from("\"");
    for c in words.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => drop(write!(out, "\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_times() {
        assert_eq!(text("a\"b\\\n"), "\"a\\\"b\\\\\\u000a\"");
        assert_eq!(seconds(1_020_000_003), "1.020000003");
    }
}
