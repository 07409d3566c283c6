//! Handles: the values that the caller holds.
//!
//! A handle is 64 bits wide. Values below 4096 are the ABI's predefined ones. Ours have the form
//! `kind << 56 | generation << 32 | index`, so that a freed, foreign or garbage handle is detected
//! at look-up. The `int` form for Fortran (MPI 5.0, 20.4) is the predefined value itself, or `1 <<
//! 30 | generation(4 bits) << 26 | index(26 bits)`.
//! | generation(4 bits) << 26 | index(26 bits)`.

use kw_base::Key;

macro_rules! handles {
    ($($id:ident = $kind:literal, $null:literal, $what:literal;)*) => {$(
        #[doc = concat!("Handle of a ", $what, ".")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(transparent)]
        pub struct $id(pub usize);

        impl $id {
            /// The null handle.
            pub const NULL: $id = $id($null);
            /// Its name in messages.
            pub const WHAT: &'static str = $what;

            /// The handle of an entry of our table.
            #[inline]
            pub fn from_key(key: Key) -> $id {
                $id(($kind as usize) << 56 | key.to_bits() as usize)
            }

            /// The key of our table, if the handle is of this kind and not predefined.
            #[inline]
            pub fn key(self) -> Option<Key> {
                (self.0 >> 56 == $kind).then(|| Key::from_bits(self.0 as u64))
            }

            /// Whether it is one of the ABI's small constants.
            #[inline]
            pub fn is_predefined(self) -> bool {
                self.0 < 4096
            }

            /// Whether it is the null handle.
            #[inline]
            pub fn is_null(self) -> bool {
                self.0 == $null
            }
        }
    )*};
}

handles! {
    CommH = 1, 0x100, "communicator";
    GroupH = 2, 0x108, "group";
    TypeH = 3, 0x200, "datatype";
    OpH = 4, 0x20, "operation";
    RequestH = 5, 0x180, "request";
    InfoH = 6, 0x130, "info object";
    ErrhandlerH = 7, 0x140, "error handler";
    MessageH = 8, 0x128, "message";
    SessionH = 9, 0x120, "session";
    WinH = 10, 0x110, "window";
    FileH = 11, 0x118, "file";
    EnumH = 12, 0, "enumeration";
    CvarH = 13, 0, "control variable handle";
    PvarH = 14, 0, "performance variable handle";
    PvarSessionH = 15, 0, "performance session";
    RegistrationH = 16, 0, "event registration";
    InstanceH = 17, 0, "event instance";
}

impl PvarH {
    /// MPI_T_PVAR_ALL_HANDLES
    pub const ALL: PvarH = PvarH(1);
}

impl TypeH {
    /// MPI_LB, which MPI 3.0 removed; outside of the ABI's ten bits.
    pub const LB: TypeH = TypeH(0x401);
    /// MPI_UB, a removed constant.
    pub const UB: TypeH = TypeH(0x402);
    /// MPI_UINT64_T
    pub const UINT64: TypeH = TypeH(0x259);
}

impl OpH {
    /// MPI_SUM
    pub const SUM: OpH = OpH(0x21);
}

impl CommH {
    /// MPI_COMM_WORLD
    pub const WORLD: CommH = CommH(0x101);
    /// MPI_COMM_SELF
    pub const SELF: CommH = CommH(0x102);
}

impl GroupH {
    /// MPI_GROUP_EMPTY
    pub const EMPTY: GroupH = GroupH(0x109);
}

impl InfoH {
    /// MPI_INFO_ENV
    pub const ENV: InfoH = InfoH(0x131);
}

impl ErrhandlerH {
    /// MPI_ERRORS_ARE_FATAL
    pub const FATAL: ErrhandlerH = ErrhandlerH(0x141);
    /// MPI_ERRORS_ABORT
    pub const ABORT: ErrhandlerH = ErrhandlerH(0x142);
    /// MPI_ERRORS_RETURN
    pub const RETURN: ErrhandlerH = ErrhandlerH(0x143);
}

impl MessageH {
    /// MPI_MESSAGE_NO_PROC
    pub const NO_PROC: MessageH = MessageH(0x129);
}

/// Hint about an invalid handle, as a clause of the error; `gone` says how a handle of the library
/// becomes invalid. MPICH's constants are 32 bits wide with the kind of the object above bit 26,
/// which the library's never are. A handle of another ABI that its shim could not translate has the
/// highest bit and the program's value.
pub fn amiss(handle: usize, gone: &str) -> String {
    if handle >> 63 != 0 {
        let given = handle & (usize::MAX >> 1);
        return match given < 4096 {
            true => format!(
                "(the program gave {given:#x}: a constant of another ABI than it was compiled for?)"
            ),
            false => format!("(the program gave {given:#x}: of another kind, or {gone}?)"),
        };
    }
    match handle >> 32 == 0 && handle >> 26 != 0 {
        true => "(a constant of MPICH: this program was compiled with MPICH's mpi.h; compile it with Kittiwake's mpicc)".into(),
        false => format!("({gone}?)"),
    }
}

/// The `int` form of a handle.
pub fn to_int(handle: usize) -> i32 {
    if handle < 4096 {
        return handle as i32;
    }
    let key = Key::from_bits(handle as u64);
    (1 << 30 | (key.generation & 0xf) << 26 | (key.index & 0x03ff_ffff)) as i32
}

/// Splits the `int` form: the predefined handle, or index and low generation bits.
pub fn split_int(value: i32) -> Result<usize, (u32, u32)> {
    if (0..4096).contains(&value) {
        return Ok(value as usize);
    }
    let bits = value as u32;
    Err((bits & 0x03ff_ffff, (bits >> 26) & 0xf))
}
