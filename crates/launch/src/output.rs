//! Output of ranks: whole lines out of their pipes, labelled on request, written by a thread for
//! each of mpiexec's two outputs.
//!
//! A line is forwarded when its end has arrived (newline or carriage return), so that lines of two
//! ranks never mix. An incomplete line is forwarded when its rank stays silent for a moment, or
//! when it grows long. The writers are threads, so that a blocked reader blocks neither the start
//! of ranks nor mpiexec's signals; only the poller waits for them.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use kw_base::sync::{Arc, Condvar, Mutex, MutexGuard, thread};

/// A line longer than this is passed on in parts.
const MAX_LINE: usize = 64 << 10;
/// Approximate size of one write.
const PIECE: usize = 16 << 10;

/// Cuts the output of one rank into lines.
#[derive(Debug, Default)]
pub struct Splitter {
    pending: Vec<u8>,
    label: Option<String>,
    /// Whether the data passed on so far ends inside a line.
    inside: bool,
}

impl Splitter {
    /// Creates the state, with a label for every line, if any.
    pub fn new(label: Option<String>) -> Splitter {
        Splitter {
            label,
            ..Splitter::default()
        }
    }

    /// Takes bytes; appends to `out` the part that can be passed on.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.pending.extend_from_slice(bytes);
        let is_end = |b: &u8| *b == b'\n' || *b == b'\r';
        let Some(last) = self.pending.iter().rposition(is_end) else {
            if self.pending.len() >= MAX_LINE {
                self.flush(out);
            }
            return;
        };
        let rest = self.pending.split_off(last + 1);
        self.flush(out);
        self.pending = rest;
    }

    /// Forwards the rest, even if its line is incomplete.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        let whole = std::mem::take(&mut self.pending);
        let Some(label) = &self.label else {
            out.extend_from_slice(&whole);
            return;
        };
        for line in whole.split_inclusive(|b| *b == b'\n') {
            if !self.inside {
                out.extend_from_slice(label.as_bytes());
            }
            out.extend_from_slice(line);
            self.inside = line.last() != Some(&b'\n');
        }
    }

    /// Whether there is a line without an end.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }
}

/// A queue that a thread writes out. The thread may be blocked in a write for ever: it is abandoned
/// when the process ends.
#[derive(Debug)]
pub struct Sink {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    chunks: VecDeque<Vec<u8>>,
    bytes: usize,
    closed: bool,
    /// The thread has finished.
    done: bool,
    failed: Option<io::Error>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // a panic of the writer leaves the queue consistent
        self.queue.lock().unwrap_or_else(|p| p.into_inner())
    }
}

impl Sink {
    /// A sink that writes to `to`, and signals `bell` (an eventfd) when, after [`Sink::close`], all
    /// is written.
    pub fn new<W: Write + Send + 'static>(to: W, bell: Arc<OwnedFd>) -> Sink {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        thread::spawn(move || {
            write_out(&theirs, to);
            theirs.lock().done = true;
            let _ = rustix::io::write(&*bell, &1u64.to_ne_bytes());
        });
        Sink { shared }
    }

    /// Queues bytes.
    pub fn push(&self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let mut q = self.shared.lock();
        q.bytes += bytes.len();
        q.chunks.push_back(bytes);
        self.shared.more.notify_one();
    }

    /// Number of unwritten bytes.
    pub fn backlog(&self) -> usize {
        self.shared.lock().bytes
    }

    /// Takes the error that stopped the writer, if one did.
    pub fn failure(&self) -> Option<io::Error> {
        self.shared.lock().failed.take()
    }

    /// Closes the queue.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.more.notify_one();
    }

    /// Whether all is written (or a write has failed), and the sink is closed.
    pub fn is_done(&self) -> bool {
        self.shared.lock().done
    }
}

fn write_out(shared: &Shared, mut to: impl Write) {
    loop {
        let mut q = shared.lock();
        while q.chunks.is_empty() && !q.closed {
            q = match shared.more.wait(q) {
                Ok(q) => q,
                Err(p) => p.into_inner(),
            };
        }
        let Some(chunk) = q.chunks.pop_front() else {
            return;
        };
        drop(q);
        let done = write_pieces(shared, &mut to, &chunk).and_then(|()| to.flush());
        if let Err(e) = done {
            let mut q = shared.lock();
            q.failed = Some(e);
            q.chunks.clear();
            q.bytes = 0;
            return drain(q, shared);
        }
    }
}

/// Writes whole lines, a few at a time, so that a slow reader's progress is visible.
fn write_pieces(shared: &Shared, to: &mut impl Write, chunk: &[u8]) -> io::Result<()> {
    let mut rest = chunk;
    while !rest.is_empty() {
        let most = &rest[..rest.len().min(PIECE)];
        let end = most.iter().rposition(|b| *b == b'\n');
        let piece = end.map_or(most.len(), |last| last + 1);
        to.write_all(&rest[..piece])?;
        shared.lock().bytes -= piece;
        rest = &rest[piece..];
    }
    Ok(())
}

/// Discards all data until the end, after a failure.
fn drain(mut q: MutexGuard<'_, Queue>, shared: &Shared) {
    while !q.closed {
        q.chunks.clear();
        q.bytes = 0;
        q = match shared.more.wait(q) {
            Ok(q) => q,
            Err(p) => p.into_inner(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(label: Option<&str>, parts: &[&str]) -> (String, Vec<String>) {
        let mut s = Splitter::new(label.map(str::to_string));
        let mut all = String::new();
        let mut steps = Vec::new();
        for p in parts {
            let mut out = Vec::new();
            s.feed(p.as_bytes(), &mut out);
            let text = String::from_utf8(out).unwrap();
            all += &text;
            steps.push(text);
        }
        let mut out = Vec::new();
        s.flush(&mut out);
        (all + &String::from_utf8(out).unwrap(), steps)
    }

    #[test]
    fn lines_are_passed_whole() {
        let (all, steps) = split(None, &["ab", "c\nde", "f\ng"]);
        assert_eq!(all, "abc\ndef\ng");
        assert_eq!(steps, ["", "abc\n", "def\n"]);
    }

    #[test]
    fn every_line_is_labelled_once() {
        let (all, _) = split(Some("[3] "), &["a\nb", "c\n\nd"]);
        assert_eq!(all, "[3] a\n[3] bc\n[3] \n[3] d");
    }

    #[test]
    fn a_progress_line_is_passed_at_its_return() {
        let (_, steps) = split(None, &["\r 10 %", "\r 20 %"]);
        assert_eq!(steps, ["\r", " 10 %\r"]);
    }

    #[test]
    fn a_full_disk_is_reported_once() {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let sink = Sink::new(full, bell());
        sink.push(b"x".to_vec());
        finish(&sink);
        assert!(sink.failure().is_some());
        assert!(sink.failure().is_none());
    }

    #[test]
    fn nobody_waits_for_a_reader_who_does_not_read() {
        let (theirs, ours) = std::io::pipe().unwrap();
        let sink = Sink::new(ours, bell());
        sink.push(vec![b'x'; 1 << 20]);
        sink.close();
        assert!(!sink.is_done() && sink.backlog() > 0);
        drop(theirs);
        finish(&sink);
        assert!(sink.failure().is_some());
    }

    fn bell() -> Arc<OwnedFd> {
        let flags = rustix::event::EventfdFlags::CLOEXEC;
        Arc::new(rustix::event::eventfd(0, flags).unwrap())
    }

    fn finish(sink: &Sink) {
        sink.close();
        while !sink.is_done() {
            thread::yield_now();
        }
    }
}
