//! Partitioned transfers (MPI 5.0, 4.2): a buffer whose pieces travel on their own, each when the
//! sender says that it is ready.
//!
//! ```text
//! S --Setup--> R                 once, when the send is made: user's tag, how the data is cut,
//!                                first of the tags that follow
//! S --row i--> R   for all i     at each start, in any order: ordinary messages, each with a tag
//!                                of its own
//! ```
//!
//! Operations match in the order in which they were made, for each communicator, rank and tag: the
//! setups of one sender arrive in that order, and the k-th with a tag belongs to the k-th receive
//! with that tag. Tags of setups and pieces are negative, so no other receive sees them. The sender
//! takes fresh ones for each operation, so that any number of operations may go on at once, started
//! in any order. Pieces with one tag keep their order, so a start is never taken for the next one.
//!
//! A piece is one of the sender's partitions, or several in a row if there are more than
//! [`MOST_PIECES`]. Pieces that are not worth a message of their own travel in rows (`rows`). The
//! receiver cuts its buffer in the same way, whatever its own partitions are, and a partition has
//! arrived with the last piece that overlaps it. A receive that was started before the setup came
//! begins when it comes, in whatever call progress is made.
//!
//! Everything here is called by the owner of the lock.

mod op;
mod rows;
mod setup;
pub(crate) mod view;

use crate::messages::{Messages, ReqId, SendMode, Started, Want};
use crate::part::Part;
use kw_base::{ContextId, Key, Peer, Slab};
use kw_boot::Job;
use kw_proto::endpoint::{Failure, Memory};
use kw_sys::buf::Buf;
use op::{Op, Side};
use rows::{Cargo, Row, row_that_pays};
use setup::{LAST_TAG, MOST_PIECES, MOST_TAGS, SETUP_LEN, SETUP_TAG, Setup};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Names a partitioned operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartId(Key);

/// Arrivals from one rank of a communicator: setups, and receives that wait for theirs.
#[derive(Debug, Default)]
struct Source {
    /// That rank's process.
    from: Option<Peer>,
    /// The receive of the next setup, and its buffer.
    next: Option<(ReqId, Buf)>,
    /// Receives without a setup.
    waiting: usize,
    /// By the user's tag: setups that came before their receive, or receives that wait for their
    /// setup.
    lines: HashMap<i32, Line>,
}

#[derive(Debug, Default)]
struct Line {
    setups: VecDeque<Setup>,
    receives: VecDeque<Key>,
}

/// Partitioned operations of one rank. Their `messages` are given with each call: always the same
/// ones.
#[derive(Debug, Default)]
pub struct Partitioned {
    ops: Slab<Op>,
    /// Operations with pieces in flight.
    going: Vec<Key>,
    sources: HashMap<(ContextId, u32), Source>,
    /// Sources with receives that wait for a setup.
    expecting: usize,
    /// Sends with rows of which some pieces are ready.
    begun: Vec<Key>,
    /// Tags that were given to pieces so far.
    tags: u32,
}

impl Partitioned {
    /// Whether something may have come for it.
    #[inline]
    fn has_work(&self) -> bool {
        !self.going.is_empty() || self.expecting != 0
    }

    /// Takes this many tags. They wrap around after two thousand million; the messages with earlier
    /// ones are long gone.
    fn take_tags(&mut self, count: u32) -> i32 {
        let room = LAST_TAG.abs_diff(SETUP_TAG + 1) - MOST_TAGS;
        if self.tags > room {
            self.tags = 0;
        }
        let first = SETUP_TAG + 1 + self.tags as i32;
        self.tags += count;
        first
    }
}

impl Partitioned {
    /// Makes a partitioned send of `buf`, in partitions of equal length, and tells the receiver.
    /// `polls`: how long the receiver is sure to poll when it waits.
    pub fn send(
        &mut self,
        messages: &mut Messages,
        polls: Duration,
        to: Peer,
        (context, source, tag): (ContextId, u32, i32),
        buf: &Buf,
        partitions: u32,
    ) -> PartId {
        let group = partitions.div_ceil(MOST_PIECES).max(1);
        let pieces = partitions.div_ceil(group);
        let bytes = buf.len() / partitions.max(1) as u64;
        let (row, pace) = row_that_pays(messages, polls, to, bytes * group as u64, pieces);
        let first = self.take_tags(2 * pieces);
        let setup = Setup {
            tag,
            first,
            partitions,
            group,
            bytes,
            row,
            types: match messages.machine.is_checking() {
                true => buf.signature(),
                false => 0,
            },
        };
        let word = Buf::alloc(SETUP_LEN);
        word.write(0, &setup.encode());
        if let Started::Request(id) =
            messages.send(to, (context, source, SETUP_TAG), SendMode::Standard, &word)
        {
            messages.requests_mut().release(id);
        }
        let side = Side::Send {
            to,
            context,
            source,
            waits: Vec::new(),
            rows: Vec::new(),
            pace,
        };
        PartId(self.ops.insert(Op::new(side, buf, Some(setup))))
    }

