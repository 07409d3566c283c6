//! How a run is driven: the steps that the executor leaves to the engine, which are messages,
//! memory that is not contiguous, long copies and functions of the user.

use super::Failure;
use super::binding;
use super::channel::{Channels, Watch};
use super::memory::{Memory, Store};
use super::run::{Bound, Drive, Flight, Run};
use super::user::Combining;
use crate::messages::{Messages, ReqId, SendMode, Started, Want};
use kw_base::Peer;
use kw_base::counters::Counter;
use kw_coll::executor::{Next, Op};
use kw_coll::{Slice, Step, is_shm_buffer};
use kw_proto::endpoint;
use kw_sys::nontemporal::{self, NontemporalCopier};
use kw_sys::region::Region;

/// Resources of a run: the shm regions, memory for temporaries, and its messages.
pub(super) struct Driving<'a> {
    pub channels: &'a mut Channels,
    pub store: &'a mut Store,
    /// How this rank writes long data on its shm buffers.
    pub publisher: &'a mut NontemporalCopier,
    pub messages: &'a mut Messages,
}

impl Driving<'_> {
    /// Ops and temporaries.
    fn prepare(&mut self, run: &mut Run) {
        if run.bound == Bound::Not {
            let long = self.publisher.long();
            binding::bind_on(self.channels, run, long);
            if run.region_use.is_none() {
                run.work();
            } else if !run.ops.iter().any(|op| matches!(op, Op::Step(_))) {
                run.work = None;
            }
            run.settle_name();
        }
        if let Some(work) = run.work.as_deref_mut() {
            let element = work.element.as_ref().unwrap_or(&Memory::NONE);
            work.memory.lay_out(&work.schedule, element, self.store);
        }
        run.bound = Bound::Yes;
    }

    /// Continues a run as far as it can without waiting.
    pub fn drive(&mut self, run: &mut Run) -> Drive {
        match self.before_ops(run) {
            Some(waits) => waits,
            None => self.drive_steps(run),
        }
    }

    /// Steps before the first op; returns the condition for which they wait.
    fn before_ops(&mut self, run: &mut Run) -> Option<Drive> {
        if run.signature_check.is_some()
            && let Some(waits) = self.compare(run)
        {
            return Some(waits);
        }
        if run.bound != Bound::Yes {
            self.prepare(run);
        }
        None
    }

    /// Continues a run that is ready.
    fn drive_steps(&mut self, run: &mut Run) -> Drive {
        while !run.has_failed() {
            match self.channels.go_on(run) {
                Next::Wait(wait) => {
                    let channel = run.region_use.as_ref().map(|b| b.channel);
                    if let Some(channel) = channel {
                        return Drive::ShmRegion(Watch::new(channel, wait));
                    }
                }
                Next::Step(i) => {
                    if let Some(waits) = self.step(run, i) {
                        return waits;
                    }
                }
                Next::End => match self.fence(run) {
                    Some((req, peer)) => return Drive::Waiting(req, peer),
                    None if !run.has_failed() => {
                        if run.region_use.is_none() {
                            return Drive::Done;
                        }
                        self.channels.end(run);
                        ended_on_shm_region(self.messages, run);
                        return Drive::Done;
                    }
                    None => break,
                },
            }
        }
        self.give_up(run);
        Drive::Done
    }

    /// A step that the executor leaves to the engine; returns its wait.
    #[inline]
    fn step(&mut self, run: &mut Run, i: u32) -> Option<Drive> {
        let step = run.step_of(Op::Step(i))?;
        let waits = match step {
            Step::Send { to, what } => {
                self.start_send(run, to, what);
                None
            }
            Step::Recv { from, into } => {
                self.start_recv(run, from, into);
                None
            }
            Step::Copy { from, to } => {
                match combine(run, i, (from, to), self.channels) {
                    true => run.progress.pass(),
                    false => copy(run, from, to, self.channels, self.publisher),
                }
                None
            }
            Step::Reduce { left, right } => {
                reduce(run, left, right, self.channels).then_some(Drive::User)
            }
            Step::Await(slot) => self.completed(run, slot as usize).map(waiting),
            Step::Fence => self.fence(run).map(waiting),
            Step::Raise(_) | Step::Watch { .. } | Step::WatchAll(_) => {
                run.fail(Failure::NoShmRegion);
                None
            }
        };
        if waits.is_none() {
            run.progress.pass();
        }
        waits
    }

    #[inline]
    fn start_send(&mut self, run: &mut Run, to: u32, what: Slice) {
        let buf = run.buf(what);
        let (Some(c), Some(work)) = (&run.comm_view, &mut run.work) else {
            return;
        };
        let peer = c.members.peer(to);
        let mode = match work.schedule.fetched {
            true => SendMode::Fetched,
            false => SendMode::Standard,
        };
        let envelope = (c.context, c.rank, c.tag);
        let started = self.messages.send(peer, envelope, mode, &buf);
        let req = match started {
            Started::Done => None,
            Started::Request(id) => Some(id),
        };
        work.flights.push(Flight {
            req,
            peer,
            expects: None,
        });
    }

    #[inline]
    fn start_recv(&mut self, run: &mut Run, from: u32, into: Slice) {
        let buf = run.buf(into);
        let (Some(c), Some(work)) = (&run.comm_view, &mut run.work) else {
            return;
        };
        let peer = c.members.peer(from);
        let want = Want {
            context: c.context,
            source: Some((from, peer)),
            tag: Some(c.tag),
        };
        let expects = Some((from, buf.len()));
        let req = Some(match work.schedule.fetched {
            true => self.messages.recv_fetched(want, peer, buf),
            false => self.messages.recv(want, buf),
        });
        work.flights.push(Flight { req, peer, expects });
    }

    /// Remaining condition of a slot; takes its outcome when it has ended.
    #[inline]
    fn completed(&mut self, run: &mut Run, slot: usize) -> Option<(ReqId, Peer)> {
        let flight = run.work.as_mut()?.flights.get_mut(slot)?;
        let req = flight.req?;
        if !self.messages.requests().is_done(req) {
            return Some((req, flight.peer));
        }
        flight.req = None;
        let outcome = self.messages.requests_mut().take(req)?;
        let came = match (outcome.failure.map(|f| *f), flight.expects) {
            (Some(endpoint::Failure::Truncated { came, .. }), Some(expects)) => {
                Some((expects, came))
            }
            (Some(failure), _) => {
                run.fail(Failure::Message(failure));
                None
            }
            (None, expects) => expects.map(|e| (e, outcome.len)),
        };
        if let Some(((from, want), came)) = came
            && came != want
        {
            let failure = mismatch(run, from, came, want);
            run.fail(failure);
        }
        None
    }

    #[inline]
    fn fence(&mut self, run: &mut Run) -> Option<(ReqId, Peer)> {
        while !run.has_failed() {
            let slot = match &run.work {
                Some(work) if work.completed < work.flights.len() => work.completed,
                _ => return None,
            };
            if let Some(left) = self.completed(run, slot) {
                return Some(left);
            }
            run.work().completed += 1;
        }
        None
    }

    /// After a failure: takes back transfers that have not begun.
    #[cold]
    pub(super) fn give_up(&mut self, run: &mut Run) {
        if let Some(check) = run.signature_check.as_mut().and_then(|c| c.run()) {
            self.give_up(check);
        }
        for flight in run.work.iter_mut().flat_map(|w| &mut w.flights) {
            let Some(req) = flight.req else { continue };
            self.messages.cancel(req);
            if self.messages.requests().is_done(req) {
                self.messages.requests_mut().take(req);
                flight.req = None;
            }
        }
    }
}

