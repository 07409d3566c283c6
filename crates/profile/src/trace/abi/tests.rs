//! Contents of a status in each ABI.

use super::*;

/// A status of 32 bytes with ints at these offsets.
fn status(ints: &[(usize, u32)]) -> [u32; 8] {
    let mut words = [0; 8];
    for (at, int) in ints {
        words[at / 4] = *int;
    }
    words
}

fn received(abi: &Abi, status: &[u32; 8]) -> (c_int, c_int, u64, bool) {
    // SAFETY: a status of any ABI has at most 32 bytes.
    let received = unsafe { abi.received(status.as_ptr() as usize) };
    (
        received.source,
        received.tag,
        received.bytes,
        received.cancelled,
    )
}

const LONG: u64 = 5 << 32 | 6;

#[test]
fn the_standard_status() {
    let long = status(&[(0, 3), (4, 7), (12, 6), (16, 5)]);
    assert_eq!(received(&STANDARD, &long), (3, 7, LONG, false));
    assert!(received(&STANDARD, &status(&[(20, 1)])).3);
}

#[test]
fn the_status_of_mpich() {
    let long = status(&[(8, 3), (12, 7), (0, 6), (4, 5 << 1)]);
    assert_eq!(received(&MPICH, &long), (3, 7, LONG, false));
    let cancelled = status(&[(0, 6), (4, 5 << 1 | 1)]);
    assert_eq!(received(&MPICH, &cancelled), (0, 0, LONG, true));
}

#[test]
fn the_status_of_open_mpi() {
    let long = status(&[(0, 3), (4, 7), (16, 6), (20, 5)]);
    assert_eq!(received(&OPEN_MPI, &long), (3, 7, LONG, false));
    assert!(received(&OPEN_MPI, &status(&[(12, 1)])).3);
}

#[test]
fn handles_of_mpich_are_ints_whatever_stands_above_them() {
    assert_eq!(MPICH.handle(0xdead_beef_4400_0000), MPICH.world);
    let two = [0x4400_0000_u32, 0x4400_0001];
    // SAFETY: the array has this element.
    let second = unsafe { MPICH.handle_at(two.as_ptr() as usize, 1) };
    assert_eq!(second, MPICH.this);
    // SAFETY: there is no array.
    assert_eq!(unsafe { MPICH.handle_at(0, 1) }, 0);
}

#[test]
#[cfg_attr(
    miri,
    ignore = "the dynamic linker is asked for objects of the library"
)]
fn the_library_tells_the_abi_by_its_name() {
    assert_eq!(Abi::of("/opt/lib/libmpi.so.12.1.8").handle, 4);
    assert_eq!(Abi::of("libmpi.so.40").status.bytes, 24);
    assert_eq!(Abi::of("/libmpi.so.12/libmpi_abi.so.1").status.bytes, 32);
}

#[test]
fn what_a_receive_accepts_is_the_same_in_all_abis() {
    for abi in [STANDARD, MPICH, OPEN_MPI] {
        assert_eq!(abi.tag(abi.any_tag), kw_start::trace::ANY);
        assert_eq!(abi.tag(7), 7);
        assert!(abi.is_any_source(abi.any_source) && !abi.is_any_source(3));
        assert!(abi.is_nobody(abi.proc_null) && !abi.is_nobody(abi.any_source));
    }
}
