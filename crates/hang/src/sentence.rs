//! The result of the analysis as one sentence.

use crate::graph::{Finding, Why};
use crate::{
    Comm, Early, Kind, Ranges, Rank, RankState, Report, State, Wait, communicator, is_collective,
};

/// Most ranks of a cycle that are described individually.
const SHOWN: usize = 4;

/// The sentence.
pub(crate) fn sentence(states: &[RankState], finding: &Finding) -> String {
    match finding {
        Finding::Open { free } => open(states, free),
        Finding::Deadlock { stuck, why } => {
            let mut text = format!("deadlock: {}", because(states, why));
            if let Some(hint) = almost(states, stuck) {
                text += &format!("; {hint}");
            }
            text + "."
        }
    }
}

fn because(states: &[RankState], why: &Why) -> String {
    match why {
        Why::Cycle(ranks) => cycle(states, ranks),
        Why::Differ { context, calls } => {
            let each = calls.iter().map(|(call, ranks)| {
                let verb = if ranks.len() == 1 { "calls" } else { "call" };
                let at = site(states, ranks[0]);
                format!("{} {verb} {call}{at}", named(ranks))
            });
            let comm = comm_name(states, calls[0].1[0], *context);
            let each: Vec<String> = each.collect();
            format!("{} as the same collective of {comm}", each.join(" and "))
        }
        Why::Missing {
            context,
            call,
            waiting,
            missing,
        } => {
            let comm = comm_name(states, waiting[0], *context);
            let verb = if waiting.len() == 1 { "waits" } else { "wait" };
            format!(
                "{} {verb} in {call} on {comm}{} for {}",
                named(waiting),
                site(states, waiting[0]),
                absent(states, missing)
            )
        }
        Why::NoServer(rank) => {
            let report = states[*rank as usize].report();
            let servers = report.map_or(String::new(), |r| others(states, *rank, r));
            format!(
                "{}; {servers} can serve it, and all of them wait themselves",
                doing(states, *rank)
            )
        }
    }
}

/// The ranks that could serve a rank.
fn others(states: &[RankState], rank: Rank, report: &Report) -> String {
    let mut servers: Vec<Rank> = Vec::new();
    for wait in &report.waits {
        let comm = report.comm(wait.context);
        match wait.peer {
            Some(peer) => servers.push(peer),
            None => servers.extend(comm.map_or(&[][..], |c| &c.senders)),
        }
    }
    servers.retain(|&r| r != rank && (r as usize) < states.len());
    match servers.is_empty() {
        true => "no other rank".into(),
        false => format!("only {}", named(&servers)),
    }
}

/// `0 -> 1 -> 0, each in MPI_Recv, tag 7`, or a description of each.
fn cycle(states: &[RankState], ranks: &[Rank]) -> String {
    let shown = ranks.iter().take(2 * SHOWN).map(Rank::to_string);
    let mut way: Vec<String> = shown.collect();
    if ranks.len() > way.len() {
        way.push(format!("... ({} ranks)", ranks.len()));
    }
    way.push(ranks[0].to_string());
    let way = way.join(" -> ");
    if let Some(all) = alike(states, ranks) {
        return format!("{way}, each in {all}");
    }
    let each: Vec<String> = ranks
        .iter()
        .take(SHOWN)
        .map(|&r| doing(states, r))
        .collect();
    format!("{way}: {}", each.join("; "))
}

/// The common action of all of them, if it is the same.
fn alike(states: &[RankState], ranks: &[Rank]) -> Option<String> {
    let mut reports = ranks.iter().map(|&r| states[r as usize].report());
    let first = reports.next()??;
    let [wait] = &first.waits[..] else {
        return None;
    };
    let same = |r: Option<&Report>| {
        r.is_some_and(|r| {
            let w = r.waits.first();
            let equal =
                |w: &Wait| (w.kind, w.tag, w.context) == (wait.kind, wait.tag, wait.context);
            r.call == first.call && r.waits.len() == 1 && w.is_some_and(equal)
        })
    };
    let sites = ranks
        .iter()
        .all(|&r| states[r as usize].site == states[ranks[0] as usize].site);
    let at = if sites {
        site(states, ranks[0])
    } else {
        String::new()
    };
    reports.all(same).then(|| {
        let comm = comm_name(states, ranks[0], wait.context);
        format!("{}{}, on {comm}{at}", first.call, tag_of(wait))
    })
}