    /// Makes a partitioned receive; `want` names source and tag.
    pub fn recv(
        &mut self,
        messages: &mut Messages,
        want: Want,
        buf: &Buf,
        partitions: u32,
    ) -> PartId {
        let side = Side::Recv { want, partitions };
        let key = self.ops.insert(Op::new(side, buf, None));
        let (Some((rank, peer)), Some(tag)) = (want.source, want.tag) else {
            return PartId(key);
        };
        let source = self.sources.entry((want.context, rank)).or_default();
        source.from = Some(peer);
        let line = source.lines.entry(tag).or_default();
        match line.setups.pop_front() {
            Some(setup) => self.set_up(messages, key, setup),
            None => {
                line.receives.push_back(key);
                source.waiting += 1;
                self.expect_setup(messages, want);
            }
        }
        PartId(key)
    }

    /// Posts the receive of a source's next setup, unless it is posted; takes those that are there.
    fn expect_setup(&mut self, messages: &mut Messages, want: Want) {
        let Some((rank, _)) = want.source else { return };
        let at = (want.context, rank);
        let any = Want {
            tag: Some(SETUP_TAG),
            ..want
        };
        while self
            .sources
            .get(&at)
            .is_some_and(|s| s.next.is_none() && s.waiting != 0)
        {
            let word = Buf::alloc(SETUP_LEN);
            let req = messages.recv(any, word.clone());
            if let Some(source) = self.sources.get_mut(&at) {
                source.next = Some((req, word));
                self.expecting += 1;
            }
            if messages.requests().is_done(req) {
                self.take_setup(messages, at);
            }
        }
    }

    /// Matches a setup that has come to its receive.
    fn take_setup(&mut self, messages: &mut Messages, at: (ContextId, u32)) {
        let Some(source) = self.sources.get_mut(&at) else {
            return;
        };
        let Some((req, word)) = source.next.take() else {
            return;
        };
        self.expecting -= 1;
        let outcome = messages.requests_mut().take(req);
        let mut bytes = [0; SETUP_LEN];
        word.read(0, &mut bytes);
        let failure = outcome.and_then(|o| o.failure).map(|f| *f);
        let source = self.sources.entry(at).or_default();
        let setup = Setup::decode(&bytes);
        let (Some(setup), None) = (setup, &failure) else {
            let nonsense =
                || Failure::Other("protocol error: invalid setup of a partitioned send".into());
            source.waiting = 0;
            let failure = failure.unwrap_or_else(nonsense);
            let lines = source.lines.values_mut();
            let lost: Vec<Key> = lines.flat_map(|l| l.receives.drain(..)).collect();
            return lost
                .into_iter()
                .for_each(|key| self.fail(messages, key, failure.clone()));
        };
        let line = source.lines.entry(setup.tag).or_default();
        match line.receives.pop_front() {
            None => line.setups.push_back(setup),
            Some(key) => {
                source.waiting -= 1;
                self.set_up(messages, key, setup);
            }
        }
    }

    /// A receive learns how its data is cut.
    fn set_up(&mut self, messages: &mut Messages, key: Key, setup: Setup) {
        let Some(op) = self.ops.get_mut(key) else {
            return;
        };
        op.setup = Some(setup);
        op.compare_types(&setup);
        if op.active.is_some() {
            self.post_pieces(messages, key);
        } else if op.freed {
            self.ops.remove(key);
        }
    }

    /// The sender of a receive is gone before its setup came.
    fn fail(&mut self, messages: &mut Messages, key: Key, failure: Failure) {
        let Some(op) = self.ops.get_mut(key) else {
            return;
        };
        op.failure = Some(failure);
        if op.active.is_some() {
            self.end(messages, key);
        }
    }

