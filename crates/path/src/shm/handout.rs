//! How one process of a host gives a file descriptor to others of its job, without a name in any
//! file system.
//!
//! It listens under a random abstract name. The others connect, and both sides prove the job's key
//! before the descriptor is handed out. An unauthorised process has another user or cannot answer,
//! and its connection is closed.
//!
//! ```text
//! giver -> taker   nonce L (32)
//! taker -> giver   nonce J (32), place (4), keyed("join", L, J, place)
//! giver -> taker   keyed("lead", J, L, place), and the descriptor
//! ```

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use kw_sys::unix::{self, Conn, Listener};

/// How long one connection may take to prove itself.
const PROOF_LIMIT: Duration = Duration::from_secs(5);

/// How long a process waits for the giver, which serves one after another; a busy machine may take
/// its time.
const TAKE_LIMIT: Duration = Duration::from_secs(60);

/// Why ranks could not share memory; a sentence for people.
#[derive(Debug, thiserror::Error)]
#[error("shared memory on this host: {what}: {why}")]
pub struct ShmError {
    /// The attempted action.
    pub what: String,
    /// The system's error.
    pub why: io::Error,
}

pub(super) fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> ShmError {
    let what = what.into();
    move |why| ShmError { what, why }
}

/// The listener, before it knows the descriptor to hand out.
#[derive(Debug)]
pub(super) struct Handout {
    name: [u8; 16],
    listener: Listener,
}

fn address(name: &[u8; 16]) -> String {
    format!("kittiwake-{}", unix::hex(name))
}

impl Handout {
    /// Listens for up to `takers` others.
    pub fn new(takers: usize) -> Result<Handout, ShmError> {
        let name = unix::random().map_err(failed("asking for random bytes"))?;
        let listener = Listener::bind(&address(&name), takers as u32 + 16)
            .map_err(failed("listening on an abstract unix socket"))?;
        Ok(Handout { name, listener })
    }

    /// Address for the others.
    pub fn name(&self) -> [u8; 16] {
        self.name
    }

    /// Hands `fd` to each of `missing`; returns those that have not come when `patience` ends.
    pub fn serve(
        self,
        fd: BorrowedFd<'_>,
        key: &[u8; 32],
        missing: &mut [bool],
        patience: Duration,
    ) -> Result<(), TimedOut> {
        let until = Instant::now() + patience;
        while missing.iter().any(|&m| m) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TimedOut);
            }
            if let Ok(conn) = self.listener.accept(left) {
                note(hand_out(fd, &conn, key, missing, left.min(PROOF_LIMIT)));
            }
        }
        Ok(())
    }

    /// Hands `fd` to each of `missing`, all of which have connected ([`Joining::new`]): those that
    /// remain have failed. The error is that of this process.
    pub fn serve_connected(
        self,
        fd: BorrowedFd<'_>,
        key: &[u8; 32],
        missing: &mut [bool],
    ) -> io::Result<()> {
        while missing.iter().any(|&m| m)
            && let Some(conn) = self.listener.accept_connected()?
        {
            note(hand_out(fd, &conn, key, missing, PROOF_LIMIT));
        }
        Ok(())
    }
}

/// A member has not come in time.
#[derive(Debug)]
pub(super) struct TimedOut;

/// A process that fails to authenticate is disconnected; the members of the job may still come.
fn note(handed_out: io::Result<()>) {
    if let Err(why) = handed_out {
        tracing::debug!("shared memory: a process that wanted the segment is refused ({why})");
    }
}

