//! Independent access: moves data between a buffer and the parts of a file that a view shows.
//!
//! A write touches no byte that the view does not show. A read may include gaps between pieces if
//! that saves calls (data sieving).

use crate::scratch::Scratch;
use crate::storage::Storage;
use kw_io_plan::View;
use kw_io_plan::runs::Run;
use kw_sys::buf::{Buf, Row};
use std::io;

/// An access that failed.
#[derive(Debug)]
pub struct Trouble {
    /// Whether it was a write.
    pub writes: bool,
    /// Its first byte in the file.
    pub at: u64,
    /// Number of bytes.
    pub len: u64,
    /// The error.
    pub error: io::Error,
}

/// Result of an access: bytes of data moved, in their order, and why it ended early.
#[derive(Debug, Default)]
pub struct Done {
    /// Bytes of data.
    pub bytes: u64,
    /// Calls of the file system.
    pub calls: u64,
    /// Bytes that these calls have moved, gaps included.
    pub passed: u64,
    /// Nanoseconds of access to the file.
    pub took: u64,
    /// Bytes of other ranks' data.
    pub for_others: u64,
    /// Error that ended the access.
    pub trouble: Option<Trouble>,
}

/// Limits for reading gaps together with pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sieve {
    /// Bytes read at once at most.
    pub buffer: u64,
    /// Bytes of the longest gap.
    pub gap: u64,
}

/// Writes bytes `from..from+len` of `buf` to position `at`, all of them.
pub fn write_all(storage: &dyn Storage, at: u64, buf: &Buf, from: u64, len: u64) -> Done {
    let mut done = Done::default();
    while done.bytes < len && done.trouble.is_none() {
        done.calls += 1;
        let left = len - done.bytes;
        let (place, begin) = (at + done.bytes, from + done.bytes);
        match storage.write_at(place, buf, begin, left) {
            Ok(0) => done.fail(true, place, left, io::ErrorKind::WriteZero.into()),
            Ok(n) => done.moved(n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => done.fail(true, place, left, e),
        }
    }
    done
}

/// Reads from position `at` into bytes `from..from+len` of `buf`: all of them, or those up to the
/// end of the file.
pub fn read_all(storage: &dyn Storage, at: u64, buf: &Buf, from: u64, len: u64) -> Done {
    let mut done = Done::default();
    while done.bytes < len && done.trouble.is_none() {
        done.calls += 1;
        let left = len - done.bytes;
        let (place, begin) = (at + done.bytes, from + done.bytes);
        match storage.read_at(place, buf, begin, left) {
            Ok(0) => break,
            Ok(n) => done.moved(n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => done.fail(false, place, left, e),
        }
    }
    done
}

impl Done {
    fn moved(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.passed += bytes;
    }

    fn fail(&mut self, writes: bool, at: u64, len: u64, error: io::Error) {
        self.trouble = Some(Trouble {
            writes,
            at,
            len,
            error,
        });
    }

    /// Adds the next part; returns whether it was complete, with `len` bytes.
    fn add(&mut self, part: Done, len: u64) -> bool {
        self.bytes += part.bytes;
        self.calls += part.calls;
        self.passed += part.passed;
        self.trouble = part.trouble;
        part.bytes == len
    }
}

/// Writes all of `buf` to the data of `view` from byte `data` on.
pub fn write(storage: &dyn Storage, view: &View, data: u64, buf: &Buf) -> Done {
    let mut done = Done::default();
    let mut goes_on = true;
    view.runs(data, data.saturating_add(buf.len()), &mut |row| {
        for i in 0..row.n {
            if goes_on {
                let from = done.bytes;
                let part = write_all(storage, row.place(i), buf, from, row.len);
                goes_on = done.add(part, row.len);
            }
        }
    });
    done
}

/// Reads into all of `buf` the data of `view` from byte `data` on, up to the end of the file.
pub fn read(
    storage: &dyn Storage,
    view: &View,
    data: u64,
    buf: &Buf,
    sieve: Option<Sieve>,
    scratch: &Scratch,
) -> Done {
    let len = buf.len();
    let pieces = view.pieces_of(len);
    if let Some(sieve) = sieve.filter(|_| pieces > 1 && view.is_ascending()) {
        return read_sieved(storage, view, data, buf, sieve, scratch);
    }
    let mut done = Done::default();
    let mut goes_on = true;
    view.runs(data, data.saturating_add(len), &mut |row| {
        for i in 0..row.n {
            if goes_on {
                let from = done.bytes;
                let part = read_all(storage, row.place(i), buf, from, row.len);
                goes_on = done.add(part, row.len);
            }
        }
    });
    done
}

/// Pieces that are read with one access.
struct Batch<'a> {
    storage: &'a dyn Storage,
    buf: &'a Buf,
    scratch: &'a Scratch,
    sieve: Sieve,
    /// Most bytes of an access.
    room: u64,
    /// Memory for an access, after the first with several pieces.
    memory: Option<Buf>,
    rows: Vec<Run>,
    done: Done,
    goes_on: bool,
}

/// Number of runs that are read together with the present access, of a row that begins at most
/// `room` bytes before its end.
fn fitting(row: &Run, room: u64, gap: u64) -> u64 {
    match row.stride as u64 {
        _ if row.len > room => 0,
        stride if row.n > 1 && stride - row.len <= gap => {
            ((room - row.len) / stride + 1).min(row.n)
        }
        _ => 1,
    }
}

/// Splits a row into the first `n` runs and the others.
fn cut(row: Run, n: u64) -> (Run, Run) {
    let (at, left) = (row.place(n), row.n - n);
    (Run { n, ..row }, Run { at, n: left, ..row })
}

impl Batch<'_> {
    fn end(&self) -> u64 {
        self.rows.last().map_or(0, Run::end)
    }

    /// Adds a row, and reads complete accesses.
    fn add(&mut self, mut row: Run) {
        while row.n > 0 && self.goes_on {
            let n = match self.rows.first() {
                None => fitting(&row, self.room, self.sieve.gap).max(1),
                Some(_) if row.at - self.end() > self.sieve.gap => 0,
                Some(first) => {
                    let room = (first.at + self.room).saturating_sub(row.at);
                    fitting(&row, room, self.sieve.gap)
                }
            };
            if n == 0 {
                self.flush();
                continue;
            }
            let (now, later) = cut(row, n);
            self.rows.push(now);
            row = later;
            if row.n > 0 {
                self.flush();
            }
        }
    }

    /// Reads the pieces and the gaps between them.
    fn flush(&mut self) {
        match *self.rows.as_slice() {
            [] => {}
            _ if !self.goes_on => {}
            [row] if row.n == 1 => {
                let part = read_all(self.storage, row.at, self.buf, self.done.bytes, row.len);
                self.goes_on = self.done.add(part, row.len);
            }
            [first, ..] => self.read_together(first.at, self.end()),
        }
        self.rows.clear();
    }

    fn read_together(&mut self, start: u64, end: u64) {
        let memory = (self.memory).get_or_insert_with(|| self.scratch.take(self.room));
        let came = read_all(self.storage, start, memory, 0, end - start);
        self.done.calls += came.calls;
        self.done.passed += came.passed;
        if came.trouble.is_some() {
            // It may be that of a gap, which is not needed.
            return self.read_apart();
        }
        let valid = start + came.bytes;
        for row in &self.rows {
            let n = whole_before(row, valid);
            memory.copy_row_to(in_memory(&cut(*row, n).0, start), self.buf, self.done.bytes);
            self.done.bytes += n * row.len;
            if n < row.n {
                let at = row.place(n);
                let there = valid.saturating_sub(at);
                memory.copy_to(at - start, self.buf, self.done.bytes, there);
                self.done.bytes += there;
                self.goes_on = false;
                break;
            }
        }
    }

    fn read_apart(&mut self) {
        for row in std::mem::take(&mut self.rows) {
            for i in 0..row.n {
                if self.goes_on {
                    let at = row.place(i);
                    let part = read_all(self.storage, at, self.buf, self.done.bytes, row.len);
                    self.goes_on = self.done.add(part, row.len);
                }
            }
        }
    }
}

