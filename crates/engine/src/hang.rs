//! Reasons of long waits, to report why nothing progresses.
//!
//! Only a long wait comes here ([`crate::wait`], [`crate::poll_backoff`]). The layer above, which
//! knows the names of objects, is called ([`LongWait`]); it asks [`Lasting::report`] for the engine's
//! knowledge. Its result says when it wants to be called again.

use crate::collective::{RunView, Watch};
use crate::engine::Engine;
use crate::messages::ReqId;
use crate::partitioned::view::setup_of;
use crate::polled::Polled;
use crate::progress_lock::Inner;
use crate::wait::WaitOn;
use kw_base::{Peer, Tick};
use kw_hang::{Early, Kind, Report, Run, Wait, is_collective};
use kw_proto::machine::Stand;
use kw_proto::p2p::Unreceived;
use kw_sys::buf::Buf;
use kw_types::comm::BOOTSTRAP;
use kw_waiting::constants::wait::LONGEST_SLEEP;
use std::time::Duration;

const _: () = assert!(kw_hang::CONTEXTS == kw_types::comm::STRIDE);

/// A wait that has lasted.
#[derive(Clone, Copy, Debug)]
pub struct Lasting<'a> {
    /// Reason.
    pub on: WaitOn<'a>,
    /// Since when.
    pub since: Tick,
    /// Now.
    pub now: Tick,
    /// Not a wait: the program polls again and again.
    pub polls: bool,
}

/// Called about a wait that has lasted, in its thread and with the lock; returns how long that
/// thread may sleep until the next call.
pub type LongWait<T, E> = fn(&mut Inner<T, E>, Lasting<'_>) -> Duration;

/// Receiver of reports of long waits.
#[derive(Debug)]
pub(crate) struct LongWaits<T, E: Polled> {
    hears: Option<LongWait<T, E>>,
    /// How long a thread that waits may sleep.
    pub(crate) nap: Duration,
}

impl<T, E: Polled> Default for LongWaits<T, E> {
    fn default() -> LongWaits<T, E> {
        LongWaits {
            hears: None,
            nap: LONGEST_SLEEP,
        }
    }
}

impl<T, E: Polled> Inner<T, E> {
    /// From now on `hears` is called about waits that last.
    pub fn hear_of_long_waits(&mut self, hears: LongWait<T, E>) {
        self.long_waits.hears = Some(hears);
    }

    /// A wait has lasted.
    #[cold]
    pub(crate) fn on_lasting(&mut self, lasting: Lasting<'_>) {
        if let Some(hears) = self.long_waits.hears {
            self.long_waits.nap = hears(self, lasting).min(LONGEST_SLEEP);
        }
    }

    /// Changes whenever a thread of the program calls MPI, or something comes.
    pub fn mark(&self) -> u64 {
        let arrivals = self.engine.as_ref().map_or(0, E::arrivals);
        arrivals.wrapping_mul(1 << 20).wrapping_add(self.entries)
    }
}

impl Lasting<'_> {
    /// Adds the reasons of a wait to a report: each of its requests, or another reason. A wait on a
    /// shm region has no communicator's context: only the layer above knows that.
    #[cold]
    pub fn report(&self, engine: &mut Engine, report: &mut Report) {
        let (mut seen, on) = (Seen(engine), self.on);
        seen.take_all_in();
        report.waits = match (on.shm_region, on.requests) {
            _ if self.polls => vec![Wait::OTHER],
            (Some(watch), _) => vec![seen.on_shm_region(watch)],
            (None, []) => vec![seen.probe(on)],
            (None, requests) => requests.iter().flat_map(|&r| seen.waits_of(r)).collect(),
        };
        report.any = on.requests.len() > 1;
        report.locks = seen.0.parts.windows.held_locks();
        report.polls = self.polls;
        report.waited = self.now.since(self.since).as_millis() as u64;
        report.runs = seen.runs();
        report.early = seen.early(&report.waits);
        report.quiet = seen.is_quiet();
        report.threads = seen.0.departed.has_threads() && kw_sys::threads::are_others();
    }
}

/// The program's messages that have come and that no receive has taken.
pub fn unreceived(engine: &Engine) -> Vec<Early> {
    let all = engine.messages.machine.unexpected();
    let users = all.filter(|m| !is_collective(m.env.context));
    let mut early: Vec<Early> = users.filter_map(|m| early_of(&m)).collect();
    early.extend(engine.parts.partitioned.unreceived());
    early
}

/// A rank's waits, as seen from outside.
struct Seen<'a>(&'a mut Engine);

