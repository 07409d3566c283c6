//! Effects of calls without the lock of the library, and calls that they leave to the ordinary way.

use super::*;
use crate::windows::{Memory, NewWindow, Window};
use kw_base::{ContextId, Peer};
use kw_path::shm::window::{SharedMemoryJoin, SharedMemoryLead};
use kw_sys::buf::Buf;
use kw_types::comm::Group;

const UNIT: u64 = 8;

/// More than is combined at once.
const ELEMENTS: usize = 10_000;

const EXTENT: Extent = Extent {
    size: 64,
    unit: UNIT,
};

/// Memory of two ranks of a host, 64 bytes of rank 0 and `bytes` of rank 1, as rank 0 has it.
fn memory(bytes: u64) -> Arc<SharedMemory> {
    let lead = SharedMemoryLead::new(2).unwrap();
    let (name, key, sizes) = (lead.name(), [5; 32], [64, bytes]);
    let join = SharedMemoryJoin::new(&name).unwrap();
    let join = std::thread::spawn(move || join.take(&key, 1, &sizes, false));
    let memory = lead.serve(&key, &sizes, false);
    join.join().unwrap().unwrap();
    memory.unwrap()
}

/// The memory of it that rank 0 reaches, and a third rank elsewhere.
fn reachable(threads: bool) -> Reachable {
    reachable_bytes(threads, 64)
}

fn reachable_bytes(threads: bool, bytes: u64) -> Reachable {
    let place = |rank| (rank < 2).then_some(rank as usize);
    let made = Reachable::new(&memory(bytes), place, 0, &[EXTENT; 3]);
    made.promise(threads, true, 77);
    made
}

fn word(value: u64) -> Buf {
    let buf = Buf::alloc(8);
    buf.write(0, &value.to_ne_bytes());
    buf
}

fn value(buf: &Buf) -> u64 {
    let mut bytes = [0; 8];
    buf.read(0, &mut bytes);
    u64::from_ne_bytes(bytes)
}

fn put(to: &Reachable, data: u64, at: (i32, i64)) -> Option<()> {
    to.put(word(data).region()?, at, 8)
}

fn get(from: &Reachable, at: (i32, i64)) -> Option<u64> {
    let into = word(0);
    from.get(into.region()?, at, 8)?;
    Some(value(&into))
}

#[test]
fn what_lies_outside_or_is_not_locked_is_left_to_the_ordinary_way() {
    for threads in [false, true] {
        let r = reachable(threads);
        assert_eq!(put(&r, 1, (1, 0)), None, "no epoch");
        assert_eq!(
            (r.unlock(1), r.flush(Some(1)), r.flush(None)),
            (None, None, None)
        );
        assert_eq!(r.lock(2, LockMode::Shared), None, "out of reach");
        assert_eq!(
            (r.lock(-1, LockMode::Shared), r.lock(3, LockMode::Shared)),
            (None, None)
        );
        assert_eq!(r.lock(1, LockMode::Exclusive), Some(()));
        assert_eq!(r.lock(1, LockMode::Shared), None, "an epoch is open");
        assert_eq!(put(&r, 7, (1, 7)), Some(()));
        assert_eq!(get(&r, (1, 7)), Some(7));
        for outside in [
            (1, 8),
            (1, -1),
            (1, i64::MAX),
            (0, 0),
            (2, 0),
            (-1, 0),
            (3, 0),
        ] {
            assert_eq!(put(&r, 9, outside), None, "{outside:?}");
        }
        assert_eq!(r.flush(Some(1)), Some(()));
        assert_eq!((r.flush(Some(0)), r.flush(Some(2))), (None, None));
        assert_eq!((r.fence(), r.unlock(0)), (None, None));
        assert_eq!((r.unlock(1), r.unlock(1)), (Some(false), None));
        assert_eq!(get(&r, (1, 7)), None, "no epoch");
    }
}

#[test]
fn data_that_does_not_fit_is_left_to_the_ordinary_way() {
    let r = reachable(false);
    r.lock(1, LockMode::Shared).unwrap();
    let long = Buf::alloc(16);
    assert_eq!(r.put(long.region().unwrap(), (1, 0), 8), None);
    assert_eq!(r.get(word(0).region().unwrap(), (1, 0), 16), None);
    assert_eq!(
        r.put(word(3).region().unwrap(), (1, 6), 16),
        Some(()),
        "room for more"
    );
    assert_eq!(r.put(word(4).region().unwrap(), (1, 7), 16), None);
    assert_eq!((get(&r, (1, 6)), get(&r, (1, 7))), (Some(3), Some(0)));
}

/// This word, [`ELEMENTS`] times.
fn row(value: u64) -> Buf {
    let buf = Buf::alloc(8 * ELEMENTS);
    buf.write(0, &value.to_ne_bytes().repeat(ELEMENTS));
    buf
}

#[test]
fn each_element_of_a_long_row_is_combined_once_beside_others() {
    let r = reachable_bytes(false, 8 * ELEMENTS as u64);
    r.lock(1, LockMode::Shared).unwrap();
    let combine = |op, operand: &Buf, result: Option<&Buf>| {
        let (operand, result) = (operand.region().unwrap(), result.and_then(Buf::region));
        let len = 8 * ELEMENTS as u64;
        r.combine((op, Basic::U64), operand, result, (1, 0), len)
    };
    let few = |element: usize| {
        let (one, at) = (word(1), (1, element as i64));
        r.combine((Op::Sum, Basic::U64), one.region().unwrap(), None, at, 8)
    };
    let (some, found) = (row(3), row(0));
    std::thread::scope(|s| {
        s.spawn(|| (0..100).for_each(|_| combine(Op::Sum, &some, None).unwrap()));
        (0..ELEMENTS).for_each(|element| few(element).unwrap());
        few(ELEMENTS - 1).unwrap();
    });
    assert_eq!(combine(Op::Max, &row(302), Some(&found)), Some(()));
    let mut bytes = vec![0; 8 * ELEMENTS];
    found.read(0, &mut bytes);
    assert_eq!(
        bytes[8 * (ELEMENTS - 2)..],
        [301u64, 302].map(u64::to_ne_bytes).concat()
    );
    assert!(
        bytes[..8 * (ELEMENTS - 1)]
            .chunks(8)
            .all(|w| w == 301u64.to_ne_bytes())
    );
    assert_eq!(combine(Op::NoOp, &Buf::EMPTY, Some(&found)), Some(()));
    found.read(0, &mut bytes);
    assert!(bytes.chunks(8).all(|w| w == 302u64.to_ne_bytes()));
}