fn tag_of(wait: &Wait) -> String {
    match (wait.kind, wait.tag) {
        (Kind::Collective | Kind::Lock | Kind::Post | Kind::Complete | Kind::Fence, _) => {
            String::new()
        }
        (_, Some(tag)) => format!(", tag {tag}"),
        (_, None) => ", any tag".into(),
    }
}

/// A rank's action and the ranks for which it waits.
pub(crate) fn doing(states: &[RankState], rank: Rank) -> String {
    let Some(state) = states.get(rank as usize) else {
        return format!("rank {rank} is not known");
    };
    match &state.state {
        State::Finished => format!("rank {rank} has finished"),
        State::Silent => format!("rank {rank} has not called MPI_Init"),
        State::NotWaiting(what) if what.is_empty() => format!("rank {rank} does not wait in MPI"),
        State::NotWaiting(what) => format!("rank {rank} does not wait in MPI ({what})"),
        State::Waits(report) => {
            let servers = match report.waits_for.is_empty() {
                true => awaited(states, rank, report),
                false => format!(" and {} for {} s", report.waits_for, report.waited / 1000),
            };
            format!(
                "rank {rank} is in {}{}{servers}",
                report.call,
                site(states, rank)
            )
        }
    }
}

/// The ranks for which it waits.
fn awaited(states: &[RankState], rank: Rank, report: &Report) -> String {
    let hopeful = |w: &&Wait| w.kind != Kind::Other;
    let waits: Vec<&Wait> = report.waits.iter().filter(hopeful).collect();
    match &waits[..] {
        [] => String::new(),
        [one] => format!(" and waits for {}", wanted(states, rank, one)),
        [one, ..] => {
            let n = report.waits.len();
            let how = if report.any { "one" } else { "all" };
            format!(
                " and waits for {how} of {n} requests, the first for {}",
                wanted(states, rank, one)
            )
        }
    }
}

/// Description of the object of a wait: `a message of rank 1, tag 7, on MPI_COMM_WORLD`.
pub(crate) fn wanted(states: &[RankState], rank: Rank, wait: &Wait) -> String {
    let comm = comm_name(states, rank, wait.context);
    let tag = tag_of(wait);
    let named = |p: Rank| match states[rank as usize].report() {
        Some(report) => report.named(p),
        None => format!("rank {p}"),
    };
    let own = |p: Rank| states[rank as usize].report().map_or(p, |r| r.own_rank(p));
    let peer = wait.peer.map_or("any rank".into(), |p| match wait.source {
        Some(s) if s != own(p) => format!("{} (rank {s} there)", named(p)),
        _ => named(p),
    });
    match wait.kind {
        Kind::Receive | Kind::Probe => format!("a message of {peer}{tag}, on {comm}"),
        Kind::Send => format!("{peer} to receive its message{tag}, on {comm}"),
        Kind::KeptBack => format!("{peer} to receive what it was sent before, on {comm}"),
        Kind::Collective if wait.peer == Some(rank) => {
            format!("its collective in the background, on {comm}")
        }
        Kind::Collective => format!("{peer}, on {comm}"),
        Kind::PartReceive => {
            format!("a partitioned send (MPI_Psend_init) of {peer}{tag}, on {comm}")
        }
        Kind::PartSend => {
            format!("{peer} to receive its partitioned send by MPI_Precv_init{tag}, on {comm}")
        }
        Kind::Ready => format!(
            "partitions of its send to {peer} to be made ready by MPI_Pready{tag}, on {comm}"
        ),
        Kind::Lock => {
            let at = wait.source.map_or("a rank".into(), |s| format!("rank {s}"));
            let held = match wait.peer {
                Some(holder) => format!(", which rank {holder} holds"),
                None => String::new(),
            };
            format!("the lock at {at} of {comm}{held}")
        }
        Kind::Post => format!("{peer} to call MPI_Win_post, on {comm}"),
        Kind::Complete => format!("{peer} to call MPI_Win_complete, on {comm}"),
        Kind::Fence => format!("{peer} to call MPI_Win_fence, on {comm}"),
        Kind::Other => "something that ends by itself".into(),
    }
}

