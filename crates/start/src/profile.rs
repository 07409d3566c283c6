//! The table of a rank's MPI calls, which the recorder (`crates/profile`) keeps in memory provided
//! by its launcher. The launcher reads it at any time, however the rank ends.
//!
//! ```text
//! header (4096 bytes): words, see the constants     modules: base address, length of the path, path
//! sheets, one for each thread: owner, rows used, the row of the call under way, since when; rows
//! row (64 bytes): return address, function | module << 32, calls, ticks, bytes
//! ```
//! Words are u64 of the machine. The first row of a sheet counts the calls for which there is no
//! room. Between hosts a table is sent as [`Calls::encode`] encodes it.

use std::collections::HashMap;

/// The variable that tells the recorder where its memory is: `DESCRIPTOR,NUMBER`.
pub const VARIABLE: &str = "MPIEXEC_PROFILE";
/// First word of the header.
pub const MAGIC: u64 = 0x6b77_7072_6f66_3101;
/// Whether ticks are those of the CPU's counter (1) or nanoseconds (0).
pub const COUNTER: usize = 8;
/// Ticks at the first call.
pub const TICKS: usize = 16;
/// The monotonic clock at the same time, in nanoseconds.
pub const NANOSECONDS: usize = 24;
/// Ticks when MPI was first initialised, or 0.
pub const BEGIN: usize = 32;
/// Ticks when it was last finalised, or 0.
pub const END: usize = 40;
/// Modules in their table.
pub const MODULES_USED: usize = 48;
/// Offset of the memory of [`crate::trace`] in the file, or 0.
pub const TRACE: usize = 56;
/// Whether sums are not requested: rows have only function and address.
pub const UNCOUNTED: usize = 64;
/// Nanoseconds of access to files at the last finalisation, followed by those of communication of
/// collective access, or 0.
pub const FILE_TIMES: usize = 72;
/// Offset of the modules.
pub const MODULES_AT: usize = 4096;
/// Bytes of a module.
pub const MODULE: usize = 512;
/// Most modules.
pub const MODULES: usize = 256;
/// Offset of the path in a module.
pub const PATH_AT: usize = 16;
/// Offset of the sheets.
pub const SHEETS_AT: usize = MODULES_AT + MODULES * MODULE;
/// Most sheets; further threads share the last one.
pub const SHEETS: usize = 32;
/// Whether a thread has the sheet.
pub const OWNER: usize = 0;
/// Rows used.
pub const ROWS_USED: usize = 8;
/// Offset in the sheet of the row of the call in flight; 0: there is none.
pub const UNDER_WAY: usize = 16;
/// Ticks at the start of that call.
pub const SINCE: usize = 24;
/// Offset of the rows in a sheet.
pub const ROWS_AT: usize = 64;
/// Bytes of a row.
pub const ROW: usize = 64;
/// Most rows of a sheet.
pub const ROWS: usize = 1023;
/// Bytes of a sheet.
pub const SHEET: usize = ROWS_AT + ROWS * ROW;
/// Bytes of the longest ordinary pages (ARM has 4, 16 or 64 KB): the parts of the launcher's file
/// that ranks map begin at multiples of this.
pub const PAGE: usize = 64 << 10;
/// Total bytes.
pub const SIZE: usize = (SHEETS_AT + SHEETS * SHEET).next_multiple_of(PAGE);
/// The function of a row for several, and the module of an address outside all modules.
pub const NONE: u32 = u32::MAX;

/// The calls of one function from one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Number of the function, or [`NONE`].
    pub function: u32,
    /// Which of [`Calls::files`], or [`NONE`].
    pub file: u32,
    /// Return address, relative to the file's first byte in memory.
    pub offset: u64,
    /// Calls.
    pub count: u64,
    /// Nanoseconds in them.
    pub time: u64,
    /// Bytes that they transferred.
    pub bytes: u64,
}

/// Calls of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Nanoseconds from MPI_Init to MPI_Finalize, or until now.
    pub run: u64,
    /// Whether it has finalised.
    pub over: bool,
    /// Nanoseconds of access to files, by any thread; known once it has finalised.
    pub file_access: u64,
    /// Nanoseconds of communication of collective access to files, and of waiting for other ranks.
    pub file_exchange: u64,
    /// Programs and libraries that made calls, by path.
    pub files: Vec<String>,
    /// The calls.
    pub rows: Vec<Row>,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 8).and_then(|b| b.first_chunk());
    found.map_or(0, |b| u64::from_ne_bytes(*b))
}

/// Two clocks, each at the first call and now.
struct Clocks {
    ticks: (u64, u64),
    nanoseconds: (u64, u64),
}

