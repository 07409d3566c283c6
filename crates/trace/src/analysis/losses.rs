//! Lost time: waits by the places of both sides, and other time in MPI, largest first.

mod origins;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::waits::{Class, Wait};
use crate::model::{Name, Trace};

/// Kind of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cost {
    /// A wait for another rank.
    Wait(Class),
    /// Time in MPI without a known wait: data was moved, or there were many calls.
    Inside,
}

/// Function and place.
pub type Site = (Name, Name);

/// Loss at one place.
#[derive(Debug, Clone)]
pub struct Loss {
    /// Kind.
    pub cost: Cost,
    /// Place of the loss.
    pub site: Site,
    /// Place at which the awaited rank finally came.
    pub cause: Option<Site>,
    /// Number of calls.
    pub count: u64,
    /// Nanoseconds of all ranks together.
    pub time: u64,
    /// Bytes that the calls named.
    pub bytes: u64,
    /// Ranks (in `Trace::ranks`) that lost the time.
    pub ranks: Vec<u32>,
    /// Awaited ranks, with nanoseconds and number of waits, the longest first.
    pub causes: Vec<(u32, u64, u64)>,
    /// Part of the time that the awaited ranks spent outside MPI meanwhile.
    pub outside: u64,
    /// Ranks that computed meanwhile, at the end of the chain of waits, with nanoseconds, the
    /// longest first.
    pub origins: Vec<(u32, u64)>,
    /// The call after which most of that computation happened.
    pub before: Option<Site>,
    /// The call with the largest part, in `Trace::calls`.
    pub longest: u32,
}

/// A loss while it is summed up.
struct Sum {
    loss: Loss,
    ranks: BTreeMap<u32, ()>,
    causes: BTreeMap<u32, (u64, u64)>,
    origins: BTreeMap<u32, u64>,
    before: HashMap<Site, u64>,
    most: u64,
}

impl Sum {
    fn new(cost: Cost, site: Site, cause: Option<Site>) -> Sum {
        let loss = Loss {
            cost,
            site,
            cause,
            count: 0,
            time: 0,
            bytes: 0,
            ranks: Vec::new(),
            causes: Vec::new(),
            outside: 0,
            origins: Vec::new(),
            before: None,
            longest: 0,
        };
        Sum {
            loss,
            ranks: BTreeMap::new(),
            causes: BTreeMap::new(),
            origins: BTreeMap::new(),
            before: HashMap::new(),
            most: 0,
        }
    }

    fn add(&mut self, trace: &Trace, call: u32, time: u64) {
        self.loss.count += 1;
        self.loss.time = self.loss.time.saturating_add(time);
        let bytes = trace.calls[call as usize].args.bytes.unwrap_or(0);
        self.loss.bytes = self.loss.bytes.saturating_add(bytes);
        self.ranks.insert(trace.rank_of(call), ());
        if time > self.most {
            (self.most, self.loss.longest) = (time, call);
        }
    }

    fn add_cause(&mut self, trace: &Trace, waits: &[Wait], wait: &Wait) {
        let rank = self.causes.entry(trace.rank_of(wait.cause)).or_default();
        rank.0 = rank.0.saturating_add(wait.time());
        rank.1 += 1;
        let direct = trace.calls[wait.cause as usize].thread;
        for piece in origins::computing(trace, waits, wait) {
            let time = piece.end - piece.begin;
            if piece.thread == direct {
                self.loss.outside += time;
            }
            let rank = trace.threads[piece.thread as usize].rank;
            *self.origins.entry(rank).or_default() += time;
            if let Some(before) = trace.before(piece.thread, piece.end) {
                *self.before.entry(site(trace, before)).or_default() += time;
            }
        }
    }

    fn finish(self) -> Loss {
        let mut loss = self.loss;
        loss.ranks = self.ranks.into_keys().collect();
        loss.causes = self
            .causes
            .into_iter()
            .map(|(r, (t, n))| (r, t, n))
            .collect();
        loss.causes.sort_by_key(|c| Reverse(c.1));
        loss.origins = self.origins.into_iter().collect();
        loss.origins.sort_by_key(|o| Reverse(o.1));
        let most = self
            .before
            .into_iter()
            .max_by_key(|(site, time)| (*time, Reverse(*site)));
        loss.before = most.map(|m| m.0);
        loss
    }
}

fn site(trace: &Trace, call: u32) -> Site {
    let call = &trace.calls[call as usize];
    (call.function, call.at)
}

/// All losses, the largest first.
pub fn losses(trace: &Trace, waits: &[Wait]) -> Vec<Loss> {
    let mut sums: HashMap<(Cost, Site, Option<Site>), Sum> = HashMap::new();
    let mut waited = waits.iter().peekable();
    for (at, call) in trace.calls.iter().enumerate() {
        let here = (call.function, call.at);
        let mut rest = call.time();
        while let Some(wait) = waited.next_if(|w| w.call as usize == at) {
            rest = rest.saturating_sub(wait.time());
            let cause = Some(site(trace, wait.cause));
            let cost = Cost::Wait(wait.class);
            let sum = sums
                .entry((cost, here, cause))
                .or_insert_with(|| Sum::new(cost, here, cause));
            sum.add(trace, wait.call, wait.time());
            sum.add_cause(trace, waits, wait);
        }
        if call.depth == 0 && rest > 0 {
            let cost = Cost::Inside;
            let sum = sums
                .entry((cost, here, None))
                .or_insert_with(|| Sum::new(cost, here, None));
            sum.add(trace, at as u32, rest);
        }
    }
    let mut all: Vec<Loss> = sums.into_values().map(Sum::finish).collect();
    all.sort_by_key(|l| (Reverse(l.time), l.longest, l.site));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::waits::waits;
    use crate::example::{Made, Maker};

    #[test]
    fn a_loss_knows_both_sides() {
        let mut maker = Maker::new(2);
        maker.call(0, Made::new("MPI_Init", 0, 10, "a.c:1"));
        maker.call(0, Made::new("MPI_Send", 70, 75, "a.c:5").sends(1, 1, 0, 8));
        maker.call(
            1,
            Made::new("MPI_Recv", 5, 80, "a.c:9").receives(1, 0, 0, 8, 10),
        );
        let trace = maker.trace();
        let all = losses(&trace, &waits(&trace));
        let first = &all[0];
        let text = |s: Option<Site>| s.map(|s| trace.names.text(s.1)).unwrap_or("");
        assert_eq!(first.cost, Cost::Wait(Class::LateSender));
        assert_eq!((first.time, first.count, first.outside), (65, 1, 60));
        assert_eq!(
            (
                text(Some(first.site)),
                text(first.cause),
                text(first.before)
            ),
            ("a.c:9", "a.c:5", "a.c:1")
        );
        assert_eq!(
            (&first.ranks[..], &first.causes[..]),
            (&[1][..], &[(0, 65, 1)][..])
        );
        let inside: u64 = all
            .iter()
            .filter(|l| l.cost == Cost::Inside)
            .map(|l| l.time)
            .sum();
        assert_eq!(inside, 10 + 5 + 10);
    }
}
