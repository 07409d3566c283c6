//! The machines against a plain store, and whole starts in virtual time, for every number of ranks from 1 to 64 and some beyond.

use super::{self as sim, Knows, Setting, Shape};
use kw_start::{Agree, Ask, Heard, Hosts, Joins, Publish, Talk, Turn, Word};
use std::collections::HashMap;

/// Hosts that everybody learned when ranks lie in blocks of `per_host`.
fn blocks(setting: &Setting) -> Vec<u32> {
    let host = |r| r / setting.per_host;
    (0..setting.ranks).map(host).collect()
}

#[test]
fn all_learn_the_same_hosts_whatever_their_number() {
    for n in (1..=64).chain([65, 100, 127, 128, 129, 4096, 4097]) {
        for (per_host, shape) in [(1, Shape::Tree(2)), (3, Shape::Tree(32)), (5, Shape::One)] {
            let setting = Setting::ethernet(n, per_host, shape, Knows::Ranks);
            let maps = sim::hosts_of(&setting).unwrap();
            assert_eq!(maps.len(), n as usize);
            let wanted = blocks(&setting);
            assert!(maps.iter().all(|m| *m == wanted), "{n} by {per_host}");
        }
    }
}

#[test]
fn a_rank_asks_so_much_and_no_more() {
    for n in (1..=64u32).chain([65, 1000, 5000]) {
        for knows in [Knows::Ranks, Knows::Hosts, Knows::Key] {
            let setting = Setting::ethernet(n, 4, Shape::Tree(8), knows);
            let f = sim::run(&setting).unwrap();
            let levels = (1..).find(|l| 64u64.pow(*l) >= n.into()).unwrap_or(0) as u64;
            let (fences, gets) = match knows {
                Knows::Key => (0, 1),
                Knows::Hosts => (1, 2),
                // at most 63 lists a level, and the map
                Knows::Ranks => (1 + levels, 2 + 63 * levels),
            };
            // on one host that a launcher of others knows, one fence is enough
            let more = u64::from(n > 1 && !(knows == Knows::Hosts && n <= 4));
            assert_eq!(f.most.fences, fences + more, "{n} {knows:?}");
            let greeting = u64::from(setting.greeting);
            assert!(f.most.gets <= gets + greeting, "{n} {knows:?}: {f:?}");
            // the word, the map and the memory at each rank; each list of hosts is read once
            let once = u64::from(n) * (greeting + 5);
            assert!(f.all.gets <= once, "{n} {knows:?}: {f:?}");
            let log = u64::from(n.div_ceil(4).next_power_of_two().ilog2());
            assert!(f.barrier.lookups <= log.max(1), "{n}: {f:?}");
            assert!(f.barrier.connections <= 2 * log.max(1), "{n}: {f:?}");
            assert_eq!(f.barrier.made > 0, n > 4, "{n}: {f:?}");
        }
    }
}

#[test]
fn one_server_hears_everybody_and_a_tree_of_servers_does_not() {
    let of = |shape| sim::run(&Setting::ethernet(2048, 16, shape, Knows::Hosts)).unwrap();
    let (one, tree) = (of(Shape::One), of(Shape::Tree(32)));
    assert_eq!(one.all.asks, tree.all.asks);
    assert_eq!(one.busiest, 2 * one.all.asks);
    assert!(tree.busiest * 10 < one.busiest, "{tree:?} {one:?}");
    assert!(tree.ready_ns < one.ready_ns);
}

const WORD: Word = Word {
    key: [3; 32],
    named: false,
    here: false,
};

