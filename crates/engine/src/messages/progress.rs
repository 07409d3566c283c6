//! How messages progress: takes incoming data from the paths, and carries out the machine's
//! actions.

use super::Messages;
use super::outlet::reprice;
use crate::paths::{Paths, Port};
use crate::settings::mark;
use kw_base::events::{Event, MOST_ELEMENTS};
use kw_base::settings::Settings;
use kw_base::{Peer, Tick};
use kw_waiting::constants::wait::LONGEST_FETCH;
use std::time::Duration;

/// How long a program waits without anything arriving, before paused peers may send more.
const PATIENCE: Duration = Duration::from_millis(10);

/// Number of active transfers among which the longest is searched.
const TRANSFERS: usize = 16;

/// How long the program has waited without anything arriving.
pub(super) struct Patience {
    /// Frames handled when it last asked.
    arrivals: u64,
    /// Since when their number has not changed, or peers were last allowed to send more.
    since: Tick,
}

impl Patience {
    pub fn new(now: Tick) -> Patience {
        Patience {
            arrivals: 0,
            since: now,
        }
    }

    /// The program asks without success, after this many frames: whether nothing has come for
    /// [`PATIENCE`].
    #[cold]
    fn is_over(&mut self, arrivals: u64, now: Tick) -> bool {
        let over = arrivals == self.arrivals && now.since(self.since) >= PATIENCE;
        if over || arrivals != self.arrivals {
            (self.arrivals, self.since) = (arrivals, now);
        }
        over
    }
}

impl Messages {
    /// Takes in what `how` polls; returns whether anything moved.
    #[inline(always)]
    pub(crate) fn poll(&mut self, how: impl FnOnce(&mut Paths, &mut Port<'_>) -> bool) -> bool {
        let mut port = Port::new(&mut self.machine);
        let moved = how(&mut self.paths, &mut port);
        self.arrivals += port.frames;
        moved
    }

    /// After a poll: carries out its consequences, and sends deferred frames that may go. Returns
    /// whether anything moved, in the poll or while something was sent before.
    #[inline]
    pub(crate) fn go_on(&mut self) -> bool {
        self.flush_some();
        let mut moved = false;
        if self.machine.p2p.sending.is_stalled() {
            moved = self.send_kept_back();
        }
        moved | std::mem::take(&mut self.unsettled)
    }

    #[cold]
    fn send_kept_back(&mut self) -> bool {
        let any = self.machine.sender().send_kept_back();
        self.flush_some();
        any
    }

    /// This rank is in MPI_Finalize, and everything it had to send is out.
    pub fn leave_job(&mut self) {
        self.machine.endpoint.leave();
        self.flush();
    }

    /// Whether something is left to send, in a path or because its receiver wants no more of it
    /// yet.
    pub fn pending(&self) -> bool {
        self.paths.pending()
            || self
                .machine
                .p2p
                .sending
                .keeps_back(&self.machine.endpoint.peers)
    }

    /// The program waits, or has tested without success. If nothing has arrived for [`PATIENCE`],
    /// paused peers may send more: the program may be waiting for one of their messages.
    #[inline]
    pub(crate) fn asked_in_vain(&mut self) {
        if self.machine.p2p.receiving.is_pausing()
            && self.patience.is_over(self.arrivals, self.paths.clock())
        {
            self.machine.receiver().let_through();
            self.flush();
        }
    }

    /// How long a waiting thread may sleep before it reports again that it waits, or checks again
    /// for processes that have ended.
    pub(crate) fn patience(&self) -> Duration {
        let until_end = self.paths.until_end_reported().unwrap_or(Duration::MAX);
        match self.machine.p2p.receiving.is_pausing() {
            true => PATIENCE.min(until_end),
            false => until_end,
        }
    }

    /// Time in which the peer that was offered a message last may read it: the rank does not sleep
    /// for that, a wake-up would cost as much.
    pub(crate) fn fetch_time(&self) -> Duration {
        let machine = &self.machine;
        let sending = &machine.p2p.sending;
        let fetch = sending.being_fetched(&machine.endpoint.requests, &machine.endpoint.peers);
        fetch.map_or(Duration::ZERO, |(peer, len)| {
            // Twice the predicted time: to fall asleep just before the end is the worst.
            (self.paths.costs().fetch_time(peer, len) * 2).min(LONGEST_FETCH)
        })
    }

    /// How long the network takes for the longest of some active transfers with other hosts.
    pub(crate) fn transfer_time(&self) -> Duration {
        let going_on = self.machine.endpoint.requests.going_on().take(TRANSFERS);
        let times = going_on.map(|(peer, len)| self.paths.costs().network_time(peer, len));
        times.max().unwrap_or_default()
    }

    /// Records an event if a tool has registered for its kind.
    pub(crate) fn record(&mut self, event: Event, data: [i64; MOST_ELEMENTS]) {
        self.machine.endpoint.out.record(event, data);
        self.flush();
    }

    /// Chooses the path of a peer before the first message to it.
    #[inline]
    pub(crate) fn route(&mut self, to: Peer) {
        if !self.paths.is_routed(to) {
            self.outlet
                .choose_path(&mut self.machine, &mut self.paths, to);
        }
    }

    /// Chooses the path of a peer with shared memory, which needs no address: receives from a rank
    /// to which nothing is sent then use the short path ([`Messages::recv_at_once`]), too.
    #[cold]
    pub(super) fn route_by_memory(&mut self, from: Peer) {
        if self.paths.ranks().is_some_and(|ranks| ranks.has(from)) {
            self.route(from);
        }
    }

    /// Settings of messages have changed; `repriced`: also those by which protocols are chosen.
    pub(crate) fn set_settings(&mut self, settings: &Settings, repriced: bool) {
        self.machine.set_mark(mark(settings));
        self.paths.set_settings(settings);
        if repriced {
            let routed = self.paths.routed().into_iter();
            routed.for_each(|peer| reprice(&mut self.machine, &self.paths, peer));
        }
    }

    #[inline]
    pub(crate) fn flush_some(&mut self) {
        if !self.machine.endpoint.out.actions.is_empty() {
            self.flush();
        }
    }

    /// Carries out what the machine wants done.
    pub(crate) fn flush(&mut self) {
        self.outlet.flush(&mut self.machine, &mut self.paths);
    }
}
