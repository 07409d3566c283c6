//! The built-in table, rows that users write, and the choices that they make.

use super::*;
use crate::cost::{Distances, StepCosts};
use crate::{Blocks, Nodes, SEND, ShmSizes};

#[test]
fn the_table_has_an_algorithm_for_every_call() {
    let table = Table::default();
    let listed = [
        (Blocks::Even { buf: SEND, each: 1 }),
        (Blocks::Listed {
            buf: SEND,
            counts: &[],
            at: &[],
        }),
    ];
    let shm_region = Some(ShmSizes {
        short: 4088,
        long: 65528,
        unit: 8,
    });
    for &(coll, _) in COLLS {
        for (n, bytes) in
            (1..=33).flat_map(|n| [0u64, 8, 1 << 10, 1 << 20, 1 << 40].map(move |b| (n, b)))
        {
            let nodes = Nodes::of_hosts((0..n).map(|r| r % 3));
            for bits in 0..128 {
                let (commutative, in_place) = (bits & 1 > 0, bits & 2 > 0);
                let send = listed[(bits >> 2) & 1];
                let call = CallView {
                    commutative,
                    in_place,
                    send,
                    recv: send,
                    nodes: nodes.as_ref().filter(|_| bits & 16 > 0),
                    shm_region: shm_region.filter(|_| bits & 32 > 0),
                    ..CallView::new(0, n)
                };
                let site = Site {
                    shared: bits & 8 > 0,
                    network: bits & 64 > 0,
                };
                let (a, param) = table.choose(coll, bytes, site, &call);
                assert!(a.coll == coll && a.need.met(&call) && param > 0);
            }
        }
    }
}

#[test]
fn all_ranks_choose_alike_by_price() {
    let rows = COLLS
        .iter()
        .map(|c| format!("{} - - any any any cheapest", c.1));
    let table = Table::only(&rows.collect::<Vec<_>>().join(";")).unwrap();
    let shm_region = ShmSizes {
        short: 4096,
        long: 1 << 18,
        unit: 1,
    };
    for (n, bytes) in [2, 5, 16, 33]
        .into_iter()
        .flat_map(|n| [8, 1 << 12, 1 << 20].map(|b| (n, b)))
    {
        let nodes = [None, Nodes::of_hosts((0..n).map(|r| r / 3))];
        for (&(coll, _), nodes) in COLLS.iter().flat_map(|c| nodes.iter().map(move |n| (c, n))) {
            let choose = |rank: u32| {
                let call = CallView {
                    root: n - 1,
                    count: bytes,
                    block_bytes: bytes,
                    nodes: nodes.as_ref(),
                    shm_region: Some(shm_region),
                    chooser: Some(crate::Chooser {
                        table: &table,
                        site: Site::default(),
                    }),
                    ..CallView::new(rank, n)
                };
                let (a, param) = table.choose(coll, bytes, Site::default(), &call);
                (a.name, param)
            };
            assert!(
                (1..n).all(|r| choose(r) == choose(0)),
                "{coll:?} {n} {bytes}"
            );
        }
    }
}

#[test]
fn a_choice_that_is_remembered_is_that_of_its_call() {
    let table = Table::only("allreduce - - any any any cheapest").unwrap();
    let choose = |table: &Table, n, bytes| {
        let call = CallView::ordinary(Coll::Allreduce, 0, n, bytes);
        let (a, param) = table.choose(Coll::Allreduce, bytes, Site::default(), &call);
        (a.name, param)
    };
    // More calls than are remembered, twice.
    for _ in 0..2 {
        for (n, power) in (2..40).flat_map(|n| (3..24).map(move |p| (n, p))) {
            let fresh = choose(&table.clone(), n, 1 << power);
            assert_eq!(choose(&table, n, 1 << power), fresh, "{n} ranks, 2^{power}");
        }
    }
    let dear = Prices {
        send: 1e9,
        ..Prices::start()
    };
    assert_ne!(
        choose(&table, 16, 1 << 20),
        choose(&table.priced(dear), 16, 1 << 20)
    );
}

#[test]
fn a_file_among_the_rows_is_read_and_blamed_by_name() {
    let read = |file: &str| match file {
        "mine" => Ok("# mine\nbcast - - any any any linear\n".to_string()),
        "remarks" => Ok("# of mine; all\nbcast - - any any any linear # short; plain\n".into()),
        "bad" => Ok("# bad\nbcast -\n".to_string()),
        _ => Err(io::Error::other("no such file")),
    };
    let first = |rows: &str| {
        let table = Table::with_files(rows, read).map_err(|e| e.to_string())?;
        let call = CallView::new(0, 9);
        Ok::<_, String>(
            table
                .choose(Coll::Bcast, 1 << 20, Site::default(), &call)
                .0
                .name,
        )
    };
    assert_eq!(first("@mine"), Ok("linear"));
    assert_eq!(first("@remarks"), Ok("linear"));
    // the step of ranks that compare the rows before they use them
    let rows = Table::expand("@remarks", read).unwrap();
    assert_eq!(first(&rows), Ok("linear"));
    assert_eq!(
        first("bcast - - any any any binomial;@mine"),
        Ok("binomial")
    );
    assert_eq!(
        first("@bad"),
        Err("bad: line 2: has 2 words instead of 7: bcast -".into())
    );
    assert_eq!(first("@none"), Err("none: no such file".into()));
}

