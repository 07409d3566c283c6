//! Errors: one sentence and the standard's error class.

use crate::handle::{CommH, ErrhandlerH, FileH, SessionH, WinH};
use kw_sys::callback::ErrorHandler;

/// Result of an MPI call.
pub type Res<T = ()> = Result<T, Box<Fault>>;

macro_rules! classes {
    ($(#[$doc:meta])* $class:ident, $all:ident: $($id:ident = $value:literal, $name:literal, $text:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(i32)]
        #[allow(missing_docs)]
        pub enum $class { $($id = $value),* }
        /// `(value, name, text)` of every class.
        pub const $all: &[(i32, &str, &str)] = &[$(($value, $name, $text)),*];
    };
}

classes! {
    /// Error classes of MPI 5.0 (9.4), with the ABI's values.
    Class, CLASSES:
    Success = 0, "MPI_SUCCESS", "no error";
    Buffer = 1, "MPI_ERR_BUFFER", "invalid buffer pointer";
    Count = 2, "MPI_ERR_COUNT", "invalid count";
    Type = 3, "MPI_ERR_TYPE", "invalid datatype";
    Tag = 4, "MPI_ERR_TAG", "invalid tag";
    Comm = 5, "MPI_ERR_COMM", "invalid communicator";
    Rank = 6, "MPI_ERR_RANK", "invalid rank";
    Request = 7, "MPI_ERR_REQUEST", "invalid request";
    Root = 8, "MPI_ERR_ROOT", "invalid root";
    Group = 9, "MPI_ERR_GROUP", "invalid group";
    Op = 10, "MPI_ERR_OP", "invalid operation";
    Topology = 11, "MPI_ERR_TOPOLOGY", "invalid topology";
    Dims = 12, "MPI_ERR_DIMS", "invalid dimensions";
    Arg = 13, "MPI_ERR_ARG", "invalid argument";
    Unknown = 14, "MPI_ERR_UNKNOWN", "unknown error";
    Truncate = 15, "MPI_ERR_TRUNCATE", "message longer than the receive buffer";
    Other = 16, "MPI_ERR_OTHER", "other error";
    Intern = 17, "MPI_ERR_INTERN", "internal error of the library";
    Pending = 18, "MPI_ERR_PENDING", "operation still pending";
    InStatus = 19, "MPI_ERR_IN_STATUS", "the error is in the status";
    Access = 20, "MPI_ERR_ACCESS", "access";
    Amode = 21, "MPI_ERR_AMODE", "amode";
    Assert = 22, "MPI_ERR_ASSERT", "assert";
    BadFile = 23, "MPI_ERR_BAD_FILE", "bad file";
    Base = 24, "MPI_ERR_BASE", "base";
    Conversion = 25, "MPI_ERR_CONVERSION", "conversion";
    Disp = 26, "MPI_ERR_DISP", "disp";
    DupDatarep = 27, "MPI_ERR_DUP_DATAREP", "dup datarep";
    FileExists = 28, "MPI_ERR_FILE_EXISTS", "file exists";
    FileInUse = 29, "MPI_ERR_FILE_IN_USE", "file in use";
    File = 30, "MPI_ERR_FILE", "file";
    InfoKey = 31, "MPI_ERR_INFO_KEY", "info key";
    InfoNokey = 32, "MPI_ERR_INFO_NOKEY", "info nokey";
    InfoValue = 33, "MPI_ERR_INFO_VALUE", "info value";
    Info = 34, "MPI_ERR_INFO", "info";
    Io = 35, "MPI_ERR_IO", "io";
    Keyval = 36, "MPI_ERR_KEYVAL", "keyval";
    Locktype = 37, "MPI_ERR_LOCKTYPE", "locktype";
    Name = 38, "MPI_ERR_NAME", "name";
    NoMem = 39, "MPI_ERR_NO_MEM", "no mem";
    NotSame = 40, "MPI_ERR_NOT_SAME", "not same";
    NoSpace = 41, "MPI_ERR_NO_SPACE", "no space";
    NoSuchFile = 42, "MPI_ERR_NO_SUCH_FILE", "no such file";
    Port = 43, "MPI_ERR_PORT", "port";
    Quota = 44, "MPI_ERR_QUOTA", "quota";
    ReadOnly = 45, "MPI_ERR_READ_ONLY", "read only";
    RmaAttach = 46, "MPI_ERR_RMA_ATTACH", "rma attach";
    RmaConflict = 47, "MPI_ERR_RMA_CONFLICT", "rma conflict";
    RmaRange = 48, "MPI_ERR_RMA_RANGE", "rma range";
    RmaShared = 49, "MPI_ERR_RMA_SHARED", "rma shared";
    RmaSync = 50, "MPI_ERR_RMA_SYNC", "rma sync";
    Service = 51, "MPI_ERR_SERVICE", "service";
    Size = 52, "MPI_ERR_SIZE", "size";
    Spawn = 53, "MPI_ERR_SPAWN", "spawn";
    UnsupportedDatarep = 54, "MPI_ERR_UNSUPPORTED_DATAREP", "unsupported datarep";
    UnsupportedOperation = 55, "MPI_ERR_UNSUPPORTED_OPERATION", "unsupported operation";
    Win = 56, "MPI_ERR_WIN", "win";
    RmaFlavor = 57, "MPI_ERR_RMA_FLAVOR", "rma flavor";
    ProcAborted = 58, "MPI_ERR_PROC_ABORTED", "proc aborted";
    ValueTooLarge = 59, "MPI_ERR_VALUE_TOO_LARGE", "value too large";
    Session = 60, "MPI_ERR_SESSION", "session";
    Errhandler = 61, "MPI_ERR_ERRHANDLER", "errhandler";
    Abi = 62, "MPI_ERR_ABI", "abi";
}

classes! {
    /// Error classes of the tool information interface (MPI 5.0, 15.3.10).
    ToolClass, TOOL_CLASSES:
    CannotInit = 1001, "MPI_T_ERR_CANNOT_INIT", "the tool interface cannot be initialised";
    NotAccessible = 1002, "MPI_T_ERR_NOT_ACCESSIBLE", "the value cannot be accessed";
    NotInitialized = 1003, "MPI_T_ERR_NOT_INITIALIZED", "the tool interface is not initialised";
    NotSupported = 1004, "MPI_T_ERR_NOT_SUPPORTED", "not supported";
    Memory = 1005, "MPI_T_ERR_MEMORY", "out of memory";
    Invalid = 1006, "MPI_T_ERR_INVALID", "invalid argument or value";
    InvalidIndex = 1007, "MPI_T_ERR_INVALID_INDEX", "invalid index";
    InvalidItem = 1008, "MPI_T_ERR_INVALID_ITEM", "invalid item of an enumeration";
    InvalidSession = 1009, "MPI_T_ERR_INVALID_SESSION", "invalid session";
    InvalidHandle = 1010, "MPI_T_ERR_INVALID_HANDLE", "invalid handle";
    InvalidName = 1011, "MPI_T_ERR_INVALID_NAME", "no variable, category or event has this name";
    OutOfHandles = 1012, "MPI_T_ERR_OUT_OF_HANDLES", "no more handles";
    OutOfSessions = 1013, "MPI_T_ERR_OUT_OF_SESSIONS", "no more sessions";
    CvarSetNotNow = 1014, "MPI_T_ERR_CVAR_SET_NOT_NOW", "the control variable cannot be set now";
    CvarSetNever = 1015, "MPI_T_ERR_CVAR_SET_NEVER", "the control variable can never be set";
    PvarNoWrite = 1016, "MPI_T_ERR_PVAR_NO_WRITE", "the performance variable cannot be written or reset";
    PvarNoStartstop = 1017, "MPI_T_ERR_PVAR_NO_STARTSTOP", "the performance variable cannot be started or stopped";
    PvarNoAtomic = 1018, "MPI_T_ERR_PVAR_NO_ATOMIC", "the performance variable cannot be read and reset at once";
}

/// Object whose error handler is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The object that the function's first handle argument names, or MPI_COMM_SELF's handler (MPI
    /// 5.0, 9.3).
    Call,
    /// This communicator.
    Comm(CommH),
    /// This window.
    Win(WinH),
    /// This file.
    File(FileH),
    /// This session.
    Session(SessionH),
    /// The handler given to a call for the communicator that it makes.
    NewComm(ErrhandlerH),
    /// The handler given to a call for the session that it makes.
    NewSession(ErrhandlerH),
}