    /// Starts an operation that is not active.
    pub fn start(&mut self, messages: &mut Messages, id: PartId) -> ReqId {
        let (req, now) = (messages.requests_mut().open(), messages.paths.clock());
        let Some(op) = self.ops.get_mut(id.0) else {
            return req;
        };
        (op.active, op.came) = (Some(req), 0);
        op.left = op.setup.map_or(0, |s| s.pieces());
        op.ended.clear();
        op.ended.resize(op.left as usize, false);
        match (&mut op.side, op.setup) {
            (
                Side::Send {
                    waits, rows, pace, ..
                },
                Some(setup),
            ) => {
                pace.restart(now);
                rows.clear();
                rows.resize(setup.rows() as usize, Row::default());
                let last = setup.partitions - (setup.pieces() - 1) * setup.group;
                waits.clear();
                waits.resize(setup.pieces() as usize - 1, setup.group);
                waits.push(last);
            }
            (Side::Recv { .. }, Some(_)) => self.post_pieces(messages, id.0),
            (Side::Recv { .. }, None) if op.failure.is_some() => self.end(messages, id.0),
            _ => {}
        }
        req
    }

    /// Posts the receives of all rows.
    fn post_pieces(&mut self, messages: &mut Messages, key: Key) {
        let Some(op) = self.ops.get_mut(key) else {
            return;
        };
        let (&Side::Recv { want, .. }, Some(setup)) = (&op.side, op.setup) else {
            return;
        };
        op.left = setup.pieces();
        op.ended.clear();
        op.ended.resize(op.left as usize, false);
        for row in 0..setup.rows() {
            self.post_cargo(messages, key, want, &setup, Cargo::Row(row));
        }
        self.going.push(key);
        self.advance_op(messages, key);
    }

    fn post_cargo(
        &mut self,
        messages: &mut Messages,
        key: Key,
        want: Want,
        setup: &Setup,
        cargo: Cargo,
    ) {
        let Some(op) = self.ops.get(key) else {
            return;
        };
        let (into, tag) = (op.slice(setup, cargo), Some(cargo.tag(setup)));
        let req = messages.recv(Want { tag, ..want }, into);
        if let Some(op) = self.ops.get_mut(key) {
            op.flights.push((req, cargo));
        }
    }

    /// Partitions `low..=high` of an active send are ready, none of which was before: sends the
    /// pieces that are complete.
    pub fn make_ready(&mut self, messages: &mut Messages, id: PartId, low: u32, high: u32) {
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        let (Side::Send { waits, .. }, Some(setup)) = (&mut op.side, op.setup) else {
            return;
        };
        let mut complete = Vec::new();
        for piece in low / setup.group..=high / setup.group {
            let begin = low.max(piece * setup.group);
            let end = high.min(piece * setup.group + setup.group - 1);
            let waits = &mut waits[piece as usize];
            *waits -= end - begin + 1;
            if *waits == 0 {
                complete.push(piece);
            }
        }
        let (count, last) = (complete.len() as u32, complete.last().copied());
        complete
            .into_iter()
            .for_each(|piece| self.piece_is_ready(messages, id.0, piece));
        if let Some(last) = last {
            self.look_at_pace(messages, id.0, last, count);
        }
    }

    fn send_cargo(&mut self, messages: &mut Messages, key: Key, cargo: Cargo) {
        let Some(op) = self.ops.get(key) else {
            return;
        };
        let (
            &Side::Send {
                to,
                context,
                source,
                ..
            },
            Some(setup),
        ) = (&op.side, op.setup)
        else {
            return;
        };
        let (buf, tag) = (op.slice(&setup, cargo), cargo.tag(&setup));
        let last = op.left as usize == cargo.pieces(&setup).len() + op.in_flight(&setup);
        // Before the last piece of the operation, the sender goes on computing.
        let may_fetch = !last && messages.machine.endpoint.peers.choice(to).can_get();
        let mode = match may_fetch && messages.paths.costs().spares_copy(to, buf.len()) {
            true => SendMode::Fetched,
            false => SendMode::Standard,
        };
        let started = messages.send(to, (context, source, tag), mode, &buf);
        let Some(op) = self.ops.get_mut(key) else {
            return;
        };
        match started {
            Started::Done => {
                op.end_cargo(&setup, cargo);
                if op.left == 0 {
                    self.end(messages, key);
                }
            }
            Started::Request(req) => {
                op.flights.push((req, cargo));
                if op.flights.len() == 1 {
                    self.going.push(key);
                }
            }
        }
    }