impl Clocks {
    fn span(&self, ticks: u64) -> u64 {
        let (ticks_of_all, all) = (
            self.ticks.1.saturating_sub(self.ticks.0).max(1),
            self.nanoseconds.1.saturating_sub(self.nanoseconds.0),
        );
        let exact = u128::from(ticks) * u128::from(all) / u128::from(ticks_of_all);
        exact.min(u64::MAX.into()) as u64
    }
}

/// Reads a rank's table. `read` fills a buffer from an offset, `ticks` and `nanoseconds` are the
/// present times. `None` if the rank has made no calls.
pub fn read(
    mut read: impl FnMut(usize, &mut [u8]) -> Option<()>,
    ticks: u64,
    nanoseconds: u64,
) -> Option<Calls> {
    let mut header = [0; FILE_TIMES + 16];
    read(0, &mut header)?;
    if word(&header, 0) != MAGIC || word(&header, TICKS) == 0 {
        return None;
    }
    let clocks = Clocks {
        ticks: (word(&header, TICKS), ticks),
        nanoseconds: (word(&header, NANOSECONDS), nanoseconds),
    };
    let (begin, end) = (word(&header, BEGIN), word(&header, END));
    let begin = if begin == 0 { clocks.ticks.0 } else { begin };
    let until = if end == 0 { ticks } else { end };
    let used = word(&header, MODULES_USED).min(MODULES as u64) as usize;
    let mut modules = vec![0; used * MODULE];
    read(MODULES_AT, &mut modules)?;
    let (bases, files) = modules.chunks(MODULE).map(module).unzip();
    let mut sum = Sum {
        bases,
        rows: HashMap::new(),
    };
    let mut sheet = vec![0; SHEET];
    for at in (0..SHEETS).map(|n| SHEETS_AT + n * SHEET) {
        read(at, &mut sheet[..ROWS_AT])?;
        let used = word(&sheet, ROWS_USED).min(ROWS as u64) as usize;
        read(at + ROWS_AT, &mut sheet[ROWS_AT..][..used * ROW])?;
        sum.add(&sheet, used, ticks);
    }
    let mut rows: Vec<Row> = sum.rows.into_values().collect();
    rows.iter_mut().for_each(|r| r.time = clocks.span(r.time));
    rows.sort_by_key(|r| (r.file, r.offset, r.function));
    Some(Calls {
        run: clocks.span(until.saturating_sub(begin)),
        over: end != 0,
        file_access: word(&header, FILE_TIMES),
        file_exchange: word(&header, FILE_TIMES + 8),
        files,
        rows,
    })
}

fn module(bytes: &[u8]) -> (u64, String) {
    let len = (word(bytes, 8) as usize).min(MODULE - PATH_AT);
    let path = String::from_utf8_lossy(&bytes[PATH_AT..][..len]);
    (word(bytes, 0), path.into_owned())
}

/// The merged sheets of a rank; times in ticks.
struct Sum {
    bases: Vec<u64>,
    rows: HashMap<(u32, u64), Row>,
}

impl Sum {
    fn add(&mut self, sheet: &[u8], used: usize, now: u64) {
        let under_way = word(sheet, UNDER_WAY) as usize;
        for at in 0..used {
            let row = &sheet[ROWS_AT + at * ROW..][..ROW];
            let (mut count, mut time) = (word(row, 16), word(row, 24));
            if under_way == ROWS_AT + at * ROW {
                count += 1;
                time += now.saturating_sub(word(sheet, SINCE));
            }
            if count == 0 {
                continue;
            }
            let (address, both) = (word(row, 0), word(row, 8));
            let (function, file) = (both as u32, (both >> 32) as u32);
            let base = self.bases.get(file as usize);
            let sum = self.rows.entry((function, address)).or_insert(Row {
                function,
                file: base.map_or(NONE, |_| file),
                offset: address.saturating_sub(base.copied().unwrap_or(0)),
                ..Row::default()
            });
            sum.count += count;
            sum.time += time;
            sum.bytes = sum.bytes.saturating_add(word(row, 32));
        }
    }
}

