//! Plans: the arguments of each collective call as a schedule with its buffers.

use super::arguments::{Data, apart, checked_root, in_a_row, intra, read_lists, refuse_same};
use super::arguments::{refuse_same_apart, refuse_same_blocks, refuse_same_start};
use crate::calls::p2p::running;
use kw_coll::{Blocks, CallView, Coll, RECV, SEND};
use kw_engine::{Caller, Collectives, Combining, CommView, Memory, Run};
use kw_objects::Comm;
use kw_objects::error::Res;
use kw_objects::handle::{CommH, OpH, TypeH};
use kw_objects::lists::Lists;
use kw_objects::state::{State, Tables};
use kw_sys::args::{Array, Ints};
use kw_sys::buf::Addr;

/// A plan, or the error in the arguments.
pub(super) type Plan = Res<Box<Run>>;

/// Bytes of a unit of the shm buffers, if a shm region may be used. All ranks decide alike.
pub(super) type Unit = Option<u64>;

/// Shm buffers in bytes.
const BYTES: Unit = Some(1);
/// Blocks whose lengths not every rank knows are sent in messages.
pub(super) const NO_SHM_REGION: Unit = None;

/// Counts the call, chooses the algorithm and lays out the schedule, for a send and a receive
/// buffer.
#[inline]
pub(super) fn lay_out(
    state: &mut State,
    comm: CommH,
    what: (Coll, u64, Unit),
    call: &CallView,
    buffers: [Memory; 2],
) -> Plan {
    let (engine, tables) = running(state)?;
    let checking = tables.checking;
    let c = tables.comms.get_mut(comm)?;
    if c.plans.is_none() {
        c.plans = Some(engine.parts.collectives.planner.open());
    }
    let mut caller = caller(c);
    if checking {
        // A call on which the ranks disagree must not have a place on the shm region.
        caller.shm_region = None;
    }
    let Collectives {
        planner, channels, ..
    } = &mut engine.parts.collectives;
    let mut run = match planner.again(channels, &caller, what, call, &buffers) {
        Some(run) => run,
        None => {
            let comm_view = caller.comm_view();
            let nodes = c.nodes(engine.job.agreed()).cloned();
            let call = CallView {
                nodes: nodes.as_deref(),
                levels: c.levels(engine.job.agreed()).map(|l| &**l),
                ..*call
            };
            planner.plan(
                channels,
                engine.job.agreed(),
                comm_view,
                what,
                &call,
                &buffers,
            )
        }
    };
    run.take_buffers(buffers);
    Ok(run)
}

/// The plan for more than two buffers. Ranks have different blocks, so the number of bytes for the
/// table is 0.
pub(super) fn lay_out_apart(
    state: &mut State,
    comm: CommH,
    coll: Coll,
    call: &CallView,
    memories: impl IntoIterator<Item = Memory>,
) -> Plan {
    let mut memories = memories.into_iter();
    let first = [(); 2].map(|_| memories.next().unwrap_or(Memory::NONE));
    let mut run = lay_out(state, comm, (coll, 0, NO_SHM_REGION), call, first)?;
    memories.for_each(|m| run.add(m));
    Ok(run)
}

/// The next collective call on a communicator.
#[inline]
fn caller(comm: &mut Comm) -> Caller<'_> {
    let tag = comm.next_collective();
    Caller {
        members: &comm.local,
        context: comm.context.collective(),
        rank: comm.rank,
        tag,
        shm_region: comm.shm_region.id(),
        rows: comm.rows.as_ref(),
        plans: comm.plans,
    }
}

/// Its view of the communicator.
pub(super) fn comm_view(comm: &mut Comm) -> CommView {
    caller(comm).comm_view()
}

#[inline]
fn call_view<'a>(tables: &Tables, comm: CommH) -> Res<CallView<'a>> {
    let c = intra(tables, comm)?;
    Ok(CallView::new(c.rank, c.local.size()))
}

pub(super) fn even(buf: u32, each: u64) -> Blocks<'static> {
    Blocks::Even { buf, each }
}

/// MPI_Barrier
#[inline]
pub(super) fn barrier(state: &mut State, comm: CommH) -> Plan {
    let call = call_view(&state.above, comm)?;
    let nothing = [Memory::NONE, Memory::NONE];
    lay_out(state, comm, (Coll::Barrier, 0, BYTES), &call, nothing)
}

/// MPI_Bcast
#[inline]
pub(super) fn bcast(
    state: &mut State,
    buffer: Addr,
    count: i64,
    datatype: TypeH,
    root: i32,
    comm: CommH,
) -> Plan {
    let mut call = call_view(&state.above, comm)?;
    call.root = checked_root(root, call.size)?;
    let data = Data::packed(&state.above, "buffer", (buffer, count, datatype), 1)?;
    call.count = data.bytes;
    let buffers = [Memory::NONE, data.memory];
    lay_out(
        state,
        comm,
        (Coll::Bcast, data.bytes, BYTES),
        &call,
        buffers,
    )
}

