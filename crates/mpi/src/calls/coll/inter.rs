//! Plans of collectives on intercommunicators (MPI 5.0, 6.2.3): the significant arguments of this
//! rank, as a schedule of `kw_coll::inter` with its buffers.

use super::arguments::{Data, in_a_row, refuse_same};
use super::call::Call;
use super::plan::{Plan, ReduceArgs, ScatterArgs, even, mix};
use super::side::{Args, BOTH_LISTED, Names, ONE_LISTED, Part, Side, listed, refuse_same_sides};
use crate::calls::p2p::running;
use kw_coll::inter::{self, Emit, InterCallView, Role};
use kw_coll::{Blocks, Coll, RECV, SEND};
use kw_engine::{CommView, Memory};
use kw_objects::Comm;
use kw_objects::comm::PROC_NULL;
use kw_objects::error::{Res, fail};
use kw_objects::handle::{CommH, OpH, TypeH};
use kw_objects::lists::Lists;
use kw_objects::state::{State, Tables};
use std::sync::Arc;

/// MPI_ROOT
pub(super) const ROOT: i32 = -4;

/// Plans a call on an intercommunicator.
pub(super) fn plan(state: &mut State, call: &Call, comm: CommH) -> Plan {
    match *call {
        Call::Barrier => {
            let call = call_view(state.above.comms.get(comm)?);
            lay_out(state, comm, inter::barrier, &call)
        }
        Call::Bcast(args, root) => bcast(state, args, root, comm),
        Call::Gather(s, r, root) => rooted(state, [s, r], root, comm, (1, inter::gather)),
        Call::Scatter(s, r, root) => rooted(state, [s, r], root, comm, (0, inter::scatter)),
        Call::Allgather(s, r) => exchange(state, (s, r), comm, (ONE_LISTED, inter::allgather)),
        Call::Alltoall(s, r) => exchange(state, (s, r), comm, (BOTH_LISTED, inter::alltoall)),
        Call::Reduce(args, root) => reduce(state, args, root, comm),
        Call::Everywhere(args, Coll::Allreduce) => allreduce(state, args, comm),
        Call::Everywhere(..) => {
            fail!(Comm: "comm is an intercommunicator, but scans are for intracommunicators")
        }
        Call::ReduceScatter(args) => reduce_scatter(state, args, comm),
        Call::ReduceScatterBlock(args) => reduce_scatter_block(state, args, comm),
    }
}

/// The ranks of both groups in one row, and this rank's place in it.
pub(super) fn numbered(comm: &Comm) -> (bool, u32, [u32; 2]) {
    let (ours, theirs) = (&comm.local, comm.target());
    let sizes = [ours.size(), theirs.size()];
    if comm.first {
        (true, comm.rank, sizes)
    } else {
        (false, sizes[1] + comm.rank, [sizes[1], sizes[0]])
    }
}

fn call_view(comm: &Comm) -> InterCallView<'static> {
    let (_, rank, sizes) = numbered(comm);
    InterCallView {
        rank,
        sizes,
        role: Role::Idle,
        count: 0,
        bytes: 0,
        send: Blocks::NONE,
        recv: Blocks::NONE,
        commutative: true,
    }
}

/// Checks the root; returns the size of the remote group.
fn at_root(tables: &Tables, root: i32, comm: CommH) -> Res<(InterCallView<'static>, u32)> {
    let comm = tables.comms.get(comm)?;
    let others = comm.target().size();
    let role = match root {
        ROOT => Role::Root,
        PROC_NULL => Role::Idle,
        r if r >= 0 && (r as u32) < others => Role::With(r as u32),
        _ => {
            return fail!(Root: "root is {root}, but the remote group has ranks 0 to {} (or MPI_ROOT, MPI_PROC_NULL in the root's group)",
                others - 1);
        }
    };
    Ok((
        InterCallView {
            role,
            ..call_view(comm)
        },
        others,
    ))
}

