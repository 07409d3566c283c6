//! The number of calls and runs of a copy, and that every byte lands where it belongs; all within
//! this process.

use super::*;
use kw_types::layout::{Layout, basic};
use std::sync::Arc;

/// Blocks of `run` bytes, as far apart again.
fn blocks(run: u64, count: u64) -> (Buf, Buf, Buf) {
    let byte = Layout::named(&basic::NAMED[basic::place(BYTE).unwrap()]);
    let layout = Arc::new(byte.hvector(count, run, 2 * run as i64).unwrap());
    let memory = Buf::alloc((2 * run * count) as usize);
    let scattered = memory.typed_at(0, 1, &layout);
    (memory, scattered, Buf::alloc((run * count) as usize))
}

/// MPI_BYTE.
const BYTE: usize = 0x247;

fn numbered(n: u64) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn all_of(buf: &Buf) -> Vec<u8> {
    let mut bytes = vec![0; buf.len() as usize];
    buf.read(0, &mut bytes);
    bytes
}

/// Fetches this many bytes while counting; returns calls and runs.
fn counted(other: &Buf, buf: &Buf, len: u64) -> (usize, usize) {
    let (mut calls, mut runs) = (0, 0);
    let address = other.region().unwrap().bits() as u64;
    let call: Call = &mut |there, iov, bytes| {
        (calls, runs) = (calls + 1, runs + iov.len());
        once(pid(), there, iov, bytes)
    };
    fetch_by(call, address, buf, 0, len).unwrap();
    (calls, runs)
}

#[test]
fn short_runs_are_not_named_to_the_kernel() {
    let len = 3 * PIECE + 5;
    let (_memory, scattered, row) = blocks(1, len);
    row.write(0, &numbered(len));
    // The last five runs fit into a call of their own.
    assert_eq!(counted(&row, &scattered, len), (4, 3 + 5));
    assert_eq!(all_of(&scattered), numbered(len));
}

#[test]
fn long_runs_go_as_they_are() {
    let (run, count) = (4096, 3 * PIECE / 4096);
    let (_memory, scattered, row) = blocks(run, count);
    row.write(0, &numbered(run * count));
    let seen = counted(&row, &scattered, run * count);
    assert_eq!(seen, (3, count as usize));
    assert_eq!(all_of(&scattered), numbered(run * count));
}

#[test]
fn a_row_of_bytes_takes_one_call() {
    let (_memory, _, row) = blocks(1, 5 * PIECE);
    let into = Buf::alloc(row.len() as usize);
    row.write(0, &numbered(row.len()));
    assert_eq!(counted(&row, &into, row.len()), (1, 1));
    assert_eq!(all_of(&into), numbered(row.len()));
}

#[test]
fn a_call_that_moves_less_is_gone_on_with() {
    let len = PIECE + 1000;
    let (_memory, scattered, row) = blocks(1, len);
    row.write(0, &numbered(len));
    let address = row.region().unwrap().bits() as u64;
    let call: Call = &mut |there, iov, bytes| {
        let mut iov = [iov[0]];
        iov[0].iov_len = iov[0].iov_len.min(7777);
        once(pid(), there, &iov, bytes.min(iov[0].iov_len))
    };
    fetch_by(call, address, &scattered, 0, len).unwrap();
    assert_eq!(all_of(&scattered), numbered(len));
}

#[test]
fn a_buffer_that_is_too_short_is_an_error() {
    let (_memory, scattered, row) = blocks(1, 10);
    let address = row.region().unwrap().bits() as u64;
    let call: Call = &mut |there, iov, bytes| once(pid(), there, iov, bytes);
    let seen = fetch_by(call, address, &scattered, 10, 1);
    assert_eq!(seen, Err(libc::EFAULT));
}