/// Missing ranks, and where they are instead.
fn absent(states: &[RankState], missing: &[Rank]) -> String {
    let first = missing[0];
    let same = |r: &Rank| {
        let key = |r: Rank| {
            states[r as usize]
                .report()
                .map(|w| (&w.call, &states[r as usize].site))
        };
        key(*r) == key(first)
    };
    let alike: Vec<Rank> = missing.iter().copied().filter(same).collect();
    let text = match states[first as usize].report() {
        None => named(&alike),
        Some(report) if alike.len() == 1 => {
            let servers = awaited(states, first, report);
            format!(
                "rank {first}, which is in {}{}{servers}",
                report.call,
                site(states, first)
            )
        }
        Some(report) => format!(
            "{}, which are in {}{}",
            named(&alike),
            report.call,
            site(states, first)
        ),
    };
    match missing.len() - alike.len() {
        0 => text,
        more => format!("{text}, and for {more} more"),
    }
}

fn open(states: &[RankState], free: &[Rank]) -> String {
    let mut outside: Vec<Rank> = Vec::new();
    let (mut others, mut finished): (Vec<Rank>, Vec<Rank>) = (Vec::new(), Vec::new());
    for &rank in free {
        match states[rank as usize].state {
            State::NotWaiting(_) | State::Silent => outside.push(rank),
            State::Waits(_) => others.push(rank),
            State::Finished => finished.push(rank),
        }
    }
    others.extend(finished);
    if let Some(&first) = outside.first() {
        let who = format!("{}{}", doing(states, first), site(states, first));
        let more = match outside.len() {
            1 => String::new(),
            n => format!(", and {} more do not either", n - 1),
        };
        return format!("not a deadlock: {who}{more}{}.", waiters(states, first));
    }
    match others.first() {
        None => format!("not proven to be a deadlock: {}.", in_parts(states)),
        Some(&first) => format!("not proven to be a deadlock: {}.", doubt(states, first)),
    }
}

/// Why nothing is proven although no rank is known to continue by itself.
fn in_parts(states: &[RankState]) -> String {
    let partitioned = |t: &RankState| {
        t.report()
            .is_some_and(|r| r.waits.iter().any(|w| w.kind.is_partitioned()))
    };
    match states.iter().position(partitioned) {
        Some(rank) => format!(
            "{}; the outcome of partitioned communication is unknown",
            doing(states, rank as Rank)
        ),
        None => "every wait may still end".into(),
    }
}

/// The ranks that wait for a rank, and for how long.
fn waiters(states: &[RankState], rank: Rank) -> String {
    let waits = |t: &RankState| {
        let report = t.report()?;
        let for_it = report.waits.iter().any(|w| w.peer == Some(rank));
        for_it.then_some(report.waited)
    };
    let all = (0..).zip(states);
    let all: Vec<(Rank, u64)> = all.filter_map(|(r, t)| Some((r, waits(t)?))).collect();
    let Some(longest) = all.iter().map(|a| a.1).max() else {
        return String::new();
    };
    let who = Ranges::new(all.iter().map(|a| a.0));
    let verb = if who.count() == 1 { "has" } else { "have" };
    let seconds = longest as f64 / 1000.0;
    format!("; {} {verb} waited for it for {seconds:.1} s", who.named())
}

