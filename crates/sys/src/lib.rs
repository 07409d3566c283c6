//! All system calls and all raw-memory kernels.

pub mod args;
pub mod buf;
pub mod callback;
pub mod clock;
