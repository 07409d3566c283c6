//! The closed forms against the simulator, and what they choose on machines that we do not have.

use crate::machine::forms::Roots;
use crate::machine::regret::{self, Cell, row, summary};
use crate::machine::{Machine, forms};
use kw_coll::Table;
use std::collections::BTreeSet;

fn named(name: &str) -> Machine {
    Machine::all().into_iter().find(|m| m.name == name).unwrap()
}

fn open() -> Machine {
    forms::open(&named("64-cores"))
}

/// A sample; `make forms` looks at every number of ranks to 64 and every root.
#[test]
fn closed_forms_agree_with_the_simulator() {
    let ranks = (2..=20).chain([31, 32, 33, 48, 63, 64]).map(|n| (n, n));
    let ranks: Vec<(u32, u32)> = ranks.collect();
    let sizes = (&[4096, 1 << 18][..], Roots::First);
    let points = forms::points(&open(), &ranks, sizes, &Table::default()).unwrap();
    assert_eq!(forms::beyond(&points), [""; 0]);
    let names: BTreeSet<&str> = points.iter().map(|p| p.algorithm.as_str()).collect();
    assert!(names.len() > 40, "{} algorithms", names.len());
}

#[test]
fn closed_forms_hold_for_any_root() {
    let ranks = [2, 3, 5, 8, 13, 16, 27].map(|n| (n, n));
    let sizes = (&[4096, 1 << 18][..], Roots::Some);
    let points = forms::points(&open(), &ranks, sizes, &Table::default()).unwrap();
    assert_eq!(forms::beyond(&points), [""; 0]);
}

#[test]
fn closed_forms_of_several_hosts_agree_with_the_simulator() {
    let machine = forms::open(&named("16-hosts"));
    let all = (2..=20).chain([31, 32, 33, 48, 63, 64]);
    let placed = [1, 2, 4, 8].map(|host| {
        all.clone()
            .filter(move |n| *n > host)
            .map(move |n| (n, host))
    });
    let ranks: Vec<(u32, u32)> = placed.into_iter().flatten().collect();
    let sizes = (&[4096, 1 << 18][..], Roots::First);
    let points = forms::points(&machine, &ranks, sizes, &Table::default()).unwrap();
    assert_eq!(held(&points), ["nodes", "nodes_chain", "nodes_split"]);
    assert_eq!(forms::beyond(&points), [""; 0]);
}

#[test]
fn closed_forms_of_several_domains_agree_with_the_simulator() {
    let samples: [(&str, &[u32]); 2] = [
        ("64-cores", &[33, 40, 48, 55, 64]),
        (
            "64-cores-8-caches",
            &[9, 12, 16, 20, 24, 32, 33, 40, 48, 63, 64],
        ),
    ];
    for (name, ranks) in samples {
        let ranks: Vec<(u32, u32)> = ranks.iter().map(|&n| (n, n)).collect();
        let machine = forms::with_domains(&named(name));
        let sizes = (&[8, 4096, 1 << 18][..], Roots::First);
        let points = forms::points(&machine, &ranks, sizes, &Table::default()).unwrap();
        assert_eq!(held(&points), ["shm_levels"]);
        assert_eq!(forms::beyond(&points), [""; 0], "{name}");
    }
}

/// The names of the algorithms that are held, without their collectives.
fn held(points: &[forms::Point]) -> Vec<&str> {
    let held = points.iter().filter(|p| p.held);
    let names: BTreeSet<&str> = held.filter_map(|p| p.algorithm.split(' ').nth(1)).collect();
    names.into_iter().collect()
}

/// Cells of a machine with this many ranks, chosen by its own prices.
fn cells(name: &str, ranks: &[(u32, u32)], sizes: &[u64]) -> Vec<Cell> {
    let mut machine = named(name);
    machine.ranks = ranks.to_vec();
    let table = Table::default().priced(machine.prices);
    let cases = regret::cases(&machine, sizes);
    let judged = cases.iter().map(|c| regret::judge(c, &table).unwrap());
    judged.flatten().collect()
}

/// Checks that choices are within 10 % of the best in all but a few calls, and never far from it.
/// `make check` runs a sample; `kwsim machine` runs everything (for its output see
/// docs/collectives.md).
#[test]
fn what_is_chosen_is_close_to_the_best() {
    let sizes = [8, 2 << 10, 512 << 10];
    let samples: [(&str, &[(u32, u32)]); 4] = [
        ("16-cores", &[(4, 4), (12, 12), (16, 16)]),
        ("64-cores", &[(8, 8), (32, 32)]),
        ("16-hosts", &[(12, 1), (16, 1), (64, 4)]),
        ("100-hosts", &[(32, 1)]),
    ];
    for (name, ranks) in samples {
        let cells = cells(name, ranks, &sizes);
        let all = summary(cells.iter());
        let missed: Vec<_> = cells.iter().filter(|c| c.regret() > 1.1).map(row).collect();
        println!("{name}: {all:?}, {missed:#?}");
        assert!(all.cells > 20, "{name}: {all:?}");
        assert!(all.mean <= 1.04, "{name}: {all:?}, {missed:#?}");
        assert!(
            all.within * 10 >= all.cells * 9,
            "{name}: {all:?}, {missed:#?}"
        );
        assert!(all.worst <= 2.0, "{name}: {all:?}, {missed:#?}");
    }
}
