//! The five largest losses of a run as text: which ranks wait for which, where, how long, and what
//! would help.

use crate::analysis::locks::waits_for_lock;
use crate::analysis::losses::{Cost, Loss, Site};
use crate::analysis::waits::Class;
use crate::analysis::{Analysis, balance};
use crate::model::{Name, Trace};
use crate::words;

/// Number of losses that are reported.
const LOSSES: usize = 5;
/// Losses of less than a thousandth of the run are not reported.
const SMALL: u64 = 1000;
/// Columns of the text.
const WIDTH: usize = 92;

/// The report of one loss.
#[derive(Debug, Clone)]
pub struct Reported {
    /// One line: function, duration, percentage.
    pub head: String,
    /// Description of the loss.
    pub what: String,
    /// Advice.
    pub help: String,
    /// The call that shows it best, in `Trace::calls`.
    pub example: u32,
}

/// The page of `kwtrace summary`.
pub fn text(trace: &Trace, analysis: &Analysis) -> String {
    let mut out = String::new();
    for note in &trace.notes {
        out += &wrap(&format!("Note: {note}"), "");
    }
    out += &wrap(&overview(trace, analysis), "");
    let reported = reported(trace, analysis);
    if reported.is_empty() {
        out += "\nNo significant wait time found.\n";
    } else {
        out += "\nThe largest losses (shares are of the time of all ranks together):\n";
    }
    for (i, loss) in reported.iter().enumerate() {
        out += &format!("\n{}. {}\n", i + 1, loss.head);
        out += &wrap(&loss.what, "   ");
        out += &wrap(&format!("What would help: {}", loss.help), "   ");
    }
    out += "\n";
    out += &wrap(&critical(trace, analysis), "");
    out
}

/// The run in three sentences.
pub fn overview(trace: &Trace, analysis: &Analysis) -> String {
    let sum = |of: fn(&balance::Rank) -> u64| analysis.balance.iter().map(of).sum();
    let whole = trace.rank_time();
    let (outside, waiting, inside) = (sum(|r| r.outside), sum(|r| r.waiting), sum(|r| r.inside));
    format!(
        "{} ran for {}: {} of MPI, {}, {}. Of the time of all ranks {} was outside MPI, {} waiting for other ranks, \
         and {} in MPI otherwise{}.",
        words::several(trace.ranks.len() as u64, "rank"),
        words::time(trace.time()),
        words::several(trace.calls.len() as u64, "call"),
        words::several(trace.messages.len() as u64, "message"),
        words::several(trace.collectives.len() as u64, "collective"),
        words::share(outside, whole),
        words::share(waiting, whole),
        words::share(inside, whole),
        ends(trace, analysis),
    )
}

/// Time of start and end of the job, if significant: users cannot change it, and in a longer run
/// its share is smaller.
fn ends(trace: &Trace, analysis: &Analysis) -> String {
    let own = analysis.losses.iter().filter(|l| is_end(trace, l));
    let time: u64 = own.map(|l| l.time).sum();
    if time < trace.rank_time() / 100 {
        return String::new();
    }
    let share = words::share(time, trace.rank_time());
    format!(" ({share} in MPI_Init and MPI_Finalize)")
}

fn is_end(trace: &Trace, loss: &Loss) -> bool {
    let function = trace.names.text(loss.site.0);
    loss.cost == Cost::Inside && matches!(function, "MPI_Init" | "MPI_Init_thread" | "MPI_Finalize")
}

/// Contents of the critical path.
pub fn critical(trace: &Trace, analysis: &Analysis) -> String {
    let path = &analysis.critical;
    let Some((rank, time)) = path.ranks.first() else {
        return String::new();
    };
    let mut out = format!(
        "The critical path (on which the end of the run depends) is {} outside MPI. Most of it, {}, is on rank {}",
        words::share(path.outside, path.time()),
        words::share(*time, path.time()),
        trace.ranks[*rank as usize].number,
    );
    match path.functions.first() {
        Some((function, at, time)) => {
            let site = site(trace, (*function, *at));
            out += &format!(
                "; of calls, {site} has the largest part, {}.",
                words::share(*time, path.time())
            );
        }
        None => out.push('.'),
    }
    out
}

