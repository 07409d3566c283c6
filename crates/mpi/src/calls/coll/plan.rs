//! Plans: the arguments of each collective call as a schedule with its buffers.

use super::arguments::{Data, checked_root, in_a_row, intra, refuse_same};
use super::side::{Args, BOTH_LISTED, ONE_LISTED, Part, Side, listed, refuse_same_sides};
use crate::calls::p2p::running;
use kw_coll::{Blocks, CallView, Coll, RECV, SEND};
use kw_engine::{Caller, Collectives, Combining, CommView, Memory, Run};
use kw_objects::Comm;
use kw_objects::error::Res;
use kw_objects::handle::{CommH, OpH, TypeH};
use kw_objects::state::{State, Tables};
use kw_sys::args::Ints;
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

/// The plan for both sides; `buffers`: those of blocks that have their own. Ranks may have different
/// blocks: `bytes` for the table is what all know.
pub(super) fn lay_out_sides(
    state: &mut State,
    comm: CommH,
    (coll, bytes): (Coll, u64),
    call: &CallView,
    [send, recv]: [Part; 2],
    buffers: Vec<Memory>,
) -> Plan {
    let call = CallView {
        send: send.counts.blocks(SEND),
        recv: recv.counts.blocks(RECV),
        ..*call
    };
    let mut all = [send.memory, recv.memory]
        .into_iter()
        .flatten()
        .chain(buffers);
    let first = [(); 2].map(|_| all.next().unwrap_or(Memory::NONE));
    let mut run = lay_out(state, comm, (coll, bytes, NO_SHM_REGION), &call, first)?;
    all.for_each(|m| run.add(m));
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

/// MPI_Gather and MPI_Scatter.
pub(super) fn rooted<const GATHERS: bool>(
    state: &mut State,
    (s, r): (Args, Args),
    root: i32,
    comm: CommH,
) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.root = checked_root(root, call.size)?;
    let (own, all) = if GATHERS { (s, r) } else { (r, s) };
    let names = ["sendbuf", "recvbuf"];
    let (mut one, mut whole) = (Data::NONE, Data::NONE);
    call.in_place = call.is_root() && own.0.is_in_place();
    if !call.in_place {
        one = Data::packed(tables, names[!GATHERS as usize], own, 1)?;
    }
    if call.is_root() {
        whole = Data::packed(tables, names[GATHERS as usize], all, call.size)?;
        refuse_same(s.0, r.0, one.bytes)?;
    }
    call.block_bytes = if call.is_root() {
        whole.bytes
    } else {
        one.bytes
    };
    let (send, recv) = if GATHERS { (one, whole) } else { (whole, one) };
    (call.send, call.recv) = (even(SEND, send.count), even(RECV, recv.count));
    let buffers = [send.memory, recv.memory];
    let coll = if GATHERS { Coll::Gather } else { Coll::Scatter };
    let what = (coll, call.block_bytes, BYTES);
    lay_out(state, comm, what, &call, buffers)
}

/// MPI_Gatherv and MPI_Scatterv.
pub(super) fn rooted_lists(
    state: &mut State,
    (s, r): (Side, Side),
    root: i32,
    comm: CommH,
    coll: Coll,
) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.root = checked_root(root, call.size)?;
    let (own, all) = if coll == Coll::Gather { (0, 1) } else { (1, 0) };
    let sides = [s, r];
    call.in_place = call.is_root() && sides[own].addr().is_in_place();
    let mut parts = sides.map(Side::insignificant);
    let mut buffers = Vec::new();
    let mut read = |i: usize, n| sides[i].read(tables, ONE_LISTED[i], n, &mut buffers);
    if !call.in_place {
        parts[own] = read(own, 1)?;
    }
    if call.is_root() {
        parts[all] = read(all, call.size)?;
        refuse_same_sides((s, &parts[0]), (r, &parts[1]))?;
    }
    lay_out_sides(state, comm, (coll, 0), &call, parts, buffers)
}

/// MPI_Allgather and MPI_Alltoall.
pub(super) fn exchange(state: &mut State, (s, r): (Args, Args), comm: CommH, coll: Coll) -> Plan {
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

/// MPI_Allgatherv, MPI_Alltoallv and MPI_Alltoallw.
pub(super) fn exchange_lists(
    state: &mut State,
    (s, r): (Side, Side),
    comm: CommH,
    coll: Coll,
) -> Plan {
    let tables = &state.above;
    let mut call = call_view(tables, comm)?;
    call.in_place = s.addr().is_in_place();
    let names = if coll == Coll::Allgather {
        ONE_LISTED
    } else {
        BOTH_LISTED
    };
    let mut buffers = Vec::new();
    let mut send = s.insignificant();
    if !call.in_place {
        send = s.read(tables, names[0], call.size, &mut buffers)?;
    }
    let recv = r.read(tables, names[1], call.size, &mut buffers)?;
    if !call.in_place {
        refuse_same_sides((s, &send), (r, &recv))?;
    }
    let mut bytes = 0;
    if coll == Coll::Allgather {
        // All ranks know all counts, so the mean block can determine the choice.
        bytes = recv.bytes / call.size as u64;
    } else {
        call.own_bytes = send.bytes.saturating_add(recv.bytes);
    }
    lay_out_sides(state, comm, (coll, bytes), &call, [send, recv], buffers)
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
    let bytes = send.bytes.max(recv.bytes);
    call.count = send.count.max(recv.count);
    call.in_place = in_place;
    let what = (coll, bytes, datatype, op);
    lay_out_fold(state, comm, what, call, [send.memory, recv.memory])
}

/// Lays out a reduction.
#[inline]
fn lay_out_fold(
    state: &mut State,
    comm: CommH,
    (coll, bytes, datatype, op): (Coll, u64, TypeH, OpH),
    mut call: CallView,
    buffers: [Memory; 2],
) -> Plan {
    let (element, combining, commutes) = mix(&state.above, datatype, op)?;
    call.commutative = commutes;
    let unit = elements(&combining, &element);
    let mut run = lay_out(state, comm, (coll, bytes, unit), &call, buffers)?;
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
    call.count = recv.count.saturating_mul(call.size as u64);
    let send = input_of(tables, s, r, call.count, datatype)?;
    call.send = even(if call.in_place { RECV } else { SEND }, recv.count);
    let bytes = recv.bytes.saturating_mul(call.size as u64);
    let what = (Coll::ReduceScatter, bytes, datatype, op);
    lay_out_fold(state, comm, what, call, [send.memory, recv.memory])
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
    call.count = lists.counts.iter().sum();
    let mine = lists.counts[call.rank as usize];
    let recv = Data::combined(tables, "recvbuf", r, mine as i64, datatype)?;
    let send = input_of(tables, s, r, call.count, datatype)?;
    let call = CallView {
        send: listed(if call.in_place { RECV } else { SEND }, &lists),
        ..call
    };
    let what = (Coll::ReduceScatter, lists.bytes, datatype, op);
    let run = lay_out_fold(state, comm, what, call, [send.memory, recv.memory])?;
    state.above.lists = lists;
    Ok(run)
}
