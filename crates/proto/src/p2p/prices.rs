//! Costs of each kind of path, from the host's calibration: the one place where parameters become
//! cost lines.
//!
//! | part of a line | from |
//! | --- | --- |
//! | a frame between two ranks of a host | a cache line between their processors |
//! | a byte through shared memory | what a shared area moves |
//! | a byte fetched | process_vm_readv; of a long message, with the sender's process_vm_writev |
//! | copying an early message once more | a copy within the caches for shared memory, plus memory for it if a network carries it |
//! | a frame over a network for which a rank waits | the work of both sides and half of the round trip that the system measured |
//! | a byte over a network | the rate that the system saw, over UDP the connection |
//!
//! The costs of the path's own code and the kernel are built-in values, here and in
//! [`kw_base::overheads`], of the machine of `docs/decisions.md#raw-path`; they are not measured on
//! this host.

use super::table::{Choice, Line, Lines, Room};
use kw_base::Calibration;
use kw_base::calibration::Figure;
use kw_base::overheads::{RING, TCP_BYTE, TCP_FRAME};
use kw_base::settings::{Id, Settings};

/// The cost of a frame that carries payload.
const RING_PAYLOAD: f64 = 45.0;
/// Handling a request for a message, or its answer, beyond the frame's way: entries in tables at both
/// ends, and the polls until it is found. Nanoseconds: a handshake made messages of 16 to 64 KB 0.32
/// to 0.39 us longer between cores that share a cache (0.8 between others, where a line takes 0.3).
const REQUEST: f64 = 90.0;
/// Cost of an unexpected message beyond its copy: its entries in tables and queues, nanoseconds.
const ENTRIES: f64 = 60.0;
/// A frame over UDP: system calls of both sides, and the loopback interface. Nanoseconds.
const UDP_FRAME: f64 = 4_500.0;
/// The cost of a frame without payload: that of a packet and of its acknowledgement, beyond the
/// network. Nanoseconds.
pub const UDP_CONTROL: f64 = 4_400.0;
/// A byte over UDP: copies by the kernel, datagrams and their acknowledgements. Nanoseconds.
const UDP_BYTE: f64 = 0.30;
/// A frame to oneself, and a byte of it, nanoseconds.
const OWN: Line = Line { t0: 40.0, tb: 0.03 };

/// Known properties of the network to a peer.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Network {
    /// Nanoseconds until the other host has answered; zero within a host.
    pub round_trip: f64,
    /// Nanoseconds per byte; zero while unknown.
    pub byte: f64,
}

const fn line(t0: f64, tb: f64) -> Line {
    Line { t0, tb }
}

/// The lines for messages to oneself.
pub fn own() -> Lines {
    Lines {
        stream: OWN,
        copy: OWN,
        control: line(OWN.t0, 0.0),
        get: None,
        shared_get: None,
    }
}

/// The lines between two ranks that share memory; `direct`: one may read the other's; `both`: a
/// sender may help a receiver that does.
pub fn shared_memory(c: &Calibration, direct: bool, both: bool) -> Lines {
    let frame = c.line_between();
    let get = c.fetch().filter(|_| direct);
    Lines {
        stream: line(frame + RING_PAYLOAD, c.stream_between()),
        copy: line(ENTRIES, c.get_or_start(Figure::CopyNear)),
        control: line(frame + RING + REQUEST, 0.0),
        get,
        shared_get: c
            .fetch_both()
            .filter(|_| direct && both)
            .map(|get| line(get.t0 + frame + RING, get.tb)),
    }
}

/// The lines over TCP.
pub fn tcp(c: &Calibration, network: &Network) -> Lines {
    over(c, network, [TCP_FRAME, TCP_FRAME, TCP_BYTE])
}

/// The lines over UDP.
pub fn udp(c: &Calibration, network: &Network) -> Lines {
    over(c, network, [UDP_FRAME, UDP_CONTROL, UDP_BYTE])
}

/// Largest message that ranks of two hosts send each other eagerly, bytes, by the figures of the
/// network and the default settings: the part that all ranks of a job share, for prices of
/// collectives.
pub fn eager_between_hosts(c: &Calibration, ranks: u32) -> u64 {
    let network = Network {
        round_trip: c.get_or_start(Figure::NetTrip),
        byte: c.get_or_start(Figure::NetByte),
    };
    let room = Room {
        mark: Settings::defaults().number(Id::Unexpected).unwrap_or(0),
        peers: ranks.saturating_sub(1),
    };
    Choice::from_lines(&tcp(c, &network), room, None, true).eager_max
}

fn over(c: &Calibration, network: &Network, [frame, control, byte]: [f64; 3]) -> Lines {
    let way = network.round_trip.max(0.0) / 2.0;
    let byte = if network.byte > 0.0 {
        network.byte
    } else {
        byte
    };
    Lines {
        // The latency is the same for every protocol: it counts when a rank waits for an answer.
        stream: line(frame, byte),
        copy: line(ENTRIES, c.get_or_start(Figure::Keep)),
        control: line(control + way, 0.0),
        get: None,
        shared_get: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_values_are_those_of_the_machine_that_was_measured() {
        let lines = shared_memory(&Calibration::START, true, true);
        assert_eq!((lines.stream.t0, lines.control.t0), (90.0, 160.0));
        assert!((lines.stream.tb - 0.033).abs() < 1e-6);
        let get = lines.get.unwrap();
        assert!((get.t0 - 1300.0).abs() < 1e-6 && (get.tb - 0.068).abs() < 1e-6);
        assert!(lines.shared_get.unwrap().at(1 << 20) < get.at(1 << 20));
        let without = shared_memory(&Calibration::START, false, true);
        assert!(without.get.or(without.shared_get).is_none());
        let alone = shared_memory(&Calibration::START, true, false);
        assert!(alone.get.is_some() && alone.shared_get.is_none());
    }

    #[test]
    fn a_rate_that_was_seen_goes_before_that_of_the_loopback_interface() {
        let quick = Network {
            round_trip: 15_000.0,
            byte: 0.08,
        };
        assert_eq!(tcp(&Calibration::START, &quick).stream.tb, 0.08);
    }

    #[test]
    fn what_is_eager_between_hosts_follows_from_the_network_and_the_ranks() {
        let start = Calibration::START;
        let few = eager_between_hosts(&start, 2);
        let many = eager_between_hosts(&start, 1024);
        assert!(few > many && many >= 256 << 10, "{few} {many}");
        // A handshake costs nothing to speak of.
        let near = start.with_network(500_000, 8_000);
        assert!(eager_between_hosts(&near, 2) < few);
    }

    #[test]
    fn a_network_adds_half_of_its_round_trip() {
        let far = Network {
            round_trip: 100_000.0,
            byte: 8.0,
        };
        let at = |n: &Network| tcp(&Calibration::START, n);
        let (near, far) = (at(&Network::default()), at(&far));
        assert_eq!(far.control.t0 - near.control.t0, 50_000.0);
        assert_eq!((near.stream.tb, far.stream.tb), (TCP_BYTE, 8.0));
    }
}
