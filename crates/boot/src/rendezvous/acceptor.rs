//! Accepts ranks at rank 0 while the job forms: each caller is served in a thread of its own, and
//! has to prove the secret.
//!
//! Unauthenticated connections are limited in number and time, like those of a running job: one
//! that has not proven the secret within [`HELLO`], however it spreads its bytes, is closed, and
//! when the limit is reached the oldest is closed, first of those that have sent nothing. So a peer
//! that knows the secret is accepted, however many connections others hold open.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::PoisonError;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::{HandshakeError, Heard, Timed, set_options};
use kw_base::sync::{Arc, Mutex, MutexGuard, thread};
use kw_proto::handshake::{Identity, Progress, Signer, Verdict, Verifier};
use kw_sys::threads::with_signals_blocked;

/// Time for the whole handshake, and the line that names the rank.
const HELLO: Duration = Duration::from_secs(5);
/// Most simultaneous handshakes, beyond one for each rank.
const SPARE: usize = 32;
/// Connections accepted at one poll.
const AT_ONCE: usize = 16;

/// A peer that has authenticated.
pub(super) struct Member {
    pub rank: u32,
    pub size: u32,
    pub host: String,
    pub stream: TcpStream,
    pub says: Signer,
    pub hears: Verifier,
}

/// A peer that has not.
struct Stranger {
    number: u64,
    /// Knows the format of this job's hello.
    shown: bool,
    stream: TcpStream,
}

/// Unauthenticated peers, the oldest first.
#[derive(Clone, Default)]
struct Strangers(Arc<Mutex<Vec<Stranger>>>);

impl Strangers {
    fn all(&self) -> MutexGuard<'_, Vec<Stranger>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the oldest connections until one more makes `most`.
    fn make_room(&self, most: usize) {
        let mut all = self.all();
        while all.len() >= most {
            let oldest = all.iter().position(|s| !s.shown).unwrap_or(0);
            let _ = all.remove(oldest).stream.shutdown(Shutdown::Both);
        }
    }

    fn show(&self, number: u64) {
        let mut all = self.all();
        let one = all.iter_mut().find(|s| s.number == number);
        one.into_iter().for_each(|s| s.shown = true);
    }
}

/// The listening socket and its connections.
pub(super) struct Acceptor {
    listener: TcpListener,
    identity: Identity,
    strangers: Strangers,
    most: usize,
    next: u64,
    to: Sender<Member>,
}

impl Acceptor {
    /// Accepts connections to `listener`, which does not block; peers that have proven the secret
    /// are sent to `to`.
    pub fn new(
        listener: TcpListener,
        identity: Identity,
        size: u32,
        to: Sender<Member>,
    ) -> Acceptor {
        Acceptor {
            listener,
            identity,
            strangers: Strangers::default(),
            most: size as usize + SPARE,
            next: 0,
            to,
        }
    }

    /// Accepts waiting connections; returns whether more may wait.
    pub fn look(&mut self) -> bool {
        for _ in 0..AT_ONCE {
            match self.listener.accept() {
                Ok((stream, _)) => self.greet(stream),
                Err(_) => return false,
            }
        }
        true
    }

    /// Serves one more connection.
    fn greet(&mut self, stream: TcpStream) {
        let Ok(ours) = stream.try_clone() else {
            return;
        };
        self.next += 1;
        let number = self.next;
        self.strangers.make_room(self.most);
        self.strangers.all().push(Stranger {
            number,
            shown: false,
            stream: ours,
        });
        let (to, identity, strangers) = (
            self.to.clone(),
            self.identity.clone(),
            self.strangers.clone(),
        );
        let hear = move || {
            let member = welcome(stream, &identity, || strangers.show(number));
            strangers.all().retain(|s| s.number != number);
            if let Ok(member) = member {
                // the receiver is gone when the job has formed without it
                let _ = to.send(member);
            }
        };
        with_signals_blocked(|| thread::spawn(hear));
    }
}

impl Drop for Acceptor {
    /// The job has formed, or will not: remaining peers are disconnected.
    fn drop(&mut self) {
        self.strangers.make_room(1);
    }
}

/// A handshake; calls `shown` when the other side's hello is this job's.
fn welcome(stream: TcpStream, identity: &Identity, shown: impl Fn()) -> Heard<Member> {
    stream.set_nonblocking(false)?;
    set_options(&stream)?;
    stream.set_write_timeout(Some(HELLO))?;
    let mut timed = Timed::new(&stream, Instant::now() + HELLO);
    let mut listening = identity.listen(kw_sys::random::key()?);
    let mut bytes = [0; 256];
    let (mut challenged, challenge) = loop {
        let wants = listening.wants();
        let mut input = timed.read_some(&mut bytes[..wants])?;
        match listening.handle(&mut input) {
            Progress::More(state) => listening = state,
            Progress::Next(next) => break next,
            Progress::Refuse(why) => return Err(why.into()),
        }
    };
    shown();
    (&stream).write_all(&challenge)?;
    let proven = loop {
        let wants = challenged.wants();
        let mut input = timed.read_some(&mut bytes[..wants])?;
        match challenged.handle(&mut input) {
            Progress::More(state) => challenged = state,
            Progress::Next(proven) => break proven,
            Progress::Refuse(why) => return Err(why.into()),
        }
    };
    let rank = proven.rank();
    let (says, mut hears) = proven.lines();
    (&stream).write_all(&proven.verdict(Verdict::Welcome))?;
    let line = timed.read_line(&mut hears)?;
    let (size, host) = line.split_once(' ').ok_or(HandshakeError::Introduction)?;
    Ok(Member {
        rank,
        size: size.parse().map_err(|_| HandshakeError::Introduction)?,
        host: host.to_string(),
        stream,
        says,
        hears,
    })
}
