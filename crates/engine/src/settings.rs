//! Access of tools to an engine: counters, settings, events, descriptions; and its end.

use crate::engine::Engine;
use crate::paths::seen;
use kw_base::Peer;
use kw_base::calibration::Figure;
use kw_base::components::Component;
use kw_base::counters::{self, Class, Counter};
use kw_base::settings::{self, Id, InvalidSetting, Settings};
use kw_waiting::Times;
use std::time::Duration;

/// Longest time that a rank which leaves waits for its shutdown messages to arrive, if a path
/// reports that: a peer that receives none takes the rank for dead, which is harmless at the end.
const LINGER: Duration = Duration::from_secs(1);
impl Engine {
    /// The value of a counter. Values known only under the lock ([`Counter::EventState`]) are zero
    /// here.
    pub fn counter(&self, c: Counter) -> u64 {
        let machine = &self.messages.machine;
        match c {
            Counter::UnexpectedWaiting => machine.p2p.receiving.waiting(),
            Counter::UnexpectedHeld => machine.p2p.receiving.kept(),
            Counter::ReceivesPosted => machine.p2p.receiving.posted(),
            Counter::RequestsActive => machine.endpoint.requests.active() as u64,
            Counter::CollectivesActive => self.parts.collectives.running.len() as u64,
            _ => match self
                .parts
                .windows
                .counter(c)
                .or_else(|| self.messages.paths.counter(c))
            {
                Some(value) => value,
                None => machine.endpoint.out.counters.get(c) + self.counters.get(c),
            },
        }
    }

    /// Time to wake a thread, as measured on the host.
    pub(crate) fn wake_up(&self) -> Duration {
        let wake = self.job.agreed().calibration().get_or_start(Figure::Wake);
        Duration::from_nanos(wake as u64)
    }

    /// How long a rank that waits is sure to poll: zero if CPUs are shared.
    pub fn polls_for(&self, peer: Peer) -> Duration {
        let spin_setting = self.settings.number(Id::Spin).map(Duration::from_micros);
        match self.job.agreed().is_oversubscribed(peer) {
            true => Duration::ZERO,
            false => Times::of(self.wake_up(), spin_setting).spin,
        }
    }

    /// The largest value of a level since the last call, for a row of [`Class::Peak`].
    pub fn take_peak(&mut self, c: Counter) -> u64 {
        let Class::Peak(level) = c.row().class else {
            return self.counter(c);
        };
        let now = self.counter(level);
        self.messages
            .machine
            .endpoint
            .out
            .counters
            .take_peak(c, now)
    }

    /// All counters of this rank, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let all = (0..counters::ALL.len()).filter_map(Counter::at);
        all.map(|c| (c.row().name, self.counter(c))).collect()
    }

    /// Sets a setting that may be changed at any time; its consequences are decided again.
    pub(crate) fn set_setting(
        &mut self,
        position: usize,
        text: &str,
    ) -> Result<(), InvalidSetting> {
        let mut settings = self.settings.clone();
        settings.set_at(position, text)?;
        self.settings = settings;
        let repriced = settings::ALL[position].component == Component::Protocols;
        self.messages.set_settings(&self.settings, repriced);
        Ok(())
    }

    /// Says goodbye to every peer, and stays until all have received it, but not longer than
    /// [`LINGER`]. Rank 0 saves what its connections have measured.
    pub fn close(&mut self) {
        for line in self.messages.paths.network() {
            tracing::info!("{line}");
        }
        self.messages.paths.close();
        let end = self.messages.paths.clock() + LINGER;
        while self.messages.paths.pending() && self.messages.paths.clock() < end {
            self.progress();
            std::thread::yield_now();
        }
        if self.settings.flag(Id::Calibrate) {
            seen::keep(&self.messages.paths, &self.job);
        }
    }
}

/// Limit of buffered unexpected messages, bytes.
pub(crate) fn mark(settings: &Settings) -> u64 {
    settings.number(Id::Unexpected).unwrap_or(0)
}

/// Whether the progress thread is wanted.
pub(crate) fn wants_event_thread(settings: &Settings) -> bool {
    settings.flag(Id::EventThread)
}