/// The communicator as the next collective call on an intercommunicator.
pub(super) fn comm_view(comm: &mut Comm) -> CommView {
    let (first, rank, _) = numbered(comm);
    let members = match &comm.both {
        Some(both) => both.clone(),
        None => {
            let (ours, theirs) = (&comm.local, comm.target());
            let both = if first {
                ours.union(theirs)
            } else {
                theirs.union(ours)
            };
            comm.both.insert(Arc::new(both)).clone()
        }
    };
    CommView {
        members,
        context: comm.context.collective(),
        rank,
        tag: comm.next_collective(),
        shm_region: None,
        plans: None,
        rows: None,
    }
}

fn lay_out(state: &mut State, comm: CommH, emit: Emit, call: &InterCallView) -> Plan {
    let (engine, tables) = running(state)?;
    let comm_view = comm_view(tables.comms.get_mut(comm)?);
    let planner = &mut engine.parts.collectives.planner;
    Ok(planner.plan_inter(engine.job.agreed(), comm_view, emit, call))
}

/// Lays out a call with a send and a receive buffer.
fn with_buffers(
    state: &mut State,
    comm: CommH,
    emit: Emit,
    call: &InterCallView,
    (send, recv): (Memory, Memory),
) -> Plan {
    let mut run = lay_out(state, comm, emit, call)?;
    run.add(send);
    run.add(recv);
    Ok(run)
}

fn bcast(state: &mut State, (buffer, count, datatype): Args, root: i32, comm: CommH) -> Plan {
    let (mut call, _) = at_root(&state.above, root, comm)?;
    let mut memory = Memory::NONE;
    if call.role != Role::Idle {
        Data::of(&state.above, "buffer", buffer, count, datatype)?;
        let buf = state.above.buf(buffer, count, datatype)?;
        (call.count, call.bytes) = (buf.len(), buf.len());
        memory = Memory::stream(buf);
    }
    with_buffers(state, comm, inter::bcast, &call, (Memory::NONE, memory))
}

/// MPI_Gather and MPI_Scatter; `whole`: the side that is significant at the root.
fn rooted(
    state: &mut State,
    sides: [Side; 2],
    root: i32,
    comm: CommH,
    (whole, emit): (usize, Emit),
) -> Plan {
    let tables = &state.above;
    let (call, others) = at_root(tables, root, comm)?;
    let mut parts = sides.map(Side::insignificant);
    let significant = match call.role {
        Role::Root => Some((whole, others)),
        Role::With(_) => Some((1 - whole, 1)),
        Role::Idle => None,
    };
    let mut buffers = Vec::new();
    if let Some((i, n)) = significant {
        parts[i] = sides[i].read(tables, ONE_LISTED[i], n, &mut buffers)?;
    }
    with_sides(state, comm, emit, call, parts, buffers)
}

/// MPI_Allgather and MPI_Alltoall.
fn exchange(
    state: &mut State,
    (s, r): (Side, Side),
    comm: CommH,
    (names, emit): ([Names; 2], Emit),
) -> Plan {
    let tables = &state.above;
    let c = tables.comms.get(comm)?;
    let (n, mut buffers) = (c.target().size(), Vec::new());
    let send = s.read(tables, names[0], n, &mut buffers)?;
    let recv = r.read(tables, names[1], n, &mut buffers)?;
    refuse_same_sides((s, &send), (r, &recv))?;
    let call = call_view(c);
    with_sides(state, comm, emit, call, [send, recv], buffers)
}

/// Lays out a call with two sides; `buffers`: those of blocks that have their own.
fn with_sides(
    state: &mut State,
    comm: CommH,
    emit: Emit,
    call: InterCallView,
    [send, recv]: [Part; 2],
    buffers: Vec<Memory>,
) -> Plan {
    let call = InterCallView {
        send: send.counts.blocks(SEND),
        recv: recv.counts.blocks(RECV),
        ..call
    };
    let mut run = lay_out(state, comm, emit, &call)?;
    let all = [send.memory, recv.memory].into_iter().flatten();
    all.chain(buffers).for_each(|m| run.add(m));
    Ok(run)
}

