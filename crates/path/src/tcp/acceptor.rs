//! Incoming connections: the listening sockets, and the connections that have not authenticated
//! yet.
//!
//! ```text
//! accept --> Listening --hello: challenge--> Challenged --proof--> Parked --verdict--> in use, or closed
//! ```
//! A rank that polls checks it no more often than other events of the poller
//! (`Tuning::look_every`), however many connections are pending: that limits the cost of
//! unauthenticated connections. A peer that connects waits as long at each step of its handshake,
//! or until the rank sleeps.
//!
//! Unauthenticated connections are limited in number and time: when the limit is reached, the
//! oldest that has not shown the key is closed, and so is one that shows nothing for [`SILENT`].
//! One that has shown the key in its hello may take [`SLOW`] for the rest, since its rank may be
//! computing. Closing is silent, and counted. A peer that disconnects by itself is not counted: a
//! rank of the job does so when its peer's call to it was faster.

use super::attempt::{hear, say};
use super::watcher::Token;
use crate::{Cause, Lacking, Ports};
use kw_base::{Key, Peer, Slab, Tick};
use kw_proto::handshake::{
    Challenged, Claim, HELLO_LEN, Identity, Listening, Progress, Proven, Verdict,
};
use kw_sys::poller::{Interest, Poller};
use kw_sys::tcp::Sock;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Time within which a connection must show the key.
const SILENT: Duration = Duration::from_secs(5);
/// How long one that has shown it may take to prove it.
const SLOW: Duration = Duration::from_secs(120);
/// Most unauthenticated connections at once, beyond one for every rank of the job.
const SPARE: usize = 32;
/// Connections accepted at one poll.
const AT_ONCE: usize = 16;

#[derive(Debug)]
enum State {
    Listening(Listening),
    Challenged(Challenged),
    Parked(Proven),
    Over,
}

#[derive(Debug)]
struct Unauthenticated {
    sock: Sock,
    state: State,
    until: Tick,
}

/// A connection that has proven its rank and waits for the verdict.
#[derive(Debug)]
pub struct PendingAccept {
    sock: Sock,
    proven: Proven,
}

impl PendingAccept {
    /// The peer's view of the link.
    pub fn claim(&self) -> Claim {
        self.proven.claim()
    }

    /// This rank's address and the other side's.
    pub fn ends(&self) -> Option<(IpAddr, IpAddr)> {
        let (here, there) = self.sock.ends()?;
        Some((here.ip(), there.ip()))
    }

    /// Sends the verdict, and this side's view of the link; returns the socket once it was sent.
    /// Dropping the socket closes the connection.
    pub fn answer(self, verdict: Verdict, ours: Claim) -> Option<Sock> {
        let bytes = self.proven.verdict_with(verdict, ours);
        say(&self.sock, &bytes).ok().map(|()| self.sock)
    }
}

/// Listening sockets and unauthenticated connections of one rank.
#[derive(Debug)]
pub struct Acceptor {
    listeners: Vec<Sock>,
    unauthenticated: Slab<Unauthenticated>,
    most: usize,
    refused: u64,
    /// No connection is accepted, because there is no room; new ones wait in the system's queue.
    shut: bool,
    /// Earliest time-out of a connection.
    due: Tick,
}