/// Buffer, count and datatype.
pub(super) type Args = (Addr, i64, TypeH);
/// Buffer, counts, displacements and datatype.
pub(super) type ListArgs = (Addr, Ints, Ints, TypeH);
/// Buffer, counts, displacements and datatypes.
pub(super) type ApartArgs = (Addr, Ints, Ints, Array<TypeH>);

pub(super) fn data(tables: &Tables, name: &str, (addr, count, datatype): Args) -> Res<Data> {
    Data::of(tables, name, addr, count, datatype)
}

/// MPI_Gather
pub(super) fn gather(state: &mut State, s: Args, r: Args, root: i32, comm: CommH) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.root = checked_root(root, call.size)?;
    let (mut send, mut recv) = (Data::NONE, Data::NONE);
    call.in_place = call.is_root() && s.0.is_in_place();
    if !call.in_place {
        send = Data::packed(tables, "sendbuf", s, 1)?;
    }
    if call.is_root() {
        recv = Data::packed(tables, "recvbuf", r, call.size)?;
        refuse_same(s.0, r.0, send.bytes)?;
    }
    call.block_bytes = if call.is_root() {
        recv.bytes
    } else {
        send.bytes
    };
    (call.send, call.recv) = (even(SEND, send.count), even(RECV, recv.count));
    let buffers = [send.memory, recv.memory];
    lay_out(
        state,
        comm,
        (Coll::Gather, call.block_bytes, BYTES),
        &call,
        buffers,
    )
}

/// MPI_Gatherv
pub(super) fn gatherv(state: &mut State, s: Args, r: ListArgs, root: i32, comm: CommH) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.root = checked_root(root, call.size)?;
    call.in_place = call.is_root() && s.0.is_in_place();
    let (mut send, mut recv) = (Data::NONE, (Memory::NONE, Lists::default()));
    if !call.in_place {
        send = data(tables, "sendbuf", s)?;
    }
    if call.is_root() {
        recv = read_lists(tables, ("recvbuf", "recvcounts", "displs"), r, call.size)?;
        refuse_same_start(s.0, send.bytes, r, call.size)?;
    }
    let call = CallView {
        send: even(SEND, send.count),
        recv: listed(RECV, &recv.1),
        ..call
    };
    let buffers = [send.memory, recv.0];
    lay_out(
        state,
        comm,
        (Coll::Gather, 0, NO_SHM_REGION),
        &call,
        buffers,
    )
}

pub(super) fn listed(buf: u32, lists: &Lists) -> Blocks<'_> {
    Blocks::Listed {
        buf,
        counts: &lists.counts,
        at: &lists.at,
    }
}

/// MPI_Scatter
pub(super) fn scatter(state: &mut State, s: Args, r: Args, root: i32, comm: CommH) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.root = checked_root(root, call.size)?;
    let (mut send, mut recv) = (Data::NONE, Data::NONE);
    call.in_place = call.is_root() && r.0.is_in_place();
    if !call.in_place {
        recv = Data::packed(tables, "recvbuf", r, 1)?;
    }
    if call.is_root() {
        send = Data::packed(tables, "sendbuf", s, call.size)?;
        refuse_same(s.0, r.0, recv.bytes)?;
    }
    call.block_bytes = if call.is_root() {
        send.bytes
    } else {
        recv.bytes
    };
    (call.send, call.recv) = (even(SEND, send.count), even(RECV, recv.count));
    let buffers = [send.memory, recv.memory];
    lay_out(
        state,
        comm,
        (Coll::Scatter, call.block_bytes, BYTES),
        &call,
        buffers,
    )
}

/// MPI_Scatterv
pub(super) fn scatterv(state: &mut State, s: ListArgs, r: Args, root: i32, comm: CommH) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.root = checked_root(root, call.size)?;
    call.in_place = call.is_root() && r.0.is_in_place();
    let (mut send, mut recv) = ((Memory::NONE, Lists::default()), Data::NONE);
    if !call.in_place {
        recv = data(tables, "recvbuf", r)?;
    }
    if call.is_root() {
        send = read_lists(tables, ("sendbuf", "sendcounts", "displs"), s, call.size)?;
        refuse_same_start(r.0, recv.bytes, s, call.size)?;
    }
    let call = CallView {
        send: listed(SEND, &send.1),
        recv: even(RECV, recv.count),
        ..call
    };
    let buffers = [send.0, recv.memory];
    lay_out(
        state,
        comm,
        (Coll::Scatter, 0, NO_SHM_REGION),
        &call,
        buffers,
    )
}

