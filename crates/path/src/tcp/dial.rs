//! Connecting to a peer: all its addresses at once, the first that proves the key wins.
//!
//! ```text
//! Attempt:  Connecting --made: hello--> Offered --challenge: proof--> Answered --verdict--> Welcome | Duplicate
//! ```
//! An attempt that fails is noted with its reason. When all have failed, they are made again after a pause that doubles,
//! until [`PATIENCE`] is over; an address that has taken our hello may take its time, since its rank may be computing.

use super::outbox::Outbox;
use super::tag;
use kw_base::{Peer, Tick};
use kw_core::handshake::{Answered, CHALLENGE_LEN, Identity, Offered, Progress, Verdict};
use kw_sys::poller::{Interest, Poller};
use kw_sys::tcp::{Connect, Got, Sock};
use std::net::SocketAddr;
use std::time::Duration;

/// How long a peer may stay unreachable.
const PATIENCE: Duration = Duration::from_secs(10);
/// First pause before all addresses are tried again.
const PAUSE: Duration = Duration::from_millis(50);
/// Rounds that are made at least, however rarely this rank polls.
const ROUNDS: u32 = 4;

#[derive(Debug)]
enum State {
    Connecting,
    Offered(Offered),
    Answered(Answered),
}

/// One address that is being tried.
#[derive(Debug)]
struct Attempt {
    addr: SocketAddr,
    sock: Sock,
    state: State,
    offer: Option<(Offered, [u8; kw_core::handshake::HELLO_LEN])>,
}

/// What became of the attempts.
#[derive(Debug)]
pub enum Dialled {
    /// They go on.
    Waiting,
    /// This one is welcome.
    Connected(Sock, Outbox),
    /// None is left for now.
    Exhausted,
}

/// All attempts to reach one peer, and what is to be sent to it.
#[derive(Debug)]
pub struct Dial {
    peer: Peer,
    addresses: Vec<SocketAddr>,
    attempts: Vec<Attempt>,
    failures: Vec<(SocketAddr, String)>,
    pub outbox: Outbox,
    begun: bool,
    deadline: Option<Tick>,
    again: Tick,
    rounds: u32,
}

impl Dial {
    pub fn new(peer: Peer, addresses: Vec<SocketAddr>) -> Dial {
        Dial {
            peer,
            addresses,
            attempts: Vec::new(),
            failures: Vec::new(),
            outbox: Outbox::default(),
            begun: false,
            deadline: None,
            again: Tick::NEVER,
            rounds: 0,
        }
    }

    /// Whether no attempt is under way.
    pub fn is_idle(&self) -> bool {
        self.attempts.is_empty()
    }

    /// Begins, if it has not begun.
    pub fn start(&mut self, identity: &Identity, poller: &Poller) {
        if !self.begun {
            self.begun = true;
            self.round(identity, poller);
        }
    }

    fn round(&mut self, identity: &Identity, poller: &Poller) {
        self.rounds += 1;
        self.again = Tick::NEVER;
        self.failures.clear();
        for addr in self.addresses.clone() {
            match self.attempt(addr, identity, poller) {
                Ok(a) => self.attempts.push(a),
                Err(e) => self.failures.push((addr, e.to_string())),
            }
        }
    }

    fn attempt(
        &self,
        addr: SocketAddr,
        identity: &Identity,
        poller: &Poller,
    ) -> std::io::Result<Attempt> {
        let offer = identity.offer(self.peer.0, kw_sys::random::key()?);
        let sock = Sock::connect(addr)?;
        poller.add(&sock, tag::DIAL | self.peer.0 as u64, Interest::Write)?;
        Ok(Attempt {
            addr,
            sock,
            state: State::Connecting,
            offer: Some(offer),
        })
    }

    /// Moves every attempt on.
    pub fn advance(&mut self, now: Tick, poller: &Poller) -> Dialled {
        let mut going = Vec::with_capacity(self.attempts.len());
        let number = tag::DIAL | self.peer.0 as u64;
        for attempt in std::mem::take(&mut self.attempts) {
            let addr = attempt.addr;
            match attempt.step(number, poller) {
                Ok(Step::On(a)) => going.push(a),
                Ok(Step::Welcome(sock)) => {
                    return Dialled::Connected(sock, std::mem::take(&mut self.outbox));
                }
                Err(why) => self.failures.push((addr, why)),
            }
        }
        self.attempts = going;
        if !self.attempts.is_empty() {
            return Dialled::Waiting;
        }
        self.pause(now);
        Dialled::Exhausted
    }

    fn pause(&mut self, now: Tick) {
        if self.again == Tick::NEVER {
            let shift = self.rounds.min(6);
            self.again = now + PAUSE * (1 << shift);
        }
    }

