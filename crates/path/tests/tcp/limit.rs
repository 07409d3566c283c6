//! More peers than connections.

use super::*;

/// `n` ranks with room for `most` connections each, that know each other.
fn crowd(n: u32, most: usize) -> Vec<(TcpPath, Log)> {
    let open = |me| {
        TcpPath::new(Config {
            most,
            ..config(me, n)
        })
    };
    let paths = (0..n).map(|me| open(me).expect("loopback")).collect();
    let all = introduced(paths).into_iter();
    all.map(|path| (path, Log::default())).collect()
}

#[test]
fn everybody_talks_to_everybody_over_few_connections() {
    const N: u32 = 10;
    for (most, len) in [(4, 100), (5, 50_000), (7, 300_000)] {
        let mut all = crowd(N, most);
        let mut most_seen = 0;
        for round in 0..3 {
            for me in 0..N {
                for peer in (0..N).filter(|p| *p != me) {
                    let tag = (round * N + me) as i32;
                    send(&mut all[me as usize].0, peer, tag, &filled(&body(tag, len))).unwrap();
                }
            }
            until("all messages of the round", || {
                for (path, log) in &mut all {
                    path.poll(now(), log);
                    assert!(log.down.is_empty(), "{:?}", log.down);
                    most_seen = most_seen.max(path.connections());
                }
                let wanted = ((round + 1) * (N - 1)) as usize;
                all.iter().all(|(_, log)| log.came.len() >= wanted)
            });
        }
        assert!(most_seen <= most, "{most_seen} connections, not {most}");
        for (me, (_, log)) in all.iter().enumerate() {
            for from in (0..N).filter(|f| *f != me as u32) {
                let of = |c: &&(i32, Vec<u8>)| c.0 as u32 % N == from;
                let tags: Vec<_> = log.came.iter().filter(of).map(|c| c.0).collect();
                let want: Vec<_> = (0..3).map(|r| (r * N + from) as i32).collect();
                assert_eq!(tags, want, "from {from} to {me}");
            }
            assert!(log.came.iter().all(|(tag, b)| *b == body(*tag, len)));
        }
    }
}
