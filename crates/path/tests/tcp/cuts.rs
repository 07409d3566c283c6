//! Connections that are cut in the middle of messages: nothing is lost, repeated or reordered.

use super::soak::Soak;
use super::*;
use kw_path::tcp::Tuning;
use std::process::Command;

const SIZES: [usize; 9] = [0, 8, 100, 2_049, 9_000, 60_000, 70_000, 300_000, 2_500_000];

/// Messages of all sizes, all in order, in segments of this many bytes.
fn in_segments(segment_loopback: u64, count: usize) -> Soak {
    Soak {
        sizes: &SIZES,
        data_from: usize::MAX,
        count,
        window: 12,
        harm: 8,
        tuning: Tuning {
            segment_loopback,
            ..Tuning::for_size(2)
        },
    }
}

#[test]
fn a_connection_that_is_closed_again_and_again_loses_nothing() {
    let mut cuts = 0;
    for seed in 0..4 {
        let segment = [u64::MAX, 64 << 10][seed as usize % 2];
        in_segments(segment, 40).run(seed, |sides, dice| {
            cuts += 1;
            let me = dice as usize % 2;
            sides[me].path.cut(Peer(1 - me as u32));
        });
    }
    assert!(cuts > 20, "only {cuts} cuts");
}

/// `ss -K` takes the connections of this process to a port away, as a firewall or a failing card
/// would: with a reset.
fn reset(address: &str) -> bool {
    let port = address.rsplit(':').next().unwrap_or_default();
    let done = Command::new("ss")
        .args(["-K", "-t", "-H", "state", "established", "dport", "=", port])
        .output();
    done.is_ok_and(|o| !o.stdout.is_empty())
}

/// `tests/links` runs it, and reports if it cannot.
#[test]
#[ignore = "wants a user and a kernel that may reset connections (ss -K)"]
fn a_connection_that_is_reset_in_the_middle_of_messages_loses_nothing() {
    let mut cuts = 0;
    for seed in 10..13 {
        in_segments(64 << 10, 30).run(seed, |sides, dice| {
            let at = sides[dice as usize % 2].path.address();
            cuts += reset(&at) as u32;
        });
    }
    assert!(
        cuts > 0,
        "no connection was reset: this user or kernel may not do so (ss -K)"
    );
}

#[test]
fn a_rank_that_was_only_called_asks_where_the_other_listens() {
    let (mut a, mut b) = (rank(0, 2), rank(1, 2));
    a.introduce(Peer(1), &b.address()).unwrap();
    let [_, mut lb] = ping(&mut a, &mut b);
    let at = a.address();
    drop(a);
    until("the question", || {
        b.poll(now(), &mut lb);
        lb.stray == [Peer(0)]
    });
    assert!(lb.down.is_empty() && b.wants_address(Peer(0)));
    b.introduce(Peer(0), &at).unwrap();
    until("the end", || {
        b.poll(now(), &mut lb);
        !lb.down.is_empty()
    });
    let text = lb.down[0].0.to_string();
    assert!(text.contains("refused") && text.contains("died"), "{text}");
}

#[test]
fn where_nothing_is_kept_a_cut_is_an_error_that_names_both_ranks_and_addresses() {
    for found_by_sending in [false, true] {
        let [mut a, mut b] = two_of(|me| Config {
            reliable: false,
            ..config(me, 2)
        });
        let mut logs = ping(&mut a, &mut b);
        a.cut(Peer(1));
        let mut reported = Vec::new();
        until("the end on both sides", || {
            if found_by_sending {
                let sent = send(&mut b, 0, 2, &filled(&body(2, 100)));
                reported.extend(sent.err().map(|down| down.to_string()));
            }
            if !found_by_sending || !reported.is_empty() {
                a.poll(now(), &mut logs[0]);
                b.poll(now(), &mut logs[1]);
            }
            logs.iter().all(|log| !log.down.is_empty())
        });
        reported.extend(logs.iter().map(|log| log.down[0].0.to_string()));
        for text in reported {
            assert!(
                text.contains("ranks 0 and 1 (127.0.0.1 to 127.0.0.1)")
                    || text.contains("ranks 1 and 0 (127.0.0.1 to 127.0.0.1)"),
                "{text}"
            );
        }
    }
}
