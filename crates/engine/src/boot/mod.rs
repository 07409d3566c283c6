//! Where this rank comes from: who started it, which rank it is, and how it learns the others' addresses.

use kw_base::Peer;

/// What a launcher offers a rank. Implemented by PMI-1 (and later PMI-2 and PMIx) and by the singleton.
pub trait Launcher: Send {
    /// This process's rank in the job.
    fn rank(&self) -> u32;
    /// Processes in the job.
    fn size(&self) -> u32;
    /// Name of the launcher, for messages.
    fn name(&self) -> &str;
    /// A name of the job, unique on this host for as long as the job runs.
    fn job(&self) -> &str;
    /// Which application of a multi-program start this is (MPI_APPNUM), if the launcher says.
    fn appnum(&self) -> Option<i32>;
    /// MPI_UNIVERSE_SIZE, if the launcher says.
    fn universe_size(&self) -> Option<i32>;
    /// Stores a value for all ranks; visible after the next fence. Keys and values have no white space.
    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError>;
    /// Waits until every rank has come here.
    fn fence(&mut self) -> Result<(), BootError>;
    /// Reads a value that some rank has put before the last fence.
    fn get(&mut self, key: &str) -> Result<Option<String>, BootError>;
    /// The ranks of each host, as far as the launcher knows (`None`: it does not say). `hosts[r]` is the number of the
    /// host of rank `r`.
    fn hosts(&mut self) -> Option<Vec<u32>>;
    /// Ends the whole job with this status; the launcher prints the message.
    fn abort(&mut self, status: i32, message: &str) -> Result<(), BootError>;
    /// Says that this rank has finalized and may exit at will.
    fn finalize(&mut self) -> Result<(), BootError>;
}

/// Why a rank could not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BootError(pub String);

/// The whole job, as a rank sees it at start.
#[derive(Clone, Debug)]
pub struct Job {
    /// This rank.
    pub me: Peer,
    /// All ranks.
    pub size: u32,
    /// Host number of every rank.
    pub hosts: Vec<u32>,
    /// The job's key: proof of belonging.
    pub key: [u8; 32],
}
