//! How the ranks of a host come to share one segment.
//!
//! The lowest local rank *leads*: it makes the segment and listens under a random abstract name,
//! which the engine puts into the launcher's key-value space. The others *join*: they connect, and
//! both sides prove the job's key before the leader hands out the segment's file descriptor. A
//! stranger is of another user, or cannot answer, and is hung up on.
//!
//! ```text
//! leader -> joiner   nonce L (32)
//! joiner -> leader   nonce J (32), rank (4), keyed("join", L, J, rank)
//! leader -> joiner   keyed("lead", J, L, rank), and the segment
//! ```

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use kw_base::Peer;
use kw_sys::unix::{self, Conn, Listener};

use super::ShmPath;
use super::segment::Segment;

/// How long one connection may take to prove itself.
const PROOF_LIMIT: Duration = Duration::from_secs(5);

/// Why ranks could not come to share memory; a sentence for people.
#[derive(Debug, thiserror::Error)]
#[error("shared memory on this host: {what}: {why}")]
pub struct ShmError {
    /// What was tried.
    pub what: String,
    /// What the system said.
    pub why: io::Error,
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> ShmError {
    let what = what.into();
    move |why| ShmError { what, why }
}

/// Who shares this host.
#[derive(Clone, Debug)]
pub struct Local {
    /// This rank.
    pub me: Peer,
    /// All ranks of the job on this host, ascending; contains `me`. The first one leads.
    pub peers: Vec<Peer>,
}

impl Local {
    pub(super) fn index(&self) -> usize {
        self.peers.iter().position(|&p| p == self.me).unwrap_or(0)
    }
}

/// The leading rank, before the others have joined.
#[derive(Debug)]
pub struct Lead {
    local: Local,
    name: String,
    listener: Listener,
    segment: Segment,
    fd: OwnedFd,
}

impl ShmPath {
    /// Makes the segment and listens for the others. Put [`Lead::address`] where they find it, then
    /// [`Lead::serve`].
    pub fn lead(local: &Local) -> Result<Lead, ShmError> {
        let n = local.peers.len();
        let (segment, fd) = Segment::create(n)
            .map_err(failed(format!("making a segment for {n} ranks (memfd)")))?;
        tracing::debug!(
            "shared memory: made a segment of {} bytes for {n} ranks",
            segment.bytes()
        );
        let random: [u8; 16] = unix::random().map_err(failed("asking for random bytes"))?;
        let name = format!("kittiwake-{}", unix::hex(&random));
        let listener = Listener::bind(&name, n as u32 + 16)
            .map_err(failed("listening on an abstract unix socket"))?;
        Ok(Lead {
            local: local.clone(),
            name,
            listener,
            segment,
            fd,
        })
    }

    /// Joins the segment of the leading rank, whose address the engine has fetched.
    pub fn join(local: &Local, key: &[u8; 32], address: &str) -> Result<ShmPath, ShmError> {
        let what = || {
            format!(
                "joining the segment of rank {} at @{address}",
                local.peers[0]
            )
        };
        let fd = ask(address, local.index() as u32, key).map_err(failed(what()))?;
        let segment = Segment::open(fd.as_fd(), local.peers.len()).map_err(failed(what()))?;
        let (bytes, lead) = (segment.bytes(), local.peers[0]);
        let path = ShmPath::new(local, segment).map_err(failed(what()))?;
        tracing::debug!("shared memory: attached to the segment of rank {lead}, {bytes} bytes");
        Ok(path)
    }
}

impl Lead {
    /// The text that the other local ranks need for [`ShmPath::join`].
    pub fn address(&self) -> String {
        self.name.clone()
    }

    /// Hands the segment to all other local ranks that know the job's key; they have `patience` for
    /// it.
    pub fn serve(self, key: &[u8; 32], patience: Duration) -> Result<ShmPath, ShmError> {
        let until = Instant::now() + patience;
        let mut missing: Vec<bool> = vec![true; self.local.peers.len()];
        missing[self.local.index()] = false;
        while missing.iter().any(|&m| m) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.late(&missing));
            }
            let Ok(conn) = self.listener.accept(left) else {
                continue;
            };
            // Whoever fails to prove itself is hung up on; the ranks that belong here are still to
            // come.
            if let Err(why) = self.hand_out(&conn, key, &mut missing, left.min(PROOF_LIMIT)) {
                tracing::debug!(
                    "shared memory: a process that wanted the segment is refused ({why})"
                );
            }
        }
        ShmPath::new(&self.local, self.segment).map_err(failed("entering the segment"))
    }

    fn late(&self, missing: &[bool]) -> ShmError {
        let names: Vec<String> = (0..missing.len())
            .filter(|&i| missing[i])
            .map(|i| self.local.peers[i].to_string())
            .collect();
        ShmError {
            what: format!("waiting for rank {} to join", names.join(", ")),
            why: io::Error::from(io::ErrorKind::TimedOut),
        }
    }

    fn hand_out(
        &self,
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
        let (join, rank) = (&answer[..32], &answer[32..36]);
        let proof = prove(key, b"join", &[&lead, join, rank]);
        let index = u32::from_le_bytes([rank[0], rank[1], rank[2], rank[3]]) as usize;
        if !same(&proof, &answer[36..]) || !missing.get(index).copied().unwrap_or(false) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        let proof = prove(key, b"lead", &[join, &lead, rank]);
        conn.send(&proof, Some(self.fd.as_fd()))?;
        missing[index] = false;
        Ok(())
    }
}

fn ask(address: &str, rank: u32, key: &[u8; 32]) -> io::Result<OwnedFd> {
    let conn = Conn::connect(address)?;
    if !conn.same_user()? {
        return Err(io::Error::other("another user listens there"));
    }
    // The leader serves one rank after another; a busy machine may take its time.
    conn.set_patience(Duration::from_secs(60))?;
    let (lead, _) = conn.recv::<32>()?;
    let (join, rank) = (unix::random::<32>()?, rank.to_le_bytes());
    let mut answer = [0; 68];
    answer[..32].copy_from_slice(&join);
    answer[32..36].copy_from_slice(&rank);
    answer[36..].copy_from_slice(&prove(key, b"join", &[&lead, &join, &rank]));
    conn.send(&answer, None)?;
    let (proof, fd) = conn.recv::<32>()?;
    if !same(&proof, &prove(key, b"lead", &[&join, &lead, &rank])) {
        return Err(io::Error::other("it does not know this job's key"));
    }
    fd.ok_or_else(|| io::Error::other("it handed out no segment"))
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

impl From<ShmError> for String {
    fn from(e: ShmError) -> String {
        e.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_without_the_key_gets_nothing_and_costs_the_job_nothing() {
        let peers = vec![Peer(3), Peer(5)];
        let local = |me| Local {
            me,
            peers: peers.clone(),
        };
        let key = [7; 32];
        let lead = ShmPath::lead(&local(Peer(3))).unwrap();
        let address = lead.address();
        let serving = std::thread::spawn(move || lead.serve(&key, Duration::from_secs(60)));
        drop(Conn::connect(&address).unwrap());
        assert!(ask(&address, 1, &[8; 32]).is_err(), "wrong key");
        assert!(ask(&address, 9, &key).is_err(), "no such rank");
        assert!(ask(&address, 0, &key).is_err(), "the leader itself");
        ShmPath::join(&local(Peer(5)), &key, &address).unwrap();
        serving.join().unwrap().unwrap();
        assert!(Conn::connect(&address).is_err(), "nothing is left behind");
    }
}
