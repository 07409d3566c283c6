//! The few calls of an MPI library with the standard ABI that a measuring rank makes
//! (`kwinfo --calibrate`). The library is opened at run time, because the commands of this
//! installation are linked with none.
//!
//! Handles and types are those of MPI 5.0, chapter 20. An error of a call ends the job, as for any
//! program (`MPI_ERRORS_ARE_FATAL`), so results are not looked at.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;

use crate::dlopen::{self, Library};

type Handle = *mut c_void;

const WORLD: Handle = 0x101 as Handle;
const BYTE: Handle = 0x247 as Handle;
const DOUBLE: Handle = 0x214 as Handle;
const SUM: Handle = 0x21 as Handle;
const NO_STATUS: *mut c_void = std::ptr::null_mut();
const TAG: c_int = 1;

type Nothing = unsafe extern "C" fn() -> c_int;
type Init = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char) -> c_int;
type Ask = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type Barrier = unsafe extern "C" fn(Handle) -> c_int;
type Send = unsafe extern "C" fn(*const c_void, c_int, Handle, c_int, c_int, Handle) -> c_int;
type Recv =
    unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut c_void) -> c_int;
type Bcast = unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, Handle) -> c_int;
type Reduce =
    unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, c_int, Handle) -> c_int;
type Allreduce =
    unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle) -> c_int;
type Alltoall =
    unsafe extern "C" fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle) -> c_int;

/// A rank of a job, between MPI_Init and MPI_Finalize.
pub struct Rank {
    send: Send,
    recv: Recv,
    barrier: Barrier,
    bcast: Bcast,
    reduce: Reduce,
    allreduce: Allreduce,
    alltoall: Alltoall,
    finalize: Nothing,
    /// This rank.
    pub rank: usize,
    /// Ranks of the job.
    pub size: usize,
}

fn count(len: usize) -> c_int {
    c_int::try_from(len).unwrap_or(c_int::MAX)
}

impl Rank {
    /// Opens the library and calls MPI_Init; the error tells why that cannot be done.
    pub fn init(library: &Path) -> Result<Rank, String> {
        let path = CString::new(library.as_os_str().as_encoded_bytes()).unwrap_or_default();
        let library = dlopen::open(&path)?;
        Rank::of(library).ok_or_else(|| "it lacks functions of MPI".into())
    }

    fn of(library: Library) -> Option<Rank> {
        // SAFETY: these are the types of the functions in the standard ABI, which the library has by
        // its name.
        unsafe {
            let init: Init = library.symbol(c"MPI_Init")?;
            let rank_of: Ask = library.symbol(c"MPI_Comm_rank")?;
            let size_of: Ask = library.symbol(c"MPI_Comm_size")?;
            let mut all = Rank {
                send: library.symbol(c"MPI_Send")?,
                recv: library.symbol(c"MPI_Recv")?,
                barrier: library.symbol(c"MPI_Barrier")?,
                bcast: library.symbol(c"MPI_Bcast")?,
                reduce: library.symbol(c"MPI_Reduce")?,
                allreduce: library.symbol(c"MPI_Allreduce")?,
                alltoall: library.symbol(c"MPI_Alltoall")?,
                finalize: library.symbol(c"MPI_Finalize")?,
                rank: 0,
                size: 0,
            };
            let (mut rank, mut size) = (0, 0);
            init(std::ptr::null_mut(), std::ptr::null_mut());
            rank_of(WORLD, &mut rank);
            size_of(WORLD, &mut size);
            all.rank = usize::try_from(rank).ok()?;
            all.size = usize::try_from(size).ok()?;
            Some(all)
        }
    }

    /// MPI_Send of bytes.
    pub fn send(&self, data: &[u8], to: usize) {
        // SAFETY: the library reads this many bytes and is done with them when the call returns.
        unsafe {
            let at = data.as_ptr().cast();
            (self.send)(at, count(data.len()), BYTE, count(to), TAG, WORLD)
        };
    }

    /// MPI_Recv of bytes.
    pub fn receive(&self, data: &mut [u8], from: usize) {
        let len = count(data.len());
        let at = data.as_mut_ptr().cast();
        // SAFETY: the library writes at most this many bytes and is done when the call returns.
        unsafe { (self.recv)(at, len, BYTE, count(from), TAG, WORLD, NO_STATUS) };
    }

    /// MPI_Barrier.
    pub fn barrier(&self) {
        // SAFETY: no memory is passed.
        unsafe { (self.barrier)(WORLD) };
    }

    /// MPI_Bcast of bytes from rank 0.
    pub fn bcast(&self, data: &mut [u8]) {
        let len = count(data.len());
        // SAFETY: as for a receive.
        unsafe { (self.bcast)(data.as_mut_ptr().cast(), len, BYTE, 0, WORLD) };
    }

    /// MPI_Reduce of the sum to rank 0; both have the same length, of which the shorter counts.
    pub fn reduce(&self, data: &[f64], sum: &mut [f64]) {
        let len = count(data.len().min(sum.len()));
        let (from, to) = (data.as_ptr().cast(), sum.as_mut_ptr().cast());
        // SAFETY: this many elements are read here and written there.
        unsafe { (self.reduce)(from, to, len, DOUBLE, SUM, 0, WORLD) };
    }

    /// MPI_Allreduce of the sum; like [`Rank::reduce`].
    pub fn allreduce(&self, data: &[f64], sum: &mut [f64]) {
        let len = count(data.len().min(sum.len()));
        let (from, to) = (data.as_ptr().cast(), sum.as_mut_ptr().cast());
        // SAFETY: this many elements are read here and written there.
        unsafe { (self.allreduce)(from, to, len, DOUBLE, SUM, WORLD) };
    }

    /// MPI_Alltoall of blocks, one for each rank, as long as fit into both.
    pub fn alltoall(&self, data: &[u8], to: &mut [u8]) {
        let block = count(data.len().min(to.len()) / self.size.max(1));
        let (from, to) = (data.as_ptr().cast(), to.as_mut_ptr().cast());
        // SAFETY: a block for each rank is read here and written there.
        unsafe { (self.alltoall)(from, block, BYTE, to, block, BYTE, WORLD) };
    }

    /// MPI_Finalize.
    pub fn finalize(self) {
        // SAFETY: nothing is pending: every call above is a blocking one.
        unsafe { (self.finalize)() };
    }
}
