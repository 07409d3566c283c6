//! Log on standard error: events of the crate `tracing`, one line each, filtered by `KW_LOG`.
//!
//! Any module logs by `tracing::info!` and its like. A disabled event costs a load and a
//! comparison, so there is none in the path of a short message. The subscriber is a global of the
//! process, because `tracing`'s is: installed by the code that starts MPI there, so that many ranks
//! in one process (tests) log nothing.

use kw_base::sync::Mutex;
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use std::fmt::{Debug, Write as _};
use std::io::Write as _;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::{Interest, Subscriber};
use tracing::{Event, Metadata, span};

/// The levels, in the order of [`kw_base::settings::LOG_LEVELS`].
const LEVELS: [LevelFilter; 5] = [
    LevelFilter::ERROR,
    LevelFilter::WARN,
    LevelFilter::INFO,
    LevelFilter::DEBUG,
    LevelFilter::TRACE,
];

/// Current level: a position in [`LEVELS`].
static LEVEL: AtomicUsize = AtomicUsize::new(0);
/// Prefix of each line.
static WHO: Mutex<String> = Mutex::new(String::new());

fn level() -> LevelFilter {
    LEVELS[LEVEL.load(Ordering::Relaxed).min(LEVELS.len() - 1)]
}

/// From now on this process logs at this level, with its number as prefix until its rank is known
/// ([`name`]).
pub fn install(level: usize) {
    if tracing::subscriber::set_global_default(Lines).is_ok() {
        call_me(&format!("process {}", std::process::id()));
    }
    set_level(level);
}

/// This process is a rank of the job.
pub fn name(rank: u32) {
    call_me(&format!("rank {rank}"));
}

fn call_me(who: &str) {
    let mut own = WHO.lock().unwrap_or_else(|e| e.into_inner());
    *own = format!("{who} on {}", crate::host::name());
}

/// From now on this level is logged.
pub fn set_level(level: usize) {
    LEVEL.store(level, Ordering::Relaxed);
    tracing_core::callsite::rebuild_interest_cache();
}

/// Writes lines.
struct Lines;

impl Subscriber for Lines {
    fn register_callsite(&self, about: &'static Metadata<'static>) -> Interest {
        match self.enabled(about) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(level())
    }

    fn enabled(&self, about: &Metadata<'_>) -> bool {
        *about.level() <= level()
    }

    fn event(&self, event: &Event<'_>) {
        let who = WHO.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let mut line = Line(format!("{who}:"));
        event.record(&mut line);
        line.0.push('\n');
        // One write, so that the lines of several ranks do not mix. A failure cannot be reported.
        let _ = std::io::stderr().write_all(line.0.as_bytes());
    }

    // There are no spans: a process is one rank.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// A line under construction: the sentence, then other fields.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_base::settings::LOG_LEVELS;

    #[test]
    fn levels_have_the_order_of_their_words() {
        let words: Vec<String> = LEVELS.iter().map(|l| l.to_string()).collect();
        assert_eq!(words, LOG_LEVELS);
    }

    #[test]
    fn a_level_says_what_those_before_it_say() {
        for (n, most) in LEVELS.iter().enumerate() {
            LEVEL.store(n, Ordering::Relaxed);
            assert_eq!(level(), *most);
            assert!(LEVELS[..=n].iter().all(|l| *l <= level()));
        }
    }
}
