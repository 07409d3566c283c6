//! A simulated network for tests: many ranks in one process, virtual time, one seed.
//!
//! [`SimNet::new`] makes `n` [`SimPath`]s that share one [`SimNet`]. Frames between two ranks keep
//! their order, as the contract of [`Path`] says; everything else is random: how long a frame
//! travels, whether a send is [`Sent::Queued`] (its payload is then read from the sender's buffer
//! only when it leaves, so memory reused too early shows), whether a payload comes whole or as
//! `on_head` and, several polls later, `on_body`, and whether the heads of later frames come
//! before an earlier payload has arrived.
//!
//! Time is the net's own: every poll of any path advances it by [`SimOptions::step`], and
//! [`SimNet::advance`] by any amount; the `now` given by the caller of `poll` is ignored. The same
//! seed and the same order of calls give the same run. Ranks that block need threads:
//! [`SimPath::take_turns`] lets a test decide which rank polls next, so that they run one at a
//! time, in a random order chosen by the test.
//!
//! ```
//! use kw_path::sim::{SimNet, SimOptions};
//! let (net, paths) = SimNet::new(16, 42, SimOptions::default());
//! assert_eq!(paths.len(), 16);
//! net.cut(kw_base::Peer(0), kw_base::Peer(1));
//! ```

mod net;
mod network;
mod rng;

pub use rng::Rng;

use crate::contract::{Body, Down, Inbound, Lines, Path, Refused, Sent};
use kw_base::calibration::Line;
use kw_base::sync::{Arc, Mutex, MutexGuard};
use kw_base::{Calibration, Peer, Tick};
use kw_proto::wire::{Header, RemoteRegion};
use kw_sys::buf::{Addr, Buf};
use net::Net;
use std::time::Duration;

/// Memory access to the other side offered by the simulated paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// The path never offers it.
    Absent,
    /// The path offers it, and every use is denied (EPERM).
    Denied,
    /// It works.
    Works,
}

/// Random behaviour.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// Shortest and longest travel of a frame, nanoseconds.
    pub delay: (u64, u64),
    /// How many of 256 sends are queued; later frames of the pair queue behind them.
    pub queued: u32,
    /// How many of 256 payload frames land in pieces.
    pub partial: u32,
    /// Reading the sender's memory.
    pub get: Reach,
    /// Virtual nanoseconds that pass with every poll.
    pub step: u64,
    /// Cost lines for the protocol table; `get` is cut according to [`SimOptions::get`].
    pub lines: Lines,
}

impl Default for SimOptions {
    fn default() -> Self {
        let line = |t0, tb| Line { t0, tb };
        SimOptions {
            delay: (0, 20_000),
            queued: 64,
            partial: 128,
            get: Reach::Absent,
            step: 500,
            lines: Lines {
                stream: line(10_000.0, 0.25),
                copy: line(50.0, 0.1),
                control: line(10_000.0, 0.0),
                get: Some(line(2_000.0, 0.1)),
                shared_get: None,
            },
        }
    }
}

impl SimOptions {
    /// No delay, nothing queued, nothing in pieces.
    pub fn calm() -> SimOptions {
        SimOptions {
            delay: (0, 0),
            queued: 0,
            partial: 0,
            ..SimOptions::default()
        }
    }
}

/// The network that the paths of one simulated job share.
#[derive(Clone, Debug)]
pub struct SimNet {
    net: Arc<Mutex<Net>>,
}

impl SimNet {
    /// A job of `n` ranks: the net, and the path of each rank.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(n: u32, seed: u64, options: SimOptions) -> (SimNet, Vec<SimPath>) {
        let lines = lines_of(&options);
        let net = Arc::new(Mutex::new(Net::new(n, seed, options)));
        let paths = (0..n)
            .map(|r| SimPath {
                me: Peer(r),
                lines,
                net: net.clone(),
                turn: Turn::default(),
            })
            .collect();
        (SimNet { net }, paths)
    }

    /// The path of a rank that has joined later.
    pub fn path(&self, me: Peer) -> SimPath {
        let mut net = self.lock();
        net.grow(me.0 + 1);
        SimPath {
            me,
            lines: lines_of(net.options()),
            net: self.net.clone(),
            turn: Turn::default(),
        }
    }

    /// Cuts the connection of two ranks: frames in flight are lost, both sides see `on_down` with
    /// `clean` false.
    pub fn cut(&self, a: Peer, b: Peer) {
        self.lock().cut(a, b);
    }

    /// Lets virtual time pass.
    pub fn advance(&self, by: Duration) {
        self.lock().advance(by.as_nanos() as u64);
    }

    /// Virtual time.
    pub fn now(&self) -> Tick {
        self.lock().now()
    }

    /// The next moment at which something leaves or arrives, if anything is in flight.
    pub fn next_event(&self) -> Option<Tick> {
        self.lock().next_event()
    }

    /// Whether a poll of this rank would bring it something now.
    pub fn has_work(&self, rank: Peer) -> bool {
        self.lock().has_work(rank)
    }

    /// Frames handed to the net so far.
    pub fn frames(&self) -> u64 {
        self.lock().frames()
    }

    fn lock(&self) -> MutexGuard<'_, Net> {
        lock(&self.net)
    }
}

