//! Rendezvous of processes that were started one by one (by a container scheduler): rank 0 listens
//! where all can reach it and serves PMI-1 (see `host`), the others connect (`guest`). Both sides
//! first prove that they know the same secret.
//!
//! The settings `KW_RENDEZVOUS`, `KW_SIZE`, `KW_RANK`, `KW_KEY_FILE`, `KW_KEY` and
//! `KW_RENDEZVOUS_WAIT` say where, who and with which secret (`kw_base::settings`). The name of
//! rank 0 may become known late.
//!
//! A process that is restarted before all have come replaces the earlier one. When the job has
//! formed, rank 0 no longer listens. Every further line proves its sender ([`Verifier`]): one that
//! does not is never obeyed, and breaks its connection. The job's own key is derived from the
//! secret and the job's name, which is new every time, and is never sent.

mod acceptor;
mod guest;
mod host;

use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::launcher::aborted;
use super::pmi1::Pmi1;
use super::watch::Watch;
use super::{BootError, Env, JobInfo, Launcher, Misuse, NoMeeting};
use kw_base::sync::thread;
use kw_proto::handshake::{self, Identity, Refusal, Verifier};
use kw_start::pmi::PmiError;

/// Shortest secret that is accepted.
pub(super) const SHORTEST: usize = 16;
/// Job identity in handshakes before the job has a name.
const MEETING: &str = "kittiwake rendezvous";
/// How long all may take to come, unless it is set.
const WAIT: Duration = Duration::from_secs(60);

/// The values of the variables.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Meeting {
    at: String,
    rank: u32,
    size: u32,
    host: String,
    wait: Duration,
    /// Place of the secret: a file, or the secret itself.
    secret: Secret,
}

#[derive(PartialEq, Eq)]
enum Secret {
    File(String),
    Text(String),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Secret::File(path) => write!(f, "File({path})"),
            Secret::Text(_) => f.write_str("Text"),
        }
    }
}

/// The rendezvous that the environment asks for, if it does; `name` is this host's.
pub(super) fn asked_for(env: Env, name: &str) -> Result<Option<Meeting>, Misuse> {
    let Some(at) = env("KW_RENDEZVOUS").filter(|a| !a.trim().is_empty()) else {
        return Ok(None);
    };
    let port = at
        .rsplit_once(':')
        .map(|(name, port)| (name, port.parse::<u16>()));
    if !matches!(port, Some((name, Ok(1..))) if !name.is_empty()) {
        return Err(Misuse::Rendezvous(at));
    }
    let size = number(env, "KW_SIZE")?;
    let size = size.filter(|n| *n > 0).ok_or(Misuse::NoSize)?;
    let rank = match number(env, "KW_RANK")? {
        Some(rank) => Some(rank),
        None => number(env, "JOB_COMPLETION_INDEX")?.or_else(|| ordinal(name)),
    };
    let rank = rank.ok_or_else(|| Misuse::NoRank(name.into()))?;
    if rank >= size {
        return Err(Misuse::Rank { rank, size });
    }
    let text = |name| env(name).filter(|text| !text.is_empty());
    let secret = match (text("KW_KEY_FILE"), text("KW_KEY")) {
        (Some(path), _) => Secret::File(path),
        (None, Some(text)) => Secret::Text(text),
        (None, None) => return Err(Misuse::NoSecret),
    };
    let wait = number(env, "KW_RENDEZVOUS_WAIT")?;
    Ok(Some(Meeting {
        at,
        rank,
        size,
        host: env("KW_HOST").unwrap_or_else(super::join::machine),
        wait: wait.map_or(WAIT, |s| Duration::from_secs(s.into())),
        secret,
    }))
}

fn number(env: Env, name: &'static str) -> Result<Option<u32>, Misuse> {
    let Some(text) = env(name).filter(|t| t != "auto") else {
        return Ok(None);
    };
    match text.trim().parse() {
        Ok(n) => Ok(Some(n)),
        Err(_) => Err(Misuse::Number { name, text }),
    }
}

/// The number that a name ends with, as pods of a set have it.
fn ordinal(name: &str) -> Option<u32> {
    let short = name.split('.').next()?;
    short.rsplit_once('-')?.1.parse().ok()
}

