//! Protocol between processes that spawn others and the launcher of these.
//!
//! The launcher has the names of the parent's job and rank, and of the port where the parent waits,
//! in its environment, and a socket of the parent as its standard input. The parent writes one byte
//! when nothing connects the two jobs any more. A socket that ends without a byte means that the
//! parent has failed. The launcher sends one sentence at most: why it ends, if something went
//! wrong.

/// The variable with the port of the processes that have spawned this one.
pub const PARENT_PORT: &str = "KITTIWAKE_PARENT_PORT";
/// The variable with the parent of this job: `rank 0 of job kw-17-...`.
pub const PARENT: &str = "KITTIWAKE_PARENT";
/// The variable of ranks with the file of their job's trace, if it has one.
pub const TRACE: &str = "KITTIWAKE_TRACE";
/// The variable of ranks that tells that file from others of its name.
pub const TRACE_KEY: &str = "KITTIWAKE_TRACE_KEY";
/// The variable of ranks whose job has a profile.
pub const PROFILE: &str = "KITTIWAKE_PROFILE";
/// The variable of ranks with the file of their job's profile, if it has one.
pub const PROFILE_JSON: &str = "KITTIWAKE_PROFILE_JSON";
/// The longest sentence of the launcher, bytes.
pub const SENTENCE: usize = 4096;
/// The jobs are disconnected.
pub const DISCONNECTED: u8 = b'd';
/// The job has to end: its parent has given it up.
pub const GIVEN_UP: u8 = b'e';
