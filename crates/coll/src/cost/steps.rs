//! Costs of messages by location, as the simulator runs them.

use super::{Distance, Distances, Memory, Prices};
use crate::{Apart, CallView, Levels, Nodes, Shape};

/// Bytes of a long message of `b` bytes after which its receiver can begin.
pub fn first_piece(b: f64) -> f64 {
    b.min(kw_base::pool::piece_of(b as u64) as f64)
}

/// Location of the steps of an algorithm, and their costs there. Times are nanoseconds, `b` bytes.
#[derive(Clone, Copy, Debug)]
pub struct StepCosts<'a> {
    /// The prices.
    pub p: &'a Prices,
    /// Costs of steps in memory.
    pub memory: Memory<'a>,
    /// Messages go over the network.
    pub net: bool,
    /// Ranks of a host that use its link at the same time.
    pub sharing: f64,
    /// This many consecutive ranks are on each node, and messages between them do not use the
    /// network; 1: all do.
    pub node: u32,
    /// The receiver fetches, if messages do not go over the network.
    pub fetched: bool,
    distances: &'a Distances,
    shape: Option<Shape>,
}

impl<'a> StepCosts<'a> {
    /// Costs of the steps of a call; `net`: its messages go over the network.
    pub fn new(distances: &'a Distances, net: bool, call: &CallView) -> StepCosts<'a> {
        let shape = call.levels.map(Levels::shape);
        let at = StepCosts {
            p: &distances.any.p,
            memory: Memory::new(&distances.any),
            net,
            sharing: call.sharing as f64,
            node: 1,
            fetched: false,
            distances,
            shape,
        };
        // Messages between ranks of a package that follow one another are near.
        match shape.filter(|s| s.packages && s.in_order && !net) {
            Some(shape) => StepCosts {
                node: shape.most,
                ..at
            },
            None => at,
        }
    }

    /// The prices of the call by distance.
    pub fn distances(&self) -> &'a Distances {
        self.distances
    }

    /// How many ranks meet at each level of a host with several domains, the outermost first, and
    /// the prices there; empty with one domain.
    pub fn levels(&self) -> impl Iterator<Item = (u32, StepCosts<'a>)> {
        let (at, distances) = (*self, self.distances);
        let shape = self.shape.unwrap_or_default();
        shape.widths().map(move |(width, apart)| match apart {
            Apart::Packages => (width, at.at(&distances.far)),
            Apart::InPackage => (width, at.at(&distances.between_caches)),
            Apart::InCache => (width, at.at(&distances.in_cache)),
        })
    }

    /// Time from rank 0's signal until all have seen it, level by level from the outermost: `level`
    /// ranks meet, `readers` of them read their head's line and `b` bytes.
    pub fn release(
        &self,
        b: f64,
        readers: impl Fn(u32) -> f64,
        level: impl Fn(u32, &StepCosts) -> f64,
    ) -> f64 {
        let nearest = self.levels().last().map_or(*self, |(_, at)| at).memory;
        let mut inside: f64 = self.levels().map(|(k, _)| readers(k)).sum();
        let others = self.shape.unwrap_or_default().others();
        // Through the largest group that rank 0 is not in, and within its own.
        let [mut beyond, mut own] = [0.0; 2];
        for (i, ((k, at), other)) in self.levels().zip(others).enumerate() {
            inside -= readers(k);
            // Ranks of the levels inside look at the line first.
            let first = nearest.look() + nearest.convoy(inside + 1.0, b);
            let late = match inside > 0.0 {
                true => (first - at.memory.look()).max(0.0),
                false => 0.0,
            };
            match (i, other > 1) {
                (0, _) => beyond += late + level(k, &at),
                (_, true) => beyond += late + level(other, &at),
                (_, false) => {}
            }
            if i > 0 {
                own += late + level(k, &at);
            }
        }
        own.max(beyond)
    }