impl Meeting {
    fn key(&self) -> Result<[u8; 32], Misuse> {
        let (bytes, place) = match &self.secret {
            Secret::Text(text) => (text.clone().into_bytes(), "KW_KEY"),
            Secret::File(path) => match std::fs::read(path) {
                Ok(bytes) => (bytes, "the file that KW_KEY_FILE names"),
                Err(cause) => {
                    let file = path.clone();
                    return Err(Misuse::KeyFile { file, cause });
                }
            },
        };
        let secret = bytes.trim_ascii_end();
        if secret.len() < SHORTEST {
            let len = secret.len();
            return Err(Misuse::ShortSecret { place, len });
        }
        Ok(handshake::key_of(secret, MEETING))
    }

    fn identity(&self, key: [u8; 32]) -> Identity {
        Identity::new(key, MEETING, self.rank, self.size)
    }

    /// Ranks that did not come, and ranks that did.
    fn missing(&self, came: Vec<u32>) -> NoMeeting {
        NoMeeting::Missing {
            missing: (0..self.size).filter(|r| !came.contains(r)).collect(),
            came,
            at: self.at.clone(),
            wait: self.wait.as_secs(),
        }
    }
}

/// Meets the others. Blocks until all have come.
pub(super) fn open(meeting: Meeting) -> Result<Rendezvous, BootError> {
    let secret = meeting.key()?;
    let until = Instant::now() + meeting.wait;
    let (stream, proofs, server) = match meeting.rank {
        0 => {
            let (stream, server) = host::gather(&meeting, secret, until)?;
            (stream, None, Some(server))
        }
        _ => {
            let (stream, proofs) = guest::join(&meeting, secret, until)?;
            (OwnedFd::from(stream), Some(proofs), None)
        }
    };
    let (rank, host) = (meeting.rank, kw_sys::host::name());
    let sentence =
        format!("rank {rank} on {host}: the job has ended (see the message of rank 0, if any)");
    let watch = Watch::start(stream.as_fd(), sentence)?;
    let me = (meeting.rank, meeting.size);
    let inner = Pmi1::over(stream.into(), me, proofs)?;
    let key = handshake::key_of(&secret, inner.job());
    Ok(Rendezvous {
        inner,
        key,
        watch,
        server,
    })
}

/// A rank that came to a rendezvous: PMI-1 with rank 0.
pub(super) struct Rendezvous {
    inner: Pmi1,
    key: [u8; 32],
    watch: Watch,
    /// Rank 0: the thread that serves all.
    server: Option<thread::JoinHandle<()>>,
}

impl Launcher for Rendezvous {
    fn info(&self) -> &JobInfo {
        self.inner.info()
    }

    fn name(&self) -> &str {
        "the rendezvous"
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError> {
        self.inner.put(key, value)
    }

    fn fence(&mut self) -> Result<(), BootError> {
        self.inner.fence()
    }

    fn get(&mut self, from: u32, key: &str) -> Result<Option<String>, BootError> {
        self.inner.get(from, key)
    }

    fn hosts(&mut self) -> Option<Vec<u32>> {
        self.inner.hosts()
    }

    fn key(&self) -> Option<[u8; 32]> {
        Some(self.key)
    }

    fn wire(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wire()
    }

    /// There is no launcher to print the sentence.
    fn abort(&mut self, status: i32, message: &str) -> Result<(), BootError> {
        eprintln!("{}", aborted(self.rank(), status, message));
        self.inner.abort(status, message)
    }

    fn takes_back(&self) -> bool {
        true
    }

    /// Rank 0 stays until all others have finalized, because it serves them.
    fn finalize(&mut self) -> Result<(), BootError> {
        self.watch.over();
        self.inner.finalize()?;
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
        Ok(())
    }
}

/// Why nothing was received from the other side.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error("it did not answer in time")]
    Late,
    #[error("it disconnected during the handshake")]
    HungUp,
    #[error("its line is too long")]
    Endless,
    #[error(
        "a message failed authentication with the job's secret; it was modified or inserted in transit"
    )]
    Forged,
    #[error("it has this rank already")]
    Taken,
    #[error("its address or the number of ranks is missing")]
    Introduction,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Line(#[from] PmiError),
    #[error(transparent)]
    System(#[from] std::io::Error),
}

type Heard<T> = Result<T, HandshakeError>;

/// Reads from a connection until a deadline, however the other side spreads its bytes.
struct Timed<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Timed<'_> {
    fn new(stream: &TcpStream, until: Instant) -> Timed<'_> {
        Timed { stream, until }
    }

    /// Reads the bytes that a handshake wants, and not one more.
    fn read_some<'b>(&mut self, bytes: &'b mut [u8]) -> Heard<&'b [u8]> {
        use std::io::{ErrorKind, Read};
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(HandshakeError::Late);
        }
        let mut stream = self.stream;
        let read = stream
            .set_read_timeout(Some(left))
            .and_then(|()| stream.read(bytes));
        match read {
            Ok(0) => Err(HandshakeError::HungUp),
            Ok(n) => Ok(&bytes[..n]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => Err(HandshakeError::Late),
            Err(e) => Err(e.into()),
        }
    }

    /// Reads one authenticated line, byte by byte: further bytes belong to another reader.
    fn read_line(&mut self, hears: &mut Verifier) -> Heard<String> {
        let mut line = Vec::new();
        let mut byte = [0];
        while line.len() < 4096 {
            match self.read_some(&mut byte)? {
                b"\n" => {
                    let line = String::from_utf8_lossy(&line);
                    let text = hears.check(&line).map(str::to_string);
                    return text.ok_or(HandshakeError::Forged);
                }
                other => line.extend_from_slice(other),
            }
        }
        Err(HandshakeError::Endless)
    }
}

