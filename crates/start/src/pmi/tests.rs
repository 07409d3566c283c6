//! Both machines against each other, and each against invalid input.

use super::client::{Answer, Client, Request};
use super::server::{Effect, Server, Stage};
use super::{JOB_KEY, Lines, mapping, text};
use proptest::prelude::*;

fn server(n: usize) -> Server {
    Server::new("kw-test", Some(&[7; 32]), &vec![0; n], &vec![0; n], 8)
}

fn lines_to(rank: u32, effects: &[Effect]) -> Vec<String> {
    let mine = |e: &Effect| match e {
        Effect::Send { rank: r, line } if *r == rank => Some(line.clone()),
        _ => None,
    };
    effects.iter().filter_map(mine).collect()
}

/// Sends a request and returns the answer, if it arrives at once.
fn ask(s: &mut Server, c: &mut Client, rank: u32, what: Request) -> Option<Answer> {
    let mut out = Vec::new();
    s.handle(rank, c.ask(&what).unwrap().as_bytes(), &mut out);
    let line = lines_to(rank, &out).pop()?;
    Some(c.handle(line.trim_end()).unwrap())
}

#[test]
fn a_rank_opens_stores_reads_and_closes() {
    let mut s = server(1);
    let mut c = Client::new();
    assert_eq!(ask(&mut s, &mut c, 0, Request::Init), Some(Answer::Done));
    let Some(Answer::Name(kvs)) = ask(&mut s, &mut c, 0, Request::Name) else {
        panic!("no name");
    };
    let put = Request::Put {
        kvs: kvs.clone(),
        key: "card".into(),
        value: "sx".into(),
    };
    assert_eq!(ask(&mut s, &mut c, 0, put), Some(Answer::Done));
    assert_eq!(ask(&mut s, &mut c, 0, Request::Fence), Some(Answer::Done));
    let get = |key: &str| Request::Get {
        kvs: kvs.clone(),
        key: key.into(),
    };
    let card = ask(&mut s, &mut c, 0, get("card"));
    assert_eq!(card, Some(Answer::Value(Some("sx".into()))));
    assert_eq!(
        ask(&mut s, &mut c, 0, get("other")),
        Some(Answer::Value(None))
    );
    let key = ask(&mut s, &mut c, 0, get(JOB_KEY));
    assert_eq!(key, Some(Answer::Value(Some("07".repeat(32)))));
    assert_eq!(
        ask(&mut s, &mut c, 0, Request::Finalize),
        Some(Answer::Done)
    );
    assert_eq!(s.stage(0), Stage::Finalized);
}

#[test]
fn a_fence_opens_when_the_last_rank_comes() {
    let mut s = server(3);
    let mut out = Vec::new();
    for r in 0..3 {
        s.handle(r, b"cmd=init pmi_version=1 pmi_subversion=1\n", &mut out);
    }
    out.clear();
    s.handle(0, b"cmd=barrier_in\n", &mut out);
    s.handle(2, b"cmd=barrier_in\n", &mut out);
    assert!(out.is_empty());
    s.handle(1, b"cmd=barr", &mut out);
    s.handle(1, b"ier_in\n", &mut out);
    assert_eq!(out.len(), 3);
}

#[test]
fn only_ranks_of_ours_are_asked_what_they_wait_for() {
    let mut s = server(2);
    let mut out = Vec::new();
    let init = "cmd=init pmi_version=1\ncmd=get_my_kvsname\n";
    s.handle(0, init.as_bytes(), &mut out);
    let key = format!("{init}cmd=get kvsname=kw-test key={JOB_KEY}\n");
    s.handle(1, key.as_bytes(), &mut out);
    assert_eq!([0, 1].map(|r| s.hears_questions(r)), [false, true]);
    out.clear();
    s.handle(1, b"cmd=kw_waits any = words\n", &mut out);
    let line = "cmd=kw_waits any = words".to_string();
    assert_eq!(out, [Effect::Waits { rank: 1, line }]);
    s.handle(1, b"cmd=finalize\n", &mut out);
    assert!(!s.hears_questions(1));
}