/// A run on a shm region has ended.
#[inline(always)]
pub(super) fn ended_on_shm_region(messages: &mut Messages, run: &Run) {
    messages.count(Counter::ShmCollectives, 1);
    messages.count(Counter::ShmCollectiveBytes, run.bytes);
}

fn waiting((req, peer): (ReqId, Peer)) -> Drive {
    Drive::Waiting(req, peer)
}

#[inline]
fn copy(
    run: &mut Run,
    from: Slice,
    to: Slice,
    channels: &Channels,
    publisher: &mut NontemporalCopier,
) {
    if let (Some(a), Some(b)) = (run.row(from, channels), run.row(to, channels))
        && a.len() == b.len()
        && a.len() < publisher.long()
    {
        return a.copy_to(b);
    }
    copy_any(run, from, to, channels, publisher);
}

/// Copies long data, and data that is not contiguous on one of the sides.
#[inline(never)]
fn copy_any(
    run: &mut Run,
    from: Slice,
    to: Slice,
    channels: &Channels,
    publisher: &mut NontemporalCopier,
) {
    let rows = (run.row(from, channels), run.row(to, channels));
    let bytes =
        |row: Option<Region<'_>>, slice| row.map_or_else(|| run.buf(slice).len(), |r| r.len());
    let (gives, takes) = (bytes(rows.0, from), bytes(rows.1, to));
    if gives != takes {
        let me = run.comm_view.as_ref().map_or(0, |c| c.rank);
        let failure = mismatch(run, me, gives, takes);
        return run.fail(failure);
    }
    let long = gives >= publisher.long();
    match rows {
        (Some(a), Some(b)) if long && is_shm_buffer(to.buf) => publisher.copy(a, b),
        (Some(a), Some(b)) if long && is_shm_buffer(from.buf) => nontemporal::fetch(a, b),
        (Some(a), Some(b)) => a.copy_to(b),
        (Some(a), None) => run.buf(to).unpack_from(a),
        (None, Some(b)) => run.buf(from).pack_into(b),
        (None, None) => {
            run.buf(from).copy_to(0, &run.buf(to), 0, gives);
        }
    }
}

