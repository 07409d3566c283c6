//! Every path passes the same suite.

mod common;
mod suite;

use common::introduced;
use kw_base::Peer;
use kw_path::shm::Local;
use kw_path::sim::{SimNet, SimOptions, SimPath};
use kw_path::tcp::{Config, TcpPath};
use kw_path::{Member, Path, Ports, ShmPath, UdpPath};
use std::time::Duration;
use suite::{Fixture, Joins};

/// Instantiates the suite for fixtures: `name: Fixture { case, ... }`.
macro_rules! conformance {
    ($($name:ident: $fixture:ty;)*) => { $(
        mod $name {
            type Fixture = $fixture;
            cases! {
                sizes_arrive_whole_and_in_order,
                headers_of_every_kind_survive,
                a_part_of_a_buffer_is_sent,
                typed_buffers_are_packed_and_unpacked,
                a_short_destination_loses_only_the_rest,
                a_thousand_frames_wait_for_a_receiver_that_sleeps,
                both_directions_flow_at_once,
                many_peers_keep_their_order,
                polling_one_source_brings_its_frames,
                get_moves_memory_or_refuses,
                goodbye_is_the_last_thing_heard,
            }
        }
    )* };
}

macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        $(#[test] fn $case() { super::suite::$case::<Fixture>() })*
    };
}

struct Shm;

impl Fixture for Shm {
    type P = ShmPath;

    fn connect(n: usize) -> Vec<ShmPath> {
        let peers: Vec<Peer> = (0..n as u32).map(Peer).collect();
        let local = |me| Local {
            me: Peer(me),
            peers: peers.clone(),
        };
        let key = [3; 32];
        let lead = ShmPath::lead(&local(0)).expect("memory and a socket");
        let address = lead.address();
        let serving = std::thread::spawn(move || lead.serve(&key, Duration::from_secs(100)));
        let mut paths: Vec<ShmPath> = (1..n as u32)
            .map(|me| ShmPath::join(&local(me), &key, &address).expect("the leader serves"))
            .collect();
        let first = serving.join().expect("no panic").expect("all joined");
        paths.insert(0, first);
        paths
    }
}

struct Sim;

impl Fixture for Sim {
    type P = SimPath;

    fn connect(n: usize) -> Vec<SimPath> {
        SimNet::new(n as u32, 20, SimOptions::default()).1
    }
}

impl Joins for Sim {
    fn join(paths: &[SimPath]) -> SimPath {
        paths[0].net().path(Peer(paths.len() as u32))
    }
}

fn member(me: u32, n: usize) -> Member {
    Member {
        me: Peer(me),
        size: n as u32,
        job: "conformance".to_string(),
        key: [3; 32],
        interfaces: "auto".to_string(),
        ports: Ports::default(),
        single_host: true,
    }
}

struct Tcp;

impl Fixture for Tcp {
    type P = TcpPath;

    fn connect(n: usize) -> Vec<TcpPath> {
        introduced((0..n as u32).map(|me| tcp(me, n)).collect())
    }
}

impl Joins for Tcp {
    fn join(paths: &[TcpPath]) -> TcpPath {
        knowing(tcp(paths.len() as u32, paths.len() + 1), paths)
    }
}

fn tcp(me: u32, n: usize) -> TcpPath {
    let config = Config {
        member: member(me, n),
        reliable: true,
        stripe: true,
        host: String::new(),
        most: usize::MAX,
    };
    TcpPath::new(config).expect("loopback")
}

/// A path that was told where these are.
fn knowing<P: Path>(mut path: P, paths: &[P]) -> P {
    for (peer, other) in (0..).map(Peer).zip(paths) {
        path.introduce(peer, &other.address()).expect("an address");
    }
    path
}

struct Udp;

impl Fixture for Udp {
    type P = UdpPath;

    fn connect(n: usize) -> Vec<UdpPath> {
        introduced((0..n as u32).map(|me| udp(me, n)).collect())
    }
}

impl Joins for Udp {
    fn join(paths: &[UdpPath]) -> UdpPath {
        knowing(udp(paths.len() as u32, paths.len() + 1), paths)
    }
}

fn udp(me: u32, n: usize) -> UdpPath {
    let config = kw_path::udp::Config {
        member: member(me, n),
        clock: kw_sys::clock::now,
    };
    UdpPath::new(config).expect("loopback")
}

conformance! { shm: super::Shm; sim: super::Sim; tcp: super::Tcp; udp: super::Udp; }

macro_rules! networks {
    ($($name:ident: $fixture:ty;)*) => { $(
        #[test]
        fn $name() {
            suite::a_rank_that_joins_later_is_reached_both_ways::<$fixture>();
        }
    )* };
}

networks! { sim_grows: Sim; tcp_grows: Tcp; udp_grows: Udp; }

/// The path to oneself has one rank, so it has a case of its own.
#[test]
fn what_is_sent_to_oneself_comes_back_whole_and_in_order() {
    struct Own;
    impl Fixture for Own {
        type P = kw_path::SelfPath;
        fn connect(n: usize) -> Vec<kw_path::SelfPath> {
            (0..n as u32)
                .map(|i| kw_path::SelfPath::new(Peer(i)))
                .collect()
        }
    }
    let mut w = suite::World::new::<Own>(1);
    for (k, &n) in suite::SIZES.iter().enumerate() {
        w.message(0, 0, k as i32, &suite::bytes(k as i32, n));
    }
    w.settle(0, suite::SIZES.len());
    for (k, &n) in suite::SIZES.iter().enumerate() {
        assert!(w.seen[0].came[k].body == suite::bytes(k as i32, n), "{n}");
    }
}
