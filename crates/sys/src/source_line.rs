//! Calls of programs whose code is in no file, as Java's: their language tells where they are.
//!
//! The bindings register two functions. One reads the language's stack of the thread that calls it
//! and returns a place ([`kw_base::source_line`]); the other one writes the name of a place's module.
//! They are called only on demand: for a report of a long wait, by `KW_CHECK`, and by the recorder
//! of `mpiexec --profile` and `--trace`, a library of its own, which asks through functions of
//! libmpi_abi.

use crate::callback::{SourceLine, SourceLineName};
use kw_base::sync::OnceLock;

/// Most bytes of a module's name.
const NAME: usize = 480;

static LANGUAGE: OnceLock<(SourceLine, SourceLineName)> = OnceLock::new();

/// Registers the functions; the first ones stay.
pub fn register(place: SourceLine, name: SourceLineName) {
    LANGUAGE.get_or_init(|| (place, name));
}

/// The place where the program called the current function of MPI; 0 if no language knows.
pub fn place() -> u64 {
    LANGUAGE.get().map_or(0, |(place, _)| place.call())
}

/// Writes the name of a place's module; returns how many bytes it has, 0 if it is not known.
pub fn write_name(place: u64, to: &mut [u8]) -> usize {
    LANGUAGE.get().map_or(0, |(_, name)| name.call(place, to))
}

/// The name of a place's module.
pub fn name(place: u64) -> String {
    let mut bytes = [0; NAME];
    let len = write_name(place, &mut bytes);
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}
