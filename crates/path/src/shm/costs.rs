//! What shared memory costs: the one table of measured figures.
//!
//! Measured by `cargo run --release -p kw-path --example shm_pingpong` on the machine described in
//! `docs/measurements/2026-11-21-shm-path.md`; one way, nanoseconds and nanoseconds a byte. While a
//! pair's copies are slower, `copy_rate` names its line anew. A file kept per host will replace
//! them.

use crate::{Caps, CostLine};

/// A header with its payload through ring and pool into the posted buffer.
pub const STREAM: CostLine = CostLine {
    t0: 90.0,
    tb: 0.022,
};
/// Copying an unexpected message once more.
pub const COPY: CostLine = CostLine {
    t0: 60.0,
    tb: 0.022,
};
/// A header alone.
pub const CONTROL: CostLine = CostLine { t0: 70.0, tb: 0.0 };
/// process_vm_readv.
pub const GET: CostLine = CostLine {
    t0: 1300.0,
    tb: 0.068,
};

/// The capabilities of a pair that may (or may not) copy straight between processes.
pub fn caps(direct: bool) -> Caps {
    Caps {
        name: "shm",
        stream: STREAM,
        copy: COPY,
        control: CONTROL,
        get: direct.then_some(GET),
    }
}