/// Action of an error handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handler {
    /// MPI_ERRORS_ARE_FATAL: ends all processes of the job.
    Fatal,
    /// MPI_ERRORS_ABORT: ends the processes of the object's group (here: the job).
    Abort,
    /// MPI_ERRORS_RETURN: the caller gets the code.
    Return,
    /// Calls the user's function with the handle of the object, then returns the code.
    User {
        /// The function.
        function: ErrorHandler,
        /// The object's handle.
        handle: usize,
    },
}

/// An error on its way to an error handler.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// The error code the caller gets: a class, or a code the user added.
    pub code: i32,
    /// One sentence: which argument, which value, what to do.
    pub text: String,
    /// Object whose handler is called.
    pub scope: Scope,
    /// Whether the caller asks for the handler (MPI_Comm_call_errhandler), and gets MPI_SUCCESS
    /// when it returns.
    pub asked_for: bool,
}

impl Fault {
    /// A fault of a class of the standard.
    pub fn new(class: Class, text: impl Into<String>) -> Box<Fault> {
        Box::new(Fault {
            code: class as i32,
            text: text.into(),
            scope: Scope::Call,
            asked_for: false,
        })
    }

    /// A fault of a class or code given by its number.
    pub fn of_code(code: i32, text: impl Into<String>) -> Box<Fault> {
        let mut fault = Fault::new(Class::Other, text);
        fault.code = code;
        fault
    }

    /// A fault of the tool information interface, whose functions call no handler.
    pub fn tool(class: ToolClass, text: impl Into<String>) -> Box<Fault> {
        Box::new(Fault {
            code: class as i32,
            text: text.into(),
            scope: Scope::Call,
            asked_for: false,
        })
    }

    /// The error, for a communicator's handler.
    pub fn on(mut self: Box<Self>, comm: CommH) -> Box<Fault> {
        self.scope = Scope::Comm(comm);
        self
    }
}

/// An error of the class of this name, with a text as `format!` has it.
#[macro_export]
macro_rules! fail {
    ($class:ident: $($text:tt)+) => {
        $crate::error::fail($crate::error::Class::$class, format!($($text)+))
    };
}
pub use crate::fail;

/// `Err(Fault::new(class, text))`.
pub fn fail<T>(class: Class, text: impl Into<String>) -> Res<T> {
    Err(Fault::new(class, text))
}

impl From<kw_types::layout::Mismatch> for Box<Fault> {
    fn from(mismatch: kw_types::layout::Mismatch) -> Box<Fault> {
        Fault::new(Class::Arg, mismatch.to_string())
    }
}
