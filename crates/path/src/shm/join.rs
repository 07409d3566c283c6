//! How the ranks of a host come to share one segment.
//!
//! The lowest local rank *leads*: it makes the segment and waits for the others, which find it by a
//! name which the engine puts into the launcher's key-value space ([`super::handout`]).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use kw_base::Peer;
use kw_sys::unix;

use super::ShmPath;
use super::handout::{self, Handout, ShmError, failed};
use super::segment::Segment;

/// The ranks that share this host.
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
    handout: Handout,
    segment: Segment,
    fd: OwnedFd,
}

impl ShmPath {
    /// Makes the segment and listens for the others. Publish [`Lead::address`] for them, then call
    /// [`Lead::serve`].
    pub fn lead(local: &Local) -> Result<Lead, ShmError> {
        let n = local.peers.len();
        let (segment, fd) = Segment::create(n)
            .map_err(failed(format!("making a segment for {n} ranks (memfd)")))?;
        tracing::debug!(
            "shared memory: made a segment of {} bytes for {n} ranks",
            segment.bytes()
        );
        Ok(Lead {
            local: local.clone(),
            handout: Handout::new(n)?,
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
        let name = unix::from_hex(address).ok_or_else(|| {
            failed(what())(io::Error::other("the launcher passed on no such address"))
        })?;
        let fd = handout::take(&name, local.index() as u32, key).map_err(failed(what()))?;
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
        unix::hex(&self.handout.name())
    }

    /// Hands the segment to all other local ranks that know the job's key; they have `patience` for
    /// it.
    pub fn serve(self, key: &[u8; 32], patience: Duration) -> Result<ShmPath, ShmError> {
        let Lead { local, handout, .. } = self;
        let mut missing: Vec<bool> = vec![true; local.peers.len()];
        missing[local.index()] = false;
        handout
            .serve(self.fd.as_fd(), key, &mut missing, patience)
            .map_err(|_| late(&local, &missing))?;
        ShmPath::new(&local, self.segment).map_err(failed("entering the segment"))
    }
}

fn late(local: &Local, missing: &[bool]) -> ShmError {
    let names: Vec<String> = (0..missing.len())
        .filter(|&i| missing[i])
        .map(|i| local.peers[i].to_string())
        .collect();
    ShmError {
        what: format!("waiting for rank {} to join", names.join(", ")),
        why: io::Error::from(io::ErrorKind::TimedOut),
    }
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
    fn ranks_join_by_the_address_alone() {
        let peers = vec![Peer(3), Peer(5)];
        let local = |me| Local {
            me,
            peers: peers.clone(),
        };
        let key = [7; 32];
        let lead = ShmPath::lead(&local(Peer(3))).unwrap();
        let address = lead.address();
        let serving = std::thread::spawn(move || lead.serve(&key, Duration::from_secs(60)));
        let why = ShmPath::join(&local(Peer(5)), &key, "no address").unwrap_err();
        assert!(why.to_string().contains("no such address"), "{why}");
        ShmPath::join(&local(Peer(5)), &key, &address).unwrap();
        serving.join().unwrap().unwrap();
    }
}