/// Settings of every connection: short messages go at once, and a host that vanishes is noticed.
fn set_options(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    kw_sys::fd::keep_alive(stream.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)], name: &str) -> Result<Option<Meeting>, String> {
        let env = |wanted: &str| {
            let hit = pairs.iter().find(|(n, _)| *n == wanted);
            hit.map(|(_, v)| v.to_string())
        };
        asked_for(&env, name).map_err(|e| e.to_string())
    }

    const GOOD: [(&str, &str); 3] = [
        ("KW_RENDEZVOUS", "solver-0.solver:7000"),
        ("KW_SIZE", "4"),
        ("KW_KEY", "0123456789abcdef"),
    ];

    #[test]
    fn the_rank_is_given_or_the_number_of_the_pod() {
        let rank = |more: &[(&str, &str)], name| {
            with(&[&GOOD[..], more].concat(), name).map(|m| m.unwrap().rank)
        };
        assert_eq!(rank(&[("KW_RANK", "2")], "solver-3"), Ok(2));
        assert_eq!(rank(&[], "solver-3"), Ok(3));
        assert_eq!(rank(&[], "solver-3.solver.default"), Ok(3));
        assert_eq!(rank(&[("JOB_COMPLETION_INDEX", "1")], "x"), Ok(1));
        assert!(rank(&[], "solver").unwrap_err().contains("KW_RANK"));
        assert!(rank(&[], "solver-4").unwrap_err().contains("rank 4 of 4"));
        assert!(
            rank(&[("KW_RANK", "x")], "a-1")
                .unwrap_err()
                .contains("'x'")
        );
        assert_eq!(with(&[], "solver-1"), Ok(None));
    }

    #[test]
    fn what_is_missing_is_named() {
        let but = |name: &str, value: &str| {
            let mut pairs = GOOD.to_vec();
            pairs.retain(|(n, _)| *n != name);
            if !value.is_empty() {
                pairs.push((name, value));
            }
            with(&pairs, "solver-1").unwrap_err()
        };
        assert!(but("KW_RENDEZVOUS", "solver-0").contains("NAME:PORT"));
        assert!(but("KW_RENDEZVOUS", ":7000").contains("NAME:PORT"));
        assert!(but("KW_SIZE", "").contains("KW_SIZE"));
        assert!(but("KW_KEY", "").contains("KW_KEY_FILE"));
        let short = [&GOOD[..2], &[("KW_KEY", "short\n")]].concat();
        let meeting = with(&short, "solver-1").unwrap().unwrap();
        let short = meeting.key().unwrap_err();
        assert!(
            matches!(short, Misuse::ShortSecret { len: 5, .. }),
            "{short}"
        );
        assert_eq!(
            meeting.missing(vec![0, 2]).to_string(),
            "ranks 1, 3 did not come to the rendezvous at solver-0.solver:7000 within 60 s; ranks 0, 2 did"
        );
    }
}