impl Calls {
    /// Encodes the calls for another host.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |n: u64| out.extend_from_slice(&n.to_le_bytes());
        put(self.run);
        put(self.over.into());
        put(self.file_access);
        put(self.file_exchange);
        put(self.files.len() as u64);
        for file in &self.files {
            put(file.len() as u64);
        }
        put(self.rows.len() as u64);
        for r in &self.rows {
            put(u64::from(r.function) | u64::from(r.file) << 32);
            for n in [r.offset, r.count, r.time, r.bytes] {
                put(n);
            }
        }
        for file in &self.files {
            out.extend_from_slice(file.as_bytes());
        }
        out
    }

    /// Decodes the calls; `None` if the bytes are damaged.
    pub fn decode(bytes: &[u8]) -> Option<Calls> {
        let mut rest = bytes;
        let mut take = || {
            let (head, tail) = rest.split_first_chunk::<8>()?;
            rest = tail;
            Some(u64::from_le_bytes(*head))
        };
        let (run, over) = (take()?, take()? != 0);
        let (file_access, file_exchange) = (take()?, take()?);
        let lengths: Option<Vec<u64>> = (0..take()?).map(|_| take()).collect();
        let row = |both: u64, [offset, count, time, bytes]: [u64; 4]| Row {
            function: both as u32,
            file: (both >> 32) as u32,
            offset,
            count,
            time,
            bytes,
        };
        let rows = (0..take()?).map(|_| {
            let both = take()?;
            Some(row(both, [take()?, take()?, take()?, take()?]))
        });
        let rows: Option<Vec<Row>> = rows.collect();
        let rows = rows?;
        let files = lengths?.into_iter().map(|len| {
            let (path, tail) = rest.split_at_checked(usize::try_from(len).ok()?)?;
            rest = tail;
            Some(String::from_utf8_lossy(path).into_owned())
        });
        Some(Calls {
            run,
            over,
            file_access,
            file_exchange,
            files: files.collect::<Option<_>>()?,
            rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// With pages of 16 or 64 KB the memory of the second rank was not mapped.
    #[test]
    fn the_memory_of_every_rank_begins_at_a_page_whatever_its_size() {
        for rank in 0..5 {
            for page in [4 << 10, 16 << 10, 64 << 10] {
                assert_eq!(rank * SIZE % page, 0);
                assert_eq!(rank * crate::trace::SIZE % page, 0);
            }
        }
    }

    fn put(table: &mut [u8], at: usize, words: &[u64]) {
        for (n, w) in words.iter().enumerate() {
            table[at + 8 * n..][..8].copy_from_slice(&w.to_ne_bytes());
        }
    }

    /// A rank that has run for 100 ticks of 2 ns: two threads, one of which is in a call.
    fn table() -> Vec<u8> {
        let mut t = vec![0; SIZE];
        put(&mut t, 0, &[MAGIC, 1, 1000, 5000, 1010, 0, 1]);
        put(&mut t, FILE_TIMES, &[30, 40]);
        put(&mut t, MODULES_AT, &[0x4000, 2]);
        t[MODULES_AT + PATH_AT..][..2].copy_from_slice(b"/a");
        for (n, under_way) in [(0, 0), (1, (ROWS_AT + ROW) as u64)] {
            let sheet = SHEETS_AT + n * SHEET;
            put(&mut t, sheet, &[1, 3, under_way, 1090]);
            put(&mut t, sheet + ROWS_AT + ROW, &[0x4010, 7, 2, 20, 64]);
            put(
                &mut t,
                sheet + ROWS_AT + 2 * ROW,
                &[0x9000, u64::from(NONE) << 32, 1, 5, 0],
            );
        }
        t
    }

    fn of(table: &[u8]) -> Option<Calls> {
        let at = |at: usize, to: &mut [u8]| {
            to.copy_from_slice(table.get(at..at + to.len())?);
            Some(())
        };
        read(at, 1100, 5200)
    }

    #[test]
    fn threads_are_one_and_what_is_under_way_counts() {
        let calls = of(&table()).unwrap();
        assert_eq!((calls.run, calls.over), (180, false));
        assert_eq!((calls.file_access, calls.file_exchange), (30, 40));
        assert_eq!(calls.files, ["/a"]);
        let [row, nowhere] = calls.rows[..] else {
            panic!("{calls:?}")
        };
        assert_eq!((row.function, row.file, row.offset), (7, 0, 0x10));
        assert_eq!((row.count, row.time, row.bytes), (5, 2 * 50, 128));
        assert_eq!(
            (nowhere.file, nowhere.offset, nowhere.time),
            (NONE, 0x9000, 20)
        );
    }

    #[test]
    fn who_has_finished_ran_until_then() {
        let mut t = table();
        put(&mut t, END, &[1060]);
        let calls = of(&t).unwrap();
        assert_eq!((calls.run, calls.over), (100, true));
    }

    #[test]
    fn nothing_is_read_where_nothing_was_called() {
        assert_eq!(of(&vec![0; SIZE]), None);
        let mut t = vec![0; SIZE];
        put(&mut t, 0, &[MAGIC, 1]);
        assert_eq!(of(&t), None);
    }

    #[test]
    fn another_host_reads_the_same() {
        let calls = of(&table()).unwrap();
        let bytes = calls.encode();
        assert_eq!(Calls::decode(&bytes), Some(calls));
        assert!((0..bytes.len()).all(|n| Calls::decode(&bytes[..n]).is_none()));
    }

    proptest! {
        #[test]
        fn fuzz_a_damaged_table(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Calls::decode(&bytes);
            let mut t = table();
            let at = bytes.len().min(64);
            t[8..at.max(8)].copy_from_slice(&bytes[..at.max(8) - 8]);
            let _ = of(&t);
        }
    }
}
