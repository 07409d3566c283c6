//! PMI-1, the line protocol between a launcher and its ranks, as pure state machines: client and
//! server; and the client of PMI-2.
//!
//! One request is one line of `key=value` words that begins with `cmd=`; the answer is one line,
//! too. The launcher keeps one key-value space for the job. Bytes or lines go in, lines come out;
//! this module owns no socket.
//!
//! | file | what |
//! | --- | --- |
//! | [`line`] | lines out of bytes, words out of a line |
//! | [`text`] | any bytes as a word that is safe on a line, values cut over several keys |
//! | [`mapping`] | `PMI_process_mapping`: which rank is on which host |
//! | [`client`] | a rank's end |
//! | [`server`] | the launcher's end, for all ranks of one job |
//! | [`frame`] | PMI-2's frames: length, then words |
//! | [`client2`] | a rank's end of PMI-2 |
//! | [`spawn`] | how both ask for more processes |
//! | `waits` | what ranks wait for, while the job runs |
//!
//! Words that only Kittiwake's own launcher offers begin with `kw_`: the key [`JOB_KEY`] of the
//! key-value space, the lines of `waits`, and `msg=` of `abort`. Both ends work without them when
//! the other is a foreign implementation.

pub mod client;
pub mod client2;
mod error;
pub mod frame;
pub mod line;
pub mod mapping;
pub mod server;
pub mod spawn;
pub mod text;
mod waits;

#[cfg(test)]
mod tests;

pub use client::{Answer, Client, Maxes, Request};
pub use client2::{Answer2, Client2, Request2};
pub use error::PmiError;
pub use frame::{Frame, Frames};
pub use line::{Line, Lines};
pub use server::{Effect, Server, Stage};
pub use spawn::Spawn;
pub use waits::{WAITS, ask, question};

/// Key of the job's 256-bit key (64 hexadecimal digits) in Kittiwake's launcher.
pub const JOB_KEY: &str = "kw_job_key";

/// Key of a launcher's mapping of ranks to hosts.
pub const MAPPING_KEY: &str = "PMI_process_mapping";

/// `rank 3`, `ranks 1, 2`: at most twenty of them.
pub fn ranks(list: &[u32]) -> String {
    let some: Vec<String> = list.iter().take(20).map(u32::to_string).collect();
    let more = match list.len().saturating_sub(20) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let s = if list.len() == 1 { "" } else { "s" };
    format!("rank{s} {}{more}", some.join(", "))
}