fn lock(net: &Mutex<Net>) -> MutexGuard<'_, Net> {
    // A test that failed while it held the net has reported it already.
    net.lock().unwrap_or_else(|e| e.into_inner())
}

fn lines_of(options: &SimOptions) -> Lines {
    Lines {
        get: options.lines.get.filter(|_| options.get != Reach::Absent),
        ..options.lines
    }
}

/// One rank's way into the simulated network.
#[derive(Debug)]
pub struct SimPath {
    me: Peer,
    lines: Lines,
    net: Arc<Mutex<Net>>,
    turn: Turn,
}

/// Called before each poll of a path.
#[derive(Default)]
struct Turn(Option<Box<dyn FnMut() + Send>>);

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Turn").field(&self.0.is_some()).finish()
    }
}

impl SimPath {
    /// The network.
    pub fn net(&self) -> SimNet {
        SimNet {
            net: self.net.clone(),
        }
    }

    /// This rank.
    pub fn me(&self) -> Peer {
        self.me
    }

    /// Virtual time.
    pub fn now(&self) -> Tick {
        lock(&self.net).now()
    }

    /// Calls `turn` before each poll; it may block for as long as other ranks are to run.
    pub fn take_turns(&mut self, turn: impl FnMut() + Send + 'static) {
        self.turn.0 = Some(Box::new(turn));
    }

    fn poll_some(&mut self, only: Option<Peer>, inbound: &mut dyn Inbound) -> bool {
        if let Some(turn) = &mut self.turn.0 {
            turn();
        }
        lock(&self.net).poll(self.me, only, inbound)
    }

    fn reach(&self, peer: Peer, reach: Reach) -> Result<(), Refused> {
        match reach {
            Reach::Absent => Err(Refused::Unsupported),
            Reach::Denied => Err(Refused::Denied(1)),
            Reach::Works if lock(&self.net).is_cut(self.me, peer) => Err(Refused::Denied(3)),
            Reach::Works => Ok(()),
        }
    }
}

impl Path for SimPath {
    fn lines(&self, _peer: Peer, _host: &Calibration) -> Lines {
        self.lines
    }

    fn address(&self) -> String {
        String::new()
    }

    fn wants_address(&self, _peer: Peer) -> bool {
        false
    }

    fn introduce(&mut self, _peer: Peer, _address: &str) -> Result<(), Down> {
        Ok(())
    }

    fn send(&mut self, to: Peer, head: &Header, body: Body<'_>, cookie: u64) -> Result<Sent, Down> {
        lock(&self.net).send(self.me, to, head, body, cookie)
    }

    fn poll(&mut self, _now: Tick, inbound: &mut dyn Inbound) -> bool {
        self.poll_some(None, inbound)
    }

    fn poll_from(&mut self, peer: Peer, _now: Tick, inbound: &mut dyn Inbound) -> bool {
        self.poll_some(Some(peer), inbound)
    }

    fn get(
        &mut self,
        from: Peer,
        region: RemoteRegion,
        into: &Buf,
        at: u64,
        len: u64,
    ) -> Result<(), Refused> {
        let reach = lock(&self.net).options().get;
        self.reach(from, reach)?;
        memory(region.address, len).copy_to(0, into, at, len);
        Ok(())
    }

    fn pending(&self) -> bool {
        lock(&self.net).pending(self.me)
    }

    fn close(&mut self) {
        lock(&self.net).close(self.me);
    }
}

/// Memory of another rank of the simulated job, which is memory of this process.
fn memory(address: u64, len: u64) -> Buf {
    // SAFETY: the other rank announced the address for this transfer, and keeps the memory until it
    // is told the end.
    let addr = unsafe { Addr::new(address as usize as *const std::ffi::c_void) };
    Buf::bytes(addr, len)
}

#[cfg(test)]
mod tests;
