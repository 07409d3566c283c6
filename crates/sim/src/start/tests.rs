//! The machines against a plain store, and whole starts in virtual time, for every number of ranks
//! from 1 to 64 and some beyond.

use super::{self as sim, Knows, Scenario, Shape};
use kw_start::{
    Agree, Agreed, Cpus, Heard, Hosts, Joins, KvsRequest, Mismatch, Publish, Record, Talk, Turn,
    Word,
};
use std::collections::HashMap;

/// Hosts known to all ranks when ranks fill hosts in blocks of `per_host`.
fn blocks(scenario: &Scenario) -> Vec<u32> {
    let host = |r| r / scenario.per_host;
    (0..scenario.ranks).map(host).collect()
}

#[test]
fn all_learn_the_same_hosts_whatever_their_number() {
    for n in (2..=64).chain([65, 100, 127, 128, 129, 4096, 4097]) {
        for (per_host, shape) in [(1, Shape::Tree(2)), (3, Shape::Tree(32)), (5, Shape::One)] {
            let scenario = Scenario::ethernet(n, per_host, shape, Knows::Ranks);
            let maps = sim::hosts_of(&scenario).unwrap();
            assert_eq!(maps.len(), n as usize);
            let wanted = blocks(&scenario);
            assert!(maps.iter().all(|m| *m == wanted), "{n} by {per_host}");
        }
    }
}

