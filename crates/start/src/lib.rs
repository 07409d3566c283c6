//! Protocols between a rank and its launcher until the rank knows the job and can be reached: state
//! machines without I/O.
//!
//! ```text
//! Agree:   [first of a host: put where its memory is, or that later] put own record, fence, records up a tree of ranks,
//!            rank 0: put the verdict, fence, get the verdict
//!            --here--> as the launcher told, all on one host: no further fence
//!            --map---> hosts as the launcher told
//!            --else--> hosts by name
//! Publish: [put where this rank listens] [put where the memory is, unless that is done] [fence] [get where the memory is]
//! then:    the address of a peer is got when the first message goes to it ([`address_key`])
//! ```
//!
//! Addresses are fetched on first use rather than as a table: a table of `n` addresses at `n` ranks
//! is `n * n` addresses in all, most of which are never needed, because collectives communicate
//! with about `log2 n` others. A launcher with a daemon on each host (Slurm, PRRTE, Hydra) answers
//! a get locally, so that a tree of connections between the ranks would only repeat what its fence
//! does. So a rank exchanges `O(log n)` messages at start, and one for each peer that it contacts
//! first. The crate `sim`, which runs these machines, counts the cost with many ranks.
//!
//! The crate `boot` carries out these questions over a launcher (`boot/talk.rs`); the crate `sim`
//! does it in virtual time.
#![forbid(unsafe_code)]

mod agree;
pub mod helper;
mod load;
mod mismatch;
pub mod pmi;
pub mod profile;
mod publish;
mod record;
pub mod trace;
mod verdict;

pub use agree::{Agree, RADIX, agreed, alone};
pub use load::{Cpus, Quota};
pub use mismatch::Mismatch;
pub use publish::{Joins, Publish, Publishing};
pub use record::{Bound, Record, THE_LIBRARY};
pub use verdict::{Agreed, Hosts, Load, Places, Word};

/// A request to the key-value space of the launcher (PMI).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KvsRequest {
    /// Store a value for all ranks.
    Put {
        /// Key.
        key: String,
        /// Value.
        value: String,
    },
    /// Wait for all ranks.
    Fence,
    /// Read a value that a rank has stored before the last fence.
    Get {
        /// The rank that stored it.
        from: u32,
        /// Key.
        key: String,
    },
}

/// Its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// No answer yet, or the request was carried out.
    Done,
    /// Answer to [`KvsRequest::Get`]: the value. A lost value ends the conversation.
    Value(String),
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn<T> {
    /// A request; come back with the answer.
    Request(KvsRequest),
    /// The conversation is over.
    Over(T),
}

/// One conversation.
pub trait Talk {
    /// Result of the conversation.
    type Out;
    /// Takes the answer to the last question ([`Heard::Done`] before the first).
    fn next(&mut self, heard: Heard) -> Result<Turn<Self::Out>, Mismatch>;
}

/// Key of the address at which a rank listens on a path.
pub fn address_key(path: &str, rank: u32) -> String {
    format!("kw_{path}_{rank}")
}

/// Key of the location of the memory of a host's first rank: stored while all agree (`early`), if
/// the rank is the first according to the launcher, or afterwards. There are two keys, because host
/// names may contradict the launcher, and no key is stored twice.
pub fn memory_key(lead: u32, early: bool) -> String {
    match early {
        true => format!("kw_mem_{lead}"),
        false => format!("kw_shm_{lead}"),
    }
}
