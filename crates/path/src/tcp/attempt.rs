//! One pair of addresses that is being tried: connecting, and the handshake as the caller.
//!
//! ```text
//! Attempt:  Connecting --made: hello--> Offered --challenge: proof--> Answered --verdict--> Welcome | Duplicate
//! ```

use kw_base::Peer;
use kw_proto::handshake::{
    Answered, CHALLENGE_LEN, Claim, HELLO_LEN, Identity, Offered, Progress, Refusal, Verdict,
};
use kw_sys::poller::{Interest, Poller};
use kw_sys::tcp::{Connect, Got, Sock};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

#[derive(Debug)]
enum State {
    Connecting,
    Offered(Offered),
    Answered(Answered),
}

/// A local address, if the kernel has found one that leads there, and one of the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub from: Option<IpAddr>,
    pub to: SocketAddr,
}

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.from {
            Some(from) => write!(f, "{from} to {}", self.to),
            None => write!(f, "{}", self.to),
        }
    }
}

/// One pair of addresses that is being tried.
#[derive(Debug)]
pub struct Attempt {
    pub pair: Pair,
    sock: Sock,
    state: State,
    offer: Option<(Offered, [u8; HELLO_LEN])>,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// The system reported an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A fresh socket takes no handshake.
    #[error("the socket had no room for the handshake")]
    NoRoom,
    /// The other side hung up.
    #[error("closed during the handshake")]
    Closed,
    /// The other side is not the intended one.
    #[error(transparent)]
    Stranger(#[from] Refusal),
    /// The other side has a connection already.
    #[error("the peer uses another connection")]
    Duplicate,
    /// A fault of our own.
    #[error("the handshake was started twice")]
    Twice,
    /// Nothing came for this long.
    #[error("no answer in {} s", .0.as_secs())]
    Silent(Duration),
}

impl Why {
    /// Whether no process listens there.
    pub fn is_refused(&self) -> bool {
        matches!(self, Why::Io(e) if e.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Whether this process may open no more files.
    pub fn wants_files(&self) -> bool {
        matches!(self, Why::Io(e) if kw_sys::tcp::is_out_of_files(e))
    }
}

/// An attempt after a step. It lives on the stack for one step.
#[allow(clippy::large_enum_variant)]
pub enum Step {
    On(Attempt),
    Welcome(Sock, Claim),
}

impl Attempt {
    /// Begins to connect; the poller reports it under this number.
    pub fn begin(
        pair: Pair,
        peer: Peer,
        number: u64,
        identity: &Identity,
        poller: &Poller,
    ) -> io::Result<Attempt> {
        let offer = identity.offer(peer.0, kw_sys::random::key()?);
        let sock = Sock::connect(pair.from, pair.to)?;
        poller.add(&sock, number, Interest::Write)?;
        let from = sock.here().ok().map(|a| a.ip());
        Ok(Attempt {
            pair: Pair { from, ..pair },
            sock,
            state: State::Connecting,
            offer: Some(offer),
        })
    }

    /// Whether this side's hello has not been sent yet.
    pub fn is_connecting(&self) -> bool {
        matches!(self.state, State::Connecting)
    }

    /// Continues as far as the arrived data leads; `claim`: this side's view of the link.
    pub fn step(mut self, number: u64, claim: Claim, poller: &Poller) -> Result<Step, Why> {
        loop {
            self.state = match self.state {
                State::Connecting => {
                    match self.sock.connecting()? {
                        Connect::Pending => return Ok(Step::On(self)),
                        Connect::Made => {}
                    }
                    let Some((offered, hello)) = self.offer.take() else {
                        return Err(Why::Twice);
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
                    match offered.handle_with(&mut input, claim) {
                        Progress::More(s) => State::Offered(s),
                        Progress::Next((answered, proof)) => {
                            say(&self.sock, &proof)?;
                            State::Answered(answered)
                        }
                        Progress::Refuse(why) => return Err(why.into()),
                    }
                }
                State::Answered(answered) => {
                    let mut bytes = [0; CHALLENGE_LEN];
                    let Some(mut input) = hear(&self.sock, &mut bytes[..answered.wants()])? else {
                        self.state = State::Answered(answered);
                        return Ok(Step::On(self));
                    };
                    match answered.handle_with(&mut input) {
                        Progress::More(s) => State::Answered(s),
                        Progress::Next((Verdict::Welcome, theirs)) => {
                            return Ok(Step::Welcome(self.sock, theirs));
                        }
                        Progress::Next((Verdict::Duplicate, _)) => {
                            return Err(Why::Duplicate);
                        }
                        Progress::Refuse(why) => return Err(why.into()),
                    }
                }
            }
        }
    }
}

/// Sends a message of the handshake; a fresh socket has room for it.
pub fn say(sock: &Sock, bytes: &[u8]) -> Result<(), Why> {
    match sock.send(bytes) {
        Ok(n) if n == bytes.len() => Ok(()),
        Ok(_) => Err(Why::NoRoom),
        Err(e) => Err(e.into()),
    }
}

/// Receives into `bytes` the arrived part of a message of the handshake.
pub fn hear<'a>(sock: &Sock, bytes: &'a mut [u8]) -> Result<Option<&'a [u8]>, Why> {
    match sock.recv(bytes) {
        Ok(Got::Bytes(n)) => Ok(Some(&bytes[..n])),
        Ok(Got::Nothing) => Ok(None),
        Ok(Got::End) => Err(Why::Closed),
        Err(e) => Err(e.into()),
    }
}
