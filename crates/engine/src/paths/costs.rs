//! What the chosen paths cost, and the choices of protocols that follow.

use super::{Paths, Route};
use kw_base::calibration::Figure;
use kw_base::{Calibration, Peer};
use kw_path::Path;
use kw_proto::p2p::prices::Network as Measured;
use kw_proto::p2p::table::{Choice, Line, Lines};
use std::time::Duration;

/// Reading by the receiver is worthwhile if the copy it saves takes this many times as long as the
/// call; once for its two frames. A built-in value.
const FETCHED: f64 = 2.0;

/// Properties of a peer whose path has not been chosen yet: nothing is sent without asking for a
/// route.
pub const UNROUTED: Choice = Choice {
    eager_max: 0,
    get_min: u64::MAX,
    announce_min: u64::MAX,
};

/// The costs of a rank's paths.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    paths: &'a Paths,
}

impl<'a> Costs<'a> {
    #[inline]
    pub(super) fn of(paths: &'a Paths) -> Costs<'a> {
        Costs { paths }
    }

    /// Abilities and costs of the chosen path to a peer.
    fn lines(&self, peer: Peer) -> Option<Lines> {
        let host = &self.paths.prices.host;
        Some(
            match (
                self.paths.routes[peer.idx()],
                &self.paths.shm,
                &self.paths.net,
            ) {
                (Route::Shm, Some(p), _) => p.lines(peer, host),
                (Route::Net, _, Some(p)) => p.lines(peer, host),
                (Route::Unknown, ..) => return None,
                _ => self.paths.myself.lines(peer, host),
            },
        )
    }

    /// The host's calibration that choices are priced with.
    pub fn figures(&self) -> &'a Calibration {
        &self.paths.prices.host
    }

    /// Cost of a frame with its payload to a peer whose path is chosen.
    pub fn stream_line(&self, peer: Peer) -> Option<Line> {
        self.lines(peer).map(|lines| lines.stream)
    }

    /// Time in which a peer reads this many bytes of this rank.
    pub fn fetch_time(&self, peer: Peer, len: u64) -> Duration {
        let line = self.lines(peer).and_then(|lines| lines.get);
        line.map_or(Duration::ZERO, |line| {
            Duration::from_nanos(line.at(len) as u64)
        })
    }

    /// Time in which the network transfers this many bytes to or from a peer, if it was measured;
    /// zero for ranks of this machine.
    pub fn network_time(&self, peer: Peer, len: u64) -> Duration {
        let net = self
            .paths
            .net
            .as_ref()
            .filter(|_| self.paths.routes[peer.idx()] == Route::Net);
        let known = net.map_or_else(Measured::default, |net| net.known_network(peer));
        let byte = match (known.round_trip > 0.0, known.byte > 0.0) {
            (true, false) => self.paths.prices.host.get_or_start(Figure::NetByte),
            _ => known.byte,
        };
        Duration::from_nanos((byte * len as f64) as u64)
    }

    /// Whether a peer that reads this many bytes itself saves this rank a long copy: one that takes
    /// twice as long as the call.
    pub fn spares_copy(&self, peer: Peer, len: u64) -> bool {
        let lines = self.lines(peer).and_then(|l| Some((l.stream, l.get?)));
        lines.is_some_and(|(stream, get)| stream.tb * len as f64 > FETCHED * get.t0)
    }

    /// Crossing points of the protocols of a peer whose path is chosen.
    pub fn choice(&self, peer: Peer) -> Choice {
        let lines = self.lines(peer);
        lines.map_or(UNROUTED, |lines| {
            self.paths
                .prices
                .choose(self.paths.routes[peer.idx()], lines)
                .0
        })
    }

    /// The choice as text, with its basis.
    pub fn why(&self, peer: Peer) -> String {
        let Some(lines) = self.lines(peer) else {
            return "no path yet".into();
        };
        let (choice, lines, reason) = self
            .paths
            .prices
            .choose(self.paths.routes[peer.idx()], lines);
        let (host, why) = (self.paths.prices.host.is_measured(), reason.sentence());
        let figures = if host { "measured" } else { "built-in values" };
        format!("{choice:?} ({why}); {lines:?}; figures: {figures}")
    }
}