#[test]
fn a_fence_that_cannot_complete_is_reported() {
    let mut s = server(2);
    let mut out = Vec::new();
    s.handle(0, b"cmd=init pmi_version=1\ncmd=barrier_in\n", &mut out);
    out.clear();
    s.left(1, &mut out);
    let broken = Effect::BrokenFence {
        waiting: 0,
        missing: 1,
    };
    assert_eq!(out, [broken]);
}

#[test]
fn a_rank_that_opens_again_has_a_fresh_space() {
    let mut s = server(1);
    let mut out = Vec::new();
    let run = b"cmd=init pmi_version=1\ncmd=get_my_kvsname\ncmd=put kvsname=kw-test key=a value=1\ncmd=finalize\n";
    s.handle(0, run, &mut out);
    out.clear();
    s.handle(
        0,
        b"cmd=init pmi_version=1\ncmd=get_my_kvsname\ncmd=get kvsname=kw-test-1 key=a\n",
        &mut out,
    );
    let lines = lines_to(0, &out);
    assert!(lines[1].contains("kvsname=kw-test-1"), "{lines:?}");
    assert!(lines[2].contains("rc=-1"), "{lines:?}");
}

#[test]
fn spawn_is_refused_in_its_own_form() {
    let mut s = server(1);
    let mut out = Vec::new();
    s.handle(0, b"cmd=init pmi_version=1\n", &mut out);
    out.clear();
    s.handle(0, b"mcmd=spawn\nnprocs=2\nexecname=x\nendcmd\n", &mut out);
    let lines = lines_to(0, &out);
    assert!(lines[0].starts_with("cmd=spawn_result rc=-1"), "{lines:?}");
}

#[test]
fn a_reserved_key_cannot_be_replaced() {
    let mut s = server(1);
    let mut out = Vec::new();
    s.handle(0, b"cmd=init pmi_version=1\n", &mut out);
    out.clear();
    let put = format!("cmd=put kvsname=kw-test key={JOB_KEY} value=0\n");
    s.handle(0, put.as_bytes(), &mut out);
    assert!(lines_to(0, &out)[0].contains("reserved_key"));
}

#[test]
fn the_launcher_reads_what_ranks_store() {
    let mut s = server(1);
    let mut out = Vec::new();
    assert_eq!(s.value("a b"), None);
    s.handle(0, b"cmd=init pmi_version=1\n", &mut out);
    for (value, room) in [("short", 4096), ("a word = of several pieces", 16)] {
        for (key, word) in text::split("a b", value.as_bytes(), room) {
            assert_eq!(s.value("a b").as_deref().filter(|v| *v == value), None);
            let put = format!("cmd=put kvsname=kw-test key={key} value={word}\n");
            s.handle(0, put.as_bytes(), &mut out);
        }
        assert_eq!(s.value("a b").as_deref(), Some(value));
    }
    s.handle(
        0,
        b"cmd=put kvsname=kw-test key=a%20b value=m99\n",
        &mut out,
    );
    assert_eq!(s.value("a b"), None, "pieces are missing");
}

#[test]
fn a_line_without_end_is_refused() {
    let mut lines = Lines::new(100);
    lines.feed(&[b'x'; 101]);
    assert!(lines.poll_line().unwrap().is_err());
}

