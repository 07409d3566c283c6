//! The wait-for graph: which ranks can never continue, and why.
//!
//! A node is a rank's call, or a collective that runs in the background of a rank. First, nodes are
//! marked that may progress by themselves; then, until nothing changes, nodes whose waits a marked
//! node may end: all of its waits, or one if one is enough. An unmarked node waits forever for
//! unmarked nodes.

use crate::{Kind, Rank, RankState, Report, State, Wait, communicator};
use std::collections::{BTreeMap, HashSet};

/// Conclusions from the state of all ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// These ranks can never continue.
    Deadlock {
        /// All of them, in ascending order.
        stuck: Vec<Rank>,
        /// The reason, as far as one sentence can tell it.
        why: Why,
    },
    /// All may continue; these may do so by themselves, and others may wait for them.
    Open {
        /// In ascending order.
        free: Vec<Rank>,
    },
}

/// Why ranks are stuck.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// The ranks of a communicator have made different calls at the same position in its sequence
    /// of collectives.
    Differ {
        /// The communicator's id.
        context: u32,
        /// The calls, and their ranks.
        calls: Vec<(String, Vec<Rank>)>,
    },
    /// Ranks wait in a collective for others that will never come.
    Missing {
        /// The communicator's id.
        context: u32,
        /// The call in which they wait.
        call: String,
        /// Waiting ranks.
        waiting: Vec<Rank>,
        /// Missing ranks.
        missing: Vec<Rank>,
    },
    /// Each waits for the next one, the last one for the first.
    Cycle(Vec<Rank>),
    /// A rank can be served only by others that are stuck as well.
    NoServer(Rank),
}

/// Returns what can be proven about a job. `states[r]` is rank `r`.
pub fn analyze(states: &[RankState]) -> Finding {
    let graph = Graph::new(states);
    let waits = |r: &Rank| states[*r as usize].report().is_some();
    let all = 0..states.len() as Rank;
    let stuck: Vec<Rank> = all
        .clone()
        .filter(|r| waits(r) && !graph.may_go_on(*r))
        .collect();
    if !stuck.is_empty() {
        let why = graph.why(&stuck);
        return Finding::Deadlock { stuck, why };
    }
    let free = all.filter(|&r| graph.is_free(r)).collect();
    Finding::Open { free }
}

/// A collective in the background of a rank.
type RunOf = (Rank, u32, i32);

struct Graph<'a> {
    states: &'a [RankState],
    calls: Vec<bool>,
    runs: HashSet<RunOf>,
}

impl<'a> Graph<'a> {
    fn new(states: &'a [RankState]) -> Graph<'a> {
        let mut graph = Graph {
            states,
            calls: vec![false; states.len()],
            runs: HashSet::new(),
        };
        graph.calls = (0..states.len())
            .map(|r| graph.is_free(r as Rank))
            .collect();
        while graph.mark() {}
        graph
    }

    fn report(&self, rank: Rank) -> Option<&'a Report> {
        self.states.get(rank as usize)?.report()
    }

    /// Whether it may continue whatever others do.
    fn is_free(&self, rank: Rank) -> bool {
        match self.states.get(rank as usize).map(|t| &t.state) {
            Some(State::Waits(r)) => r.threads || r.polls || !r.quiet || r.waits.is_empty(),
            // Its last messages may be in flight; a rank that waits for more ends with an error.
            Some(State::Finished) => true,
            // Its state is unknown.
            Some(State::NotWaiting(_) | State::Silent) | None => true,
        }
    }

    fn may_go_on(&self, rank: Rank) -> bool {
        self.calls.get(rank as usize).is_none_or(|&may| may)
    }

    /// Marks nodes that a marked node may serve; returns whether there were any.
    fn mark(&mut self) -> bool {
        let mut more = false;
        for rank in 0..self.states.len() as Rank {
            let Some(report) = self.report(rank) else {
                continue;
            };
            if !self.may_go_on(rank) && self.may_end(rank, report) {
                self.calls[rank as usize] = true;
                more = true;
            }
            for run in &report.runs {
                let name = (rank, run.context, run.number);
                let may = run.waits.iter().all(|w| self.may_serve(rank, report, w));
                more |= (may || !report.quiet) && self.runs.insert(name);
            }
        }
        more
    }

    fn may_end(&self, rank: Rank, report: &Report) -> bool {
        let mut waits = report.waits.iter();
        match report.any {
            true => waits.any(|w| self.may_serve(rank, report, w)),
            false => waits.all(|w| self.may_serve(rank, report, w)),
        }
    }

    /// Whether a wait of this rank may end.
    fn may_serve(&self, rank: Rank, report: &Report, wait: &Wait) -> bool {
        match (wait.kind, wait.peer) {
            (Kind::Other, _) => true,
            (Kind::Lock, _) if !knows_holders(report, wait) => true,
            (kind, _) if kind.is_partitioned() => true,
            (Kind::Collective, Some(peer)) => self.may_take_part(peer, wait),
            (_, Some(peer)) => peer != rank && self.may_go_on(peer),
            (_, None) => match report.comm(wait.context) {
                Some(comm) if !comm.senders.is_empty() => {
                    let mut others = comm.senders.iter().filter(|&&s| s != rank);
                    others.any(|&s| self.may_go_on(s))
                }
                _ => true,
            },
        }
    }

