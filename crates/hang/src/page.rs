//! The page: groups of ranks in the same state, their waits and unexpected messages; then the
//! sentence.

use crate::graph::Finding;
use crate::sentence::{comm_name, message, miss, sentence, wanted};
use crate::{Early, Kind, Ranges, Rank, RankState, Report, State, Wait, is_collective};

/// Most groups, and most lines of waits and of messages of one group.
const GROUPS: usize = 24;
const LINES: usize = 4;

/// Ranks in the same state.
struct Group {
    ranks: Vec<Rank>,
    /// The shortest and the longest wait.
    waited: (u64, u64),
}

/// The page, each line with its end.
pub fn page(states: &[RankState], finding: &Finding) -> String {
    let mut out = String::new();
    let groups = groups(states);
    for group in groups.iter().take(GROUPS) {
        write_group(states, group, &mut out);
    }
    let rest = groups.iter().skip(GROUPS).flat_map(|g| &g.ranks);
    let rest = Ranges::new(rest.copied());
    if rest.count() > 0 {
        out += &format!("  {}: each in another place\n", rest.named());
    }
    out + &format!("  {}\n", sentence(states, finding))
}

fn groups(states: &[RankState]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for rank in 0..states.len() as Rank {
        let waited = states[rank as usize].report().map_or(0, |r| r.waited);
        let mut alike = groups.iter_mut();
        match alike.find(|g| are_alike(&states[g.ranks[0] as usize], &states[rank as usize])) {
            Some(group) => {
                group.ranks.push(rank);
                group.waited = (group.waited.0.min(waited), group.waited.1.max(waited));
            }
            None => groups.push(Group {
                ranks: vec![rank],
                waited: (waited, waited),
            }),
        }
    }
    groups
}

fn are_alike(a: &RankState, b: &RankState) -> bool {
    if a.site != b.site {
        return false;
    }
    match (&a.state, &b.state) {
        (State::Waits(a), State::Waits(b)) => {
            let shape = |w: &Wait| match w.kind {
                // The number of a rank's step means nothing to people.
                Kind::Collective => (w.kind, None, w.context, 0, false),
                _ => (w.kind, w.tag, w.context, w.bytes, w.peer.is_some()),
            };
            let waits = |r: &Report| r.waits.iter().map(shape).collect::<Vec<_>>();
            let early = |r: &Report| !relevant(r).is_empty();
            (&a.waits_for, &a.call, a.any, a.polls, a.threads)
                == (&b.waits_for, &b.call, b.any, b.polls, b.threads)
                && waits(a) == waits(b)
                && early(a) == early(b)
        }
        (a, b) => a == b,
    }
}

fn write_group(states: &[RankState], group: &Group, out: &mut String) {
    let first = group.ranks[0];
    let who = Ranges::new(group.ranks.iter().copied()).named();
    let one = &states[first as usize];
    let at = match &one.site[..] {
        "" => String::new(),
        site => format!(", at {site}"),
    };
    match &one.state {
        State::Finished => *out += &format!("  {who}: finished\n"),
        State::Silent => *out += &format!("  {who}: not in MPI yet\n"),
        State::NotWaiting(what) if what.is_empty() => {
            *out += &format!("  {who}: not waiting in MPI{at}\n");
        }
        State::NotWaiting(what) => *out += &format!("  {who}: not waiting in MPI, {what}{at}\n"),
        State::Waits(report) => {
            let since = since(group.waited);
            let polls = if report.polls {
                ", again and again"
            } else {
                ""
            };
            *out += &format!("  {who}: in {} for {since}{polls}{at}\n", report.call);
            write_waits(states, group, report, out);
            write_early(states, first, report, out);
            if report.threads {
                *out += "      it has other threads, which may call MPI\n";
            }
        }
    }
}

fn since((least, most): (u64, u64)) -> String {
    let seconds = |ms: u64| format!("{:.1}", ms as f64 / 1000.0);
    match seconds(least) == seconds(most) {
        true => format!("{} s", seconds(most)),
        false => format!("{} to {} s", seconds(least), seconds(most)),
    }
}

fn write_waits(states: &[RankState], group: &Group, report: &Report, out: &mut String) {
    if !report.waits_for.is_empty() {
        *out += &format!("      {}\n", report.waits_for);
        return;
    }
    let first = group.ranks[0];
    let many = report.waits.len();
    if many > 1 {
        let how = if report.any { "any" } else { "all" };
        *out += &format!("      waits for {how} of {many}:\n");
    }
    for (i, wait) in report.waits.iter().take(LINES).enumerate() {
        let verb = if many > 1 { "  " } else { "waits for " };
        let bytes = match wait.kind {
            Kind::Receive => format!(", up to {} bytes", wait.bytes),
            Kind::Send => format!(", {} bytes", wait.bytes),
            _ => String::new(),
        };
        let each = peers(states, group, i);
        *out += &format!("      {verb}{}{bytes}{each}\n", wanted(states, first, wait));
    }
    if many > LINES {
        *out += &format!("        and {} more\n", many - LINES);
    }
}

/// The rank for which the others of a group wait, if it is not one of them.
fn peers(states: &[RankState], group: &Group, which: usize) -> String {
    let peer = |r: Rank| {
        states[r as usize]
            .report()
            .and_then(|w| w.waits.get(which)?.peer)
    };
    let first = peer(group.ranks[0]);
    let report = states[group.ranks[0] as usize].report();
    let wait = report.and_then(|r| r.waits.get(which));
    if wait.is_some_and(|w| w.kind == Kind::Collective) {
        return String::new();
    }
    if group.ranks.iter().all(|&r| peer(r) == first) {
        return String::new();
    }
    let pairs = group
        .ranks
        .iter()
        .skip(1)
        .filter_map(|&r| Some(format!("{r} for {}", peer(r)?)));
    let shown: Vec<String> = pairs.take(LINES).collect();
    let more = if group.ranks.len() > LINES + 1 {
        ", ..."
    } else {
        ""
    };
    format!(" (rank {}{more})", shown.join(", "))
}

/// The program's messages without a receive.
fn relevant(report: &Report) -> Vec<&Early> {
    let early = report.early.iter();
    early.filter(|e| !is_collective(e.context)).collect()
}

fn write_early(states: &[RankState], rank: Rank, report: &Report, out: &mut String) {
    let early = relevant(report);
    for e in early.iter().take(LINES) {
        let comm = comm_name(states, rank, e.context);
        let why = report.waits.iter().find_map(|w| miss(states, rank, w, e));
        let why = why.map_or(String::new(), |w| format!(": {w}"));
        *out += &format!(
            "      unexpected at rank {rank}: {} of rank {}, tag {}, on {comm}, {} bytes{why}\n",
            message(e),
            e.from,
            e.tag,
            e.bytes
        );
    }
    if early.len() > LINES {
        *out += &format!("      and {} more messages\n", early.len() - LINES);
    }
}