fn reduce(state: &mut State, args: ReduceArgs, root: i32, comm: CommH) -> Plan {
    let (s, r, count, datatype, op) = args;
    let tables = &state.above;
    let (call, _) = at_root(tables, root, comm)?;
    let (mut send, mut recv) = (Data::NONE, Data::NONE);
    match call.role {
        Role::Idle => return lay_out(state, comm, inter::reduce, &call),
        Role::Root => recv = Data::combined(tables, "recvbuf", r, count, datatype)?,
        Role::With(_) => send = Data::combined(tables, "sendbuf", s, count, datatype)?,
    }
    let what = (inter::reduce as Emit, datatype, op);
    combine(state, comm, what, call, [send, recv])
}

fn allreduce(state: &mut State, args: ReduceArgs, comm: CommH) -> Plan {
    let (s, r, count, datatype, op) = args;
    let tables = &state.above;
    let send = Data::combined(tables, "sendbuf", s, count, datatype)?;
    let recv = Data::combined(tables, "recvbuf", r, count, datatype)?;
    refuse_same(s, r, recv.bytes)?;
    let call = call_view(tables.comms.get(comm)?);
    let what = (inter::allreduce as Emit, datatype, op);
    combine(state, comm, what, call, [send, recv])
}

/// Lays out a reduction of these data.
fn combine(
    state: &mut State,
    comm: CommH,
    (emit, datatype, op): (Emit, TypeH, OpH),
    call: InterCallView,
    [send, recv]: [Data; 2],
) -> Plan {
    let (element, combining, commutative) = mix(&state.above, datatype, op)?;
    let call = InterCallView {
        count: send.count.max(recv.count),
        bytes: send.bytes.max(recv.bytes),
        commutative,
        ..call
    };
    let mut run = with_buffers(state, comm, emit, &call, (send.memory, recv.memory))?;
    run.combine(combining, element);
    Ok(run)
}

fn reduce_scatter(state: &mut State, args: ScatterArgs, comm: CommH) -> Plan {
    let (s, r, counts, datatype, op) = args;
    let tables = &state.above;
    let c = tables.comms.get(comm)?;
    let size = tables.layout(datatype)?.size();
    let lists = in_a_row(Lists::default(), size, counts, c.local.size())?;
    let args = (s, r, lists.counts[c.rank as usize] as i64, datatype, op);
    let total = lists.counts.iter().sum();
    scatter_fold(state, args, listed(SEND, &lists), total, comm)
}

fn reduce_scatter_block(state: &mut State, args: ReduceArgs, comm: CommH) -> Plan {
    let (_, r, count, datatype, _) = args;
    let tables = &state.above;
    let recv = Data::combined(tables, "recvbuf", r, count, datatype)?;
    let n = tables.comms.get(comm)?.local.size() as u64;
    let total = recv.count.saturating_mul(n);
    scatter_fold(state, args, even(SEND, recv.count), total, comm)
}

/// `args` with the elements of this rank's result, of `total`.
fn scatter_fold(
    state: &mut State,
    (s, r, mine, datatype, op): ReduceArgs,
    send: Blocks,
    total: u64,
    comm: CommH,
) -> Plan {
    let tables = &state.above;
    let recv = Data::combined(tables, "recvbuf", r, mine, datatype)?;
    let all = i64::try_from(total).unwrap_or(i64::MAX);
    let input = Data::combined(tables, "sendbuf", s, all, datatype)?;
    refuse_same(s, r, recv.bytes)?;
    let call = InterCallView {
        send,
        ..call_view(tables.comms.get(comm)?)
    };
    let what = (inter::reduce_scatter as Emit, datatype, op);
    combine(state, comm, what, call, [input, recv])
}