/// Why nothing can be proven because of a rank.
fn doubt(states: &[RankState], rank: Rank) -> String {
    let Some(report) = states[rank as usize].report() else {
        return doing(states, rank);
    };
    let call = format!("{}{}", report.call, site(states, rank));
    if !report.waits_for.is_empty() {
        return doing(states, rank);
    }
    if report.polls {
        format!("rank {rank} calls {call} again and again, and may do something else")
    } else if report.threads {
        format!("rank {rank} is in {call}, and another of its threads may call MPI")
    } else if !report.quiet {
        format!("rank {rank} is in {call}, and messages from or to it are under way")
    } else {
        format!("rank {rank} is in {call}, which may end by itself")
    }
}

/// A message that almost matches a wait of a stuck rank.
fn almost(states: &[RankState], stuck: &[Rank]) -> Option<String> {
    stuck.iter().find_map(|&rank| {
        let report = states[rank as usize].report()?;
        let misses = |w: &Wait| {
            report
                .early
                .iter()
                .find_map(|e| Some((e, miss(states, rank, w, e)?)))
        };
        let (early, differs) = report.waits.iter().find_map(misses)?;
        let comm = comm_name(states, rank, early.context);
        Some(format!(
            "{} of rank {} with tag {} on {comm} is unexpected at rank {rank}: {differs}",
            message(early),
            early.from,
            early.tag
        ))
    })
}

/// Description of a message.
pub(crate) fn message(early: &Early) -> &'static str {
    match early.partitioned {
        true => "a partitioned send (MPI_Psend_init)",
        false => "a message",
    }
}

/// Reason why a message does not match a wait; `None`: they are unrelated.
pub(crate) fn miss(states: &[RankState], rank: Rank, wait: &Wait, early: &Early) -> Option<String> {
    let receives = matches!(wait.kind, Kind::Receive | Kind::Probe | Kind::PartReceive);
    if !receives || is_collective(early.context) {
        return None;
    }
    let tag = wait.tag.filter(|&t| t != early.tag);
    let source = wait.peer.filter(|&p| p != early.from);
    let other = communicator(early.context) != communicator(wait.context);
    match (tag, source, other) {
        (Some(tag), None, false) => Some(format!("the receive has tag {tag}")),
        (None, None, true) => {
            let comm = comm_name(states, rank, wait.context);
            Some(format!("the receive is on {comm}"))
        }
        (None, Some(peer), false) => Some(format!("the receive is from rank {peer}")),
        (None, None, false) if early.partitioned && wait.kind != Kind::PartReceive => {
            Some("only a receive made by MPI_Precv_init matches it".into())
        }
        (None, None, false) if !early.partitioned && wait.kind == Kind::PartReceive => Some(
            "a receive made by MPI_Precv_init matches only sends made by MPI_Psend_init".into(),
        ),
        _ => None,
    }
}

/// ` at FILE:LINE`, if it is known.
pub(crate) fn site(states: &[RankState], rank: Rank) -> String {
    match states.get(rank as usize).map_or("", |t| &t.site) {
        "" => String::new(),
        site => format!(" at {site}"),
    }
}

fn named(ranks: &[Rank]) -> String {
    Ranges::new(ranks.iter().copied()).named()
}

/// The name of a communicator on this rank.
pub(crate) fn comm_name(states: &[RankState], rank: Rank, context: u32) -> String {
    let report = states.get(rank as usize).and_then(RankState::report);
    match report.and_then(|r| r.comm(context)) {
        Some(Comm { name, .. }) if !name.is_empty() => name.clone(),
        _ => format!("the communicator with context {}", communicator(context)),
    }
}

/// Description of one rank, if the others are unknown.
pub fn line(rank: Rank, report: &Report) -> String {
    let mut states = vec![
        RankState {
            state: State::Silent,
            site: String::new()
        };
        rank as usize
    ];
    let frame = report.frames.first();
    states.push(RankState {
        state: State::Waits(Box::new(report.clone())),
        site: frame.map_or(String::new(), |f| format!("{}+{:#x}", f.file, f.offset)),
    });
    let seconds = report.waited / 1000;
    let (n, what) = (rank as usize, "a call of MPI");
    if let State::Waits(report) = &mut states[n].state
        && report.call.is_empty()
    {
        report.call = what.into();
    }
    format!(
        "nothing has arrived for {seconds} s: {}",
        doing(&states, rank)
    )
}