#[test]
fn elements_are_combined_and_compared() {
    let r = reachable(false);
    r.lock(1, LockMode::Shared).unwrap();
    let (at, found) = ((1, 2), word(0));
    let combine = |op, operand: &Buf, result: Option<&Buf>| {
        let result = result.and_then(Buf::region);
        r.combine((op, Basic::U64), operand.region().unwrap(), result, at, 8)
    };
    assert_eq!(combine(Op::Sum, &word(5), None), Some(()));
    assert_eq!(combine(Op::Sum, &word(6), Some(&found)), Some(()));
    assert_eq!(value(&found), 5);
    assert_eq!(combine(Op::NoOp, &Buf::EMPTY, Some(&found)), Some(()));
    assert_eq!(value(&found), 11);
    assert_eq!(combine(Op::Minloc, &word(1), None), None, "not defined");
    let swap = |compare: u64, swap: u64| {
        let values = (compare.to_ne_bytes(), swap.to_ne_bytes());
        r.compare_and_swap(values, found.region().unwrap(), at)
    };
    assert_eq!(
        (swap(10, 1), value(&found), get(&r, at)),
        (Some(()), 11, Some(11))
    );
    assert_eq!(
        (swap(11, 1), value(&found), get(&r, at)),
        (Some(()), 11, Some(1))
    );
}

#[test]
fn a_lock_that_somebody_holds_is_left_to_the_ordinary_way() {
    let r = reachable(false);
    assert!(r.memory.lock(1).try_lock(Locking::Alone(9), false));
    assert_eq!(r.lock(1, LockMode::Shared), None);
    r.memory.lock(1).set_awaited(true);
    r.memory.lock(1).unlock(None);
    assert_eq!(r.lock(1, LockMode::Shared), None, "somebody waits");
    r.memory.lock(1).set_awaited(false);
    r.lock(1, LockMode::Exclusive).unwrap();
    r.memory.lock(1).set_awaited(true);
    assert_eq!(r.unlock(1), Some(true), "who waits is told");
}

/// Threads that lock different ranks at once: all but one find an epoch open, and locks that they
/// have taken meanwhile are given back.
#[test]
fn locks_of_two_threads_at_once_are_both_known() {
    let r = reachable(true);
    for _ in 0..1000 {
        let both = std::thread::scope(|s| {
            let other = s.spawn(|| r.lock(0, LockMode::Shared).is_some());
            (r.lock(1, LockMode::Shared).is_some(), other.join().unwrap())
        });
        let rank = match both {
            (true, false) => 1,
            (false, true) => 0,
            other => panic!("{other:?}: one of two"),
        };
        let strays = std::mem::take(&mut *r.strays.lock().unwrap());
        assert!(strays.iter().all(|&stray| stray as i32 == 1 - rank));
        for stray in strays {
            assert!(!r.memory.lock(stray as usize).unlock(None));
        }
        assert_eq!(r.unlock(rank), Some(false));
        assert!(
            r.memory.lock(0).try_lock(Locking::Alone(9), false)
                && r.memory.lock(1).try_lock(Locking::Alone(9), false)
        );
        r.memory.lock(0).unlock(None);
        r.memory.lock(1).unlock(None);
    }
}

#[test]
fn a_fence_needs_all_memory_in_reach() {
    let r = reachable(false);
    r.epoch.store(epoch::FENCE, Ordering::Relaxed);
    assert_eq!(r.fence(), None, "the third rank");
    let all = Reachable { all: true, ..r };
    assert_eq!(put(&all, 1, (1, 0)), Some(()));
    assert_eq!(all.epoch.load(Ordering::Relaxed), epoch::FENCE_USED);
    assert_eq!((all.fence(), all.flush(Some(1))), (Some(77), None));
    assert_eq!(all.epoch.load(Ordering::Relaxed), epoch::FENCE);
    all.posted.store(true, Ordering::Relaxed);
    assert_eq!(all.fence(), None);
}

#[test]
fn lock_all_may_follow_a_fence_after_operations_where_not_all_memory_is_in_reach() {
    let mut window = Window::new(NewWindow {
        context: ContextId(4),
        group: Arc::new(Group::range(Peer(0), 3)),
        me: 0,
        memory: Memory::Shared {
            memory: memory(64),
            ranks: vec![0, 1],
        },
        targets: vec![EXTENT; 3],
        checks: false,
    });
    let reachable = window.published.reachable.clone().unwrap();
    let fence = |window: &mut Window| {
        window.adopt();
        window.epochs.fence(true).unwrap();
        window.publish_epoch();
    };
    fence(&mut window);
    assert_eq!(put(&reachable, 1, (1, 0)), Some(()));
    window.adopt();
    assert!(window.epochs.lock_all().is_err(), "the epoch was used");
    assert_eq!(reachable.fence(), None);
    fence(&mut window);
    window.adopt();
    window.epochs.lock_all().unwrap();
}
