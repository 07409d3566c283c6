//! Numbers of messages: each kind has its own, and kinds with a lost message have none.

use super::*;

#[test]
fn each_kind_of_messages_is_counted_for_itself() {
    let kinds = [
        Quintuple::new(true, 2001, 1, 7),
        Quintuple::new(false, 2001, 1, 7),
        Quintuple::new(true, 2001, 2, 7),
        Quintuple::new(true, 2001, 1, 8),
        Quintuple::new(true, 2002, 1, 7),
    ];
    for n in 0..3 {
        for kind in kinds {
            assert_eq!(kind.next(), n);
        }
    }
}

#[test]
fn a_kind_that_was_given_up_has_no_numbers_any_more() {
    let kind = Quintuple::new(true, 2003, 1, 7);
    assert_eq!(kind.next(), 0);
    kind.give_up();
    assert_eq!((kind.next(), kind.next()), (NONE, NONE));
}

#[test]
fn threads_that_send_at_once_get_different_numbers() {
    let kind = Quintuple::new(true, 2004, 1, 7);
    let each = || (0..1000).map(|_| kind.next()).collect::<Vec<_>>();
    let mut all: Vec<u64> = std::thread::scope(|scope| {
        let threads = [scope.spawn(each), scope.spawn(each)];
        threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    });
    all.sort_unstable();
    assert!(all.into_iter().eq(0..2000));
}
