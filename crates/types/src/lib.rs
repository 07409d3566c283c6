//! The contents and endpoints of messages: datatypes as flat programs, groups, context ids,
//! topologies. No memory access, no messages, no unsafe.
#![forbid(unsafe_code)]

pub mod comm;
pub mod layout;
