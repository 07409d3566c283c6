//! One rank: owns its paths, protocol machines and requests, and makes them progress.
//!
//! [`ProgressLock`] is the lock with a role: its owner may touch the machines. [`Engine`] is the
//! guarded state. A thread that waits polls for all threads; the progress thread does so when none
//! waits. See `docs/ARCHITECTURE.md`, "Progress".
#![forbid(unsafe_code)]

mod collective;
mod departed;
mod engine;
mod event_thread;
mod events;
mod handover;
mod hang;
mod host_ranks;
mod locations;
mod messages;
#[cfg(all(test, loom))]
mod models;
mod other_jobs;
mod part;
mod partitioned;
pub mod paths;
mod poll_backoff;
mod polled;
mod progress;
mod progress_lock;
mod requests;
mod settings;
mod shared_counter;
pub mod simulated;
mod sleeper;
mod wait;
pub mod windows;

pub use collective::{
    Caller, ChannelId, Channels, Collectives, Combining, CommView, Drive, Failure, Judge, Memory,
    MessageFailure, Named, Outcome, Pattern, Patterns, Planner, PlansId, Run, Running,
    SignatureCheck, UserFunction, UserStep, Watch, cut, let_others_go_on,
};
pub use departed::Departed;
pub use engine::Engine;
pub use events::{EventQueue, Safety};
pub use hang::{Lasting, LongWait, unreceived};
pub use kw_proto::endpoint::{CompletionGuard, Found};
pub use messages::{MessageId, Messages, ReqId, SendMode, Started, Want};
pub use other_jobs::{OtherJobs, addresses_for_others};
pub use part::{Part, Parts};
pub use partitioned::{PartId, Partitioned};
pub use paths::{WithMemory, join};
pub use progress_lock::{Guard, Inner, ProgressLock};
pub use requests::Requests;
pub use shared_counter::{
    HostCounter, Question, SharedCounterId, SharedCounters, answer_buf, answer_of, ask,
};
pub use wait::WaitOn;