    /// Whether a partition of an active receive has arrived.
    pub fn has_arrived(&self, id: PartId, partition: u32) -> bool {
        let Some(op) = self.ops.get(id.0) else {
            return false;
        };
        let (&Side::Recv { partitions, .. }, Some(setup)) = (&op.side, op.setup) else {
            return false;
        };
        let (first, last) = setup.pieces_for(op.buf.len(), partition, partitions);
        let pieces = op.ended.get(first as usize..=last as usize);
        pieces.is_some_and(|p| p.iter().all(|&ended| ended))
    }

    /// Something has come: continues everything that waited for it. Not while an operation is
    /// started.
    fn advance_all(&mut self, messages: &mut Messages) {
        if self.expecting != 0 {
            self.look_at_sources(messages);
        }
        let mut i = self.going.len();
        while i > 0 {
            i -= 1;
            let key = self.going[i];
            self.advance_op(messages, key);
        }
    }

    fn look_at_sources(&mut self, messages: &mut Messages) {
        let done = |s: &Source| {
            s.next
                .as_ref()
                .is_some_and(|(req, _)| messages.requests().is_done(*req))
        };
        let sources = self.sources.iter();
        let come: Vec<_> = sources
            .filter(|(_, s)| done(s))
            .map(|(at, _)| *at)
            .collect();
        for at in come {
            let peer = self.source_of(at);
            self.take_setup(messages, at);
            if let Some(want) = peer {
                self.expect_setup(messages, want);
            }
        }
    }

    /// The envelope of a source's setups, from a receive that waits for one.
    fn source_of(&self, at: (ContextId, u32)) -> Option<Want> {
        let lines = self.sources.get(&at)?.lines.values();
        let mut waiting = lines.flat_map(|l| l.receives.iter());
        let op = waiting.find_map(|&key| self.ops.get(key))?;
        match op.side {
            Side::Recv { want, .. } => Some(want),
            Side::Send { .. } => None,
        }
    }

    /// Takes the results of transfers that have ended.
    fn advance_op(&mut self, messages: &mut Messages, key: Key) {
        let Some(op) = self.ops.get_mut(key) else {
            return;
        };
        let Some(setup) = op.setup else { return };
        let mut over = Vec::new();
        op.flights
            .retain(|&(req, cargo)| match messages.requests_mut().take(req) {
                None => true,
                Some(outcome) => {
                    over.push((cargo, outcome));
                    false
                }
            });
        let want = match op.side {
            Side::Recv { want, .. } => Some(want),
            Side::Send { .. } => None,
        };
        let mut apart = Vec::new();
        for (cargo, outcome) in over {
            if want.is_some() && outcome.failure.is_none() && cargo.is_apart(&setup, outcome.len) {
                apart.push(cargo);
                continue;
            }
            op.came += outcome.len;
            op.failure = op.failure.take().or(outcome.failure.map(|f| *f));
            op.end_cargo(&setup, cargo);
        }
        let (Some(want), false) = (want, apart.is_empty()) else {
            return self.close_if_over(messages, key);
        };
        for piece in apart.iter().flat_map(|row| row.pieces(&setup)) {
            self.post_cargo(messages, key, want, &setup, Cargo::Piece(piece));
        }
        // Pieces may have come before.
        self.advance_op(messages, key);
    }

    /// Nothing is in flight, or everything has ended.
    fn close_if_over(&mut self, messages: &mut Messages, key: Key) {
        let Some(op) = self.ops.get(key) else {
            return;
        };
        let (idle, over) = (op.flights.is_empty(), op.left == 0);
        if idle {
            self.going.retain(|&k| k != key);
        }
        if over {
            self.end(messages, key);
        }
    }

    /// A start has ended.
    fn end(&mut self, messages: &mut Messages, key: Key) {
        let Some(op) = self.ops.get_mut(key) else {
            return;
        };
        let (Some(req), freed) = (op.active.take(), op.freed) else {
            return;
        };
        let outcome = op.outcome();
        messages.requests_mut().close(req, outcome);
        if freed {
            self.ops.remove(key);
        }
    }

    /// Forgets an operation. An active one continues to its end; a receive takes its setup.
    pub fn forget(&mut self, id: PartId) {
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        op.freed = true;
        if op.active.is_none() && op.setup.is_some() {
            self.ops.remove(id.0);
        }
    }
}

impl Part for Partitioned {
    fn new(_: &Job) -> Partitioned {
        Partitioned::default()
    }

    #[inline(always)]
    fn is_busy(&self) -> bool {
        self.has_work()
    }

    fn advance(&mut self, messages: &mut Messages) {
        self.advance_all(messages);
    }

    #[inline(always)]
    fn asked_in_vain(&mut self, messages: &mut Messages) {
        self.take_rows_apart(messages);
    }
}
