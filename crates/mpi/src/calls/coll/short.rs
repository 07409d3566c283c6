//! Short: a blocking collective that is like one before it (`kw_engine::Short`), where nothing is out of the ordinary.
//!
//! The same arguments were found right before, all but the addresses of the buffers. Whatever is not so, wrong arguments among it, is left to
//! the ordinary way (`block`), which starts from the beginning and knows what to say: here nothing has happened then.

use super::call::Call;
use super::plan::{Args, ReduceArgs};
use super::{Plan, block_as, wait_for_board};
use crate::error::Res;
use crate::handle::{CommH, OpH};
use crate::objects::request::{explain, not_running};
use crate::state::{Guard, Mpi, State};
use kw_coll::Coll;
use kw_engine::{Like, Short};
use kw_sys::args::Ints;
use kw_sys::buf::Addr;
use kw_types::layout::basic;

/// A call with a list of counts has this count, which no other has.
const LISTED: i64 = -1;

/// What a caller asks for, all but the communicator.
pub struct Asked {
    like: Like,
    buffers: [Addr; 2],
    counts: Option<Ints>,
}

impl Asked {
    /// What a call asks for, where calls like it may be short.
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
            like: Like {
                coll,
                in_place: false,
                root: 0,
                count: 0,
                handles: (0, 0),
            },
            buffers: [Addr::NULL; 2],
            counts: None,
        }
    }

    /// One buffer.
    #[inline(always)]
    fn data(coll: Coll, (buffer, count, datatype): Args) -> Asked {
        let mut asked = Asked::nothing(coll);
        (asked.like.count, asked.like.handles) = (count, (datatype.0, 0));
        asked.buffers = [Addr::NULL, buffer];
        asked
    }

    /// A reduction.
    #[inline(always)]
    fn reduction(coll: Coll, (send, recv, count, datatype, op): ReduceArgs) -> Asked {
        let mut asked = Asked::nothing(coll);
        (asked.like.count, asked.like.handles) = (count, (datatype.0, op.0));
        (asked.buffers, asked.like.in_place) = ([send, recv], send.is_in_place());
        asked
    }

    /// With a root.
    #[inline(always)]
    fn root(mut self, root: i32) -> Asked {
        self.like.root = root as u32;
        self
    }

    /// With a list of counts.
    #[inline(always)]
    fn counts(mut self, counts: Ints) -> Asked {
        self.counts = Some(counts);
        self
    }

    /// Whether nothing is wrong with the buffers, if they hold data.
    #[inline(always)]
    fn is_sound(&self, rank: u32) -> bool {
        let [send, recv] = self.buffers;
        let given = |a: Addr| a != Addr::NULL && !a.is_in_place();
        let input = self.like.in_place || given(send);
        match self.like.coll {
            Coll::Barrier => true,
            Coll::Bcast => given(recv),
            Coll::Reduce if rank != self.like.root => input,
            _ => input && given(recv) && send != recv,
        }
    }

    /// What later calls have in common with it, where all its objects are predefined.
    #[cold]
    fn like(&self) -> Option<Like> {
        let (datatype, op) = self.like.handles;
        let plain = self.like.coll == Coll::Barrier || basic::plain_size(datatype).is_some();
        (plain && OpH(op).is_predefined()).then_some(self.like)
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
        Some(short) => finish(mpi, guard, comm, short),
        None => block_as(mpi, guard, comm, plan, || asked.like()),
    }
}

/// The call like it, if there is one.
#[inline(always)]
fn take(state: &mut State, comm: CommH, asked: &Asked) -> Option<Box<Short>> {
    let engine = state.engine.as_mut()?;
    let c = state.above.find_comm_mut(comm)?;
    let board = c.board.id()?;
    if !asked.is_sound(c.rank) {
        return None;
    }
    let same = |list: &[u64]| asked.counts.is_none_or(|c| c.are(list));
    let short = engine.take_short(board, c.rows.as_ref(), &asked.like, asked.buffers, same)?;
    c.next_collective();
    Some(short)
}

/// Goes on to the end.
#[inline(always)]
fn finish<'a>(mpi: &'a Mpi, mut guard: Guard<'a>, comm: CommH, mut short: Box<Short>) -> Res {
    loop {
        let engine = guard.engine.as_mut().ok_or_else(not_running)?;
        let Some(watch) = engine.go_on(&mut short) else {
            let failure = engine.end_short(short);
            guard.leave();
            return failure.map_or(Ok(()), |f| Err(explain(f).on(comm)));
        };
        if !engine.linger(watch) {
            guard = wait_for_board(mpi, guard, watch);
            let engine = guard.engine.as_mut().ok_or_else(not_running)?;
            if let Some(failure) = engine.departed(watch) {
                engine.end_short(short);
                return Err(explain(failure).on(comm));
            }
        }
    }
}