/// The largest losses.
pub fn reported(trace: &Trace, analysis: &Analysis) -> Vec<Reported> {
    let small = trace.rank_time() / SMALL;
    let large = analysis
        .losses
        .iter()
        .filter(|l| l.time > small && !is_end(trace, l));
    large.take(LOSSES).map(|l| tell(trace, l)).collect()
}

fn tell(trace: &Trace, loss: &Loss) -> Reported {
    let share = words::share(loss.time, trace.rank_time());
    let name = match loss.cost {
        Cost::Wait(class) => capital(class.name()),
        Cost::Inside if is_for_lock(trace, loss) => "Wait for a lock or a target".into(),
        Cost::Inside => "Time in MPI without a wait".into(),
    };
    let head = format!("{name}: {}, {share} of the run", words::time(loss.time));
    let (what, help) = match loss.cost {
        Cost::Wait(class) => (waited(trace, loss, class), remedy(trace, loss, class)),
        Cost::Inside => (inside(trace, loss), inside_remedy(trace, loss)),
    };
    Reported {
        head,
        what,
        help,
        example: loss.longest,
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// `MPI_Recv at ring.c:21 (main)`.
fn site(trace: &Trace, (function, at): Site) -> String {
    let named = |name: Name| trace.names.text(name);
    match named(at) {
        "" => named(function).to_string(),
        at => format!("{} at {at}", named(function)),
    }
}

fn numbers(trace: &Trace, places: &[u32]) -> Vec<u32> {
    places
        .iter()
        .map(|r| trace.ranks[*r as usize].number)
        .collect()
}

/// Awaited ranks: one that stands out, or all.
fn causes(trace: &Trace, loss: &Loss) -> String {
    let all = trace.ranks.len();
    let Some((first, time, count)) = loss.causes.first().copied() else {
        return "no rank".into();
    };
    let one = trace.ranks[first as usize].number;
    if loss.causes.len() == 1 {
        return format!("rank {one}");
    }
    if time.saturating_mul(2) > loss.time {
        return format!(
            "rank {one} most of the time ({} of {} times, {} of the wait)",
            words::count(count),
            words::count(loss.count),
            words::share(time, loss.time)
        );
    }
    let mut places: Vec<u32> = loss.causes.iter().map(|c| c.0).collect();
    places.sort_unstable();
    let most = if loss.causes.len() > 3 {
        format!(", most often rank {one}")
    } else {
        String::new()
    };
    words::ranks(&numbers(trace, &places), all) + &most
}

fn waited(trace: &Trace, loss: &Loss, class: Class) -> String {
    let who = capital(&words::ranks(
        &numbers(trace, &loss.ranks),
        trace.ranks.len(),
    ));
    let verb = if loss.ranks.len() == 1 {
        "waits"
    } else {
        "wait"
    };
    let here = site(trace, loss.site);
    let cause = causes(trace, loss);
    let there = loss.cause.map_or(String::new(), |c| site(trace, c));
    let mean = words::time(loss.time / loss.count.max(1));
    let often = match loss.count {
        1 => "once".into(),
        n => format!("{} times, {mean} each", words::count(n)),
    };
    let reason = match class {
        Class::LateSender => format!("for messages sent late, in {there}, by {cause}"),
        Class::WrongOrder => format!(
            "for messages sent late, in {there}, by {cause}, while messages sent earlier are queued"
        ),
        Class::LateReceiver => format!("for receives posted late, in {there}, by {cause}"),
        Class::EarlyScan => format!("for the contribution of lower ranks: {cause}"),
        Class::LateNeighbor => format!("for late neighbours: {cause}"),
        Class::EarlyReduce => format!("as root for the last contribution: {cause}"),
        Class::LateBroadcast => format!("for the root: {cause}"),
        Class::AllToAll | Class::Barrier | Class::LateFence => {
            format!("for the last rank to arrive: {cause}")
        }
        Class::Lock => format!("for a lock of a window, until {there} of {cause}"),
        Class::LatePost => format!("for the target to open its window, in {there}: {cause}"),
        Class::LateComplete => format!("for accesses to end, in {there}, by {cause}"),
    };
    format!(
        "{who} {verb} in {here} {reason} ({often}). {}",
        meanwhile(trace, loss)
    )
}

/// Whether other ranks compute meanwhile, so that less work would mean less waiting.
fn computing(loss: &Loss) -> bool {
    let all: u64 = loss.origins.iter().map(|o| o.1).sum();
    all.saturating_mul(2) >= loss.time
}

/// The rank that computes during most of a loss.
fn slow(loss: &Loss) -> Option<(u32, u64)> {
    loss.origins
        .first()
        .copied()
        .filter(|o| o.1.saturating_mul(2) > loss.time)
}

/// A rank whose part of the computation during a loss is more than twice the average of the others,
/// and that part.
fn standing_out(trace: &Trace, loss: &Loss) -> Option<(u32, String)> {
    let all: u64 = loss.origins.iter().map(|o| o.1).sum();
    let (rank, time) = loss.origins.first().copied()?;
    let even = all / loss.origins.len() as u64;
    let number = trace.ranks[rank as usize].number;
    (time > even.saturating_mul(2)).then(|| (number, words::share(time, loss.time)))
}

fn after(trace: &Trace, loss: &Loss) -> String {
    loss.before
        .map_or(String::new(), |b| format!(" after {}", site(trace, b)))
}

/// Activity meanwhile of the awaited ranks, or of those that they waited for themselves.
fn meanwhile(trace: &Trace, loss: &Loss) -> String {
    let share = words::share(loss.outside, loss.time);
    let after = after(trace, loss);
    let direct = loss.outside.saturating_mul(2) >= loss.time;
    match slow(loss) {
        Some((rank, time)) => {
            let number = trace.ranks[rank as usize].number;
            let chain = if direct {
                ""
            } else {
                ", for which the ranks in between wait, too"
            };
            format!(
                "For {} of that time rank {number} computes{after}{chain}.",
                words::share(time, loss.time)
            )
        }
        None if direct => {
            let most = standing_out(trace, loss).map_or(String::new(), |(number, part)| {
                format!(", the largest part of it, {part}, on rank {number}")
            });
            format!("The awaited rank computes for {share} of that time{after}{most}.")
        }
        None if computing(loss) => {
            let most = loss
                .origins
                .first()
                .map_or(0, |o| trace.ranks[o.0 as usize].number);
            format!(
                "The awaited ranks mostly wait, too; at the end of the chain ranks compute{after}, most of the time \
                 rank {most}."
            )
        }
        None => {
            "The awaited rank is itself in MPI for most of that time: the delay comes from there."
                .into()
        }
    }
}

const LOCK_REMEDY: &str = "hold locks for a shorter time, share them (MPI_LOCK_SHARED), or use atomic operations \
                           under MPI_Win_lock_all.";

fn remedy(trace: &Trace, loss: &Loss, class: Class) -> String {
    let after = after(trace, loss);
    let slow = slow(loss).map(|s| trace.ranks[s.0 as usize].number);
    match (class, slow) {
        (Class::WrongOrder, _) => {
            "receive in order of arrival (MPI_ANY_SOURCE, MPI_Waitany), or post all receives \
                                   before waiting for the first."
                .into()
        }
        (Class::LateReceiver, _) => {
            "post these receives earlier (MPI_Irecv before the computation), or send with \
                                     MPI_Isend and wait later."
                .into()
        }
        (Class::Lock, _) => LOCK_REMEDY.into(),
        (Class::LatePost, Some(rank)) => {
            format!("let rank {rank} call MPI_Win_post before its work{after}.")
        }
        (Class::LateComplete, Some(rank)) => {
            format!("let rank {rank} call MPI_Win_complete before its work{after}.")
        }
        (Class::EarlyReduce, _) => {
            "let the root do other work first, or use MPI_Ireduce and wait later.".into()
        }
        (Class::LateBroadcast, Some(rank)) => format!(
            "let rank {rank} broadcast before its work{after}, or use MPI_Ibcast and wait later."
        ),
        (_, Some(rank)) => format!(
            "give rank {rank} less work{after}, or let the others compute between sending and waiting."
        ),
        (_, None) if computing(loss) => match standing_out(trace, loss) {
            Some((rank, _)) => format!(
                "give rank {rank} less work{after}; the rest comes from varying ranks: waiting later \
                 (non-blocking calls) keeps delays from adding up."
            ),
            None => format!(
                "the work{after} takes longer on varying ranks: divide it more evenly, or wait later \
                 (non-blocking calls), so that delays do not add up."
            ),
        },
        _ => "find what delays the awaited rank: kwtrace view shows its calls at that time.".into(),
    }
}

fn inside(trace: &Trace, loss: &Loss) -> String {
    let who = capital(&words::ranks(
        &numbers(trace, &loss.ranks),
        trace.ranks.len(),
    ));
    let verb = if loss.ranks.len() == 1 {
        "spends"
    } else {
        "spend"
    };
    let mean = words::time(loss.time / loss.count.max(1));
    let bytes = match loss.bytes / loss.count.max(1) {
        0 => String::new(),
        b => format!(", {} a call", words::bytes(b)),
    };
    if is_for_lock(trace, loss) {
        return format!(
            "{who} {verb} it in {} ({}, {mean} each{bytes}): for a lock of a window, or for the rank whose memory it is.",
            site(trace, loss.site),
            words::several(loss.count, "call"),
        );
    }
    format!(
        "{who} {verb} it in {} ({}, {mean} each{bytes}), without a known wait for another rank: data is \
         moved, or the calls themselves take the time.",
        site(trace, loss.site),
        words::several(loss.count, "call"),
    )
}

fn is_for_lock(trace: &Trace, loss: &Loss) -> bool {
    waits_for_lock(trace.names.text(loss.site.0))
}

fn inside_remedy(trace: &Trace, loss: &Loss) -> String {
    let function = trace.names.text(loss.site.0);
    let mean = loss.bytes / loss.count.max(1);
    match function {
        "MPI_Probe" | "MPI_Mprobe" => "the message arrived late: see its sender at that time, in kwtrace view.".into(),
        f if waits_for_lock(f) => LOCK_REMEDY.into(),
        f if f.starts_with("MPI_Test") || f.starts_with("MPI_I") && f.ends_with("probe") => {
            "test less often, or wait (MPI_Waitany) if there is nothing else to do.".into()
        }
        _ if loss.bytes > 0 && mean < 1024 => "send fewer, longer messages: combine those to the same rank.".into(),
        _ => "transfer the data while computing (non-blocking calls), transfer less, or place ranks that communicate \
              much on one host."
            .into(),
    }
}

/// Words broken into lines, each after `indent`.
fn wrap(text: &str, indent: &str) -> String {
    let mut out = String::new();
    let mut line = String::from(indent);
    for word in text.split_whitespace() {
        let empty = line.len() == indent.len();
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out += &line;
            out.push('\n');
            line = indent.to_string();
        } else if !empty {
            line.push(' ');
        }
        line += word;
    }
    out += &line;
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyse;
    use crate::{example, read};

    #[test]
    fn a_ring_with_a_slow_rank_is_reported() {
        let trace = read::read(example::ring(4, 10).as_slice()).unwrap();
        let text = text(&trace, &analyse(&trace));
        assert!(text.contains("1. Late sender:"), "{text}");
        assert!(text.contains("MPI_Recv at ring.c:21 (main)"), "{text}");
        assert!(text.contains("give rank 0 less work"), "{text}");
        assert!(
            text.lines().count() < 50 && text.lines().all(|l| l.chars().count() <= WIDTH),
            "{text}"
        );
    }
}
