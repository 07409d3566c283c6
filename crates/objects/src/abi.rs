//! Properties of a Fortran compiler's ABI that MPI must know (MPI 5.0, 20.5).
//!
//! A Fortran binding may report sizes and logical values before initialisation; until then the
//! usual ones apply.

use crate::info::Info;

/// Facts about Fortran that a binding has reported.
#[derive(Clone, Debug, Default)]
pub struct Fortran {
    /// Bytes of `.TRUE.` and `.FALSE.`.
    pub booleans: Option<(Vec<u8>, Vec<u8>)>,
    /// Sizes and supported types.
    pub info: Option<Info>,
}

/// Sizes in bytes of the default types.
const SIZES: &[(&str, &str)] = &[
    ("mpi_logical_size", "4"),
    ("mpi_integer_size", "4"),
    ("mpi_real_size", "4"),
    ("mpi_double_precision_size", "8"),
];

/// Optional types, and whether they exist.
const SUPPORTED: &[(&str, bool)] = &[
    ("mpi_logical1_supported", true),
    ("mpi_logical2_supported", true),
    ("mpi_logical4_supported", true),
    ("mpi_logical8_supported", true),
    ("mpi_logical16_supported", true),
    ("mpi_integer1_supported", true),
    ("mpi_integer2_supported", true),
    ("mpi_integer4_supported", true),
    ("mpi_integer8_supported", true),
    ("mpi_integer16_supported", true),
    ("mpi_real2_supported", true),
    ("mpi_real4_supported", true),
    ("mpi_real8_supported", true),
    ("mpi_real16_supported", true),
    ("mpi_complex4_supported", true),
    ("mpi_complex8_supported", true),
    ("mpi_complex16_supported", true),
    ("mpi_complex32_supported", true),
    ("mpi_double_complex_supported", true),
];

impl Fortran {
    /// The reported sizes, or the usual ones.
    pub fn info(&self) -> Info {
        if let Some(info) = &self.info {
            return info.clone();
        }
        let mut info = Info::default();
        for (key, size) in SIZES {
            info.set(key, size);
        }
        for (key, yes) in SUPPORTED {
            info.set(key, if *yes { "true" } else { "false" });
        }
        info
    }
}

/// Sizes in bytes of MPI's own integer types.
pub fn sizes() -> Info {
    let mut info = Info::default();
    for key in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
        info.set(key, "8");
    }
    info
}
