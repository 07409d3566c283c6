//! One pair of addresses that is being tried: connecting, and the handshake as the one who calls.
//!
//! ```text
//! Attempt:  Connecting --made: hello--> Offered --challenge: proof--> Answered --verdict--> Welcome | Duplicate
//! ```

use kw_base::Peer;
use kw_proto::handshake::{
    Answered, CHALLENGE_LEN, Claim, HELLO_LEN, Identity, Offered, Progress, Verdict,
};
use kw_sys::poller::{Interest, Poller};
use kw_sys::tcp::{Connect, Got, Sock};
use std::net::{IpAddr, SocketAddr};

#[derive(Debug)]
enum State {
    Connecting,
    Offered(Offered),
    Answered(Answered),
}

/// An address of ours, if the kernel has found one that leads there, and one of the peer's.
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
#[derive(Clone, Debug)]
pub struct Why {
    pub text: String,
    /// Nobody listens there.
    pub refused: bool,
    /// This process may open no more files.
    pub no_files: bool,
}

impl From<std::io::Error> for Why {
    fn from(e: std::io::Error) -> Why {
        let refused = e.kind() == std::io::ErrorKind::ConnectionRefused;
        Why {
            text: e.to_string(),
            refused,
            no_files: kw_sys::tcp::is_out_of_files(&e),
        }
    }
}

impl From<String> for Why {
    fn from(text: String) -> Why {
        Why {
            text,
            refused: false,
            no_files: false,
        }
    }
}

/// An attempt after a step. It lives on the stack for one step.
#[allow(clippy::large_enum_variant)]
pub enum Step {
    On(Attempt),
    Welcome(Sock, Claim),
}

impl Attempt {
    /// Begins to connect; the poller tells of it under this number.
    pub fn begin(
        pair: Pair,
        peer: Peer,
        number: u64,
        identity: &Identity,
        poller: &Poller,
    ) -> std::io::Result<Attempt> {
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

    /// Whether nobody has taken our hello yet.
    pub fn is_connecting(&self) -> bool {
        matches!(self.state, State::Connecting)
    }

    /// Goes on as far as what has come leads; `claim`: what we have of the link.
    pub fn step(mut self, number: u64, claim: Claim, poller: &Poller) -> Result<Step, Why> {
        loop {
            self.state = match self.state {
                State::Connecting => {
                    match self.sock.connecting()? {
                        Connect::Pending => return Ok(Step::On(self)),
                        Connect::Made => {}
                    }
                    let Some((offered, hello)) = self.offer.take() else {
                        return Err("the handshake was begun twice".to_string().into());
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
                        Progress::Refuse(why) => return Err(why.to_string().into()),
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
                            return Err("the peer uses another connection".to_string().into());
                        }
                        Progress::Refuse(why) => return Err(why.to_string().into()),
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