impl Acceptor {
    /// Listens on every address; those that cannot be bound are left out unless none is left.
    pub fn open(
        (addresses, ports): (&[IpAddr], Ports),
        size: u32,
        poller: &Poller,
    ) -> Result<(Acceptor, Vec<SocketAddr>), Cause> {
        let (mut listeners, mut at, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for &addr in addresses {
            match ports.open(|port| Sock::listen(SocketAddr::new(addr, port))) {
                Ok((sock, bound)) => {
                    let number = Token::Acceptor(listeners.len()).bits();
                    let added = poller.add(&sock, number, Interest::Read);
                    added.map_err(Cause::io("epoll refused a socket"))?;
                    listeners.push(sock);
                    at.push(bound);
                }
                Err(why) => failures.push((addr, why)),
            }
        }
        if listeners.is_empty() {
            let lacking = Lacking::Addresses {
                purpose: "listened on",
                all: failures,
            };
            return Err(lacking.into());
        }
        let acceptor = Acceptor {
            listeners,
            unauthenticated: Slab::new(),
            most: size as usize + SPARE,
            refused: 0,
            shut: false,
            due: Tick::NEVER,
        };
        Ok((acceptor, at))
    }

    /// There are `size` ranks from now on.
    pub fn grow(&mut self, size: u32) {
        self.most = self.most.max(size as usize + SPARE);
    }

    /// Connections closed because they did not prove the key.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether no connection is pending at the acceptor.
    pub fn is_quiet(&self) -> bool {
        self.unauthenticated.is_empty() && !self.shut
    }

    /// Whether a connection has timed out, or the acceptor could be opened again: a rank that polls
    /// checks this at every turn.
    pub fn is_urgent(&self, now: Tick) -> bool {
        !self.unauthenticated.is_empty() && now >= self.due || self.shut
    }

    /// Connections that are pending at the acceptor.
    pub fn len(&self) -> usize {
        self.unauthenticated.len()
    }

    /// Opens the acceptor or shuts it: then the poller does not report waiting connections.
    pub fn set_shut(&mut self, shut: bool, poller: &Poller) {
        if shut == self.shut {
            return;
        }
        self.shut = shut;
        for (i, sock) in self.listeners.iter().enumerate() {
            let number = Token::Acceptor(i).bits();
            // A listener that the poller does not take back is one address less.
            let _ = match shut {
                true => poller.remove(sock),
                false => poller.add(sock, number, Interest::Read),
            };
        }
    }

    /// Whether no connection is accepted.
    pub fn is_shut(&self) -> bool {
        self.shut
    }

    /// Accepts the connections that wait at one listening socket, as many as there is room for.
    /// Without descriptors for them the acceptor is shut.
    pub fn accept(
        &mut self,
        listener: usize,
        room: usize,
        now: Tick,
        (identity, poller): (&Identity, &Poller),
    ) -> bool {
        let mut moved = false;
        for _ in 0..AT_ONCE.min(room) {
            let sock = match self.listeners.get(listener).map(Sock::accept) {
                Some(Ok(Some(sock))) => sock,
                Some(Err(e)) if kw_sys::tcp::is_out_of_files(&e) => {
                    self.set_shut(true, poller);
                    break;
                }
                _ => break,
            };
            moved = true;
            self.take_in(sock, now, identity, poller);
        }
        moved
    }

    fn take_in(&mut self, sock: Sock, now: Tick, identity: &Identity, poller: &Poller) {
        if self.unauthenticated.len() >= self.most {
            self.evict();
        }
        let Ok(nonce) = kw_sys::random::key() else {
            return;
        };
        self.due = self.due.min(now + SILENT);
        let key = self.unauthenticated.insert(Unauthenticated {
            sock,
            state: State::Listening(identity.listen(nonce)),
            until: now + SILENT,
        });
        let added = self.unauthenticated.get(key).map(|s| {
            poller.add(
                &s.sock,
                Token::Pending(key.to_bits()).bits(),
                Interest::Read,
            )
        });
        if !matches!(added, Some(Ok(()))) {
            self.unauthenticated.remove(key);
        }
    }

    /// Closes the one that has been silent longest.
    fn evict(&mut self) {
        let oldest = self.unauthenticated.iter().min_by_key(|(_, s)| s.until);
        if let Some(key) = oldest.map(|(k, _)| k) {
            self.refuse(key);
        }
    }

    fn refuse(&mut self, key: Key) {
        tracing::debug!("a connection is refused that does not prove the job's key");
        if self.unauthenticated.remove(key).is_some() {
            self.refused += 1;
        }
    }

    /// An unauthenticated connection is readable: advances it. Returns the rank, if that has just
    /// been proven.
    pub fn advance(&mut self, bits: u64) -> Option<u32> {
        let key = Key::from_bits(bits);
        let stranger = self.unauthenticated.get_mut(key)?;
        match stranger.step() {
            Ok(rank) => rank,
            Err(friend) => {
                self.unauthenticated.remove(key);
                self.refused += u64::from(!friend);
                None
            }
        }
    }

    /// The link as seen by the peer of an authenticated connection.
    pub fn claim(&self, bits: u64) -> Option<Claim> {
        match &self.unauthenticated.get(Key::from_bits(bits))?.state {
            State::Parked(proven) => Some(proven.claim()),
            _ => None,
        }
    }

    /// Takes out a connection that has proven its rank.
    pub fn take(&mut self, bits: u64) -> Option<PendingAccept> {
        let stranger = self.unauthenticated.remove(Key::from_bits(bits))?;
        match stranger.state {
            State::Parked(proven) => Some(PendingAccept {
                sock: stranger.sock,
                proven,
            }),
            _ => None,
        }
    }

    /// Takes out the connection of a peer that waits for our own attempts to fail.
    pub fn parked(&mut self, peer: Peer) -> Option<PendingAccept> {
        let waits =
            |s: &Unauthenticated| matches!(&s.state, State::Parked(p) if p.rank() == peer.0);
        let key = self.unauthenticated.iter().find(|(_, s)| waits(s))?.0;
        self.take(key.to_bits())
    }

    /// Another connection of this peer is in use: pending ones are told so.
    pub fn dismiss(&mut self, peer: Peer) {
        while let Some(pending) = self.parked(peer) {
            pending.answer(Verdict::Duplicate, Claim::default());
        }
    }

    /// Closes those whose time is over; returns when the next one's will be.
    pub fn expire(&mut self, now: Tick) -> Tick {
        if now < self.due {
            return self.due;
        }
        let late: Vec<_> = self
            .unauthenticated
            .iter()
            .filter(|(_, s)| s.until <= now)
            .map(|(k, _)| k)
            .collect();
        for key in late {
            self.refuse(key);
        }
        let times = self.unauthenticated.iter().map(|(_, s)| s.until);
        self.due = times.min().unwrap_or(Tick::NEVER);
        self.due
    }
}

impl Unauthenticated {
    /// Reads the arrived bytes and continues as far as they lead; returns the rank if it has just
    /// been proven. The error tells whether the other side may be of the job: it had shown the key,
    /// or has sent nothing.
    fn step(&mut self) -> Result<Option<u32>, bool> {
        loop {
            let mut bytes = [0; HELLO_LEN];
            let wants = self.wants();
            let friend = !matches!(self.state, State::Listening(_)) || wants == HELLO_LEN;
            let Some(mut input) = hear(&self.sock, &mut bytes[..wants]).map_err(|_| friend)? else {
                return Ok(None);
            };
            match std::mem::replace(&mut self.state, State::Over) {
                State::Listening(s) => match s.handle(&mut input) {
                    Progress::More(s) => self.state = State::Listening(s),
                    Progress::Next((s, challenge)) => {
                        say(&self.sock, &challenge).map_err(|_| true)?;
                        self.until = self.until + SLOW;
                        self.state = State::Challenged(s);
                    }
                    Progress::Refuse(_) => return Err(false),
                },
                State::Challenged(s) => match s.handle(&mut input) {
                    Progress::More(s) => self.state = State::Challenged(s),
                    Progress::Next(proven) => {
                        let rank = proven.rank();
                        self.until = self.until + SLOW;
                        self.state = State::Parked(proven);
                        return Ok(Some(rank));
                    }
                    Progress::Refuse(_) => return Err(false),
                },
                // Bytes before the verdict are against the protocol; `Over` is never left in place.
                State::Parked(_) | State::Over => return Err(true),
            }
        }
    }

    fn wants(&self) -> usize {
        match &self.state {
            State::Listening(s) => s.wants(),
            State::Challenged(s) => s.wants(),
            State::Parked(_) | State::Over => 1,
        }
    }
}
