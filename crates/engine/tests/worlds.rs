//! A job that another job joins while messages are in flight: ranks keep their numbers, and the new
//! ones send and receive like the others.

mod simulated;

use kw_base::settings::{Id, Settings};
use kw_base::{ContextId, Peer};
use kw_boot::Agreed;
use kw_engine::{Engine, ReqId, SendMode, Started, Want};
use kw_path::sim::SimOptions;
use kw_start::Load;
use kw_sys::buf::Buf;

const CONTEXT: ContextId = ContextId(0);

fn receive(engine: &mut Engine, from: u32, len: usize) -> (ReqId, Buf) {
    let buf = Buf::alloc(len);
    let want = Want {
        context: CONTEXT,
        source: Some((from, Peer(from))),
        tag: Some(len as i32),
    };
    (engine.messages.recv(want, buf.clone()), buf)
}

fn send(engine: &mut Engine, me: u32, to: u32, bytes: &[u8]) -> Option<ReqId> {
    let buf = Buf::alloc(bytes.len());
    buf.write(0, bytes);
    let envelope = (CONTEXT, me, bytes.len() as i32);
    let mode = SendMode::Standard;
    match engine.messages.send(Peer(to), envelope, mode, &buf) {
        Started::Done => None,
        Started::Request(req) => Some(req),
    }
}

fn all_end(engines: &mut [Engine], reqs: &[(usize, ReqId)]) {
    for _ in 0..100_000 {
        if reqs
            .iter()
            .all(|(me, r)| engines[*me].messages.requests().is_done(*r))
        {
            return;
        }
        engines.iter_mut().for_each(|e| {
            e.progress();
        });
    }
    panic!("something never ends");
}

fn newcomers(size: usize) -> Agreed {
    let load = Load::even(false, size as u32);
    Agreed::new(vec![0; size], load, &Settings::defaults()).unwrap()
}

#[test]
fn ranks_that_join_later_are_peers_and_what_is_under_way_goes_on() {
    for seed in 1..20 {
        let (net, mut engines) = simulated::ranks(2, seed, SimOptions::default(), true);
        // Under way: a long message that its receiver has not asked for, and a receive.
        let long = vec![7; 9000];
        let mut reqs = Vec::new();
        reqs.extend(send(&mut engines[0], 0, 1, &long).map(|r| (0, r)));
        let (early, into) = receive(&mut engines[1], 0, 600);
        reqs.push((1, early));
        for engine in &mut engines {
            let first = engine
                .other_jobs()
                .join([8; 32], "later", newcomers(2))
                .unwrap();
            assert_eq!((first, engine.job.worlds.peers()), (Peer(2), 4));
            assert_eq!(engine.job.size(), 2, "its own job is what it was");
        }
        let mut settings = Settings::defaults();
        settings.set(Id::Paths, "self").unwrap();
        for me in [2, 3] {
            let path = Box::new(net.path(Peer(me)));
            let hosts = [0; 4];
            let late =
                kw_engine::simulated::with_processors(path, Peer(me), &hosts, settings.clone());
            engines.push(late.unwrap());
        }
        for (from, to) in [(0, 2), (2, 1), (3, 0), (1, 3), (2, 3)] {
            for len in [0, 8, 3000] {
                let bytes = vec![from as u8 + 1; len];
                let req = send(&mut engines[from], from as u32, to as u32, &bytes);
                reqs.extend(req.map(|r| (from, r)));
                let (req, buf) = receive(&mut engines[to], from as u32, len);
                all_end(&mut engines, &[(to, req)]);
                let mut got = vec![0; len];
                buf.read(0, &mut got);
                assert!(got == bytes, "seed {seed}: {from} to {to}, {len} bytes");
            }
        }
        let (last, _) = receive(&mut engines[1], 0, 9000);
        reqs.push((1, last));
        reqs.extend(send(&mut engines[0], 0, 1, &[9; 600]).map(|r| (0, r)));
        all_end(&mut engines, &reqs);
        let mut got = [0; 600];
        into.read(0, &mut got);
        assert!(got == [9; 600], "seed {seed}");
        assert!(engines.iter().all(|e| !e.busy()), "seed {seed}");
    }
}