    /// The place among `n` consecutive ranks of a host.
    pub fn within(self, n: u32) -> StepCosts<'a> {
        let in_order = self.shape.is_some_and(|s| s.in_order) && !self.net;
        let mut span: u32 = self.levels().map(|(k, _)| k).product();
        let meets = |&(k, _): &(u32, StepCosts)| {
            span /= k;
            n > span
        };
        match in_order {
            true => self.levels().find(meets).map_or(self, |(_, at)| at),
            false => self,
        }
    }

    fn at(self, distance: &'a Distance) -> StepCosts<'a> {
        StepCosts {
            p: &distance.p,
            memory: Memory::new(distance),
            ..self
        }
    }

    /// The time with messages that are read by the receiver.
    pub fn fetching(self) -> StepCosts<'a> {
        StepCosts {
            fetched: true,
            ..self
        }
    }

    /// The place of ranks on several nodes; `near`: ranks of a node reach each other without the
    /// network.
    pub fn on_nodes(self, nodes: &Nodes, near: bool) -> StepCosts<'a> {
        let node = nodes.most();
        StepCosts {
            node: if near && nodes.are_in_order() {
                node
            } else {
                1
            },
            sharing: self.sharing * f64::from(node),
            ..self
        }
    }

    /// The place between ranks of one node, or of one package.
    pub fn near(self) -> StepCosts<'a> {
        let at = match self.is_host() {
            true => self.at(&self.distances.near),
            false => self,
        };
        StepCosts {
            net: self.net && self.node < 2,
            node: 1,
            ..at
        }
    }

    /// Whether a rank at this distance is on another package.
    pub fn is_far(&self, by: u32) -> bool {
        self.is_host() && by >= self.node
    }

    /// How many of `n` ranks of a host are on one of its packages.
    pub fn of_package(&self, n: u32) -> u32 {
        self.shape.map_or(n, |s| s.most.min(n))
    }

    /// Whether it has several packages, and the near ranks are those of one package.
    fn is_host(&self) -> bool {
        !self.net && self.node > 1
    }

    /// The place between nodes (or packages), if `ranks` of each send at the same time, or all of a
    /// smaller one.
    pub fn far(self, ranks: u32) -> StepCosts<'a> {
        if self.is_host() {
            let far = self.at(&self.distances.far);
            return StepCosts { node: 1, ..far };
        }
        let most = f64::from(self.node);
        let sharing = self.sharing / most * f64::from(ranks).min(most);
        StepCosts {
            sharing,
            node: 1,
            ..self
        }
    }

    /// The place between ranks whose numbers differ only in the bit that is worth `by`: all at
    /// once.
    pub fn across(self, by: u32) -> StepCosts<'a> {
        match by < self.node {
            true => self.near(),
            false => self.far(self.node),
        }
    }

    /// The time in a tree in which only the first rank of each node talks to other nodes.
    pub fn down(self, by: u32) -> StepCosts<'a> {
        match by < self.node {
            true => self.near(),
            false => self.far(1),
        }
    }

    /// Cost of `k` other ranks that a rank deals with, split into those of its node and those of
    /// others.
    fn others(&self, k: f64, of: impl Fn(&StepCosts) -> f64) -> f64 {
        let near = f64::from(self.node - 1).min(k);
        near * of(&self.near()) + (k - near) * of(&self.far(1))
    }

    /// Cost of one round in which every rank sends to the next one, by the mean of the hops of a
    /// ring of `n` ranks; `busy`: load of the busiest rank or link in a round.
    pub fn round(
        &self,
        n: u32,
        hop: impl Fn(&StepCosts) -> f64,
        busy: impl Fn(&StepCosts) -> f64,
    ) -> f64 {
        let far = self.far(1);
        if self.node < 2 {
            return hop(&far);
        }
        let between = f64::from(n.div_ceil(self.node)) / f64::from(n);
        let mean = between * hop(&far) + (1.0 - between) * hop(&self.near());
        mean.max(busy(&far)).max(busy(&self.near()))
    }

    /// Time from one end of a chain of `n` ranks to the other.
    pub fn chain(&self, n: u32, hop: impl Fn(&StepCosts) -> f64) -> f64 {
        let far = f64::from(n.div_ceil(self.node) - 1);
        far * hop(&self.far(1)) + (f64::from(n) - 1.0 - far) * hop(&self.near())
    }

    /// Whether a message is announced first (RTS).
    pub fn is_long(&self, b: f64) -> bool {
        match self.net {
            true => b > self.p.net_eager,
            false => b > self.p.eager,
        }
    }

    fn link(&self, b: f64) -> f64 {
        b * self.p.link * self.sharing
    }

    /// How long a host's link is busy with one message of each rank that shares it.
    pub fn on_link(&self, b: f64) -> f64 {
        match self.net {
            true => self.link(b),
            false => 0.0,
        }
    }

    /// Time from one core to another.
    fn way(&self) -> f64 {
        self.p.line + self.p.way
    }

    /// A receiver's work for a message through shared memory, in addition to its bytes: the data
    /// that its sender has written comes line by line, and it waits for the first of them.
    fn receives(&self) -> f64 {
        self.p.line + self.p.recv
    }

    /// Time from the announcement of a long message until its sender may begin.
    fn answer(&self) -> f64 {
        let p = self.p;
        match self.net {
            true => p.net_send + 2.0 * p.latency + p.net_send + p.net_recv,
            false => p.send + 2.0 * self.way() + self.receives(),
        }
    }

    /// How long a sender is busy with one message before it is at the next one.
    pub fn gap(&self, b: f64) -> f64 {
        super::count();
        let p = self.p;
        p.step
            + match (self.net, self.fetched, self.is_long(b)) {
                (true, _, false) => (p.net_send + b * p.net_byte).max(self.link(b)),
                (true, _, true) => p.net_send + (b * p.net_byte).max(self.link(b)),
                (false, true, _) => p.send,
                (false, false, true) => p.send + b * p.long_byte,
                (false, false, false) => p.send + b * p.send_byte,
            }
    }

    /// How long a receiver is busy with one message when several have come.
    pub fn take(&self, b: f64) -> f64 {
        super::count();
        let p = self.p;
        match (self.net, self.fetched, self.is_long(b)) {
            (true, ..) => (p.net_recv + b * p.net_byte).max(self.link(b)),
            (false, true, _) => self.receives() + p.fetch + b * p.fetch_byte,
            (false, false, true) => self.receives() + b * p.long_byte,
            (false, false, false) => self.receives() + b * p.recv_byte,
        }
    }

    /// Time from the beginning of a send until its receiver, which waits, continues.
    pub fn one_way(&self, b: f64) -> f64 {
        super::count();
        let p = self.p;
        let steps = 2.0 * p.step;
        let data = (b * p.net_byte).max(self.link(b)) + p.latency + p.net_recv;
        steps
            + match (self.net, self.fetched, self.is_long(b)) {
                (true, _, false) => p.net_send + data,
                (true, _, true) => self.answer() + data,
                (false, true, _) => p.send + self.way() + self.take(b),
                (false, false, true) => {
                    let first = first_piece(b) * p.long_byte + p.line;
                    self.answer() + first + self.take(b)
                }
                (false, false, false) => p.send + b * p.send_byte + self.way() + self.take(b),
            }
    }

    /// Time from when all ranks send a message and receive one, each with another rank, until all
    /// continue.
    pub fn exchange(&self, b: f64) -> f64 {
        self.exchange_of(b, b)
    }

    /// The cost if a rank sends `out` bytes and receives as many as others send.
    pub fn exchange_of(&self, out: f64, b: f64) -> f64 {
        super::count();
        let p = self.p;
        let both = (out + b) * p.net_byte;
        let data = ((b * p.net_byte).max(self.link(b)) + p.latency).max(both) + p.net_recv;
        3.0 * p.step
            + match (self.net, self.fetched, self.is_long(b)) {
                (true, _, false) => p.net_send + data,
                (true, _, true) => self.answer() + data,
                (false, true, _) => p.send + self.way() + self.take(b) + self.way(),
                (false, false, true) => self.answer() + out * p.long_byte + self.take(b),
                (false, false, false) => p.send + out * p.send_byte + self.way() + self.take(b),
            }
    }

    /// How long a rank is busy that takes `in_` bytes and sends `out` bytes, while links are.
    pub fn relay(&self, out: f64, in_: f64) -> f64 {
        super::count();
        let p = self.p;
        let steps = 2.0 * p.step;
        match self.net {
            true => {
                let busy = p.net_send + p.net_recv + (out + in_) * p.net_byte;
                steps + busy.max(self.link(out.max(in_)))
            }
            false => self.gap(out) + p.step + self.take(in_),
        }
    }

    /// Pieces that count in a chain of `n` ranks: between two a network makes pieces by itself, and
    /// more of them gain nothing.
    pub fn pieces(&self, n: u32, pieces: u64) -> f64 {
        match n {
            0..=2 if self.net => 1.0,
            _ => pieces.max(1) as f64,
        }
    }

    /// Time when the last of `pieces` consecutive pieces of `b` bytes reaches the end of a chain of
    /// `n` ranks, each with extra work `each`. A rank that forwards a long piece receives the next
    /// one at the same time.
    pub fn pipeline(&self, n: u32, pieces: f64, b: f64, each: f64) -> f64 {
        let first = self.chain(n, |at| at.one_way(b) + each);
        let (far, more) = (self.far(1), pieces - 1.0);
        if more > 0.0 && !far.net && far.is_long(b) {
            return first + far.queue(n, more, b, each);
        }
        first + more * self.next(n, b, each)
    }

    /// How long after the first piece the last of `more` further long ones is at the end of a chain
    /// in shared memory. A rank handles pieces in the order in which they arrive: it takes pieces
    /// that wait for it before it passes on those that it has taken.
    ///
    /// While a piece comes every `copy`, a rank that is busy with each for `takes` and `copy` falls
    /// behind: it passes pieces on `x` times as slowly as it takes them, and takes them `x` times
    /// as slowly as they are sent to it: `x = takes / copy + 1 / x`. So when the last one has come,
    /// a part `1 - 1 / x` of all follows without a pause, and the next rank falls behind by that
    /// one.
    fn queue(&self, n: u32, more: f64, b: f64, each: f64) -> f64 {
        let p = self.p;
        let (send, copy) = (p.step + p.send, b * p.long_byte);
        let takes = p.step + self.take(b) + each;
        // Meanwhile the first piece is announced and answered.
        let meanwhile = 2.0 * self.way() + self.receives();
        let ratio = (takes + send) / copy;
        let behind = 1.0 - 2.0 / (ratio + (ratio * ratio + 4.0).sqrt());
        let late = |row: f64| (row * (takes + send) - meanwhile).max(0.0);
        let (mut row, mut between) = (more, n.saturating_sub(2));
        let mut time = (more * send - meanwhile).max(0.0) + more * copy;
        while row > 1.0 && between > 0 {
            time += late(row);
            (row, between) = (row * behind, between - 1);
        }
        let row = row.max(1.0);
        time + f64::from(between) * late(row) + row * (takes - copy).max(0.0)
    }

    /// Time between two consecutive pieces at the end of a chain of `n` ranks, each with extra work
    /// `each`.
    pub fn next(&self, n: u32, b: f64, each: f64) -> f64 {
        let one = |at: &StepCosts| match n {
            0..=2 => at.gap(b).max(at.p.step + at.take(b) + each),
            _ => at.relay(b, b) + each,
        };
        one(&self.near()).max(one(&self.far(1)))
    }

    /// Time from when all begin to send to `k` others each until all have received their data.
    pub fn storm(&self, k: f64, b: f64) -> f64 {
        if k < 1.0 {
            return 0.0;
        }
        let p = self.p;
        if self.node > 1 && !self.is_host() {
            let near = f64::from(self.node - 1).min(k);
            return self.near().storm(near, b) + self.far(self.node).storm(k - near, b);
        }
        if self.is_long(b) && !self.goes_by_fetch() {
            return self.exchange(b) + (k - 1.0) * self.relay(b, b);
        }
        let (gap, take) = (self.work_of_send(b) + p.step, self.take(b));
        let (first, last) = match self.net {
            true => (gap + p.latency, (k * gap).max(k * self.link(b)) + p.latency),
            false => (gap + self.way(), k * gap + self.way()),
        };
        let all = (k * gap).max(first) + k * take;
        let back = if self.goes_by_fetch() {
            self.way()
        } else {
            0.0
        };
        (k + 1.0) * p.step + back + all.max(last + take)
    }

    fn goes_by_fetch(&self) -> bool {
        self.fetched && !self.net
    }

    /// Work of a sender for a message before it continues.
    fn work_of_send(&self, b: f64) -> f64 {
        let p = self.p;
        match (self.net, self.fetched || self.is_long(b)) {
            (true, _) if self.is_long(b) => p.net_send,
            (true, _) => p.net_send + b * p.net_byte,
            (false, true) => p.send,
            (false, false) => p.send + b * p.send_byte,
        }
    }

    /// Time from when a rank begins to send to `k` others until the last of them continues.
    pub fn fan_out(&self, k: f64, b: f64) -> f64 {
        if k < 1.0 {
            return 0.0;
        }
        let last = self.far(1);
        self.others(k, |at| at.gap(b)) - last.gap(b) + last.one_way(b)
    }

    /// Time from when `k` others begin to send to a rank until it has taken all; `each`: its
    /// additional work for each.
    pub fn fan_in(&self, k: f64, b: f64, each: f64) -> f64 {
        if k < 1.0 {
            return 0.0;
        }
        let last = self.far(1);
        self.others(k, |at| at.take(b) + each) - last.take(b) + last.one_way(b)
    }
}
