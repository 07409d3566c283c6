//! The functions behind the recorder's own: those of the program's MPI library, or of a tool that
//! the user loads before it.

use std::ffi::{CStr, c_void};

use kw_base::sync::OnceLock;
use kw_base::sync::atomic::{AtomicUsize, Ordering};

/// The next function of a name, looked up on first use.
pub(crate) struct Next {
    address: AtomicUsize,
    name: &'static str,
}

impl Next {
    /// `name` ends with NUL.
    pub const fn new(name: &'static str) -> Next {
        Next {
            address: AtomicUsize::new(0),
            name,
        }
    }

    /// Its address.
    #[inline(always)]
    pub fn get(&self) -> usize {
        // SYNC: the address found is that of code that existed before.
        match self.address.load(Ordering::Relaxed) {
            0 => self.look(),
            found => found,
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&self) -> usize {
        let found = CStr::from_bytes_with_nul(self.name.as_bytes())
            .ok()
            .map_or(0, find);
        if found == 0 {
            let name = self.name.trim_end_matches('\0');
            eprintln!("libkw_profile: the program's MPI library has no {name}");
            std::process::abort();
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// MPI libraries that were opened with private symbols, for example by Python's extensions: those
/// of other ABIs first, because they use the standard one.
const OPENED: [&CStr; 3] = [c"libmpi.so.12", c"libmpi.so.40", c"libmpi_abi.so.1"];

/// The address of the next symbol of a name, or 0.
pub(crate) fn find(name: &CStr) -> usize {
    // SAFETY: a text that ends with NUL.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() {
        return next as usize;
    }
    let opened = OPENED.iter().map(|library| {
        // SAFETY: texts that end with NUL; nothing is loaded, and what is found stays open.
        unsafe {
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
            match libc::dlopen(library.as_ptr(), flags) {
                handle if handle.is_null() => handle,
                handle => libc::dlsym(handle, name.as_ptr()),
            }
        }
    });
    opened.map(|p| p as usize).find(|p| *p != 0).unwrap_or(0)
}

/// The address of a function of this library, for a program of any ABI; or 0.
pub(crate) fn of_library(name: &CStr) -> usize {
    // SAFETY: texts that end with NUL; nothing is loaded, and what is found stays open.
    unsafe {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        match libc::dlopen(c"libmpi_abi.so.1".as_ptr(), flags) {
            handle if handle.is_null() => 0,
            handle => libc::dlsym(handle, name.as_ptr()) as usize,
        }
    }
}

/// The address of an object of the MPI library: of the program's copy, if it has one.
pub(crate) fn object(name: &CStr) -> usize {
    // SAFETY: a text that ends with NUL.
    match unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize {
        0 => find(name),
        found => found,
    }
}

/// MPI functions that the recorder calls itself, past all tools.
pub(crate) struct Asked {
    pub type_size: unsafe extern "C-unwind" fn(usize, *mut i64) -> i32,
    pub size: unsafe extern "C-unwind" fn(usize, *mut i32) -> i32,
    pub remote_size: unsafe extern "C-unwind" fn(usize, *mut i32) -> i32,
    pub rank: unsafe extern "C-unwind" fn(usize, *mut i32) -> i32,
    pub is_inter: unsafe extern "C-unwind" fn(usize, *mut i32) -> i32,
    /// Bytes of a handle in an array.
    pub handle: usize,
}

/// The functions; nothing when the library lacks one of them.
pub(crate) fn asked() -> Option<&'static Asked> {
    static ASKED: OnceLock<Option<Asked>> = OnceLock::new();
    ASKED.get_or_init(ask).as_ref()
}

fn ask() -> Option<Asked> {
    let of = |name| match find(name) {
        0 => None,
        found => Some(found),
    };
    let type_size = of(c"PMPI_Type_size_c")?;
    let int = |name| {
        // SAFETY: each takes a handle, a word, and a place for an int.
        of(name).map(|f| unsafe {
            std::mem::transmute::<usize, unsafe extern "C-unwind" fn(usize, *mut i32) -> i32>(f)
        })
    };
    Some(Asked {
        // SAFETY: it takes a handle, a word, and a place for an MPI_Count.
        type_size: unsafe {
            std::mem::transmute::<usize, unsafe extern "C-unwind" fn(usize, *mut i64) -> i32>(
                type_size,
            )
        },
        size: int(c"PMPI_Comm_size")?,
        remote_size: int(c"PMPI_Comm_remote_size")?,
        rank: int(c"PMPI_Comm_rank")?,
        is_inter: int(c"PMPI_Comm_test_inter")?,
        handle: match module_of(type_size).is_some_and(|path| path.contains("libmpi.so.12")) {
            true => 4, // handles of MPICH's ABI are ints
            false => size_of::<usize>(),
        },
    })
}

/// The program or library that contains an address.
pub(crate) fn info(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: the structure is plain data; dladdr fills it in or reports that it has not.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        (libc::dladdr(address as *const c_void, &mut info) != 0).then_some(info)
    }
}

/// The file of the program or library that contains an address.
pub(crate) fn module_of(address: usize) -> Option<String> {
    let name = info(address).filter(|i| !i.dli_fname.is_null())?.dli_fname;
    // SAFETY: the dynamic linker's own name of a library that is loaded.
    Some(
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned(),
    )
}
