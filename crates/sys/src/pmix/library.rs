//! Which `libpmix.so.2` is used, and its calls.
//!
//! In this order: the file that the user names; the file that the launcher itself runs on, which is
//! seen in the memory maps of our parent processes (it is sure to match the launcher); the file
//! that the loader finds under the name. The file stays open until the process ends.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use super::abi::{App, Info, OnEvent, Proc, Query, Value};
use crate::dlopen::{self, Library};

const NAME: &CStr = c"libpmix.so.2";
/// This many ancestors are examined: the launcher's daemon, and shells and debuggers in between.
const PARENTS: usize = 8;

type WithInfo = unsafe extern "C" fn(*const Info, usize) -> c_int;

/// The calls that are used.
pub struct Calls {
    pub init: unsafe extern "C" fn(*mut Proc, *mut Info, usize) -> c_int,
    pub finalize: WithInfo,
    pub put: unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int,
    pub commit: unsafe extern "C" fn() -> c_int,
    pub fence: unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> c_int,
    pub get: unsafe extern "C" fn(
        *const Proc,
        *const c_char,
        *const Info,
        usize,
        *mut *mut Value,
    ) -> c_int,
    pub abort: unsafe extern "C" fn(c_int, *const c_char, *mut Proc, usize) -> c_int,
    pub spawn: unsafe extern "C" fn(*const Info, usize, *const App, usize, *mut c_char) -> c_int,
    pub query: unsafe extern "C" fn(*mut Query, usize, *mut *mut Info, *mut usize) -> c_int,
    pub register: unsafe extern "C" fn(
        *mut c_int,
        usize,
        *mut Info,
        usize,
        OnEvent,
        *mut c_void,
        *mut c_void,
    ) -> c_int,
    /// Names of the hosts of a job, with commas between.
    pub nodes: Option<unsafe extern "C" fn(*const c_char, *mut *mut c_char) -> c_int>,
    /// The processes of a job on a host.
    pub peers: Option<
        unsafe extern "C" fn(*const c_char, *const c_char, *mut *mut Proc, *mut usize) -> c_int,
    >,
    pub error_text: unsafe extern "C" fn(c_int) -> *const c_char,
    /// Frees the contents of a value, not the value; versions before 4.1 have no such call.
    pub destruct: Option<unsafe extern "C" fn(*mut Value)>,
}

/// Opens the library; the error is the loader's.
pub fn open(named: Option<&str>) -> Result<Calls, String> {
    let library = match named {
        Some(path) => dlopen::open(&CString::new(path).unwrap_or_default())?,
        None => match of_launcher().map(|p| dlopen::open(&p)) {
            Some(Ok(library)) => library,
            _ => dlopen::open(NAME)?,
        },
    };
    calls(library).ok_or_else(|| "it lacks calls that a client of PMIx needs".into())
}

/// The file that is mapped by the nearest ancestor which has mapped one.
fn of_launcher() -> Option<CString> {
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..PARENTS {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        if let Some(path) = mapped(&maps) {
            return CString::new(path).ok();
        }
        pid = parent_of(pid).filter(|p| *p > 1)?;
    }
    None
}

fn mapped(maps: &str) -> Option<&str> {
    let path = |line: &str| line.find('/').map(|at| at..line.len());
    let mut paths = maps.lines().filter_map(|l| Some(&l[path(l)?]));
    paths.find(|p| {
        let file = p.rsplit('/').next().unwrap_or("");
        file == "libpmix.so" || file.starts_with("libpmix.so.2")
    })
}

fn parent_of(pid: u32) -> Option<u32> {
    crate::process::status(pid, "PPid")?.parse().ok()
}

fn calls(library: Library) -> Option<Calls> {
    // SAFETY: each symbol has the type that the PMIx Standard gives it.
    unsafe {
        Some(Calls {
            init: library.symbol(c"PMIx_Init")?,
            finalize: library.symbol(c"PMIx_Finalize")?,
            put: library.symbol(c"PMIx_Put")?,
            commit: library.symbol(c"PMIx_Commit")?,
            fence: library.symbol(c"PMIx_Fence")?,
            get: library.symbol(c"PMIx_Get")?,
            abort: library.symbol(c"PMIx_Abort")?,
            spawn: library.symbol(c"PMIx_Spawn")?,
            query: library.symbol(c"PMIx_Query_info")?,
            register: library.symbol(c"PMIx_Register_event_handler")?,
            nodes: library.symbol(c"PMIx_Resolve_nodes"),
            peers: library.symbol(c"PMIx_Resolve_peers"),
            error_text: library.symbol(c"PMIx_Error_string")?,
            destruct: library.symbol(c"PMIx_Value_destruct"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launchers_file_is_seen_in_its_maps() {
        let maps = "7f00-7f01 r-xp 0000 08:01 12   /usr/lib/libc.so.6\n7f02-7f03 rw-p 0 0:0 0 \n\
                    7f04-7f05 r--p 0 08:01 9   /a b/libpmix.so.2.6.2\n";
        assert_eq!(mapped(maps), Some("/a b/libpmix.so.2.6.2"));
        assert_eq!(
            mapped("7f00-7f01 r-xp 0 08:01 1 /usr/lib/libpmixx.so.2\n"),
            None
        );
        assert_eq!(mapped(""), None);
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let e = open(Some("/no/such/libpmix.so.2")).err().unwrap();
        assert!(e.contains("/no/such/libpmix.so.2"), "{e}");
        assert!(
            open(Some("libc.so.6"))
                .err()
                .unwrap()
                .contains("lacks calls")
        );
    }
}