/// Ranks that talk one after the other to a plain store, round by round.
fn store_of(names: &[&str], told: bool, named: bool) -> Result<Vec<(Hosts, usize)>, String> {
    let n = names.len() as u32;
    let rank = |r: u32| {
        let word = (r == 0).then_some(Word { named, ..WORD });
        Agree::new((r, n), told, names[r as usize], word, None)
    };
    let mut talks: Vec<Agree> = (0..n).map(rank).collect();
    let mut store = HashMap::new();
    let mut over: Vec<Option<(Hosts, usize)>> = vec![None; n as usize];
    let mut fences = 0;
    loop {
        let (mut fresh, mut fenced) = (Vec::new(), 0);
        for (talk, over) in talks.iter_mut().zip(&mut over).filter(|(_, o)| o.is_none()) {
            let mut heard = Heard::Done;
            loop {
                heard = match talk.next(heard)? {
                    Turn::Ask(Ask::Put { key, value }) => {
                        fresh.push((key, value));
                        Heard::Done
                    }
                    Turn::Ask(Ask::Get { key, .. }) => {
                        let value: &String = store.get(&key).ok_or(key)?;
                        Heard::Value(value.clone())
                    }
                    Turn::Ask(Ask::Fence) => {
                        fenced += 1;
                        break;
                    }
                    Turn::Over(agreed) => {
                        assert_eq!(agreed.key, [3; 32]);
                        *over = Some((agreed.hosts, fences));
                        break;
                    }
                };
            }
        }
        if fenced == 0 {
            return Ok(over.into_iter().flatten().collect());
        }
        assert_eq!(fenced, n, "all or none fence");
        fences += 1;
        store.extend(fresh);
    }
}

#[test]
fn hosts_are_numbered_by_their_first_rank() {
    let names: Vec<String> = (0..200).map(|r| format!("h{}", r * 7 % 5)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let seen: Vec<u32> = (0..200u32)
        .map(|r| [0, 2, 4, 1, 3].iter().position(|h| *h == r * 7 % 5))
        .map(|p| p.unwrap() as u32)
        .collect();
    for (r, (hosts, fences)) in store_of(&names, false, false).unwrap().iter().enumerate() {
        assert_eq!(*hosts, Hosts::Named(seen.clone()), "rank {r}");
        assert_eq!(*fences, 3);
    }
}

#[test]
fn rank_0_may_want_names_although_the_launcher_maps() {
    let told = store_of(&["a", "a", "b"], true, false).unwrap();
    assert_eq!(told, vec![(Hosts::Told, 1); 3]);
    let named = store_of(&["a", "b", "a"], true, true).unwrap();
    assert_eq!(named, vec![(Hosts::Named(vec![0, 1, 0]), 3); 3]);
}

#[test]
fn nonsense_that_somebody_stored_is_a_sentence() {
    let mut agree = Agree::new((1, 3), true, "a", None, None);
    assert_eq!(agree.next(Heard::Done), Ok(Turn::Ask(Ask::Fence)));
    agree.next(Heard::Done).unwrap();
    let told = agree.next(Heard::Value("map 77".into()));
    assert!(told.unwrap_err().contains("not what rank 0 stored"));
    for list in ["", "x", "aa:9", "aa:-1", "aa:1,"] {
        let mut first = Agree::new((0, 3), false, "a", Some(WORD), None);
        let mut said = Ok(Turn::Ask(Ask::Fence));
        for heard in 0..20 {
            let word = format!("name {}", "03".repeat(32));
            let answer = match (heard, &said) {
                (_, Ok(Turn::Ask(Ask::Get { key, .. }))) if key.contains("root") => {
                    Heard::Value(word)
                }
                (_, Ok(Turn::Ask(Ask::Get { .. }))) => Heard::Value(list.into()),
                _ => Heard::Done,
            };
            said = first.next(answer);
            if said.is_err() {
                break;
            }
        }
        assert!(said.is_err(), "'{list}'");
    }
}

#[test]
fn a_rank_says_where_it_is_and_asks_its_lead() {
    let quiet = Publish {
        rank: 0,
        fence: false,
        listens: None,
        leads: None,
        joins: None,
    };
    let mut alone = quiet.plan();
    assert_eq!(alone.next(Heard::Done), Ok(Turn::Over(None)));
    let mut member = Publish {
        rank: 5,
        fence: true,
        listens: Some(("udp", "there".into())),
        leads: None,
        joins: Some(Joins {
            lead: 4,
            said: false,
        }),
    }
    .plan();
    let mut asked = Vec::new();
    let over = loop {
        let heard = match asked.last() {
            Some(Ask::Get { .. }) => Heard::Value("memory".into()),
            _ => Heard::Done,
        };
        match member.next(heard).unwrap() {
            Turn::Ask(ask) => asked.push(ask),
            Turn::Over(out) => break out,
        }
    };
    assert_eq!(over.as_deref(), Some("memory"));
    let put = Ask::Put {
        key: "kw_udp_5".into(),
        value: "there".into(),
    };
    let get = Ask::Get {
        from: 4,
        key: "kw_shm_4".into(),
    };
    assert_eq!(asked, [put, Ask::Fence, get]);
}