fn hand_out(
    fd: BorrowedFd<'_>,
    conn: &Conn,
    key: &[u8; 32],
    missing: &mut [bool],
    patience: Duration,
) -> io::Result<()> {
    if !conn.same_user()? {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    conn.set_patience(patience)?;
    let lead: [u8; 32] = unix::random()?;
    conn.send(&lead, None)?;
    let (answer, _) = conn.recv::<68>()?;
    let (join, place) = (&answer[..32], &answer[32..36]);
    let proof = prove(key, b"join", &[&lead, join, place]);
    let index = u32::from_le_bytes([place[0], place[1], place[2], place[3]]) as usize;
    if !same(&proof, &answer[36..]) || !missing.get(index).copied().unwrap_or(false) {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    let proof = prove(key, b"lead", &[join, &lead, place]);
    conn.send(&proof, Some(fd))?;
    missing[index] = false;
    Ok(())
}

/// Takes the descriptor from the process that listens under this name; `place`: this one's.
pub(super) fn take(name: &[u8; 16], place: u32, key: &[u8; 32]) -> io::Result<OwnedFd> {
    Joining::new(name)?.take(place, key)
}

/// A connection to the process that hands a descriptor out.
#[derive(Debug)]
pub(super) struct Joining(Conn);

impl Joining {
    /// Connects to the process that listens under this name.
    pub fn new(name: &[u8; 16]) -> io::Result<Joining> {
        Ok(Joining(Conn::connect(&address(name), TAKE_LIMIT)?))
    }

    /// Takes the descriptor; `place`: this process's.
    pub fn take(self, place: u32, key: &[u8; 32]) -> io::Result<OwnedFd> {
        if !self.0.same_user()? {
            return Err(io::Error::other("another user listens there"));
        }
        self.0.set_patience(TAKE_LIMIT)?;
        let (lead, _) = self.0.recv::<32>()?;
        let (join, place) = (unix::random::<32>()?, place.to_le_bytes());
        let mut answer = [0; 68];
        answer[..32].copy_from_slice(&join);
        answer[32..36].copy_from_slice(&place);
        answer[36..].copy_from_slice(&prove(key, b"join", &[&lead, &join, &place]));
        self.0.send(&answer, None)?;
        let (proof, fd) = self.0.recv::<32>()?;
        if !same(&proof, &prove(key, b"lead", &[&join, &lead, &place])) {
            return Err(io::Error::other("it does not have this job's key"));
        }
        fd.ok_or_else(|| io::Error::other("it handed out nothing"))
    }
}

fn prove(key: &[u8; 32], role: &[u8; 4], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = blake3::Hasher::new_keyed(key);
    mac.update(b"kittiwake shm 1 ");
    mac.update(role);
    for p in parts {
        mac.update(p);
    }
    *mac.finalize().as_bytes()
}

fn same(mine: &[u8; 32], theirs: &[u8]) -> bool {
    theirs
        .try_into()
        .is_ok_and(|t: [u8; 32]| blake3::Hash::from_bytes(*mine) == blake3::Hash::from_bytes(t))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_stranger_without_the_key_gets_nothing_and_costs_the_job_nothing() {
        let handout = Handout::new(2).unwrap();
        let (name, key) = (handout.name(), [7; 32]);
        let fd = kw_sys::memfd::create(4096).unwrap();
        let serving = std::thread::spawn(move || {
            let patience = Duration::from_secs(60);
            handout.serve(fd.as_fd(), &key, &mut [false, true], patience)
        });
        drop(Conn::connect(&address(&name), TAKE_LIMIT).unwrap());
        assert!(take(&name, 1, &[8; 32]).is_err(), "wrong key");
        assert!(take(&name, 9, &key).is_err(), "no such place");
        assert!(take(&name, 0, &key).is_err(), "the giver's own");
        take(&name, 1, &key).unwrap();
        serving.join().unwrap().unwrap();
        assert!(
            Conn::connect(&address(&name), TAKE_LIMIT).is_err(),
            "nothing is left"
        );
    }

    #[test]
    fn connecting_to_a_giver_whose_queue_is_full_ends() {
        let name = unix::hex(&unix::random::<16>().unwrap());
        let _giver = Listener::bind(&name, 0).unwrap();
        let connect = || Conn::connect(&name, Duration::from_millis(1));
        let _waits = connect().unwrap();
        assert_eq!(connect().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_member_that_has_connected_and_failed_is_not_waited_for() {
        let handout = Handout::new(3).unwrap();
        let (name, key) = (handout.name(), [7; 32]);
        let fd = kw_sys::memfd::create(4096).unwrap();
        let (fails, joins) = (Joining::new(&name).unwrap(), Joining::new(&name).unwrap());
        drop(fails);
        let taking = std::thread::spawn(move || joins.take(2, &key).map(drop));
        let mut missing = [false, true, true];
        let served = handout.serve_connected(fd.as_fd(), &key, &mut missing);
        served.unwrap();
        taking.join().unwrap().unwrap();
        assert_eq!(missing, [false, true, false]);
    }
}
