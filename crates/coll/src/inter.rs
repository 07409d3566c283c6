//! Collectives between the two groups of an intercommunicator (MPI 5.0, 6.2.2 and 6.2.3): the data
//! of one group goes to the other.
//!
//! The ranks of both groups are numbered together: first those of the group whose rank 0 is the
//! lower process of the job, then the others. Blocks go straight to their receivers. A reduction is
//! folded to rank 0 of its group (its *leader*), and data that all of a group get is spread from
//! there; both are done by algorithms of the table, laid out for some of the ranks ([`SubComm`]).
//! Neither MPI_IN_PLACE nor shm regions exist here.

use super::algorithms::Algorithm;
use super::call_view::{Blocks, CallView};
use super::sub_comm::SubComm;
use super::{Coll, RECV, SEND, Schedule, Slice};

#[cfg(test)]
mod tests;

/// Role of this rank according to the root argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// MPI_ROOT: this rank is the root.
    Root,
    /// MPI_PROC_NULL: the root is another rank of this group.
    Idle,
    /// The root is that rank of the other group.
    With(u32),
}

/// One rank's view of a collective call on an intercommunicator.
#[derive(Clone, Copy, Debug)]
pub struct InterCallView<'a> {
    /// This rank among those of both groups.
    pub rank: u32,
    /// Ranks in the first and in the second group.
    pub sizes: [u32; 2],
    /// Its role in a call that has a root.
    pub role: Role,
    /// See [`CallView`].
    pub count: u64,
    /// Packed bytes of `count`, by which the table chooses.
    pub bytes: u64,
    /// Blocks for the ranks of the other group; block 0 if all get the same. Reduce-scatter: the
    /// results of this group.
    pub send: Blocks<'a>,
    /// Blocks from the ranks of the other group.
    pub recv: Blocks<'a>,
    /// See [`CallView`].
    pub commutative: bool,
}

/// Chooses an algorithm and its parameter, as [`Table::choose`](super::Table::choose) does.
pub type Choose<'a> = &'a dyn Fn(Coll, u64, &CallView) -> (&'static Algorithm, u32);

/// Lays out one rank's part of a collective between groups.
pub type Emit = fn(&InterCallView, Choose, &mut Schedule);

impl InterCallView<'_> {
    fn side(&self) -> usize {
        (self.rank >= self.sizes[0]) as usize
    }

    fn base(&self, side: usize) -> u32 {
        if side == 0 { 0 } else { self.sizes[0] }
    }

    /// Rank `i` of the other group.
    fn other(&self, i: u32) -> u32 {
        self.base(1 - self.side()) + i
    }

    fn others(&self) -> u32 {
        self.sizes[1 - self.side()]
    }

    fn leads(&self) -> bool {
        self.rank == self.base(self.side())
    }

    /// This rank's group.
    fn mine(&self) -> Part {
        let side = self.side();
        Part {
            head: None,
            base: self.base(side),
            size: self.sizes[side],
        }
    }

    fn output(&self) -> Slice {
        Slice::whole(RECV, self.count)
    }
}

/// Some of the ranks: an optional root, and one group.
#[derive(Clone, Copy, Debug)]
struct Part {
    head: Option<u32>,
    base: u32,
    size: u32,
}

impl Part {
    fn len(&self) -> u32 {
        self.size + self.head.is_some() as u32
    }

    fn rank(&self, i: u32) -> u32 {
        match self.head {
            Some(head) if i == 0 => head,
            Some(_) => self.base + i - 1,
            None => self.base + i,
        }
    }

    /// Lays out a collective of these ranks from or to the first of them, with `recv` for its
    /// receive buffer.
    fn run(&self, coll: Coll, recv: u32, call: &InterCallView, choose: Choose, s: &mut Schedule) {
        let me = (0..self.len()).find(|&i| self.rank(i) == call.rank);
        let part = CallView {
            count: call.count,
            commutative: call.commutative,
            ..CallView::new(me.unwrap_or(0), self.len())
        };
        let (algorithm, param) = choose(coll, call.bytes, &part);
        let ranks: Vec<u32> = (0..self.len()).map(|i| self.rank(i)).collect();
        let sub = SubComm::new(&ranks).on(Slice::whole(SEND, 0), Slice::whole(recv, 0));
        s.fence();
        sub.emit(s, |s| (algorithm.emit)(&CallView { param, ..part }, s));
    }
}

/// MPI_Barrier: of all ranks of both groups.
pub fn barrier(call: &InterCallView, choose: Choose, s: &mut Schedule) {
    let all = Part {
        head: None,
        base: 0,
        size: call.sizes[0] + call.sizes[1],
    };
    all.run(Coll::Barrier, RECV, call, choose, s);
}