/// MPI_Allgather
pub(super) fn allgather(state: &mut State, s: Args, r: Args, comm: CommH) -> Plan {
    exchange(state, s, r, comm, Coll::Allgather)
}

/// MPI_Alltoall
pub(super) fn alltoall(state: &mut State, s: Args, r: Args, comm: CommH) -> Plan {
    exchange(state, s, r, comm, Coll::Alltoall)
}

fn exchange(state: &mut State, s: Args, r: Args, comm: CommH, coll: Coll) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.in_place = s.0.is_in_place();
    let recv = Data::packed(tables, "recvbuf", r, call.size)?;
    let mut send = Data::NONE;
    let blocks = if coll == Coll::Alltoall { call.size } else { 1 };
    if !call.in_place {
        send = Data::packed(tables, "sendbuf", s, blocks)?;
        refuse_same(s.0, r.0, send.bytes)?;
    }
    call.block_bytes = recv.bytes;
    (call.send, call.recv) = (even(SEND, send.count), even(RECV, recv.count));
    let buffers = [send.memory, recv.memory];
    lay_out(state, comm, (coll, recv.bytes, BYTES), &call, buffers)
}

/// MPI_Allgatherv
pub(super) fn allgatherv(state: &mut State, s: Args, r: ListArgs, comm: CommH) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.in_place = s.0.is_in_place();
    let recv = read_lists(tables, ("recvbuf", "recvcounts", "displs"), r, call.size)?;
    let mut send = Data::NONE;
    if !call.in_place {
        send = data(tables, "sendbuf", s)?;
        refuse_same_start(s.0, send.bytes, r, call.size)?;
    }
    // All ranks know all counts, so the mean block can determine the choice.
    let mean = recv.1.bytes / call.size as u64;
    let call = CallView {
        send: even(SEND, send.count),
        recv: listed(RECV, &recv.1),
        ..call
    };
    let buffers = [send.memory, recv.0];
    lay_out(
        state,
        comm,
        (Coll::Allgather, mean, NO_SHM_REGION),
        &call,
        buffers,
    )
}

/// MPI_Alltoallv
pub(super) fn alltoallv(state: &mut State, s: ListArgs, r: ListArgs, comm: CommH) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.in_place = s.0.is_in_place();
    let recv = read_lists(tables, ("recvbuf", "recvcounts", "rdispls"), r, call.size)?;
    let mut send = (Memory::NONE, Lists::default());
    if !call.in_place {
        send = read_lists(tables, ("sendbuf", "sendcounts", "sdispls"), s, call.size)?;
        refuse_same_blocks(s, r, call.size)?;
    }
    let call = CallView {
        own_bytes: send.1.bytes.saturating_add(recv.1.bytes),
        send: listed(SEND, &send.1),
        recv: listed(RECV, &recv.1),
        ..call
    };
    let buffers = [send.0, recv.0];
    lay_out(
        state,
        comm,
        (Coll::Alltoall, 0, NO_SHM_REGION),
        &call,
        buffers,
    )
}

/// MPI_Alltoallw
pub(super) fn alltoallw(state: &mut State, s: ApartArgs, r: ApartArgs, comm: CommH) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.in_place = s.0.is_in_place();
    let mut memories = Vec::with_capacity(2 * call.size as usize);
    let (mut send, mut sent) = (Vec::new(), 0);
    if !call.in_place {
        (send, sent) = apart(tables, "sendbuf", s, call.size, &mut memories)?;
    }
    let first = memories.len() as u32;
    let (recv, received) = apart(tables, "recvbuf", r, call.size, &mut memories)?;
    if !call.in_place {
        refuse_same_apart(s, r, call.size)?;
    }
    let call = CallView {
        own_bytes: sent.saturating_add(received),
        send: Blocks::Apart {
            first: 0,
            counts: &send,
        },
        recv: Blocks::Apart {
            first,
            counts: &recv,
        },
        ..call
    };
    lay_out_apart(state, comm, Coll::Alltoall, &call, memories)
}

/// Operands of a reduction: the element, the operation, and whether it commutes.
pub(super) type Mix = (Memory, Combining, bool);

/// Shm buffers in elements, which the library's loops combine in place.
#[inline]
fn elements(combining: &Combining, element: &Memory) -> Unit {
    match (combining, element) {
        (Combining::Kernel(_), Memory::Plain { size, .. }) => Some(*size),
        _ => None,
    }
}

#[inline]
pub(super) fn mix(tables: &Tables, datatype: TypeH, op: OpH) -> Res<Mix> {
    let layout = tables.layout(datatype)?;
    let (combining, commutes) = tables.ops.collective_combining(op, datatype, layout)?;
    Ok((Memory::elements(Addr::NULL, layout), combining, commutes))
}

/// Send and receive buffer, count, datatype and operation.
pub(super) type ReduceArgs = (Addr, Addr, i64, TypeH, OpH);