impl Seen<'_> {
    /// Incoming data is taken before the report, as before a sleep: it may already end the wait.
    fn take_all_in(&mut self) {
        let mut looks = (0..MOST_LOOKS).map(|_| self.0.progress_before_sleep());
        while looks.next() == Some(true) {}
        self.0.messages.flush();
    }

    /// Whether nothing progresses by itself: no message is in flight, none is deferred, and no
    /// sender was paused.
    fn is_quiet(&mut self) -> bool {
        let messages = &mut self.0.messages;
        let machine = &messages.machine;
        let rests = !machine.is_under_way() && !machine.p2p.receiving.is_pausing();
        rests && !messages.pending() && messages.paths.is_quiet()
    }

    fn on_shm_region(&self, watch: Watch) -> Wait {
        if self.0.parts.collectives.channels.reached(watch) {
            return Wait::OTHER;
        }
        let Some(place) = self.0.parts.collectives.channels.place_of(watch) else {
            // Its turn: another collective of this rank is before it.
            return Wait::OTHER;
        };
        let mut all = (0..self.0.job.size()).map(Peer);
        let peer = all.find(|&p| self.0.messages.paths.place(p) == Some(place));
        Wait {
            kind: Kind::Collective,
            peer: peer.map(|p| p.0),
            ..Wait::OTHER
        }
    }

    fn probe(&mut self, on: WaitOn<'_>) -> Wait {
        let wanted = on.probe.filter(|&&w| self.0.messages.probe(w).is_none());
        let Some(want) = wanted else {
            return Wait::OTHER;
        };
        Wait {
            kind: Kind::Probe,
            peer: want.source.map(|s| s.1.0),
            source: want.source.map(|s| s.0),
            tag: want.tag,
            context: want.context.0,
            bytes: 0,
        }
    }

    /// Only a call on a window waits for several at once.
    fn waits_of(&self, req: ReqId) -> Vec<Wait> {
        let of_window = self.0.parts.windows.waits_of(req);
        of_window.unwrap_or_else(|| vec![self.wait_of(req)])
    }

    fn wait_of(&self, req: ReqId) -> Wait {
        match self.0.messages.machine.stand(req) {
            Stand::Receive { want, from, room } => Wait {
                kind: kind(want.context, Kind::Receive),
                peer: from.map(|p| p.0),
                source: want.source,
                tag: want.tag,
                context: want.context,
                bytes: room,
            },
            Stand::Send {
                to,
                env,
                len,
                kept_back,
            } => Wait {
                kind: kind(
                    env.context,
                    if kept_back {
                        Kind::KeptBack
                    } else {
                        Kind::Send
                    },
                ),
                peer: Some(to.0),
                source: None,
                tag: Some(env.tag),
                context: env.context,
                bytes: len,
            },
            Stand::Owner => {
                let partitioned = self.0.parts.partitioned.wait_of(req);
                partitioned.unwrap_or_else(|| self.run_of(req))
            }
            Stand::Moves => Wait::OTHER,
        }
    }

    /// A collective of this rank in the background.
    fn run_of(&self, req: ReqId) -> Wait {
        let views = self.0.parts.collectives.views();
        let Some(RunView { place, .. }) = views.iter().find(|v| v.req == req) else {
            return Wait::OTHER;
        };
        Wait {
            kind: Kind::Collective,
            peer: Some(self.0.job.me.0),
            tag: Some(place.1),
            context: place.0.0,
            ..Wait::OTHER
        }
    }

    fn runs(&self) -> Vec<Run> {
        let views = self.0.parts.collectives.views().into_iter();
        let run = |view: RunView| Run {
            context: view.place.0.0,
            number: view.place.1,
            waits: self.waits_of_run(&view),
        };
        views.map(run).collect()
    }

    fn waits_of_run(&self, view: &RunView) -> Vec<Wait> {
        let (context, number) = (view.place.0.0, view.place.1);
        if view.wants_user {
            return vec![Wait::OTHER];
        }
        if let Some(watch) = view.watch {
            let tag = Some(number);
            let wait = self.on_shm_region(watch);
            return vec![Wait {
                tag,
                context,
                ..wait
            }];
        }
        view.flights.iter().map(|&r| self.wait_of(r)).collect()
    }

    /// Messages without a receive; those that concern a wait come first.
    fn early(&self, waits: &[Wait]) -> Vec<Early> {
        let mut early = unreceived(self.0);
        // A call that has no communicator yet is described by its own waits.
        early.retain(|e| e.context != BOOTSTRAP.0);
        let concerns = |e: &Early| waits.iter().any(|w| w.peer.is_none_or(|p| p == e.from));
        early.sort_by_key(|e| !concerns(e));
        early.truncate(MOST_EARLY);
        early
    }
}

/// Number of polls for incoming data before anything is reported.
const MOST_LOOKS: u32 = 64;
/// Most messages without a receive that are reported.
const MOST_EARLY: usize = 16;

/// A message of the program, or of a call that makes a communicator without a parent; the library's
/// other ones have negative tags or a context of their own.
fn early_of(message: &Unreceived<'_, Buf>) -> Option<Early> {
    let env = message.env;
    if env.tag < 0 {
        return setup_of(message);
    }
    Some(Early {
        from: message.from.0,
        source: env.source,
        tag: env.tag,
        context: env.context,
        bytes: message.len,
        partitioned: false,
    })
}

/// Messages that are not in a communicator's own context are those of a collective.
fn kind(context: u32, users: Kind) -> Kind {
    match is_collective(context) {
        false => users,
        true => Kind::Collective,
    }
}
