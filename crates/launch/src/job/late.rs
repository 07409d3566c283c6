//! Ranks that do not arrive: when some have waited for others in MPI_Init for a minute, the missing
//! ones are named, once. The job continues, because a rank may have good reason to come late.

use std::time::Duration;

use kw_base::Tick;
use kw_base::settings::{Id, Settings};
use kw_start::pmi::{Server, ranks};

/// Time between two checks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Since when some ranks wait.
#[derive(Debug)]
pub(super) struct Late {
    wait: Duration,
    since: Option<Tick>,
    look_at: Tick,
    printed: bool,
}

impl Late {
    /// Missing ranks are named after the seconds of `KW_RENDEZVOUS_WAIT`, whose text this is; a
    /// text that is not a number is ignored.
    pub(super) fn new(text: Option<&str>) -> Late {
        let own = |name: &str| text.filter(|_| name == "KW_RENDEZVOUS_WAIT");
        let settings = Settings::read(|name| own(name).map(str::to_string));
        let settings = settings.unwrap_or_else(|_| Settings::defaults());
        Late {
            wait: Duration::from_secs(settings.number(Id::RendezvousWait).unwrap_or(0)),
            since: None,
            look_at: Tick(0),
            printed: false,
        }
    }

    /// The sentence that is due now, if any.
    pub(super) fn due(&mut self, now: Tick, server: &Server) -> Option<String> {
        if self.printed || now < self.look_at {
            return None;
        }
        self.look_at = now + LOOK_EVERY;
        let (came, missing) = server.late();
        if came.is_empty() || missing.is_empty() {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        if now.since(since) < self.wait {
            return None;
        }
        self.printed = true;
        Some(format!(
            "{} did not call MPI_Init within {} s of {}, which wait",
            ranks(&missing),
            self.wait.as_secs(),
            ranks(&came)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_never_came_is_named_once() {
        let mut server = Server::new("kw-late", None, &[0; 3], &[0; 3], 3);
        let mut out = Vec::new();
        let mut late = Late::new(None);
        let at = |seconds| Tick(0) + Duration::from_secs(seconds);
        assert_eq!(late.due(at(0), &server), None);
        for r in [0, 2] {
            server.handle(r, b"cmd=init pmi_version=1\ncmd=barrier_in\n", &mut out);
        }
        assert_eq!(late.due(at(5), &server), None);
        assert_eq!(late.due(at(64), &server), None);
        let sentence = late.due(at(65), &server).unwrap();
        assert_eq!(
            sentence,
            "rank 1 did not call MPI_Init within 60 s of ranks 0, 2, which wait"
        );
        assert_eq!(late.due(at(200), &server), None);
    }

    #[test]
    fn the_clock_begins_anew_when_all_have_come() {
        let mut server = Server::new("kw-late", None, &[0; 2], &[0; 2], 2);
        let mut out = Vec::new();
        let mut late = Late::new(Some("3"));
        let at = |seconds| Tick(0) + Duration::from_secs(seconds);
        server.handle(0, b"cmd=init pmi_version=1\ncmd=barrier_in\n", &mut out);
        assert_eq!(late.due(at(1), &server), None);
        server.handle(1, b"cmd=init pmi_version=1\n", &mut out);
        assert_eq!(
            late.due(at(9), &server),
            None,
            "it has come, and may take its time"
        );
    }
}