/// MPI_Reduce
pub(super) fn reduce(state: &mut State, args: ReduceArgs, root: i32, comm: CommH) -> Plan {
    let mut call = call_view(&state.above, comm)?;
    call.root = checked_root(root, call.size)?;
    let in_place = args.0.is_in_place() && call.is_root();
    let has_recv = call.is_root();
    combine(state, args, call, (in_place, has_recv), comm, Coll::Reduce)
}

/// MPI_Allreduce, MPI_Scan and MPI_Exscan
#[inline]
pub(super) fn everywhere(state: &mut State, args: ReduceArgs, comm: CommH, coll: Coll) -> Plan {
    let call = call_view(&state.above, comm)?;
    combine(state, args, call, (args.0.is_in_place(), true), comm, coll)
}

#[inline]
fn combine(
    state: &mut State,
    (s, r, count, datatype, op): ReduceArgs,
    mut call: CallView,
    (in_place, has_recv): (bool, bool),
    comm: CommH,
    coll: Coll,
) -> Plan {
    let tables = &state.above;
    let (mut send, mut recv) = (Data::NONE, Data::NONE);
    if !in_place {
        send = Data::combined(tables, "sendbuf", s, count, datatype)?;
    }
    if has_recv {
        recv = Data::combined(tables, "recvbuf", r, count, datatype)?;
        refuse_same(s, r, recv.bytes)?;
    }
    let (element, combining, commutes) = mix(tables, datatype, op)?;
    let bytes = send.bytes.max(recv.bytes);
    call.count = send.count.max(recv.count);
    (call.commutative, call.in_place) = (commutes, in_place);
    let unit = elements(&combining, &element);
    let (what, buffers) = ((coll, bytes, unit), [send.memory, recv.memory]);
    let mut run = lay_out(state, comm, what, &call, buffers)?;
    run.combine(combining, element);
    Ok(run)
}

/// MPI_Reduce_scatter_block
pub(super) fn reduce_scatter_block(state: &mut State, args: ReduceArgs, comm: CommH) -> Plan {
    let (s, r, count, datatype, op) = args;
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.in_place = s.is_in_place();
    let recv = Data::combined(tables, "recvbuf", r, count, datatype)?;
    let total = recv.count.saturating_mul(call.size as u64);
    let send = input_of(tables, s, r, total, datatype)?;
    let buf = if call.in_place { RECV } else { SEND };
    let (element, combining, commutes) = mix(tables, datatype, op)?;
    (call.commutative, call.count) = (commutes, total);
    call.send = even(buf, recv.count);
    let bytes = recv.bytes.saturating_mul(call.size as u64);
    let unit = elements(&combining, &element);
    let (what, buffers) = (
        (Coll::ReduceScatter, bytes, unit),
        [send.memory, recv.memory],
    );
    let mut run = lay_out(state, comm, what, &call, buffers)?;
    run.combine(combining, element);
    Ok(run)
}

fn input_of(tables: &Tables, s: Addr, r: Addr, total: u64, datatype: TypeH) -> Res<Data> {
    if s.is_in_place() {
        return Ok(Data::NONE);
    }
    let total = i64::try_from(total).unwrap_or(i64::MAX);
    let send = Data::combined(tables, "sendbuf", s, total, datatype)?;
    refuse_same(s, r, send.bytes)?;
    Ok(send)
}

/// Send and receive buffer, counts, datatype and operation.
pub(super) type ScatterArgs = (Addr, Addr, Ints, TypeH, OpH);

/// MPI_Reduce_scatter
pub(super) fn reduce_scatter(state: &mut State, args: ScatterArgs, comm: CommH) -> Plan {
    let (s, r, counts, datatype, op) = args;
    let lists = std::mem::take(&mut state.above.lists);
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.in_place = s.is_in_place();
    let size = tables.layout(datatype)?.size();
    let lists = in_a_row(lists, size, counts, call.size)?;
    let total: u64 = lists.counts.iter().sum();
    let mine = lists.counts[call.rank as usize];
    let recv = Data::combined(tables, "recvbuf", r, mine as i64, datatype)?;
    let send = input_of(tables, s, r, total, datatype)?;
    let buf = if call.in_place { RECV } else { SEND };
    let (element, combining, commutes) = mix(tables, datatype, op)?;
    let call = CallView {
        commutative: commutes,
        count: total,
        send: listed(buf, &lists),
        ..call
    };
    let unit = elements(&combining, &element);
    let (what, buffers) = (
        (Coll::ReduceScatter, lists.bytes, unit),
        [send.memory, recv.memory],
    );
    let mut run = lay_out(state, comm, what, &call, buffers)?;
    state.above.lists = lists;
    run.combine(combining, element);
    Ok(run)
}
