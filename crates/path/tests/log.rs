//! Log messages of paths (`KW_LOG=debug`): links that come and go, and losses.

use kw_base::sync::Mutex;
use kw_base::{Peer, Tick};
use kw_path::shm::Local;
use kw_path::udp::{Config, UdpPath};
use kw_path::{Body, Destination, Down, Inbound, Member, Path, Ports, ShmPath};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use kw_sys::unix::Conn;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Keeps the sentences, each with its level.
#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<String>>>);

impl LogLines {
    /// How many sentences have all these words.
    fn with(&self, words: &[&str]) -> usize {
        let has = |line: &&String| words.iter().all(|w| line.contains(w));
        self.0.lock().unwrap().iter().filter(has).count()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        self.0 += &format!(" {value:?}");
    }
}

impl Subscriber for LogLines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Counts incoming frames.
#[derive(Default)]
struct Count {
    came: usize,
    down: usize,
}

impl Inbound for Count {
    fn on_frame(&mut self, _: Peer, _: &Header, _: &[u8]) {
        self.came += 1;
    }
    fn on_head(&mut self, _: Peer, head: &Header) -> Destination {
        let buf = Buf::alloc(head.len as usize);
        Destination {
            cookie: 0,
            buf,
            at: 0,
        }
    }
    fn on_body(&mut self, _: Peer, _: u64) {
        self.came += 1;
    }
    fn on_sent(&mut self, _: Peer, _: u64) {}
    fn on_down(&mut self, _: Down, _: bool) {
        self.down += 1;
    }
}

fn rank(me: u32) -> UdpPath {
    let config = Config {
        member: Member {
            me: Peer(me),
            size: 2,
            job: "log".to_string(),
            key: [4; 32],
            interfaces: "auto".to_string(),
            ports: Ports::default(),
            single_host: true,
        },
        clock: kw_sys::clock::now,
    };
    UdpPath::new(config).expect("loopback")
}

/// A frame that must arrive.
fn send(path: &mut UdpPath, to: u32) {
    let buf = Buf::alloc(2000);
    let head = Header {
        len: 2000,
        ..Header::bare(Kind::Eager)
    };
    let payload = Body::Payload {
        buf: &buf,
        from: 0,
        len: 2000,
    };
    path.send(Peer(to), &head, payload, 0).unwrap();
}

fn until(what: &str, mut turn: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !turn() {
        assert!(begin.elapsed() < Duration::from_secs(60), "stuck: {what}");
    }
}

fn now() -> Tick {
    kw_sys::clock::now()
}

#[test]
fn datagrams_say_which_ranks_they_reach_what_is_lost_and_who_has_left() {
    let log = LogLines::default();
    let _listens = tracing::subscriber::set_default(log.clone());
    let (mut a, mut b) = (rank(0), rank(1));
    a.introduce(Peer(1), &b.address()).unwrap();
    b.introduce(Peer(0), &a.address()).unwrap();
    let (mut at_a, mut at_b) = (Count::default(), Count::default());
    send(&mut a, 1);
    until("a frame", || {
        a.poll(now(), &mut at_a);
        b.poll(now(), &mut at_b);
        at_b.came == 1
    });
    assert_eq!(log.with(&["DEBUG", "udp to rank 1 is up: 127.0.0.1:"]), 1);
    assert_eq!(log.with(&["DEBUG", "udp to rank 0 is up: 127.0.0.1:"]), 1);
    assert_eq!(log.with(&["loses much"]), 0);

    // The peer is deaf for a while: data is sent again and again.
    send(&mut a, 1);
    let mut time = now();
    until("resends", || {
        time = time + Duration::from_millis(200);
        a.poll(time, &mut at_a);
        log.with(&["loses much"]) > 0
    });
    let want = ["INFO", "udp to rank 1 at 127.0.0.1:", "were sent again"];
    assert_eq!((log.with(&want), at_a.down), (1, 0));

    drop(b);
    until("its end", || {
        time = time + Duration::from_millis(500);
        a.poll(time, &mut at_a);
        at_a.down > 0
    });
    let want = ["DEBUG", "udp to rank 1 is down after ", "of them again"];
    assert_eq!(log.with(&want), 1);
}

#[test]
fn shared_memory_says_who_made_it_who_has_joined_and_who_is_refused() {
    let log = LogLines::default();
    let _listens = tracing::subscriber::set_default(log.clone());
    let local = |me| Local {
        me: Peer(me),
        peers: vec![Peer(0), Peer(1)],
    };
    let lead = ShmPath::lead(&local(0)).expect("memory and a socket");
    let made = ["DEBUG", "made a segment of ", " bytes for 2 ranks"];
    assert_eq!(log.with(&made), 1);
    let address = lead.address();
    let leader = log.clone();
    let serving = std::thread::spawn(move || {
        let _listens = tracing::subscriber::set_default(leader);
        lead.serve(&[5; 32], Duration::from_secs(100))
    });
    // An unauthenticated connection.
    let name = format!("kittiwake-{address}");
    drop(Conn::connect(&name, Duration::from_secs(100)).expect("somebody listens"));
    let b = ShmPath::join(&local(1), &[5; 32], &address).expect("served");
    let a = serving.join().expect("no panic").expect("joined");
    assert_eq!(
        log.with(&["DEBUG", "attached to the segment of rank 0, "]),
        1
    );
    assert_eq!(log.with(&["DEBUG", "the segment is refused ("]), 1);
    drop((a, b));
}
