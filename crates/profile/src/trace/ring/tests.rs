//! A ring and its reader: a call is seen whole or not at all, and records without room are counted.

use super::*;

/// Memory like the launcher's.
fn memory() -> Memory {
    let layout = std::alloc::Layout::from_size_align(SIZE, 4096).unwrap();
    // SAFETY: the layout has a size; the memory is never freed.
    unsafe { Memory::new(std::alloc::alloc_zeroed(layout)) }
}

fn word(memory: &Memory, at: usize) -> u64 {
    memory.word(RINGS_AT + at).load(Ordering::Relaxed)
}

/// A word of the ring's record at a place.
fn of_record(memory: &Memory, place: usize, at: usize) -> u64 {
    word(memory, RECORDS_AT + place * RECORD + at * 8)
}

#[test]
fn a_call_is_at_the_head_until_it_has_ended() {
    let memory = memory();
    let mut ring = Ring::new(memory, 0);
    assert_eq!(memory.word(RINGS_USED).load(Ordering::Relaxed), 1);
    ring.open(11, 12, 13, 14, 15);
    ring.set(Record::BEGIN, 100);
    assert!(ring.is_open());
    assert_eq!(word(&memory, HEAD), 0);
    assert_eq!(of_record(&memory, 0, Record::WHAT), 11);
    ring.close(200, 64);
    assert!(!ring.is_open());
    assert_eq!(word(&memory, HEAD), 0);
    ring.push(&Record::EMPTY);
    ring.publish();
    assert_eq!(word(&memory, HEAD), 2);
    let found: Vec<u64> = (0..RECORD / 8)
        .map(|at| of_record(&memory, 0, at))
        .collect();
    assert_eq!(found, [100, 200, 11, 12, 13, 64, 14, 15]);
}

#[test]
#[cfg_attr(miri, ignore = "33,000 records take minutes")]
fn what_has_no_room_is_counted_and_changes_nothing() {
    let memory = memory();
    let mut ring = Ring::new(memory, 0);
    for n in 0..RECORDS as u64 {
        ring.open(n, 0, 0, 0, 0);
        ring.close(1, 0);
    }
    ring.publish();
    ring.open(7777, 0, 0, 0, 0);
    ring.close(1, 0);
    ring.push(&Record::EMPTY);
    ring.publish();
    assert_eq!(word(&memory, LOST), 2);
    assert_eq!(word(&memory, HEAD), RECORDS as u64);
    assert_eq!(of_record(&memory, 0, Record::WHAT), 0);
    assert_eq!(of_record(&memory, 1, Record::WHAT), 1);
}

#[test]
fn there_is_room_again_where_the_launcher_has_read() {
    let memory = memory();
    let mut ring = Ring::new(memory, 0);
    for _ in 0..RECORDS {
        ring.push(&Record::EMPTY);
    }
    memory.word(RINGS_AT + TAIL).store(1, Ordering::Release);
    ring.open(5, 0, 0, 0, 0);
    ring.close(1, 0);
    ring.publish();
    assert_eq!(word(&memory, HEAD), RECORDS as u64 + 1);
    assert_eq!(of_record(&memory, 0, Record::WHAT), 5);
    assert_eq!(word(&memory, LOST), 0);
}

#[test]
fn the_next_thread_goes_on_where_the_one_before_has_ended() {
    let memory = memory();
    let mut before = Ring::new(memory, 0);
    before.push(&Record::EMPTY);
    before.publish();
    drop(before);
    let mut ring = Ring::new(memory, 0);
    ring.push(&Record::EMPTY);
    ring.publish();
    assert_eq!(word(&memory, HEAD), 2);
}
