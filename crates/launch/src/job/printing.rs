//! Output of ranks on its way to mpiexec's standard output and error, and mpiexec's own messages.

use std::time::Duration;

use crate::output::{Sink, Splitter};
use crate::verdict::Verdict;
use kw_base::Tick;

/// How long a line may stay unfinished before it is passed on.
const UNFINISHED: Duration = Duration::from_millis(50);
/// Output that may queue for a slow reader before ranks have to wait, too.
const BACKLOG: usize = 4 << 20;

/// The lines of each rank, and their destinations.
pub(super) struct Printing {
    splitters: Vec<[Splitter; 2]>,
    sinks: [Sink; 2],
    flush_at: Option<Tick>,
    /// Ranks are not read now, because mpiexec's output is blocked.
    blocked: bool,
}

impl Printing {
    /// Creates the state for this many ranks; `label`: their lines are prefixed with their number.
    pub(super) fn new(ranks: usize, label: bool, sinks: [Sink; 2]) -> Printing {
        let splitters = |rank| {
            let label = label.then(|| format!("[{rank}] "));
            [Splitter::new(label.clone()), Splitter::new(label)]
        };
        Printing {
            splitters: (0..ranks).map(splitters).collect(),
            sinks,
            flush_at: None,
            blocked: false,
        }
    }

    /// Handles output of a rank (`which`: 0 is its standard output, 1 its standard error).
    pub(super) fn feed(&mut self, rank: u32, which: usize, bytes: &[u8], now: Tick) {
        let Some(splitters) = self.splitters.get_mut(rank as usize) else {
            return;
        };
        let mut out = Vec::with_capacity(bytes.len() + 64);
        splitters[which].feed(bytes, &mut out);
        if splitters[which].is_pending() && self.flush_at.is_none() {
            self.flush_at = Some(now + UNFINISHED);
        }
        self.sinks[which].push(out);
    }

    /// Passes on the last line of a rank even without an end.
    pub(super) fn flush(&mut self, rank: u32, which: usize) {
        let mut out = Vec::new();
        self.splitters[rank as usize][which].flush(&mut out);
        self.sinks[which].push(out);
    }

    /// Passes on lines that have stayed unfinished for too long.
    pub(super) fn flush_all(&mut self) {
        self.flush_at = None;
        for rank in 0..self.splitters.len() as u32 {
            self.flush(rank, 0);
            self.flush(rank, 1);
        }
    }

    pub(super) fn on_time(&mut self, now: Tick) {
        if self.flush_at.is_some_and(|t| t <= now) {
            self.flush_all();
        }
    }

    /// When the next action is due without an event.
    pub(super) fn next(&self) -> Tick {
        self.flush_at.unwrap_or(Tick::NEVER)
    }

    /// Whether ranks may be read, if that has changed.
    pub(super) fn changed(&mut self) -> Option<bool> {
        let blocked = match self.blocked {
            false => self.sinks.iter().any(|s| s.backlog() > BACKLOG),
            true => !self.sinks.iter().all(|s| s.backlog() < BACKLOG / 2),
        };
        let before = std::mem::replace(&mut self.blocked, blocked);
        (before != blocked).then_some(!blocked)
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Prints a message on standard error.
    pub(super) fn say(&self, text: impl Into<Vec<u8>>) {
        self.sinks[1].push(text.into());
    }

    /// Failures of mpiexec's standard output and error; each is reported once.
    pub(super) fn failures(&self) -> impl Iterator<Item = Verdict> {
        let names = [(0, "output"), (1, "error")];
        let failed = names.map(|(sink, name)| {
            let e = self.sinks[sink].failure()?;
            Some(Verdict::new(
                1,
                format!("cannot write standard {name}: {e}"),
            ))
        });
        failed.into_iter().flatten()
    }

    /// Number of unread bytes.
    pub(super) fn backlog(&self, which: usize) -> usize {
        self.sinks[which].backlog()
    }

    /// Closes the output: nothing more is printed there.
    pub(super) fn close(&self, which: usize) {
        self.sinks[which].close();
    }

    /// Whether all output is written.
    pub(super) fn is_done(&self, which: usize) -> bool {
        self.sinks[which].is_done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_base::sync::{Arc, Mutex};
    use rustix::event::{EventfdFlags, eventfd};
    use std::io::{self, Write};

    /// A reader that reads nothing until it is allowed to.
    #[derive(Clone)]
    struct Gate(Arc<Mutex<Vec<u8>>>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn printing(label: bool) -> (Printing, [Gate; 2]) {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let gates = [(); 2].map(|()| Gate(Arc::new(Mutex::new(Vec::new()))));
        let sinks = gates.clone().map(|g| Sink::new(g, bell.clone()));
        (Printing::new(2, label, sinks), gates)
    }

    fn written(p: &Printing, gates: &[Gate; 2]) -> [String; 2] {
        [0, 1].map(|which| {
            p.close(which);
            while !p.is_done(which) {
                std::thread::yield_now();
            }
            String::from_utf8(gates[which].0.lock().unwrap().clone()).unwrap()
        })
    }

    #[test]
    fn a_line_waits_for_its_end_until_its_time_has_come() {
        let (mut p, gates) = printing(true);
        let start = Tick(0);
        p.feed(0, 0, b"one\ntw", start);
        p.feed(1, 1, b"oops\n", start);
        p.feed(7, 0, b"of no rank\n", start);
        assert_eq!(p.next(), start + UNFINISHED);
        p.on_time(start + UNFINISHED);
        assert_eq!(p.next(), Tick::NEVER);
        p.say("mpiexec: so\n");
        let [out, error] = written(&p, &gates);
        assert!(out.starts_with("[0] one\n[0] tw"), "{out}");
        assert_eq!(error, "[1] oops\nmpiexec: so\n");
    }

    #[test]
    fn ranks_are_not_read_while_nobody_reads_us() {
        let (mut p, gates) = printing(false);
        let closed = gates[0].0.lock().unwrap();
        p.feed(0, 0, &vec![b'\n'; BACKLOG], Tick(0));
        assert_eq!(p.changed(), None);
        p.feed(0, 0, b"\n", Tick(0));
        assert_eq!((p.changed(), p.changed()), (Some(false), None));
        assert!(p.is_blocked());
        drop(closed);
        written(&p, &gates);
        assert_eq!((p.changed(), p.changed()), (Some(true), None));
    }
}