#[test]
fn at_most_twenty_rows_override_what_costs_least_and_each_says_why() {
    let rows = BUILT_IN
        .lines()
        .filter(|l| !l.trim().is_empty() && !l.starts_with('#'));
    let named: Vec<&str> = rows.filter(|l| !l.ends_with(CHEAPEST)).collect();
    assert!(named.len() <= 20, "{}", named.len());
    for row in named {
        let why = row.split_once('#').map_or("", |(_, why)| why.trim());
        assert!(why.split(' ').count() > 1, "{row}");
    }
}

/// Calls of ten thousand ranks on one host and on hosts of 32, with the sizes that matter.
fn choose_for_many(
    table: &Table,
    mut each: impl FnMut(Coll, u64, bool, &dyn Fn() -> &'static str),
) {
    const RANKS: u32 = 10_000;
    let nodes = Nodes::of_hosts((0..RANKS).map(|r| r / 32));
    let shm_region = ShmSizes {
        short: 4096,
        long: 1 << 18,
        unit: 8,
    };
    for &(coll, _) in COLLS {
        for (bytes, many) in [8, 4096, 1 << 20]
            .into_iter()
            .flat_map(|b| [(b, false), (b, true)])
        {
            let site = Site::default();
            let call = CallView {
                nodes: nodes.as_ref().filter(|_| many),
                shm_region: Some(shm_region),
                chooser: Some(crate::Chooser { table, site }),
                ..CallView::ordinary(coll, 0, RANKS, bytes.max(8 * u64::from(RANKS)))
            };
            let call = CallView { bytes, ..call };
            each(coll, bytes, many, &|| {
                table.choose(coll, bytes, site, &call).0.name
            });
        }
    }
}

/// Steps that are priced for one choice, whatever the number of ranks.
const MOST_STEPS: u64 = 1_500;

#[test]
fn choosing_for_ten_thousand_ranks_prices_few_steps() {
    let mut most = (0, String::new());
    choose_for_many(&Table::default(), |coll, bytes, many, choose| {
        crate::cost::STEPS.set(0);
        let name = choose();
        let steps = crate::cost::STEPS.get();
        if steps > most.0 {
            most = (
                steps,
                format!("{coll:?} {name}, {bytes} bytes, many nodes: {many}"),
            );
        }
    });
    println!("at most {most:?}");
    assert!(most.0 <= MOST_STEPS, "{most:?}");
}

#[test]
#[ignore = "prints a time"]
fn time_to_choose_for_ten_thousand_ranks() {
    choose_for_many(&Table::default(), |coll, bytes, many, choose| {
        let begin = std::time::Instant::now();
        let name = choose();
        let first = begin.elapsed();
        println!("{coll:?} {bytes} bytes, many nodes: {many}: {name} after {first:?}");
    });
}

#[test]
fn numbers_that_are_too_large_are_not_cut_off() {
    // Cut off to 32 bits these would be "1 process at most" and "tree/0".
    let table = Table::only("barrier - 4294967297 any any any tree/4294967296").unwrap();
    let call = CallView::new(0, 9);
    let (a, param) = table.choose(Coll::Barrier, 0, Site::default(), &call);
    assert_eq!((a.name, param), ("tree", u32::MAX));
    // A tree of such a fan-out is flat: rank 3 reports only to its parent.
    let (mut s, call) = (
        crate::Schedule::default(),
        CallView {
            param,
            ..CallView::new(3, 9)
        },
    );
    (a.emit)(&call, &mut s);
    let sends = s
        .steps
        .iter()
        .filter(|s| matches!(s, crate::Step::Send { .. }));
    assert_eq!(sends.count(), 1);
    let distances = Distances::of(&Prices::start(), &call, |_| {});
    assert!((a.cost)(&call, &StepCosts::new(&distances, true, &call)) > 0.0);
}

#[test]
fn a_wrong_table_is_reported_by_line() {
    assert!(
        Table::parse("bcast - - any any any nosuch")
            .unwrap_err()
            .to_string()
            .starts_with("line 1: no algorithm")
    );
    assert!(
        Table::parse("# x\nbcast - - any any any")
            .unwrap_err()
            .to_string()
            .starts_with("line 2: has 6 words")
    );
    assert!(
        Table::parse("bcast 1k - any any any linear")
            .unwrap_err()
            .to_string()
            .contains("1k is not a number")
    );
}
