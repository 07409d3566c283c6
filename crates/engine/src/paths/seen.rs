//! Network measurements of this rank's connections to other hosts. Rank 0 saves them when the job
//! has ended well, so that the collectives of the next job on its host are priced with them.

use super::Paths;
use kw_base::calibration::{Figure, Part};
use kw_base::{Calibration, Peer};
use kw_boot::Job;
use kw_proto::p2p::prices::Network;

/// The least of all connections: the network's values for a connection that has it alone.
/// Nanoseconds.
#[derive(PartialEq, Debug, Default)]
pub(super) struct Seen {
    /// Host numbers of all ranks, on the rank that saves; empty elsewhere.
    hosts: Vec<u32>,
    round_trip: Option<f64>,
    byte: Option<f64>,
}

/// A connection of that peer has measured a value.
pub(crate) fn note(paths: &mut Paths, peer: Peer) {
    let Some(net) = &paths.net else {
        return;
    };
    let network = net.known_network(peer);
    paths.seen.note(peer, &network);
}

/// Saves what was seen, if this rank is the one whose host's figures apply to the next job.
pub(crate) fn keep(paths: &Paths, job: &Job) {
    let Some(figures) = paths.seen.news(job.agreed().calibration()) else {
        return;
    };
    match kw_sys::calibration::store(Part::Network, &figures) {
        Ok(path) => tracing::debug!("the network calibration was saved in {}", path.display()),
        Err(why) => tracing::debug!("the network calibration was not saved: {why}"),
    }
}

impl Seen {
    pub(super) fn new(job: &Job) -> Seen {
        Seen {
            hosts: match job.me {
                Peer(0) => job.agreed().hosts().to_vec(),
                _ => Vec::new(),
            },
            ..Seen::default()
        }
    }

    /// A connection to a rank of the same host does not use the network, and where a rank of
    /// another job runs is not known.
    fn note(&mut self, peer: Peer, network: &Network) {
        let host = self.hosts.get(peer.idx());
        if host.is_none() || host == self.hosts.first() {
            return;
        }
        let least = |best: Option<f64>, now: f64| match now > 0.0 {
            true => Some(best.map_or(now, |b| b.min(now))),
            false => best,
        };
        self.round_trip = least(self.round_trip, network.round_trip);
        self.byte = least(self.byte, network.byte);
    }

    /// Values to save, if they differ much from the known ones. If another rank of the job shares
    /// the link of this host, a lower rate may be only this rank's share.
    fn news(&self, known: &Calibration) -> Option<Calibration> {
        let alone = !self.hosts.iter().skip(1).any(|h| *h == self.hosts[0]);
        let before = |f: Figure| known.get(f).filter(|_| known.has_measured(f));
        let (trip, byte) = (before(Figure::NetTrip), before(Figure::NetByte));
        let share = byte.is_some_and(|b| self.byte.is_some_and(|now| now > b)) && !alone;
        let now = [self.round_trip, self.byte.filter(|_| !share)];
        if !differ(trip, now[0]) && !differ(byte, now[1]) {
            return None;
        }
        let trip = now[0].or(trip).unwrap_or(0.0) * 1e3;
        let byte = now[1].or(byte).unwrap_or(0.0) * 1024e3;
        Some(Calibration::START.with_network(trip as u64, byte as u64))
    }
}

/// Whether it was measured, and differs by more than a quarter from the known value.
fn differ(before: Option<f64>, now: Option<f64>) -> bool {
    let far = |now: f64| before.is_none_or(|b| (now - b).abs() * 4.0 > b);
    now.is_some_and(far)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measurements of connections to all other ranks; the last one is three times as quick.
    fn on(hosts: &[u32], round_trip: f64, byte: f64) -> Seen {
        let mut seen = Seen {
            hosts: hosts.to_vec(),
            ..Seen::default()
        };
        for (peer, factor) in (1..).zip([1.5, 1.0, 1.2, 0.3]).take(hosts.len() - 1) {
            let network = Network {
                round_trip: round_trip * factor,
                byte: byte * factor,
            };
            seen.note(Peer(peer), &network);
        }
        seen
    }

    fn seen(round_trip: f64, byte: f64) -> Seen {
        on(&[0, 1, 2, 3], round_trip, byte)
    }

    /// The values if the last rank shares the host of rank 0.
    fn shared(round_trip: f64, byte: f64) -> Seen {
        on(&[0, 1, 2, 3, 0], round_trip, byte)
    }

    fn figures(c: Calibration) -> [Option<f64>; 2] {
        [Figure::NetTrip, Figure::NetByte].map(|f| c.get(f))
    }

    #[test]
    fn the_least_of_all_connections_is_kept_once() {
        let kept = seen(100_000.0, 8.5).news(&Calibration::START).unwrap();
        assert_eq!(figures(kept), [Some(100_000.0), Some(8.5)]);
        assert_eq!(seen(110_000.0, 9.0).news(&kept), None);
        assert_eq!(Seen::default().news(&Calibration::START), None);
    }

    #[test]
    fn a_connection_to_the_same_host_is_none_of_the_network() {
        let kept = shared(100_000.0, 8.5).news(&Calibration::START).unwrap();
        assert_eq!(figures(kept), [Some(100_000.0), Some(8.5)]);
        assert_eq!(on(&[0, 0], 30_000.0, 0.2), on(&[0, 0], 1.0, 1.0));
        assert_eq!(on(&[0, 0], 30_000.0, 0.2).news(&Calibration::START), None);
    }

    #[test]
    fn what_a_short_job_cannot_see_stays_as_it_was() {
        let first = seen(100_000.0, 0.0).news(&Calibration::START).unwrap();
        assert_eq!(figures(first), [Some(100_000.0), None]);
        let kept = seen(100_000.0, 8.5).news(&first).unwrap();
        let again = seen(50_000.0, 0.0).news(&kept).unwrap();
        assert_eq!(figures(again), [Some(50_000.0), Some(8.5)]);
    }

    #[test]
    fn a_share_of_the_link_is_not_taken_for_all_of_it() {
        let kept = seen(100_000.0, 1.0).news(&Calibration::START).unwrap();
        assert_eq!(shared(100_000.0, 4.0).news(&kept), None);
        assert!(seen(100_000.0, 4.0).news(&kept).is_some());
        assert!(shared(100_000.0, 0.5).news(&kept).is_some());
    }
}
