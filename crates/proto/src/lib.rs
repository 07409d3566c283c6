//! Messages as pure state machines: no sockets, no clock, no threads, no memory of the user, no
//! unsafe.
#![forbid(unsafe_code)]

pub mod endpoint;
pub mod handshake;
pub mod machine;
pub mod matching;
pub mod p2p;
pub mod reliable;
pub mod retransmit;
pub mod rma;
pub mod stripe;
pub mod wire;
