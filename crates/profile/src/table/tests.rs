//! Rows and sheets of a table, and how the launcher reads them.

use super::*;

/// A table in memory like the launcher's.
fn table() -> Table {
    let layout = std::alloc::Layout::from_size_align(SIZE, 4096).unwrap();
    let table = Table {
        // SAFETY: the layout has a size; the memory is never freed.
        base: unsafe { std::alloc::alloc_zeroed(layout) },
        counter: false,
        counts: true,
        modules: Mutex::new(Vec::new()),
        trace: None,
    };
    table.word(0).store(MAGIC, Ordering::Relaxed);
    table.begin();
    table
}

/// The table as the launcher reads it.
fn read_back(table: &Table) -> Calls {
    let copy = |at: usize, to: &mut [u8]| {
        // SAFETY: the table has `SIZE` bytes, and nothing writes there.
        let all = unsafe { std::slice::from_raw_parts(table.base, SIZE) };
        to.copy_from_slice(all.get(at..at + to.len())?);
        Some(())
    };
    read(copy, ticks::now(false), clock::now().0).expect("a table")
}

/// A call of this function from an address.
fn call(table: &Table, sheet: usize, function: u32, address: usize) -> usize {
    let row = table.row(sheet, function, address);
    let calls = table.word(row + 16);
    calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    row
}

#[test]
fn calls_of_one_function_from_one_place_share_a_row() {
    let table = table();
    let (sheet, shared) = table.take_sheet();
    assert!(!shared);
    let here = call as fn(&Table, usize, u32, usize) -> usize as usize;
    let row = call(&table, sheet, 5, here);
    assert_eq!(call(&table, sheet, 5, here), row);
    assert_ne!(call(&table, sheet, 6, here), row);
    assert_ne!(call(&table, sheet, 5, here + 1), row);
    let calls = read_back(&table);
    let mut rows: Vec<_> = calls.rows.iter().map(|r| (r.function, r.count)).collect();
    rows.sort_unstable();
    assert_eq!(rows, [(5, 1), (5, 2), (6, 1)]);
    let this = std::env::current_exe().unwrap();
    assert_eq!(calls.files, [this.to_str().unwrap()]);
}

#[test]
fn where_rows_have_run_out_one_takes_all_others() {
    let table = table();
    let (sheet, _) = table.take_sheet();
    for address in 1..ROWS + 10 {
        call(&table, sheet, 5, address);
    }
    let calls = read_back(&table);
    assert_eq!(
        calls.rows.iter().map(|r| r.count).sum::<u64>(),
        (ROWS + 9) as u64
    );
    let others: Vec<u64> = calls
        .rows
        .iter()
        .filter(|r| r.function == NONE)
        .map(|r| r.count)
        .collect();
    assert_eq!(others, [10]);
}

#[test]
fn threads_beyond_the_last_sheet_share_it() {
    let table = table();
    let taken: Vec<_> = (0..SHEETS + 1).map(|_| table.take_sheet()).collect();
    assert!(taken[..SHEETS - 1].iter().all(|(_, shared)| !shared));
    assert_eq!(taken[SHEETS - 1], taken[SHEETS]);
    assert!(taken[SHEETS].1);
    table.leave_sheet(taken[SHEETS].0);
    table.leave_sheet(taken[3].0);
    assert_eq!(table.take_sheet(), (taken[3].0, false));
    assert!(table.take_sheet().1);
}

#[test]
fn a_descriptor_that_is_no_table_is_left_alone() {
    assert!(map(-1, 0, SIZE).is_none());
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    assert!(map(fd, 1 << 40, SIZE).is_none(), "it is shorter");
}
