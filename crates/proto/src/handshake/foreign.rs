//! Other jobs that this job has met: the key that the ranks of both prove to each other.

use super::key_of;

/// A job that this rank's own job has met: its ranks are consecutive peers.
#[derive(Clone)]
pub struct Foreign {
    /// The peer that its rank 0 is here.
    pub first: u32,
    /// Ranks.
    pub size: u32,
    /// The key of the pair of jobs.
    pub(super) key: [u8; 32],
    /// Names the pair of jobs.
    pub(super) job: [u8; 16],
    /// Whether the own job comes first if one must.
    pub(super) precedes: bool,
}

impl std::fmt::Debug for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Foreign {{ {} ranks from {} }}", self.size, self.first)
    }
}

impl Foreign {
    /// A job with this foreign key ([`foreign_key`]), and our own. `first` is the peer that its rank
    /// 0 is.
    pub fn new((first, size): (u32, u32), ours: &[u8; 32], theirs: &[u8; 32]) -> Foreign {
        let precedes = ours < theirs;
        let pair = match precedes {
            true => [*ours, *theirs],
            false => [*theirs, *ours],
        };
        let name = key_of(pair.as_flattened(), "name of a pair of jobs");
        let mut job = [0; 16];
        job.copy_from_slice(&name[..16]);
        Foreign {
            first,
            size,
            key: key_of(pair.as_flattened(), "key of a pair of jobs"),
            job,
            precedes,
        }
    }
}

/// A key that a job gives to another one, so that their ranks can authenticate to each other:
/// derived from the job's key, which stays secret.
pub fn foreign_key(key: &[u8; 32]) -> [u8; 32] {
    key_of(key, "other jobs")
}
