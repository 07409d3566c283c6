//! Plans of collectives on intercommunicators (MPI 5.0, 6.2.3): the significant arguments of this
//! rank, as a schedule of `kw_coll::inter` with its buffers.

use super::arguments::{Data, apart, in_a_row, read_lists, refuse_same};
use super::arguments::{refuse_same_apart, refuse_same_blocks, refuse_same_start};
use super::call::Call;
use super::plan::{ApartArgs, Args, ListArgs, Plan, ReduceArgs, ScatterArgs, data, even};
use super::plan::{listed, mix};
use crate::calls::p2p::running;
use kw_coll::inter::{self, Emit, InterCallView, Role};
use kw_coll::{Blocks, Coll, RECV, SEND};
use kw_engine::{CommView, Memory};
use kw_objects::Comm;
use kw_objects::comm::PROC_NULL;
use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::CommH;
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
        Call::Gather(s, r, root) => gather(state, s, r, root, comm),
        Call::Gatherv(s, r, root) => gatherv(state, s, r, root, comm),
        Call::Scatter(s, r, root) => scatter(state, s, r, root, comm),
        Call::Scatterv(s, r, root) => scatterv(state, s, r, root, comm),
        Call::Allgather(s, r) => exchange(state, s, r, comm, inter::allgather),
        Call::Alltoall(s, r) => exchange(state, s, r, comm, inter::alltoall),
        Call::Allgatherv(s, r) => allgatherv(state, s, r, comm),
        Call::Alltoallv(s, r) => alltoallv(state, s, r, comm),
        Call::Alltoallw(s, r) => alltoallw(state, s, r, comm),
        Call::Reduce(args, root) => reduce(state, args, root, comm),
        Call::Everywhere(args, Coll::Allreduce) => allreduce(state, args, comm),
        Call::Everywhere(..) => fail(
            Class::Comm,
            "comm is an intercommunicator, but scans are for intracommunicators",
        ),
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
fn rooted(tables: &Tables, root: i32, comm: CommH) -> Res<(InterCallView<'static>, u32)> {
    let comm = tables.comms.get(comm)?;
    let others = comm.target().size();
    let role = match root {
        ROOT => Role::Root,
        PROC_NULL => Role::Idle,
        r if r >= 0 && (r as u32) < others => Role::With(r as u32),
        _ => {
            return fail(
                Class::Root,
                format!(
                    "root is {root}, but the remote group has ranks 0 to {} (or MPI_ROOT, MPI_PROC_NULL in the root's group)",
                    others - 1
                ),
            );
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
    let (mut call, _) = rooted(&state.above, root, comm)?;
    let mut memory = Memory::NONE;
    if call.role != Role::Idle {
        Data::of(&state.above, "buffer", buffer, count, datatype)?;
        let buf = state.above.buf(buffer, count, datatype)?;
        (call.count, call.bytes) = (buf.len(), buf.len());
        memory = Memory::stream(buf);
    }
    with_buffers(state, comm, inter::bcast, &call, (Memory::NONE, memory))
}

fn gather(state: &mut State, s: Args, r: Args, root: i32, comm: CommH) -> Plan {
    let tables = &state.above;
    let (mut call, _) = rooted(tables, root, comm)?;
    let (mut send, mut recv) = (Data::NONE, Data::NONE);
    match call.role {
        Role::Root => recv = data(tables, "recvbuf", r)?,
        Role::With(_) => send = data(tables, "sendbuf", s)?,
        Role::Idle => {}
    }
    (call.send, call.recv) = (even(SEND, send.count), even(RECV, recv.count));
    let buffers = (send.memory, recv.memory);
    with_buffers(state, comm, inter::gather, &call, buffers)
}

fn gatherv(state: &mut State, s: Args, r: ListArgs, root: i32, comm: CommH) -> Plan {
    let tables = &state.above;
    let (call, n) = rooted(tables, root, comm)?;
    let (mut send, mut recv) = (Data::NONE, (Memory::NONE, Lists::default()));
    match call.role {
        Role::Root => recv = read_lists(tables, ("recvbuf", "recvcounts", "displs"), r, n)?,
        Role::With(_) => send = data(tables, "sendbuf", s)?,
        Role::Idle => {}
    }
    let call = InterCallView {
        send: even(SEND, send.count),
        recv: listed(RECV, &recv.1),
        ..call
    };
    with_buffers(state, comm, inter::gather, &call, (send.memory, recv.0))
}

fn scatter(state: &mut State, s: Args, r: Args, root: i32, comm: CommH) -> Plan {
    let tables = &state.above;
    let (mut call, _) = rooted(tables, root, comm)?;
    let (mut send, mut recv) = (Data::NONE, Data::NONE);
    match call.role {
        Role::Root => send = data(tables, "sendbuf", s)?,
        Role::With(_) => recv = data(tables, "recvbuf", r)?,
        Role::Idle => {}
    }
    (call.send, call.recv) = (even(SEND, send.count), even(RECV, recv.count));
    let buffers = (send.memory, recv.memory);
    with_buffers(state, comm, inter::scatter, &call, buffers)
}

fn scatterv(state: &mut State, s: ListArgs, r: Args, root: i32, comm: CommH) -> Plan {
    let tables = &state.above;
    let (call, n) = rooted(tables, root, comm)?;
    let (mut send, mut recv) = ((Memory::NONE, Lists::default()), Data::NONE);
    match call.role {
        Role::Root => send = read_lists(tables, ("sendbuf", "sendcounts", "displs"), s, n)?,
        Role::With(_) => recv = data(tables, "recvbuf", r)?,
        Role::Idle => {}
    }
    let call = InterCallView {
        send: listed(SEND, &send.1),
        recv: even(RECV, recv.count),
        ..call
    };
    with_buffers(state, comm, inter::scatter, &call, (send.0, recv.memory))
}

/// MPI_Allgather and MPI_Alltoall.
fn exchange(state: &mut State, s: Args, r: Args, comm: CommH, emit: Emit) -> Plan {
    let tables = &state.above;
    let recv = data(tables, "recvbuf", r)?;
    let send = data(tables, "sendbuf", s)?;
    refuse_same(s.0, r.0, send.bytes.min(recv.bytes))?;
    let call = InterCallView {
        send: even(SEND, send.count),
        recv: even(RECV, recv.count),
        ..call_view(tables.comms.get(comm)?)
    };
    with_buffers(state, comm, emit, &call, (send.memory, recv.memory))
}

fn allgatherv(state: &mut State, s: Args, r: ListArgs, comm: CommH) -> Plan {
    let tables = &state.above;
    let c = tables.comms.get(comm)?;
    let n = c.target().size();
    let recv = read_lists(tables, ("recvbuf", "recvcounts", "displs"), r, n)?;
    let send = data(tables, "sendbuf", s)?;
    refuse_same_start(s.0, send.bytes, r, n)?;
    let call = InterCallView {
        send: even(SEND, send.count),
        recv: listed(RECV, &recv.1),
        ..call_view(c)
    };
    with_buffers(state, comm, inter::allgather, &call, (send.memory, recv.0))
}

fn alltoallv(state: &mut State, s: ListArgs, r: ListArgs, comm: CommH) -> Plan {
    let tables = &state.above;
    let c = tables.comms.get(comm)?;
    let n = c.target().size();
    let recv = read_lists(tables, ("recvbuf", "recvcounts", "rdispls"), r, n)?;
    let send = read_lists(tables, ("sendbuf", "sendcounts", "sdispls"), s, n)?;
    refuse_same_blocks(s, r, n)?;
    let call = InterCallView {
        send: listed(SEND, &send.1),
        recv: listed(RECV, &recv.1),
        ..call_view(c)
    };
    with_buffers(state, comm, inter::alltoall, &call, (send.0, recv.0))
}

fn alltoallw(state: &mut State, s: ApartArgs, r: ApartArgs, comm: CommH) -> Plan {
    let tables = &state.above;
    let c = tables.comms.get(comm)?;
    let n = c.target().size();
    let mut memories = Vec::with_capacity(2 * n as usize);
    let (send, _) = apart(tables, "sendbuf", s, n, &mut memories)?;
    let (recv, _) = apart(tables, "recvbuf", r, n, &mut memories)?;
    refuse_same_apart(s, r, n)?;
    let call = InterCallView {
        send: Blocks::Apart {
            first: 0,
            counts: &send,
        },
        recv: Blocks::Apart {
            first: n,
            counts: &recv,
        },
        ..call_view(c)
    };
    let mut run = lay_out(state, comm, inter::alltoall, &call)?;
    memories.into_iter().for_each(|m| run.add(m));
    Ok(run)
}

fn reduce(state: &mut State, args: ReduceArgs, root: i32, comm: CommH) -> Plan {
    let (s, r, count, datatype, op) = args;
    let tables = &state.above;
    let (mut call, _) = rooted(tables, root, comm)?;
    let (mut send, mut recv) = (Data::NONE, Data::NONE);
    match call.role {
        Role::Idle => return lay_out(state, comm, inter::reduce, &call),
        Role::Root => recv = Data::combined(tables, "recvbuf", r, count, datatype)?,
        Role::With(_) => send = Data::combined(tables, "sendbuf", s, count, datatype)?,
    }
    let (element, combining, commutes) = mix(tables, datatype, op)?;
    call.commutative = commutes;
    (call.count, call.bytes) = (send.count.max(recv.count), send.bytes.max(recv.bytes));
    let buffers = (send.memory, recv.memory);
    let mut run = with_buffers(state, comm, inter::reduce, &call, buffers)?;
    run.combine(combining, element);
    Ok(run)
}

fn allreduce(state: &mut State, args: ReduceArgs, comm: CommH) -> Plan {
    let (s, r, count, datatype, op) = args;
    let tables = &state.above;
    let send = Data::combined(tables, "sendbuf", s, count, datatype)?;
    let recv = Data::combined(tables, "recvbuf", r, count, datatype)?;
    refuse_same(s, r, recv.bytes)?;
    let (element, combining, commutes) = mix(tables, datatype, op)?;
    let call = InterCallView {
        count: send.count,
        bytes: send.bytes,
        commutative: commutes,
        ..call_view(tables.comms.get(comm)?)
    };
    let buffers = (send.memory, recv.memory);
    let mut run = with_buffers(state, comm, inter::allreduce, &call, buffers)?;
    run.combine(combining, element);
    Ok(run)
}

fn reduce_scatter(state: &mut State, args: ScatterArgs, comm: CommH) -> Plan {
    let (s, r, counts, datatype, op) = args;
    let tables = &state.above;
    let c = tables.comms.get(comm)?;
    let size = tables.layout(datatype)?.size();
    let lists = in_a_row(Lists::default(), size, counts, c.local.size())?;
    let mine = lists.counts[c.rank as usize];
    let blocks = listed(SEND, &lists);
    scatter_fold(
        state,
        (s, r, mine, datatype, op),
        blocks,
        lists.counts.iter().sum(),
        comm,
    )
}

fn reduce_scatter_block(state: &mut State, args: ReduceArgs, comm: CommH) -> Plan {
    let (s, r, count, datatype, op) = args;
    let tables = &state.above;
    let recv = Data::combined(tables, "recvbuf", r, count, datatype)?;
    let n = tables.comms.get(comm)?.local.size() as u64;
    let total = recv.count.saturating_mul(n);
    let args = (s, r, recv.count, datatype, op);
    scatter_fold(state, args, even(SEND, recv.count), total, comm)
}

/// Buffers, elements of this rank's result, datatype and operation.
type FoldArgs = (
    kw_sys::buf::Addr,
    kw_sys::buf::Addr,
    u64,
    kw_objects::handle::TypeH,
    kw_objects::handle::OpH,
);

fn scatter_fold(
    state: &mut State,
    (s, r, mine, datatype, op): FoldArgs,
    blocks: Blocks,
    total: u64,
    comm: CommH,
) -> Plan {
    let tables = &state.above;
    let recv = Data::combined(tables, "recvbuf", r, mine as i64, datatype)?;
    let all = i64::try_from(total).unwrap_or(i64::MAX);
    let send = Data::combined(tables, "sendbuf", s, all, datatype)?;
    refuse_same(s, r, recv.bytes)?;
    let (element, combining, commutes) = mix(tables, datatype, op)?;
    let call = InterCallView {
        count: send.count,
        bytes: send.bytes,
        send: blocks,
        commutative: commutes,
        ..call_view(tables.comms.get(comm)?)
    };
    let buffers = (send.memory, recv.memory);
    let mut run = with_buffers(state, comm, inter::reduce_scatter, &call, buffers)?;
    run.combine(combining, element);
    Ok(run)
}
