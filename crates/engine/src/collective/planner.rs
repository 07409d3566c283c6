//! How a call gets its plan: a cached one that was made for a similar call, or a new one.

use super::channel::Channels;
use super::choosing::Choosing;
use super::memory::Memory;
use super::plans::{Caller, Named, PlanKey, Plans, PlansId};
use super::run::{CommView, Home, Run};
use kw_base::slab::Slab;
use kw_boot::Agreed;
use kw_coll::executor::{Progress, Reservation};
use kw_coll::inter::{Emit, InterCallView};
use kw_coll::{CallView, Coll, Schedule};
use kw_sys::buf::Addr;

/// Most steps of a plan that is kept, for each rank. Algorithms that turn to every rank by itself
/// have up to seven for each (a ring that reduces and spreads, Bruck's of 64 ranks); one with more
/// moves its data in many pieces, and takes longer to run than to lay out.
const KEPT_STEPS_PER_RANK: usize = 8;
/// Most steps of a plan that is kept, on however many ranks: those of 256. More ranks are on several
/// nodes, where the message of a step takes longer than to lay it out. A step takes up to 128 bytes
/// with its op and its transfer, so a full table of plans takes about 16 MB at most.
const MOST_KEPT_STEPS: usize = 256 * KEPT_STEPS_PER_RANK;
/// Most steps of a plan that its communicator keeps, and that few ranks keep at any rate. Longer
/// ones are kept among those of all communicators, so that a communicator does not cost more the
/// more ranks it has.
pub(super) const KEPT_STEPS: usize = 48;

/// Basis of plans, and the kept plans.
#[derive(Debug, Default)]
pub struct Planner {
    /// Made when the first plan is.
    choosing: Option<Choosing>,
    /// The basis among ranks of several jobs.
    between_jobs: Option<Choosing>,
    /// By communicator: the short plans that may be used again, all of whose steps are the
    /// executor's.
    plans: Slab<Plans>,
    /// Plans of all communicators that are long, or have steps for the engine.
    shared: Plans,
}

impl Planner {
    /// A new communicator's plans.
    pub fn open(&mut self) -> PlansId {
        PlansId(self.plans.insert(Plans::default()))
    }

    /// The communicator is gone. Plans that run go when they have ended.
    pub fn close(&mut self, id: PlansId) {
        self.plans.remove(id.0);
    }

    /// The plan of a blocking call in these words, with its buffers, if there has been such a call.
    /// `counts` says whether a list of counts is the caller's. The tag is still that of the call
    /// before ([`Run::set_tag`]).
    #[inline(always)]
    pub fn named(
        &mut self,
        channels: &mut Channels,
        plans: PlansId,
        named: Named,
        buffers: [Addr; 2],
        counts: impl Fn(&[u64]) -> bool,
    ) -> Option<Box<Run>> {
        let plans = self.plans.get_mut(plans.0)?;
        let mut run = plans.named(named, counts)?;
        run.bases = buffers;
        channels.enter(&mut run);
        Some(run)
    }

    /// The plan of an earlier call that asked for the same, with buffers of this sort, if it is
    /// still there; otherwise [`Planner::plan`] it. The caller gives it the buffers
    /// ([`Run::take_buffers`]).
    #[inline]
    pub fn again(
        &mut self,
        channels: &mut Channels,
        caller: &Caller,
        (coll, bytes, unit): (Coll, u64, Option<u64>),
        call: &CallView,
        buffers: &[Memory; 2],
    ) -> Option<Box<Run>> {
        let (key, counts) = PlanKey::of(coll, bytes, unit, call, buffers)?;
        let plans = self.plans.get_mut(caller.plans?.0)?;
        let found = plans.of(caller, &key, counts);
        let mut run = found.or_else(|| self.shared.of(caller, &key, counts))?;
        run.set_tag(caller.tag);
        channels.enter(&mut run);
        Some(run)
    }

