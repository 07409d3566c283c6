//! One rank: owns its paths, protocol machines and requests, and makes them progress.
//!
//! [`Lane`] is the lock with a role: its owner may touch the machines. [`Engine`] is what it guards. A thread that waits
//! polls for everybody; the event thread does so when nobody waits. See `docs/ARCHITECTURE.md`, "Progress".
#![forbid(unsafe_code)]

mod async_progress;
mod collective;
mod departed;
mod engine;
mod event_thread;
mod events;
mod handover;
mod lane;
#[cfg(all(test, loom))]
mod models;
mod partitioned;
pub mod paths;
mod poll_backoff;
mod polled;
mod progress;
mod seats;
mod settings;
pub mod simulated;
mod sleeper;
mod spin;
mod wait;

pub use collective::{
    BoardId, Caller, Circle, Combining, Drive, Failure, Judge, Memory, MessageFailure, Named,
    Outcome, Pattern, PlansId, Preface, Run, UserFunction, UserStep, Watch, cut,
};
pub use engine::{Engine, Found, MessageId, ReqId, SendMode, Started, Want};
pub use events::{Noticed, Safety};
pub use lane::{Guard, Inner, Lane};
pub use partitioned::PartId;
pub use paths::{Joined, join};
pub use wait::WaitOn;
