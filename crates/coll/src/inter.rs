//! Collectives between the two groups of an intercommunicator (MPI 5.0, 6.2.2 and 6.2.3): the data
//! of one group goes to the other.
//!
//! The ranks of both groups are numbered together: first those of the group whose rank 0 is the
//! lower process of the job, then the others. Blocks go straight to their receivers. A reduction is
//! folded to rank 0 of its group (its *leader*), and data that all of a group get is spread from
//! there; both are done by algorithms of the table, laid out for some of the ranks ([`SubComm`]).
//! Neither MPI_IN_PLACE nor shm regions exist here.

use super::algorithms::Algorithm;
use super::ask::{Ask, Blocks};
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
pub struct InterAsk<'a> {
    /// This rank among those of both groups.
    pub rank: u32,
    /// Ranks in the first and in the second group.
    pub sizes: [u32; 2],
    /// Its role in a call that has a root.
    pub role: Role,
    /// See [`Ask`].
    pub count: u64,
    /// Packed bytes of `count`, by which the table chooses.
    pub bytes: u64,
    /// Blocks for the ranks of the other group; block 0 if all get the same. Reduce-scatter: the
    /// results of this group.
    pub send: Blocks<'a>,
    /// Blocks from the ranks of the other group.
    pub recv: Blocks<'a>,
    /// See [`Ask`].
    pub commutative: bool,
}

/// Chooses an algorithm and its parameter, as [`Table::choose`](super::Table::choose) does.
pub type Choose<'a> = &'a dyn Fn(Coll, u64, &Ask) -> (&'static Algorithm, u32);

/// Lays out one rank's part of a collective between groups.
pub type Emit = fn(&InterAsk, Choose, &mut Schedule);

impl InterAsk<'_> {
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
    fn run(&self, coll: Coll, recv: u32, ask: &InterAsk, choose: Choose, s: &mut Schedule) {
        let me = (0..self.len()).find(|&i| self.rank(i) == ask.rank);
        let part = Ask {
            count: ask.count,
            commutative: ask.commutative,
            ..Ask::new(me.unwrap_or(0), self.len())
        };
        let (algorithm, param) = choose(coll, ask.bytes, &part);
        let ranks: Vec<u32> = (0..self.len()).map(|i| self.rank(i)).collect();
        let sub = SubComm::new(&ranks).on(Slice::whole(SEND, 0), Slice::whole(recv, 0));
        s.fence();
        sub.emit(s, |s| (algorithm.emit)(&Ask { param, ..part }, s));
    }
}

/// MPI_Barrier: of all ranks of both groups.
pub fn barrier(ask: &InterAsk, choose: Choose, s: &mut Schedule) {
    let all = Part {
        head: None,
        base: 0,
        size: ask.sizes[0] + ask.sizes[1],
    };
    all.run(Coll::Barrier, RECV, ask, choose, s);
}

/// MPI_Bcast: of the root and the other group.
pub fn bcast(ask: &InterAsk, choose: Choose, s: &mut Schedule) {
    let part = match ask.role {
        Role::Idle => return,
        Role::Root => Part {
            head: Some(ask.rank),
            base: ask.other(0),
            size: ask.others(),
        },
        Role::With(root) => Part {
            head: Some(ask.other(root)),
            ..ask.mine()
        },
    };
    part.run(Coll::Bcast, RECV, ask, choose, s);
}

/// MPI_Gather and MPI_Gatherv.
pub fn gather(ask: &InterAsk, _: Choose, s: &mut Schedule) {
    match ask.role {
        Role::Idle => {}
        Role::Root => receive_blocks(ask, 0, s),
        Role::With(root) => send_block(ask, root, ask.send.block(0), s),
    }
}

/// MPI_Scatter and MPI_Scatterv.
pub fn scatter(ask: &InterAsk, _: Choose, s: &mut Schedule) {
    match ask.role {
        Role::Idle => {}
        Role::Root => (0..ask.others()).for_each(|i| send_block(ask, i, ask.send.block(i), s)),
        Role::With(root) => {
            let into = ask.recv.block(0);
            if !into.is_empty() {
                s.recv(ask.other(root), into);
            }
        }
    }
}

/// MPI_Allgather and MPI_Allgatherv.
pub fn allgather(ask: &InterAsk, _: Choose, s: &mut Schedule) {
    let (first, n) = (ask.rank - ask.mine().base, ask.others());
    receive_blocks(ask, first, s);
    (0..n).for_each(|i| send_block(ask, (first + i) % n, ask.send.block(0), s));
}

/// MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw.
pub fn alltoall(ask: &InterAsk, _: Choose, s: &mut Schedule) {
    let (first, n) = (ask.rank - ask.mine().base, ask.others());
    receive_blocks(ask, first, s);
    (0..n)
        .map(|i| (first + i) % n)
        .for_each(|i| send_block(ask, i, ask.send.block(i), s));
}

/// Begins with the `first`th, so that not all ranks begin with the same one.
fn receive_blocks(ask: &InterAsk, first: u32, s: &mut Schedule) {
    let n = ask.others();
    for i in (0..n).map(|i| (first + i) % n) {
        let into = ask.recv.block(i);
        if !into.is_empty() {
            s.recv(ask.other(i), into);
        }
    }
}

fn send_block(ask: &InterAsk, to: u32, block: Slice, s: &mut Schedule) {
    if !block.is_empty() {
        s.send(ask.other(to), block);
    }
}

/// MPI_Reduce
pub fn reduce(ask: &InterAsk, choose: Choose, s: &mut Schedule) {
    match ask.role {
        _ if ask.count == 0 => {}
        Role::Idle => {}
        Role::Root => {
            s.recv(ask.other(0), ask.output());
        }
        Role::With(root) => {
            let folded = fold(ask, choose, s);
            if ask.leads() {
                s.send(ask.other(root), folded);
            }
        }
    }
}

/// MPI_Allreduce
pub fn allreduce(ask: &InterAsk, choose: Choose, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    let folded = fold(ask, choose, s);
    swap(ask, folded, ask.output(), s);
    ask.mine().run(Coll::Bcast, RECV, ask, choose, s);
}

/// MPI_Reduce_scatter and MPI_Reduce_scatter_block: `ask.send` are the blocks of this group's
/// results.
pub fn reduce_scatter(ask: &InterAsk, choose: Choose, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    let folded = fold(ask, choose, s);
    let mine = ask.mine();
    if !ask.leads() {
        let len = ask.send.block(ask.rank - mine.base).len;
        if len > 0 {
            s.recv(mine.base, Slice::whole(RECV, len));
        }
        return;
    }
    let got = s.elements(ask.count);
    swap(ask, folded, got, s);
    s.fence();
    for i in 0..mine.size {
        let block = ask.send.block(i);
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
fn fold(ask: &InterAsk, choose: Choose, s: &mut Schedule) -> Slice {
    let mine = ask.mine();
    if mine.size == 1 || !ask.leads() {
        if mine.size > 1 {
            mine.run(Coll::Reduce, RECV, ask, choose, s);
        }
        return Slice::whole(SEND, ask.count);
    }
    let home = s.elements(ask.count);
    mine.run(Coll::Reduce, home.buf, ask, choose, s);
    home
}

/// The leaders exchange the folded data of their groups.
fn swap(ask: &InterAsk, folded: Slice, into: Slice, s: &mut Schedule) {
    if ask.leads() {
        s.recv(ask.other(0), into);
        s.send(ask.other(0), folded);
    }
}
