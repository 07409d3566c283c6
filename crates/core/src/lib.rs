//! Every protocol as a pure state machine: no sockets, no clock, no threads, no memory of the user, no unsafe.
#![forbid(unsafe_code)]

pub mod comm;
pub mod duty;
pub mod handshake;
pub mod helper;
pub mod kept;
pub mod layout;
pub mod matching;
pub mod p2p;
pub mod pmi;
pub mod reliable;
pub mod schedule;
pub mod start;
pub mod stripe;
pub mod wire;