/// MPI_Bcast: of the root and the other group.
pub fn bcast(call: &InterCallView, choose: Choose, s: &mut Schedule) {
    let part = match call.role {
        Role::Idle => return,
        Role::Root => Part {
            head: Some(call.rank),
            base: call.other(0),
            size: call.others(),
        },
        Role::With(root) => Part {
            head: Some(call.other(root)),
            ..call.mine()
        },
    };
    part.run(Coll::Bcast, RECV, call, choose, s);
}

/// MPI_Gather and MPI_Gatherv.
pub fn gather(call: &InterCallView, _: Choose, s: &mut Schedule) {
    match call.role {
        Role::Idle => {}
        Role::Root => receive_blocks(call, 0, s),
        Role::With(root) => send_block(call, root, call.send.block(0), s),
    }
}

/// MPI_Scatter and MPI_Scatterv.
pub fn scatter(call: &InterCallView, _: Choose, s: &mut Schedule) {
    match call.role {
        Role::Idle => {}
        Role::Root => (0..call.others()).for_each(|i| send_block(call, i, call.send.block(i), s)),
        Role::With(root) => {
            let into = call.recv.block(0);
            if !into.is_empty() {
                s.recv(call.other(root), into);
            }
        }
    }
}

/// MPI_Allgather and MPI_Allgatherv.
pub fn allgather(call: &InterCallView, _: Choose, s: &mut Schedule) {
    let (first, n) = (call.rank - call.mine().base, call.others());
    receive_blocks(call, first, s);
    (0..n).for_each(|i| send_block(call, (first + i) % n, call.send.block(0), s));
}

/// MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw.
pub fn alltoall(call: &InterCallView, _: Choose, s: &mut Schedule) {
    let (first, n) = (call.rank - call.mine().base, call.others());
    receive_blocks(call, first, s);
    (0..n)
        .map(|i| (first + i) % n)
        .for_each(|i| send_block(call, i, call.send.block(i), s));
}

/// Begins with the `first`th, so that not all ranks begin with the same one.
fn receive_blocks(call: &InterCallView, first: u32, s: &mut Schedule) {
    let n = call.others();
    for i in (0..n).map(|i| (first + i) % n) {
        let into = call.recv.block(i);
        if !into.is_empty() {
            s.recv(call.other(i), into);
        }
    }
}

fn send_block(call: &InterCallView, to: u32, block: Slice, s: &mut Schedule) {
    if !block.is_empty() {
        s.send(call.other(to), block);
    }
}

/// MPI_Reduce
pub fn reduce(call: &InterCallView, choose: Choose, s: &mut Schedule) {
    match call.role {
        _ if call.count == 0 => {}
        Role::Idle => {}
        Role::Root => {
            s.recv(call.other(0), call.output());
        }
        Role::With(root) => {
            let folded = fold(call, choose, s);
            if call.leads() {
                s.send(call.other(root), folded);
            }
        }
    }
}

/// MPI_Allreduce
pub fn allreduce(call: &InterCallView, choose: Choose, s: &mut Schedule) {
    if call.count == 0 {
        return;
    }
    let folded = fold(call, choose, s);
    swap(call, folded, call.output(), s);
    call.mine().run(Coll::Bcast, RECV, call, choose, s);
}

/// MPI_Reduce_scatter and MPI_Reduce_scatter_block: `call.send` are the blocks of this group's
/// results.
pub fn reduce_scatter(call: &InterCallView, choose: Choose, s: &mut Schedule) {
    if call.count == 0 {
        return;
    }
    let folded = fold(call, choose, s);
    let mine = call.mine();
    if !call.leads() {
        let len = call.send.block(call.rank - mine.base).len;
        if len > 0 {
            s.recv(mine.base, Slice::whole(RECV, len));
        }
        return;
    }
    let got = s.elements(call.count);
    swap(call, folded, got, s);
    s.fence();
    for i in 0..mine.size {
        let block = call.send.block(i);
        let part = got.part(block.at as u64, block.len);
        match i {
            0 => s.copy(part, Slice::whole(RECV, block.len)),
            _ if block.len > 0 => {
                s.send(mine.base + i, part);
            }
            _ => {}
        }
    }
}

/// Combines the contributions of this rank's group at its leader; returns the location of the
/// result there.
fn fold(call: &InterCallView, choose: Choose, s: &mut Schedule) -> Slice {
    let mine = call.mine();
    if mine.size == 1 || !call.leads() {
        if mine.size > 1 {
            mine.run(Coll::Reduce, RECV, call, choose, s);
        }
        return Slice::whole(SEND, call.count);
    }
    let home = s.elements(call.count);
    mine.run(Coll::Reduce, home.buf, call, choose, s);
    home
}

/// The leaders exchange the folded data of their groups.
fn swap(call: &InterCallView, folded: Slice, into: Slice, s: &mut Schedule) {
    if call.leads() {
        s.recv(call.other(0), into);
        s.send(call.other(0), folded);
    }
}