    /// Chooses an algorithm by what the job agreed on, and lays out this rank's part. `bytes` as
    /// `table.txt` explains; `unit`: bytes of a unit of the shm buffers, where a shm region may be
    /// used; `buffers`: the first two. The caller gives it the buffers ([`Run::take_buffers`]).
    #[inline]
    pub fn plan(
        &mut self,
        channels: &mut Channels,
        agreed: &Agreed,
        comm_view: CommView,
        (coll, bytes, unit): (Coll, u64, Option<u64>),
        call: &CallView,
        buffers: &[Memory; 2],
    ) -> Box<Run> {
        let mut run = Box::<Run>::default();
        let mut schedule = Schedule::default();
        let shm_region = comm_view.shm_region.zip(unit);
        let choosing = self.choosing(agreed, &comm_view);
        let mut parts = CallView {
            bytes,
            chooser: Some(choosing.chooser()),
            shm_region: shm_region.and_then(|(id, unit)| channels.view(id, unit)),
            ..*call
        };
        let rows = comm_view.rows.as_deref();
        let (algorithm, param) = choosing.choose(rows, coll, bytes, &parts);
        parts.param = param;
        (algorithm.emit)(&parts, &mut schedule);
        run.region_use = shm_region.and_then(|(id, unit)| channels.region_use(id, &schedule, unit));
        let mut signature = 0;
        if let Some((key, counts)) = PlanKey::of(coll, bytes, unit, call, buffers) {
            signature = key.signature().0;
            let kept = is_worth_keeping(&schedule, call.size);
            if let Some(plans) = comm_view.plans.filter(|_| kept) {
                run.home = Home::Plans(plans);
                run.call = Some(Box::new(key));
                run.counts = counts.into();
            }
        }
        run.work().schedule = schedule;
        (run.comm_view, run.coll, run.bytes) = (Some(comm_view), Some(coll), bytes);
        run.progress = Progress::new(Reservation::NONE, signature);
        channels.enter(&mut run);
        run
    }

    /// The basis between the groups of an intercommunicator; the members of
    /// `comm_view` are the ranks of both.
    pub fn plan_inter(
        &mut self,
        agreed: &Agreed,
        comm_view: CommView,
        emit: Emit,
        call: &InterCallView,
    ) -> Box<Run> {
        let choosing = self.choosing(agreed, &comm_view);
        let choose =
            |coll: Coll, bytes: u64, part: &CallView<'_>| choosing.choose(None, coll, bytes, part);
        let mut run = Box::<Run>::default();
        emit(call, &choose, &mut run.work().schedule);
        run.comm_view = Some(comm_view);
        run
    }

    fn choosing(&mut self, agreed: &Agreed, comm_view: &CommView) -> &Choosing {
        let own = agreed.size();
        match comm_view.members.iter().any(|peer| peer.0 >= own) {
            true => self.between_jobs.get_or_insert_with(Choosing::between_jobs),
            false => self.choosing.get_or_insert_with(|| Choosing::of(agreed)),
        }
    }

    /// Keeps the plan of a run that has ended, if it may be used again.
    #[inline(always)]
    pub(super) fn keep(&mut self, plans: PlansId, run: Box<Run>) {
        if run.is_shared() {
            self.shared.keep(run);
        } else if let Some(plans) = self.plans.get_mut(plans.0) {
            plans.keep(run);
        }
    }
}

fn is_worth_keeping(schedule: &Schedule, ranks: u32) -> bool {
    let most = KEPT_STEPS_PER_RANK.saturating_mul(ranks as usize);
    schedule.steps.len() <= most.clamp(KEPT_STEPS, MOST_KEPT_STEPS)
}

#[cfg(test)]
mod tests {
    use super::super::plans::MOST;
    use super::super::run::Flight;
    use super::*;
    use kw_coll::algorithms::{allgather_ring, allreduce_ring, alltoall_bruck, alltoall_pairwise};
    use kw_coll::executor::Op;
    use kw_coll::{Blocks, RECV, SEND, Step};

    #[test]
    fn plans_that_turn_to_every_rank_are_kept_on_many_ranks() {
        let each = 8;
        let blocks = |buf| Blocks::Even { buf, each };
        let algorithms: [fn(&CallView, &mut Schedule); 4] = [
            allgather_ring::emit,
            allreduce_ring::emit,
            alltoall_bruck::emit,
            alltoall_pairwise::emit,
        ];
        for ranks in [2, 16, 64] {
            for emit in algorithms {
                let mut schedule = Schedule::default();
                let call = CallView {
                    count: each * ranks as u64,
                    block_bytes: each,
                    send: blocks(SEND),
                    recv: blocks(RECV),
                    ..CallView::new(0, ranks)
                };
                emit(&call, &mut schedule);
                assert!(is_worth_keeping(&schedule, ranks));
            }
        }
        let mut pieces = Schedule::default();
        (0..2000).for_each(|_| pieces.fence());
        assert!(!is_worth_keeping(&pieces, 64));
    }

    #[test]
    fn plans_that_are_kept_take_so_much_memory_at_most_on_however_many_ranks() {
        let mut schedule = Schedule::default();
        (0..MOST_KEPT_STEPS).for_each(|_| schedule.fence());
        assert!(is_worth_keeping(&schedule, 256) && is_worth_keeping(&schedule, u32::MAX));
        schedule.fence();
        assert!(!is_worth_keeping(&schedule, u32::MAX));
        let step = size_of::<Step>() + size_of::<Op>() + size_of::<Flight>();
        assert!(MOST * MOST_KEPT_STEPS * step <= 16 << 20);
    }
}
