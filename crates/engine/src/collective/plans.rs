//! Cached plans: programs call the same collective again and again, and only its buffers differ.
//!
//! A run that has ended goes to the plans with its ops, and with its schedule if it has steps for
//! the engine. A call that asks for the same takes it from there, and gives it its own buffers, tag
//! and place on the shm region; while it runs, the plans do not have it. A plan is found in one of
//! two ways: by what the schedule was asked for ([`PlanKey`]), once the arguments have been looked
//! at; or, if it has ops alone and all objects of the call are predefined, by the caller's own
//! words ([`Named`]), before that.

use super::channel::ChannelId;
use super::memory::Memory;
use super::run::{CommView, Run};
use super::signature::Signature;
use kw_base::ContextId;
use kw_base::slab::Key;
use kw_coll::{Blocks, CallView, Coll, Table};
use kw_types::comm::Group;
use std::sync::Arc;

/// Most plans of a table; a power of two.
pub(super) const MOST: usize = 64;
/// A plan is in one of this many consecutive places, so a table has at least as many.
const WAYS: usize = 4;

/// Names the plans of one communicator: the short ones that have ops alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlansId(pub(super) Key);

/// The caller: origin of a [`CommView`].
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The processes, by rank.
    pub members: &'a Arc<Group>,
    /// Context of the communicator's collectives.
    pub context: ContextId,
    /// This process's rank.
    pub rank: u32,
    /// Tag that distinguishes this collective from others on the communicator.
    pub tag: i32,
    /// The communicator's shm region.
    pub shm_region: Option<ChannelId>,
    /// Rows that choose algorithms before those of the engine's table.
    pub rows: Option<&'a Arc<Table>>,
    /// The communicator's plans.
    pub plans: Option<PlansId>,
}

impl Caller<'_> {
    /// Keeps the communicator's parts.
    pub fn comm_view(&self) -> CommView {
        CommView {
            members: self.members.clone(),
            context: self.context,
            rank: self.rank,
            tag: self.tag,
            shm_region: self.shm_region,
            rows: self.rows.cloned(),
            plans: self.plans,
        }
    }

    /// Compares the very objects, which a plan holds, so nothing has to be forgotten when one of
    /// them is freed or changed.
    #[inline]
    fn is(&self, comm_view: &CommView) -> bool {
        self.context == comm_view.context
            && self.shm_region == comm_view.shm_region
            && Arc::ptr_eq(self.members, &comm_view.members)
            && self.rows.map(Arc::as_ptr) == comm_view.rows.as_ref().map(Arc::as_ptr)
    }
}

/// Everything that a schedule depends on except the communicator and the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlanKey {
    coll: Coll,
    bytes: u64,
    root: u32,
    count: u64,
    block_bytes: u64,
    send: (u32, u64),
    recv: (u32, u64),
    commutative: bool,
    in_place: bool,
    unit: Option<u64>,
    /// Bytes of the units of the first two buffers; 0 if they are not contiguous.
    rows: [u64; 2],
}

impl PlanKey {
    /// The call, and the counts of its blocks if they are not equal. `None` for calls with other
    /// lists.
    #[inline]
    pub fn of<'a>(
        coll: Coll,
        bytes: u64,
        unit: Option<u64>,
        call: &CallView<'a>,
        buffers: &[Memory; 2],
    ) -> Option<(PlanKey, &'a [u64])> {
        let (send, counts) = match call.send {
            Blocks::Even { buf, each } => ((buf, each), &[][..]),
            // Its blocks are contiguous.
            Blocks::Listed { buf, counts, .. } if coll == Coll::ReduceScatter => ((buf, 0), counts),
            _ => return None,
        };
        let Blocks::Even { buf, each } = call.recv else {
            return None;
        };
        if call.neighbors.is_some() {
            return None;
        }
        let key = PlanKey {
            coll,
            bytes,
            root: call.root,
            count: call.count,
            block_bytes: call.block_bytes,
            send,
            recv: (buf, each),
            commutative: call.commutative,
            in_place: call.in_place,
            unit,
            rows: buffers.each_ref().map(|b| b.plain().map_or(0, |row| row.1)),
        };
        Some((key, counts))
    }

    /// Description of the call that is the same on all ranks.
    #[inline]
    pub fn signature(&self) -> Signature {
        Signature::new(self.coll, self.root, self.bytes)
    }

    fn place(&self, counts: &[u64], context: ContextId) -> usize {
        let size = match self.coll {
            Coll::ReduceScatter => counts.first().copied().unwrap_or(self.send.1),
            _ => self.bytes,
        };
        // Sizes are often powers of two: their high bits count, too.
        let size = (size ^ size >> 7) as usize;
        let place = self.coll as usize * 17 + self.root as usize * 3 + context.0 as usize;
        place.wrapping_add(size)
    }
}

/// A blocking call in its caller's words, all but the communicator, the buffers and a list of
/// counts: what is called, elements as the caller counts them, and the handles of datatype and
/// operation. Only predefined ones may stand in it, which always mean the same.
#[derive(Clone, Copy, Debug)]
pub struct Named([u64; 4]);

impl Named {
    /// No call.
    pub(super) const NOTHING: Named = Named([u64::MAX; 4]);

    /// `root`: its rank, 0 if there is none. `in_place`: MPI_IN_PLACE was given.
    #[inline(always)]
    pub fn new(
        coll: Coll,
        root: u32,
        in_place: bool,
        count: i64,
        handles: (usize, usize),
    ) -> Named {
        let what = (root as u64) << 32 | (in_place as u64) << 8 | coll as u64;
        Named([what, count as u64, handles.0 as u64, handles.1 as u64])
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.is(&Named::NOTHING)
    }