/// Number of runs of a row that end at or before a position.
pub fn whole_before(row: &Run, valid: u64) -> u64 {
    match valid.checked_sub(row.at + row.len) {
        None => 0,
        Some(_) if row.n == 1 => 1,
        Some(beyond) => (beyond / row.stride as u64 + 1).min(row.n),
    }
}

/// Location of a row in memory that holds the file from byte `start` on.
pub fn in_memory(row: &Run, start: u64) -> Row {
    Row {
        at: row.at - start,
        len: row.len,
        stride: row.stride.max(0) as u64,
        n: row.n,
    }
}

fn read_sieved(
    storage: &dyn Storage,
    view: &View,
    data: u64,
    buf: &Buf,
    sieve: Sieve,
    scratch: &Scratch,
) -> Done {
    let last = data.saturating_add(buf.len());
    let span = view.end_of(last) - view.offset_of(data);
    let mut batch = Batch {
        storage,
        buf,
        scratch,
        sieve,
        room: sieve.buffer.min(span).max(1),
        memory: None,
        rows: Vec::new(),
        done: Done::default(),
        goes_on: true,
    };
    view.runs(data, last, &mut |row| batch.add(row));
    batch.flush();
    if let Some(memory) = batch.memory {
        scratch.give(memory);
    }
    batch.done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::simulated::Simulated;
    use kw_types::layout::{Layout, basic};
    use proptest::prelude::*;

    fn byte() -> Layout {
        let named = basic::NAMED.iter().find(|n| n.name == "MPI_BYTE");
        Layout::named(named.expect("a predefined datatype"))
    }

    fn filled(bytes: &[u8]) -> Buf {
        let buf = Buf::alloc(bytes.len());
        buf.write(0, bytes);
        buf
    }

    fn view(displacement: i64, gaps: &[(i64, u64)], tail: i64) -> View {
        let mut end = 0;
        let blocks: Vec<(i64, u64)> = (gaps.iter())
            .map(|&(gap, len)| {
                let at = end + gap;
                end = at + len as i64;
                (at, len)
            })
            .collect();
        let filetype = byte()
            .hindexed(&blocks)
            .and_then(|t| t.resized(0, end + tail));
        View::new(displacement, &byte(), &filetype.expect("a type")).expect("a view")
    }

    #[test]
    fn a_full_device_stops_a_write_and_says_where() {
        let storage = Simulated {
            capacity: Some(10),
            ..Simulated::default()
        };
        let done = write(&storage, &view(4, &[(0, 1)], 0), 0, &filled(&[7; 20]));
        assert_eq!(done.bytes, 6);
        let trouble = done.trouble.expect("the device is full");
        assert_eq!((trouble.writes, trouble.at, trouble.len), (true, 10, 14));
        assert_eq!(trouble.error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_quota_and_a_broken_device_are_reported_with_their_place() {
        let quota = Simulated {
            capacity: Some(10),
            full: Some(io::ErrorKind::QuotaExceeded),
            ..Simulated::default()
        };
        let done = write(&quota, &view(0, &[(0, 1)], 0), 0, &filled(&[7; 20]));
        let trouble = done.trouble.expect("the quota is reached");
        assert_eq!((done.bytes, trouble.at), (10, 10));
        assert_eq!(trouble.error.kind(), io::ErrorKind::QuotaExceeded);
        let broken = Simulated {
            broken: Some(30),
            ..Simulated::new(vec![1; 100])
        };
        let (buf, scratch) = (Buf::alloc(80), Scratch::default());
        // The fault begins in a gap; the piece after it cannot be read.
        for sieve in [None, Some(Sieve { buffer: 50, gap: 9 })] {
            let view = view(0, &[(0, 4)], 4);
            let done = read(&broken, &view, 0, &buf, sieve, &scratch);
            let trouble = done.trouble.expect("the device has a fault");
            assert_eq!((trouble.writes, trouble.at, done.bytes), (false, 32, 16));
            let before = read(&broken, &view, 0, &Buf::alloc(16), sieve, &scratch);
            assert!(before.trouble.is_none() && before.bytes == 16);
            assert_eq!(trouble.error.raw_os_error(), Some(5));
        }
    }

    #[test]
    fn a_file_that_becomes_shorter_meanwhile_ends_a_read_early() {
        for sieve in [None, Some(Sieve { buffer: 20, gap: 2 })] {
            let storage = Simulated {
                shrinks: Some(40),
                ..Simulated::new((0..100).collect())
            };
            let (buf, scratch) = (Buf::alloc(80), Scratch::default());
            let done = read(&storage, &view(0, &[(0, 8)], 2), 0, &buf, sieve, &scratch);
            assert!(done.trouble.is_none());
            assert_eq!(done.bytes, 32, "8 of each 10 of the 40 that are left");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_through_a_view_is_read_through_it(
            displacement in 0i64..50,
            gaps in proptest::collection::vec((0i64..9, 1u64..9), 1..8),
            tail in 0i64..9, data in 0u64..100, len in 0usize..300,
            buffer in 1u64..200, gap in 0u64..12, cut in 0u64..200,
        ) {
            let view = view(displacement, &gaps, tail);
            // Longer than the last byte that such a view can show.
            let before: Vec<u8> = vec![0xee; 8000];
            let storage = Simulated::new(before.clone());
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let done = write(&storage, &view, data, &filled(&bytes));
            prop_assert_eq!(done.bytes, len as u64);
            let mut expected = before;
            for (i, b) in bytes.iter().enumerate() {
                expected[view.offset_of(data + i as u64) as usize] = *b;
            }
            prop_assert_eq!(&*storage.bytes.lock().expect("bytes"), &expected);
            // The file is cut somewhere within the data.
            let end = view.end_of(data + len as u64).saturating_sub(cut);
            storage.set_size(end).expect("a size");
            let there = (0..len as u64).filter(|&i| view.offset_of(data + i) < end).count();
            for sieve in [None, Some(Sieve { buffer, gap })] {
                let buf = Buf::alloc(len);
                let done = read(&storage, &view, data, &buf, sieve, &Scratch::default());
                prop_assert!(done.trouble.is_none());
                prop_assert_eq!(done.bytes, there as u64);
                let mut out = vec![0; there];
                buf.read(0, &mut out);
                prop_assert_eq!(&out, &bytes[..there]);
            }
        }
    }
}
