//! Comparison of calls before a collective with KW_CHECK=1: each rank sends a record of its call to
//! rank 0 of the communicator, which compares them and sends the verdict to all. It is part of the
//! run, so that a non-blocking call does not wait for it, and it uses the run's own tag: its
//! messages precede those of the collective between any two ranks.

use super::Failure;
use super::drive::Driving;
use super::{CommView, Drive, Memory, Run};
use kw_coll::{RECV, SEND, Schedule, Slice};
use kw_sys::buf::Buf;

/// Compares the records of this many ranks, all of one length, one after the other; if they
/// disagree, returns the error class and a sentence.
pub type Judge = fn(&[u8], usize) -> Option<(i32, String)>;

/// Bytes of a verdict: class, length of the sentence, sentence.
const VERDICT: usize = 1024;

/// A rank's record, and the state of the comparison.
#[derive(Debug)]
pub struct SignatureCheck {
    record: Vec<u8>,
    judge: Judge,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Fresh,
    /// Rank 0 receives the records.
    Gathers(Box<Run>, Buf),
    /// The verdict is on its way.
    Spreads(Box<Run>, Buf),
}

impl SignatureCheck {
    /// A comparison of records of this length.
    pub fn new(record: Vec<u8>, judge: Judge) -> SignatureCheck {
        SignatureCheck {
            record,
            judge,
            stage: Stage::Fresh,
        }
    }

    /// The check from the start.
    pub fn again(&self) -> SignatureCheck {
        SignatureCheck::new(self.record.clone(), self.judge)
    }

    /// The record, to change before it is sent.
    pub fn record(&mut self) -> &mut [u8] {
        &mut self.record
    }

    /// The next thing to run, if there is one.
    fn next(&mut self, comm_view: &CommView) -> bool {
        let ranks = comm_view.members.size() as usize;
        let verdict = Buf::alloc(VERDICT);
        self.stage = match &self.stage {
            Stage::Fresh if comm_view.rank > 0 => {
                let record = Buf::alloc(self.record.len());
                record.write(0, &self.record);
                Stage::Spreads(ask(comm_view, &record, &verdict), verdict)
            }
            Stage::Fresh => {
                let all = Buf::alloc(ranks * self.record.len());
                all.write(0, &self.record);
                Stage::Gathers(gather(comm_view, self.record.len() as u64, &all), all)
            }
            Stage::Gathers(_, all) => {
                let mut records = vec![0; all.len() as usize];
                all.read(0, &mut records);
                verdict.write(0, &to_bytes((self.judge)(&records, ranks)));
                Stage::Spreads(spread(comm_view, &verdict), verdict)
            }
            Stage::Spreads(..) => return false,
        };
        true
    }

    /// The transfers of the comparison that are under way.
    pub(super) fn under_way(&self) -> Option<&Run> {
        match &self.stage {
            Stage::Fresh => None,
            Stage::Gathers(run, _) | Stage::Spreads(run, _) => Some(run),
        }
    }

    pub(super) fn run(&mut self) -> Option<&mut Run> {
        match &mut self.stage {
            Stage::Fresh => None,
            Stage::Gathers(run, _) | Stage::Spreads(run, _) => Some(run),
        }
    }

    fn verdict(&self) -> Option<Failure> {
        let Stage::Spreads(_, verdict) = &self.stage else {
            return None;
        };
        let mut bytes = vec![0; VERDICT];
        verdict.read(0, &mut bytes);
        from_bytes(&bytes)
    }
}

/// The longest prefix of a text that fits into this many bytes.
pub fn cut(text: &str, most: usize) -> &str {
    let mut len = text.len().min(most);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    &text[..len]
}

fn to_bytes(verdict: Option<(i32, String)>) -> Vec<u8> {
    let (class, text) = verdict.unwrap_or_default();
    let text = cut(&text, VERDICT - 8).as_bytes();
    let mut bytes = [class, text.len() as i32].map(i32::to_ne_bytes).concat();
    bytes.extend(text);
    bytes
}

fn from_bytes(bytes: &[u8]) -> Option<Failure> {
    let word =
        |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (class, len) = (word(0), (word(4).max(0) as usize).min(VERDICT - 8));
    let text = String::from_utf8_lossy(&bytes[8..8 + len]).into_owned();
    (class != 0).then_some(Failure::Disagreement { code: class, text })
}

fn of(comm_view: &CommView, schedule: Schedule, buffers: [&Buf; 2]) -> Box<Run> {
    let mut run = Run::idle(comm_view.clone());
    run.work().schedule = schedule;
    buffers
        .into_iter()
        .for_each(|b| run.add(Memory::stream(b.clone())));
    Box::new(run)
}

/// Rank 0: records of `each` bytes from all others.
fn gather(comm_view: &CommView, each: u64, all: &Buf) -> Box<Run> {
    let mut s = Schedule::default();
    let whole = Slice::whole(RECV, all.len());
    for r in 1..comm_view.members.size() {
        s.recv(r, whole.part(r as u64 * each, each));
    }
    of(comm_view, s, [&Buf::EMPTY, all])
}

/// Rank 0: the verdict for all others.
fn spread(comm_view: &CommView, verdict: &Buf) -> Box<Run> {
    let mut s = Schedule::default();
    for r in 1..comm_view.members.size() {
        s.send(r, Slice::whole(SEND, VERDICT as u64));
    }
    of(comm_view, s, [verdict, &Buf::EMPTY])
}

/// Others: the record to rank 0, the verdict back.
fn ask(comm_view: &CommView, record: &Buf, verdict: &Buf) -> Box<Run> {
    let mut s = Schedule::default();
    s.recv(0, Slice::whole(RECV, VERDICT as u64));
    s.send(0, Slice::whole(SEND, record.len()));
    of(comm_view, s, [record, verdict])
}

impl Driving<'_> {
    /// Continues the comparison before a run; returns its wait. A disagreement is the run's
    /// failure.
    #[cold]
    pub(super) fn compare(&mut self, run: &mut Run) -> Option<Drive> {
        let (mut signature_check, comm_view) =
            (run.signature_check.take()?, run.comm_view.clone()?);
        loop {
            if let Some(own) = signature_check.run() {
                match self.drive(own) {
                    Drive::Done => run.failure = own.failure.take(),
                    waits => {
                        run.signature_check = Some(signature_check);
                        return Some(waits);
                    }
                }
            }
            if run.failure.is_some() {
                return None;
            }
            if !signature_check.next(&comm_view) {
                run.failure = signature_check.verdict();
                return None;
            }
        }
    }
}