#[test]
fn mappings_are_read_as_hydra_writes_them() {
    assert_eq!(mapping::parse("(vector,(0,1,64))", 4), Some(vec![0; 4]));
    let two = mapping::parse("(vector,(0,2,2))", 6);
    assert_eq!(two, Some(vec![0, 0, 1, 1, 0, 0]));
    let mixed = mapping::parse("(vector,(3,1,1),(0,2,1))", 4);
    assert_eq!(mixed, Some(vec![3, 0, 1, 3]));
    for bad in [
        "",
        "(vector,)",
        "(vector,(0,0,0))",
        "(vector,(0,1))",
        "vector",
    ] {
        assert_eq!(mapping::parse(bad, 2), None, "{bad}");
    }
    assert_eq!(mapping::parse("(vector,(4294967295,9,1))", 12), None);
    assert_eq!(mapping::number(&["b", "a", "b"]), [0, 1, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_survive_a_limited_launcher(
        value in proptest::collection::vec(any::<u8>(), 0..5000),
        max in 16usize..2000,
    ) {
        let pairs = text::split("k", &value, max);
        for (_, word) in &pairs {
            prop_assert!(word.len() <= max.max(16));
            prop_assert!(word.bytes().all(|b| b.is_ascii_graphic() && b != b'='));
        }
        let find = |key: &str| pairs.iter().find(|p| p.0 == key).unwrap().1.clone();
        let back = match text::stored(&find("k")).unwrap() {
            text::Stored::Whole(v) => v,
            text::Stored::Pieces(n) => {
                let joined: String = (0..n).map(|i| find(&format!("k.{i}"))).collect();
                text::decode(&joined).unwrap()
            }
        };
        prop_assert_eq!(back, value);
    }

    #[test]
    fn nonsense_never_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        cut in 0usize..300,
    ) {
        let mut s = server(2);
        let mut out = Vec::new();
        let cut = cut.min(bytes.len());
        s.handle(0, &bytes[..cut], &mut out);
        s.handle(0, &bytes[cut..], &mut out);
        s.handle(0, b"\n", &mut out);
        let mut c = Client::new();
        c.ask(&Request::Init).unwrap();
        let _ = c.handle(&String::from_utf8_lossy(&bytes));
        let _ = text::decode(&String::from_utf8_lossy(&bytes));
        let _ = text::stored(&String::from_utf8_lossy(&bytes));
        let _ = mapping::parse(&String::from_utf8_lossy(&bytes), 5);
    }

    #[test]
    fn any_order_of_known_commands_is_answered_or_refused(
        picks in proptest::collection::vec((0u32..2, 0usize..10), 0..40),
    ) {
        let words = ["init pmi_version=1", "init", "get_maxes", "get_appnum", "get_universe_size",
            "get_my_kvsname", "put kvsname=kw-test key=a value=b", "get kvsname=kw-test key=a",
            "barrier_in", "finalize"];
        let mut s = server(2);
        for (rank, i) in picks {
            let mut out = Vec::new();
            s.handle(rank, format!("cmd={}\n", words[i]).as_bytes(), &mut out);
            prop_assert!(out.len() <= 2);
        }
    }

    #[test]
    fn mappings_are_read_back(hosts in proptest::collection::vec(0u32..4, 1..40)) {
        let n = hosts.len() as u32;
        prop_assert_eq!(mapping::parse(&mapping::write(&hosts), n), Some(hosts));
    }
}

#[test]
fn a_megabyte_goes_through_the_server() {
    let value: Vec<u8> = (0..1 << 20).map(|i| (i * 31 % 251) as u8).collect();
    let mut s = server(1);
    let mut c = Client::new();
    ask(&mut s, &mut c, 0, Request::Init);
    for (key, value) in text::split("big", &value, 700) {
        let kvs = "kw-test".to_string();
        assert_eq!(
            ask(&mut s, &mut c, 0, Request::Put { kvs, key, value }),
            Some(Answer::Done)
        );
    }
    let mut get = |key: String| {
        let kvs = "kw-test".to_string();
        match ask(&mut s, &mut c, 0, Request::Get { kvs, key }) {
            Some(Answer::Value(Some(v))) => v,
            other => panic!("{other:?}"),
        }
    };
    let text::Stored::Pieces(n) = text::stored(&get("big".into())).unwrap() else {
        panic!("not cut");
    };
    let joined: String = (0..n).map(|i| get(format!("big.{i}"))).collect();
    assert_eq!(text::decode(&joined).unwrap(), value);
}