    /// Whether a rank may do the rest of its part in a collective: in the background, or in a call,
    /// now or later.
    fn may_take_part(&self, peer: Rank, wait: &Wait) -> bool {
        let runs = self.report(peer).map_or(&[][..], |r| &r.runs);
        let mut same = runs
            .iter()
            .filter(|r| communicator(r.context) == communicator(wait.context));
        match same.find(|r| Some(r.number) == wait.tag) {
            Some(run) => self.runs.contains(&(peer, run.context, run.number)),
            None => self.may_go_on(peer),
        }
    }

    fn why(&self, stuck: &[Rank]) -> Why {
        let found = self.collectives(stuck);
        let mut each = found.iter();
        if let Some(differ) = each.find_map(|(place, calls)| differing(*place, calls)) {
            return differ;
        }
        let walk = self.walk(stuck);
        let by_messages = |r: &Rank| self.report(*r).is_some_and(|r| r.collective().is_none());
        match &walk {
            // A rank that waits in a cycle of messages does not reach the collective: that wait
            // follows from the cycle.
            Why::Cycle(ranks) if ranks.iter().all(by_messages) => walk,
            _ => {
                let mut each = found.iter();
                let missing = each.find_map(|(place, calls)| self.missing(*place, calls));
                missing.unwrap_or(walk)
            }
        }
    }

    /// The collectives that stuck ranks are in: by place, the calls and the ranks in each.
    fn collectives(&self, stuck: &[Rank]) -> BTreeMap<CallKey, Calls> {
        let mut all: BTreeMap<CallKey, Calls> = BTreeMap::new();
        for &rank in stuck {
            let Some(report) = self.report(rank) else {
                continue;
            };
            if let Some((context, number)) = report.collective() {
                let calls = all.entry((communicator(context), number)).or_default();
                calls.entry(report.call.clone()).or_default().push(rank);
            }
        }
        all
    }

    /// Ranks that have not made a call in which others wait.
    fn missing(&self, (context, number): CallKey, calls: &Calls) -> Option<Why> {
        let (call, waiting) = calls.iter().next()?;
        let report = self.report(*waiting.first()?)?;
        let members = &report.comm(context)?.members;
        let mut missing = Vec::new();
        for &member in members.iter().filter(|m| !waiting.contains(m)) {
            match self.has_called(member, context, number, call) {
                Some(true) => {}
                Some(false) if !self.may_go_on(member) => missing.push(member),
                // It may arrive, or it is unknown whether it has.
                Some(false) | None => return None,
            }
        }
        (!missing.is_empty()).then(|| Why::Missing {
            context,
            call: call.clone(),
            waiting: waiting.clone(),
            missing,
        })
    }

    /// Whether a rank has made this call of a communicator, if that can be known.
    fn has_called(
        &self,
        rank: Rank,
        context: u32,
        number: Option<i32>,
        call: &str,
    ) -> Option<bool> {
        let report = self.report(rank)?;
        match number {
            Some(number) => Some(report.comm(context)?.calls >= number),
            // Ranks that have arrived and left cannot be distinguished from those that will not
            // arrive, except for those that others wait for.
            None => Some(report.call == call || !self.is_awaited(rank, context, call)),
        }
    }

    fn is_awaited(&self, rank: Rank, context: u32, call: &str) -> bool {
        let mut others = self.states.iter().filter_map(RankState::report);
        others.any(|r| {
            let here = |w: &&Wait| w.kind == Kind::Collective && communicator(w.context) == context;
            r.call == call && r.waits.iter().filter(here).any(|w| w.peer == Some(rank))
        })
    }

    /// Follows the waits from stuck rank to stuck rank, until one occurs again.
    fn walk(&self, stuck: &[Rank]) -> Why {
        let mut way: Vec<Rank> = Vec::new();
        let mut rank = stuck[0];
        loop {
            if let Some(at) = way.iter().position(|&r| r == rank) {
                let first = (at..way.len()).min_by_key(|&i| way[i]).unwrap_or(at);
                let mut cycle = way[first..].to_vec();
                cycle.extend(&way[at..first]);
                return Why::Cycle(cycle);
            }
            way.push(rank);
            match self.next(rank) {
                Next::Rank(next) => rank = next,
                Next::Several => return Why::NoServer(rank),
            }
        }
    }

    /// The rank for which a stuck rank waits, if there is only one.
    fn next(&self, rank: Rank) -> Next {
        let Some(report) = self.report(rank) else {
            return Next::Several;
        };
        let hopeless = |w: &&Wait| !self.may_serve(rank, report, w);
        let mut waits = report.waits.iter().filter(hopeless);
        let (Some(first), second) = (waits.next(), waits.next()) else {
            return Next::Several;
        };
        match first.peer {
            Some(_) if report.any && second.is_some() => Next::Several,
            Some(peer) => Next::Rank(peer),
            None => Next::Several,
        }
    }
}

/// Whether all holders of a lock are known. A lock without a holder is just being granted, or no
/// rank has reported its holder.
fn knows_holders(report: &Report, wait: &Wait) -> bool {
    let unknown = |w: &Wait| {
        let same = (w.kind, w.context, w.source) == (wait.kind, wait.context, wait.source);
        same && w.peer.is_none()
    };
    !report.waits.iter().any(unknown)
}

enum Next {
    Rank(Rank),
    Several,
}

/// A communicator's id and the number of the call, if calls are counted.
type CallKey = (u32, Option<i32>);
type Calls = BTreeMap<String, Vec<Rank>>;

fn differing((context, number): CallKey, calls: &Calls) -> Option<Why> {
    number?;
    let differ = calls.len() > 1;
    differ.then(|| Why::Differ {
        context,
        calls: calls.iter().map(|(c, r)| (c.clone(), r.clone())).collect(),
    })
}