/// Runs a copy and a reduction into its destination as one, if the data is contiguous and others do
/// not wait for it.
#[inline]
fn combine(run: &Run, i: u32, (right, into): (Slice, Slice), channels: &Channels) -> bool {
    let next = run.step_of(Op::Step(i + 1));
    let Some(Step::Reduce { left, right: to }) = next else {
        return false;
    };
    let (true, Some(kernel)) = (to == into && !is_shm_buffer(into.buf), run.kernel()) else {
        return false;
    };
    let at = |slice| run.row(slice, channels);
    match (at(left), at(right), at(into)) {
        (Some(a), Some(b), Some(c)) if [a.len(), b.len()] == [c.len(); 2] => {
            kernel.run_into(a, b, c);
            true
        }
        _ => false,
    }
}

/// Returns whether a function of the user has to combine.
#[inline]
fn reduce(run: &Run, left: Slice, right: Slice, channels: &Channels) -> bool {
    if let Some(kernel) = run.kernel()
        && let (Some(a), Some(b)) = (run.stretch(left, channels), run.stretch(right, channels))
    {
        kernel.run(a, b);
    }
    matches!(run.combining, Some(Combining::User(..)))
}

#[cold]
fn mismatch(run: &Run, from: u32, came: u64, wants: u64) -> Failure {
    let Some(c) = &run.comm_view else {
        return Failure::Message(endpoint::Failure::Truncated { came, fits: wants });
    };
    // On an intercommunicator, whose ranks are those of both groups in a row here, the process
    // tells which rank is meant.
    let name = |rank: u32| match c.members.peer(rank) {
        kw_base::Peer(p) if p == rank => format!("rank {rank}"),
        p => format!("rank {rank} (process {p} of the job)"),
    };
    let (giver, taker) = (name(from), name(c.rank));
    let text = format!(
        "{giver} sends {came} bytes in a collective in which {taker} receives {wants} bytes from it: counts or datatypes differ"
    );
    Failure::Uneven { came, wants, text }
}