#[test]
fn a_rank_asks_so_much_and_no_more() {
    for n in (1..=64u32).chain([65, 1000, 5000]) {
        for knows in [Knows::Ranks, Knows::Hosts, Knows::Key] {
            let scenario = Scenario::ethernet(n, 4, Shape::Tree(8), knows);
            let f = sim::run(&scenario).unwrap();
            let levels = (1..).find(|l| 64u64.pow(*l) >= n.into()).unwrap_or(0) as u64;
            // at most 63 lists a level, the verdict and the memory
            let gets = 2 + 63 * levels;
            // one fence for the records, one for each level, and one for where ranks listen, unless
            // that is known: on one host
            let known = knows != Knows::Ranks && n <= 4;
            let fences = if n > 1 {
                1 + levels + u64::from(!known)
            } else {
                0
            };
            assert_eq!(f.most.fences, fences, "{n} {knows:?}");
            let greeting = u64::from(scenario.greeting);
            assert!(f.most.gets <= gets + greeting, "{n} {knows:?}: {f:?}");
            // the verdict and the memory at each rank; each list is read once
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
    let of = |shape| sim::run(&Scenario::ethernet(2048, 16, shape, Knows::Hosts)).unwrap();
    let (one, tree) = (of(Shape::One), of(Shape::Tree(32)));
    assert_eq!(one.all.asks, tree.all.asks);
    assert_eq!(one.busiest, 2 * one.all.asks);
    assert!(tree.busiest * 10 < one.busiest, "{tree:?} {one:?}");
    assert!(tree.ready_ns < one.ready_ns);
}

/// Rank 0's decision if the launcher reports hosts, or does not.
fn word(from_launcher: Option<Vec<u32>>) -> Word {
    Word {
        key: Some([3; 32]),
        from_launcher,
        named: false,
        here: false,
        calibration: Default::default(),
    }
}

fn on(host: &str) -> Record {
    Record {
        host: Some(host.into()),
        cpus: Cpus {
            set: vec![0],
            ..Cpus::default()
        },
        settings: Vec::new(),
        bound: None,
    }
}

/// Ranks that talk one after the other to a plain store, round by round; returns the result of
/// each.
fn store_of(records: &[Record], word: Word) -> (Vec<Result<Agreed, String>>, u32) {
    let n = records.len() as u32;
    let rank = |r: u32| {
        let word = (r == 0).then(|| word.clone());
        Agree::new((r, n), &records[r as usize], word, None)
    };
    let mut talks: Vec<Agree> = (0..n).map(rank).collect();
    let mut store: HashMap<String, String> = HashMap::new();
    let mut over: Vec<Option<Result<Agreed, String>>> = vec![None; n as usize];
    let mut fences = 0;
    loop {
        let (mut fresh, mut fenced) = (Vec::new(), 0);
        for (talk, over) in talks.iter_mut().zip(&mut over).filter(|(_, o)| o.is_none()) {
            let mut heard = Heard::Done;
            loop {
                heard = match talk.next(heard) {
                    Ok(Turn::Request(KvsRequest::Put { key, value })) => {
                        fresh.push((key, value));
                        Heard::Done
                    }
                    Ok(Turn::Request(KvsRequest::Get { key, .. })) => {
                        Heard::Value(store[&key].clone())
                    }
                    Ok(Turn::Request(KvsRequest::Fence)) => {
                        fenced += 1;
                        break;
                    }
                    Ok(Turn::Over(agreed)) => {
                        *over = Some(Ok(agreed));
                        break;
                    }
                    Err(why) => {
                        *over = Some(Err(why.to_string()));
                        break;
                    }
                };
            }
        }
        if fenced == 0 {
            return (over.into_iter().flatten().collect(), fences);
        }
        assert_eq!(fenced, n, "all or none fence");
        fences += 1;
        store.extend(fresh);
    }
}

#[test]
fn hosts_are_numbered_by_their_first_rank() {
    let records: Vec<Record> = (0..200).map(|r| on(&format!("h{}", r * 7 % 5))).collect();
    let seen: Vec<u32> = (0..200u32)
        .map(|r| [0, 2, 4, 1, 3].iter().position(|h| *h == r * 7 % 5))
        .map(|p| p.unwrap() as u32)
        .collect();
    let (all, fences) = store_of(&records, word(None));
    assert_eq!((all.len(), fences), (200, 3));
    for (r, agreed) in all.into_iter().enumerate() {
        let agreed = agreed.unwrap();
        assert_eq!(agreed.hosts, Hosts::Named(seen.clone()), "rank {r}");
        assert_eq!(agreed.key, Some([3; 32]));
    }
}

#[test]
fn all_hear_the_same_of_every_host() {
    let records: Vec<Record> = (0..70).map(|_| on("one")).collect();
    let hosts: Vec<u32> = (0..70)
        .map(|r| u32::from(r >= 68) + u32::from(r >= 69))
        .collect();
    let (all, _) = store_of(&records, word(Some(hosts)));
    assert!(all.windows(2).all(|two| two[0] == two[1]));
    let load = all[0].clone().unwrap().load;
    let oversubscribed: Vec<bool> = (0..70).map(|r| load.is_oversubscribed(r)).collect();
    assert_eq!(oversubscribed, (0..70).map(|r| r < 68).collect::<Vec<_>>());
}

#[test]
fn all_fail_with_the_same_sentence_when_one_differs() {
    let mut records = vec![on("a"); 67];
    records[66]
        .settings
        .push(("KW_PATHS".into(), "self,tcp".into()));
    let (all, _) = store_of(&records, word(None));
    assert_eq!(all.len(), 67);
    for result in all {
        let fault = result.unwrap_err();
        assert!(fault.contains("'self,tcp' on rank 66"), "{fault}");
    }
}

#[test]
fn nonsense_that_somebody_stored_is_a_sentence() {
    let mut agree = Agree::new((1, 3), &on("a"), None, None);
    for _ in 0..3 {
        agree.next(Heard::Done).unwrap();
    }
    let turn = agree.next(Heard::Done);
    assert!(
        matches!(turn, Ok(Turn::Request(KvsRequest::Get { from: 0, .. }))),
        "{turn:?}"
    );
    for verdict in [
        "",
        "ok",
        "ok - map",
        "ok - map 0:3",
        "ok - map 0:9 -",
        "ok 77 map 0:3 -",
        "ok - x 0:3 -",
        "ok - map 0:3 1.2",
    ] {
        let mut agree = Agree::new((1, 3), &on("a"), None, None);
        for _ in 0..4 {
            agree.next(Heard::Done).unwrap();
        }
        let turn = agree.next(Heard::Value(verdict.into()));
        assert!(turn == Err(Mismatch::Verdict), "{verdict}");
    }
    for list in [
        "",
        "x",
        "aa:9 0:9 :9",
        "aa:1 0/-/-:1",
        "aa:-1 0/-/-:1 :1",
        "aa:1, 0/-/-:1 :1",
    ] {
        let mut first = Agree::new((0, 3), &on("a"), Some(word(None)), None);
        let mut turn = first.next(Heard::Done);
        while let Ok(Turn::Request(request)) = &turn {
            let heard = match request {
                KvsRequest::Get { .. } => Heard::Value(list.into()),
                _ => Heard::Done,
            };
            turn = first.next(heard);
        }
        assert!(turn.is_err(), "'{list}'");
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
            published: false,
        }),
    }
    .plan();
    let mut asked = Vec::new();
    let over = loop {
        let heard = match asked.last() {
            Some(KvsRequest::Get { .. }) => Heard::Value("memory".into()),
            _ => Heard::Done,
        };
        match member.next(heard).unwrap() {
            Turn::Request(request) => asked.push(request),
            Turn::Over(out) => break out,
        }
    };
    assert_eq!(over.as_deref(), Some("memory"));
    let put = KvsRequest::Put {
        key: "kw_udp_5".into(),
        value: "there".into(),
    };
    let get = KvsRequest::Get {
        from: 4,
        key: "kw_shm_4".into(),
    };
    assert_eq!(asked, [put, KvsRequest::Fence, get]);
}