    /// Time has passed: tries again or gives up (with the reason). Returns when it wants to be called again.
    pub fn tick(
        &mut self,
        now: Tick,
        identity: &Identity,
        poller: &Poller,
    ) -> Result<Tick, String> {
        let deadline = *self.deadline.get_or_insert(now + PATIENCE);
        if self.attempts.is_empty() {
            self.pause(now);
        }
        if now >= deadline && self.rounds >= ROUNDS && self.attempts.is_empty() {
            return Err(self.sentence());
        }
        if now >= deadline {
            self.give_up_connecting();
            if self.attempts.is_empty() && self.rounds >= 1 && self.again == Tick::NEVER {
                return Err(self.sentence());
            }
        }
        if now >= self.again {
            self.round(identity, poller);
        }
        let next = if now >= deadline {
            self.again
        } else {
            deadline.min(self.again)
        };
        Ok(next)
    }

    /// After the deadline no address that has not even answered is waited for.
    fn give_up_connecting(&mut self) {
        let silent = |a: &Attempt| matches!(a.state, State::Connecting);
        let (gone, going) = std::mem::take(&mut self.attempts)
            .into_iter()
            .partition::<Vec<_>, _>(silent);
        self.attempts = going;
        let why = format!("no answer in {} s", PATIENCE.as_secs());
        self.failures
            .extend(gone.into_iter().map(|a| (a.addr, why.clone())));
    }

    fn sentence(&self) -> String {
        let list: Vec<_> = self
            .failures
            .iter()
            .map(|(addr, why)| format!("{addr}: {why}"))
            .collect();
        format!(
            "no address of it could be reached ({}); check that a firewall lets the ranks talk, and KW_INTERFACES",
            list.join("; ")
        )
    }
}

/// An attempt after a step. It lives on the stack for one step.
#[allow(clippy::large_enum_variant)]
enum Step {
    On(Attempt),
    Welcome(Sock),
}

impl Attempt {
    fn step(mut self, number: u64, poller: &Poller) -> Result<Step, String> {
        loop {
            self.state = match self.state {
                State::Connecting => {
                    match self.sock.connecting().map_err(|e| e.to_string())? {
                        Connect::Pending => return Ok(Step::On(self)),
                        Connect::Made => {}
                    }
                    let Some((offered, hello)) = self.offer.take() else {
                        return Err("the handshake was begun twice".to_string());
                    };
                    say(&self.sock, &hello)?;
                    let _ = poller.change(&self.sock, number, Interest::Read);
                    State::Offered(offered)
                }
                State::Offered(offered) => {
                    let mut bytes = [0; CHALLENGE_LEN];
                    let Some(mut input) = hear(&self.sock, &mut bytes[..offered.wants()])? else {
                        self.state = State::Offered(offered);
                        return Ok(Step::On(self));
                    };
                    match offered.handle(&mut input) {
                        Progress::More(s) => State::Offered(s),
                        Progress::Next((answered, proof)) => {
                            say(&self.sock, &proof)?;
                            State::Answered(answered)
                        }
                        Progress::Refuse(why) => return Err(why.to_string()),
                    }
                }
                State::Answered(answered) => {
                    let mut bytes = [0; CHALLENGE_LEN];
                    let Some(mut input) = hear(&self.sock, &mut bytes[..answered.wants()])? else {
                        self.state = State::Answered(answered);
                        return Ok(Step::On(self));
                    };
                    match answered.handle(&mut input) {
                        Progress::More(s) => State::Answered(s),
                        Progress::Next(Verdict::Welcome) => return Ok(Step::Welcome(self.sock)),
                        Progress::Next(Verdict::Duplicate) => {
                            return Err("the peer uses another connection".to_string());
                        }
                        Progress::Refuse(why) => return Err(why.to_string()),
                    }
                }
            }
        }
    }
}

/// Sends a message of the handshake; a fresh socket has room for it.
pub fn say(sock: &Sock, bytes: &[u8]) -> Result<(), String> {
    match sock.send(bytes) {
        Ok(n) if n == bytes.len() => Ok(()),
        Ok(_) => Err("the socket had no room for the handshake".to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// Receives into `bytes` what has come of a message of the handshake.
pub fn hear<'a>(sock: &Sock, bytes: &'a mut [u8]) -> Result<Option<&'a [u8]>, String> {
    match sock.recv(bytes) {
        Ok(Got::Bytes(n)) => Ok(Some(&bytes[..n])),
        Ok(Got::Nothing) => Ok(None),
        Ok(Got::End) => Err("closed during the handshake".to_string()),
        Err(e) => Err(e.to_string()),
    }
}
