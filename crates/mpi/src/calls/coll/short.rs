//! The quick way to a plan: a blocking collective of predefined objects that equals an earlier one
//! (`kw_engine::Named`).
//!
//! The same arguments were valid before, except the addresses of the buffers. Anything else,
//! including invalid arguments, is left to the ordinary path, which checks all arguments and
//! reports errors; this path has no effect then. Plans whose steps are all the executor's come from
//! the communicator's table, others from that of all communicators; all are run in one way
//! (`finish`).

use super::call::Call;
use super::plan::ReduceArgs;
use super::side::Args;
use super::{Plan, block_as, finish};
use kw_coll::Coll;
use kw_engine::{Collectives, Named, Run};
use kw_objects::error::Res;
use kw_objects::handle::{CommH, OpH};
use kw_objects::state::{Guard, Mpi, State};
use kw_sys::args::Ints;
use kw_sys::buf::Addr;
use kw_types::layout::basic;

/// Count of a call with a list of counts, together with the first of them; no other call has this
/// value.
const LISTED: i64 = i64::MIN;

/// Key of a caller, except the communicator.
#[derive(Clone, Copy)]
pub struct Asked {
    coll: Coll,
    in_place: bool,
    root: i32,
    count: i64,
    handles: (usize, usize),
    buffers: [Addr; 2],
    counts: Option<Ints>,
}

impl Asked {
    /// Key of a call, if such calls may be short.
    #[inline(always)]
    pub(super) fn of(call: &Call) -> Option<Asked> {
        Some(match *call {
            Call::Barrier => Asked::nothing(Coll::Barrier),
            Call::Bcast(args, root) => Asked::data(Coll::Bcast, args).root(root),
            Call::Reduce(args, root) => Asked::reduction(Coll::Reduce, args).root(root),
            Call::Everywhere(args, Coll::Allreduce) => Asked::reduction(Coll::Allreduce, args),
            Call::ReduceScatterBlock(args) => Asked::reduction(Coll::ReduceScatter, args),
            Call::ReduceScatter((send, recv, counts, datatype, op)) => {
                let args = (send, recv, LISTED, datatype, op);
                Asked::reduction(Coll::ReduceScatter, args).counts(counts)
            }
            _ => return None,
        })
    }

    /// No data.
    #[inline(always)]
    fn nothing(coll: Coll) -> Asked {
        Asked {
            coll,
            in_place: false,
            root: 0,
            count: 0,
            handles: (0, 0),
            buffers: [Addr::NULL; 2],
            counts: None,
        }
    }

    /// One buffer.
    #[inline(always)]
    fn data(coll: Coll, (buffer, count, datatype): Args) -> Asked {
        Asked {
            count,
            handles: (datatype.0, 0),
            buffers: [Addr::NULL, buffer],
            ..Asked::nothing(coll)
        }
    }

    /// A reduction.
    #[inline(always)]
    fn reduction(coll: Coll, (send, recv, count, datatype, op): ReduceArgs) -> Asked {
        Asked {
            in_place: send.is_in_place(),
            count,
            handles: (datatype.0, op.0),
            buffers: [send, recv],
            ..Asked::nothing(coll)
        }
    }

    /// With a root.
    #[inline(always)]
    fn root(self, root: i32) -> Asked {
        Asked { root, ..self }
    }

    /// With a list of counts.
    #[inline(always)]
    fn counts(self, counts: Ints) -> Asked {
        let first = match counts.is_null() {
            true => 0,
            false => counts.get(0),
        };
        Asked {
            count: LISTED | first,
            counts: Some(counts),
            ..self
        }
    }

    /// Whether nothing is wrong with the buffers, if they hold data.
    #[inline(always)]
    fn is_sound(&self, rank: u32) -> bool {
        let [send, recv] = self.buffers;
        let given = |a: Addr| a != Addr::NULL && !a.is_in_place();
        let input = self.in_place || given(send);
        match self.coll {
            Coll::Barrier => true,
            Coll::Bcast => given(recv),
            Coll::Reduce if rank != self.root as u32 => input,
            _ => input && given(recv) && send != recv,
        }
    }

    /// Description of the call in its caller's terms.
    #[inline(always)]
    fn named(&self) -> Named {
        let root = self.root as u32;
        Named::new(self.coll, root, self.in_place, self.count, self.handles)
    }

    /// The key, if all its objects are predefined.
    #[cold]
    fn lasting(&self) -> Option<Named> {
        let (datatype, op) = self.handles;
        let plain = self.coll == Coll::Barrier || basic::plain_size(datatype).is_some();
        (plain && OpH(op).is_predefined()).then(|| self.named())
    }
}

/// Makes the call; `plan` for the ordinary way.
#[inline(always)]
pub(super) fn call(
    mpi: &Mpi,
    comm: CommH,
    asked: Asked,
    plan: impl FnOnce(&mut State) -> Plan,
) -> Res {
    let mut guard = mpi.lock();
    match take(&mut guard, comm, &asked) {
        Some(run) => finish(mpi, guard, comm, run),
        None => ordinary(mpi, guard, comm, asked, plan),
    }
}

#[cold]
#[inline(never)]
fn ordinary(
    mpi: &Mpi,
    guard: Guard<'_>,
    comm: CommH,
    asked: Asked,
    plan: impl FnOnce(&mut State) -> Plan,
) -> Res {
    block_as(mpi, guard, comm, plan, asked.lasting())
}

/// The plan of an equal call, if there is one.
#[inline(always)]
fn take(state: &mut State, comm: CommH, asked: &Asked) -> Option<Box<Run>> {
    let engine = state.engine.as_mut()?;
    let c = state.above.comms.find_mut(comm)?;
    if !asked.is_sound(c.rank) {
        return None;
    }
    let same = |list: &[u64]| asked.counts.is_none_or(|c| c.are(list));
    let Collectives {
        planner, channels, ..
    } = &mut engine.parts.collectives;
    let mut run = planner.named(channels, c.plans?, asked.named(), asked.buffers, same)?;
    run.set_tag(c.next_collective());
    Some(run)
}