    #[inline(always)]
    fn is(&self, other: &Named) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0
    }

    #[inline(always)]
    fn place(&self) -> usize {
        let [what, count, datatype, _] = self.0;
        let place = what.wrapping_mul(17) ^ what >> 32;
        place.wrapping_add(count).wrapping_add(datatype) as usize
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Plans {
    /// None, or a power of two.
    places: Box<[Option<Box<Run>>]>,
    /// Chooses which plan goes when another one finds all its places taken: any.
    dice: u32,
}

impl Plans {
    /// The plan of a call like this one, by its caller's words. `counts` returns whether a list of
    /// counts is the caller's.
    #[inline(always)]
    pub fn named(&mut self, named: Named, counts: impl Fn(&[u64]) -> bool) -> Option<Box<Run>> {
        let (first, mask) = (named.place(), self.places.len().wrapping_sub(1));
        for at in 0..WAYS {
            let place = self.places.get_mut(first.wrapping_add(at) & mask)?;
            if let Some(run) = place
                && run.named.is(&named)
                && counts(&run.counts)
            {
                return place.take();
            }
        }
        None
    }

    /// The plan of a call.
    #[inline]
    pub fn of(&mut self, caller: &Caller, call: &PlanKey, counts: &[u64]) -> Option<Box<Run>> {
        let first = call.place(counts, caller.context);
        let mask = self.places.len().wrapping_sub(1);
        for at in 0..WAYS {
            let place = self.places.get_mut(first.wrapping_add(at) & mask)?;
            if let Some(run) = place
                && run.call.as_deref() == Some(call)
                && same(&run.counts, counts)
                && run.comm_view.as_ref().is_some_and(|c| caller.is(c))
            {
                return place.take();
            }
        }
        None
    }

    /// Keeps a plan: in its former place, or else in one of its places; if all are taken, another
    /// one goes.
    #[inline(always)]
    pub fn keep(&mut self, run: Box<Run>) {
        let at = (run.at_home as usize).wrapping_sub(self.places.len());
        match self.places.get_mut(at) {
            Some(place) if place.is_none() => *place = Some(run),
            _ => self.keep_anew(run),
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_anew(&mut self, mut run: Box<Run>) {
        run.shrink();
        while let Err(back) = self.put(run) {
            run = back;
            if self.places.len() < MOST {
                self.grow();
                continue;
            }
            self.dice = self.dice.wrapping_mul(1664525).wrapping_add(1013904223);
            let way = (self.dice >> 16) as usize % WAYS;
            let at = place_of(&run).wrapping_add(way) & (MOST - 1);
            self.places[at] = None;
        }
    }

    /// Puts a plan into one of its places, if one is free.
    fn put(&mut self, mut run: Box<Run>) -> Result<(), Box<Run>> {
        let (first, mask) = (place_of(&run), self.places.len().wrapping_sub(1));
        for at in (0..WAYS).map(|at| first.wrapping_add(at) & mask) {
            if self.places.get(at).is_some_and(|place| place.is_none()) {
                run.at_home = (self.places.len() + at) as u32;
                self.places[at] = Some(run);
                return Ok(());
            }
        }
        Err(run)
    }

    /// Doubles the number of places.
    fn grow(&mut self) {
        let more = (2 * self.places.len()).max(WAYS);
        let old = std::mem::replace(&mut self.places, (0..more).map(|_| None).collect());
        // A plan that finds no slot is dropped; active runs look theirs up again.
        old.into_iter()
            .flatten()
            .for_each(|run| drop(self.put(run)));
    }
}

/// The first of a plan's places.
fn place_of(run: &Run) -> usize {
    match (&run.call, &run.comm_view) {
        (Some(call), Some(comm_view)) => call.place(&run.counts, comm_view.context),
        _ => run.named.place(),
    }
}

/// Whether two lists are the same. Most are empty, and an empty list points nowhere: glibc's
/// `memcmp` for AVX-512 reads there under an empty mask, which the CPU takes 80 ns for (a third of
/// a barrier of 2 ranks).
#[inline]
fn same(a: &[u64], b: &[u64]) -> bool {
    a.len() == b.len() && (a.is_empty() || a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(count: i64) -> Named {
        Named::new(Coll::Bcast, 0, false, count, (1, 0))
    }

    fn plan(count: i64) -> Box<Run> {
        Box::new(Run {
            named: like(count),
            ..Run::default()
        })
    }

    fn has(plans: &mut Plans, count: i64) -> bool {
        let found = plans.named(like(count), |_| true);
        let is = found.is_some();
        found.into_iter().for_each(|run| plans.keep(run));
        is
    }

    #[test]
    fn a_table_grows_with_its_plans_up_to_its_most() {
        let mut plans = Plans::default();
        (0..1000).for_each(|count| plans.keep(plan(count)));
        assert_eq!(plans.places.len(), MOST);
        assert!(has(&mut plans, 999) && !has(&mut plans, 0));
    }

    #[test]
    fn a_plan_that_runs_while_the_table_grows_is_found_afterwards() {
        let mut plans = Plans::default();
        (0..4).for_each(|count| plans.keep(plan(count)));
        let out = plans.named(like(3), |_| true);
        (4..9).for_each(|count| plans.keep(plan(count)));
        assert!(plans.places.len() > WAYS && !has(&mut plans, 3));
        plans.keep(out.expect("it was kept"));
        assert!((0..9).all(|count| has(&mut plans, count)));
    }
}
