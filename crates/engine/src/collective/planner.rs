//! How a call comes to its plan: one that is kept and was made for a call like it, or a new one.

use super::choosing::Choosing;
use super::desk::Desks;
use super::memory::Memory;
use super::plans::{Caller, Named, PlanKey, Plans, PlansId};
use super::run::{Circle, Home, Run};
use kw_base::slab::Slab;
use kw_boot::Agreed;
use kw_coll::executor::{Progress, Reservation};
use kw_coll::inter::{Emit, InterAsk};
use kw_coll::{Ask, Coll, Schedule};
use kw_sys::buf::Addr;

/// Most steps of a plan that is kept: a longer one takes longer to run than to lay out.
const KEPT_STEPS: usize = 48;

/// What plans are made by, and those that are kept.
#[derive(Debug, Default)]
pub struct Planner {
    /// Made when the first plan is.
    choosing: Option<Choosing>,
    /// By communicator: the plans that may serve again, all of whose steps are the executor's.
    plans: Slab<Plans>,
    /// Those of all communicators that have steps for the engine.
    mixed: Plans,
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
        desks: &mut Desks,
        plans: PlansId,
        named: Named,
        buffers: [Addr; 2],
        counts: impl Fn(&[u64]) -> bool,
    ) -> Option<Box<Run>> {
        let plans = self.plans.get_mut(plans.0)?;
        let mut run = plans.named(named, counts)?;
        run.bases = buffers;
        desks.enter(&mut run);
        Some(run)
    }

    /// The plan of an earlier call that asked for the same, with buffers of this sort, if it is
    /// still there; otherwise [`Planner::plan`] it. The caller gives it the buffers
    /// ([`Run::take_buffers`]).
    #[inline]
    pub fn again(
        &mut self,
        desks: &mut Desks,
        caller: &Caller,
        (coll, bytes, unit): (Coll, u64, Option<u64>),
        ask: &Ask,
        buffers: &[Memory; 2],
    ) -> Option<Box<Run>> {
        let (call, counts) = PlanKey::of(coll, bytes, unit, ask, buffers)?;
        let plans = self.plans.get_mut(caller.plans?.0)?;
        let found = plans.of(caller, &call, counts);
        let mut run = found.or_else(|| self.mixed.of(caller, &call, counts))?;
        run.set_tag(caller.tag);
        desks.enter(&mut run);
        Some(run)
    }

    /// Chooses an algorithm by what the job agreed on, and lays out this rank's part. `bytes` as
    /// `table.txt` explains; `unit`: bytes of a unit of the shelves, where a board may be used;
    /// `buffers`: the first two. The caller gives it the buffers ([`Run::take_buffers`]).
    #[inline]
    pub fn plan(
        &mut self,
        desks: &mut Desks,
        agreed: &Agreed,
        circle: Circle,
        (coll, bytes, unit): (Coll, u64, Option<u64>),
        ask: &Ask,
        buffers: &[Memory; 2],
    ) -> Box<Run> {
        let mut run = Box::<Run>::default();
        let mut schedule = Schedule::default();
        let board = circle.board.zip(unit);
        let choosing = self.choosing(agreed);
        let mut parts = Ask {
            bytes,
            chooser: Some(choosing.chooser()),
            board: board.and_then(|(id, unit)| desks.view(id, unit)),
            ..*ask
        };
        let rows = circle.rows.as_deref();
        let (algorithm, param) = choosing.choose(rows, coll, bytes, &parts);
        parts.param = param;
        (algorithm.emit)(&parts, &mut schedule);
        run.berth = board.and_then(|(id, unit)| desks.berth(id, &schedule, unit));
        let mut signature = 0;
        if let Some((call, counts)) = PlanKey::of(coll, bytes, unit, ask, buffers) {
            signature = call.signature().0;
            if let Some(plans) = circle.plans.filter(|_| schedule.steps.len() <= KEPT_STEPS) {
                run.home = Home::Plans(plans);
                run.call = Some(Box::new(call));
                run.counts = counts.into();
            }
        }
        run.work().schedule = schedule;
        (run.circle, run.bytes) = (Some(circle), bytes);
        run.progress = Progress::new(Reservation::NONE, signature);
        desks.enter(&mut run);
        run
    }

    /// Likewise between the groups of an intercommunicator; the circle's members are the ranks of
    /// both.
    pub fn plan_inter(
        &mut self,
        agreed: &Agreed,
        circle: Circle,
        emit: Emit,
        ask: &InterAsk,
    ) -> Box<Run> {
        let choosing = self.choosing(agreed);
        let choose =
            |coll: Coll, bytes: u64, part: &Ask<'_>| choosing.choose(None, coll, bytes, part);
        let mut run = Box::<Run>::default();
        emit(ask, &choose, &mut run.work().schedule);
        run.circle = Some(circle);
        run
    }

    fn choosing(&mut self, agreed: &Agreed) -> &Choosing {
        self.choosing.get_or_insert_with(|| Choosing::of(agreed))
    }

    /// Keeps the plan of a run that has ended, where it may serve again.
    #[inline(always)]
    pub(super) fn keep(&mut self, plans: PlansId, run: Box<Run>) {
        if run.work.is_some() {
            self.mixed.keep(run);
        } else if let Some(plans) = self.plans.get_mut(plans.0) {
            plans.keep(run);
        }
    }
}
