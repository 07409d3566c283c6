//! Makes a [`Trace`] of packets. The ranks' packets may come in any order; those of one thread must
//! be in their order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::arguments::Interned;
use super::{Args, Call, Collective, Counter, Mark, Message, Name, Rank, Thread, Trace};
use crate::perfetto::{
    EventType, SEQ_INCREMENTAL_STATE_CLEARED, TracePacket, TrackDescriptor, TrackEvent,
};

/// A track, from its description.
#[derive(Debug, Clone)]
enum Track {
    Process(u32),
    /// A thread: its index in `Builder::threads`.
    Thread(usize),
    Counter(usize),
    /// A row of marks of this rank.
    Row(u32),
}

/// A complete receive.
#[derive(Debug)]
struct Received {
    flow: u64,
    call: usize,
    time: u64,
    args: Args,
}

/// A thread while it is read.
#[derive(Debug, Default)]
struct Reading {
    rank: u32,
    uuid: u64,
    name: String,
    /// Calls that have not ended.
    stack: Vec<usize>,
    last: Option<usize>,
    latest: u64,
}

/// Takes packets, and makes the trace.
#[derive(Debug, Default)]
pub struct Builder {
    trace: Trace,
    sequences: HashMap<u32, Interned>,
    tracks: HashMap<u64, Track>,
    /// Ranks, by number.
    ranks: BTreeMap<u32, Rank>,
    threads: Vec<Reading>,
    /// Calls that begin a message, by flow, in their order.
    sends: HashMap<u64, VecDeque<usize>>,
    received: Vec<Received>,
    strays: u64,
}

/// Track numbers contain the numbers of ranks above this bit.
const RANK_SHIFT: u32 = 16;

impl Builder {
    /// Adds a packet.
    pub fn packet(&mut self, packet: TracePacket) {
        let sequence = packet.trusted_packet_sequence_id.unwrap_or(0);
        let mut interned = self.sequences.remove(&sequence).unwrap_or_default();
        if packet.sequence_flags.unwrap_or(0) & SEQ_INCREMENTAL_STATE_CLEARED != 0 {
            interned = Interned::default();
        }
        if let Some(data) = &packet.interned_data {
            interned.learn(data, &mut self.trace.names);
        }
        if let Some(descriptor) = packet.track_descriptor {
            self.track(descriptor);
        }
        if let Some(event) = packet.track_event {
            self.event(packet.timestamp.unwrap_or(0), &event, &interned);
        }
        self.sequences.insert(sequence, interned);
    }

    fn track(&mut self, track: TrackDescriptor) {
        let uuid = track.uuid.unwrap_or(0);
        if self.tracks.contains_key(&uuid) {
            return; // a file that was appended to another one
        }
        let Some(number) = (uuid >> RANK_SHIFT)
            .checked_sub(1)
            .and_then(|n| u32::try_from(n).ok())
        else {
            return;
        };
        let rank = self.ranks.entry(number).or_insert_with(|| Rank {
            number,
            name: format!("rank {number}"),
            ..Rank::default()
        });
        let kind = if let Some(process) = track.process {
            if let Some(name) = process.process_name {
                rank.name = name;
            }
            rank.labels = process.process_labels;
            Track::Process(number)
        } else if let Some(thread) = track.thread {
            self.threads.push(Reading {
                rank: number,
                uuid,
                name: thread.thread_name.unwrap_or_default(),
                ..Reading::default()
            });
            Track::Thread(self.threads.len() - 1)
        } else if track.counter.is_some() {
            self.trace.counters.push(Counter {
                rank: number,
                name: track.name.unwrap_or_default(),
                values: Vec::new(),
            });
            Track::Counter(self.trace.counters.len() - 1)
        } else {
            Track::Row(number)
        };
        self.tracks.insert(uuid, kind);
    }

    fn event(&mut self, time: u64, event: &TrackEvent, interned: &Interned) {
        let Some(track) = self.tracks.get(&event.track_uuid.unwrap_or(0)).cloned() else {
            self.strays += 1;
            return;
        };
        match (track, event.r#type()) {
            (Track::Thread(t), EventType::SliceBegin) => self.begin(t, time, event, interned),
            (Track::Thread(t), EventType::SliceEnd) => self.end(t, time, event, interned),
            (Track::Counter(c), EventType::Counter) => {
                let whole = event.counter_value.map(|v| v as f64);
                if let Some(value) = whole.or(event.double_counter_value) {
                    self.trace.counters[c].values.push((time, value));
                }
            }
            (Track::Thread(t), EventType::Instant) => self.instant(Some(t), time, event, interned),
            (Track::Process(r) | Track::Row(r), EventType::Instant) => {
                self.mark(r, time, event, interned);
            }
            _ => self.strays += 1,
        }
    }

    fn begin(&mut self, t: usize, time: u64, event: &TrackEvent, interned: &Interned) {
        let names = &mut self.trace.names;
        let mut args = Args::default();
        let function = interned.event(event, names);
        interned.arguments(&event.debug_annotations, names, &mut args);
        let thread = &mut self.threads[t];
        let index = self.trace.calls.len();
        for flow in &event.flow_ids {
            self.sends.entry(*flow).or_default().push_back(index);
        }
        self.trace.calls.push(Call {
            thread: t as u32,
            depth: u16::try_from(thread.stack.len()).unwrap_or(u16::MAX),
            open: true,
            begin: time,
            end: time,
            function,
            at: args.at,
            args,
        });
        thread.latest = thread.latest.max(time);
        thread.stack.push(index);
    }

    fn end(&mut self, t: usize, time: u64, event: &TrackEvent, interned: &Interned) {
        let thread = &mut self.threads[t];
        thread.latest = thread.latest.max(time);
        let Some(index) = thread.stack.pop() else {
            self.strays += 1;
            return;
        };
        thread.last = Some(index);
        let call = &mut self.trace.calls[index];
        call.open = false;
        call.end = time.max(call.begin);
        interned.arguments(
            &event.debug_annotations,
            &mut self.trace.names,
            &mut call.args,
        );
        self.received_at(t, time, event, interned, index);
    }

    /// Arrows that end in this event: messages whose receives this call has completed.
    fn received_at(
        &mut self,
        t: usize,
        time: u64,
        event: &TrackEvent,
        interned: &Interned,
        call: usize,
    ) {
        self.threads[t].latest = self.threads[t].latest.max(time);
        for flow in &event.terminating_flow_ids {
            let mut args = Args::default();
            interned.arguments(&event.debug_annotations, &mut self.trace.names, &mut args);
            self.received.push(Received {
                flow: *flow,
                call,
                time,
                args,
            });
        }
    }

    fn instant(&mut self, t: Option<usize>, time: u64, event: &TrackEvent, interned: &Interned) {
        let Some(t) = t else { return };
        let thread = &self.threads[t];
        let rank = thread.rank;
        if event.terminating_flow_ids.is_empty() {
            self.mark(rank, time, event, interned);
        } else if let Some(call) = thread.stack.last().copied().or(thread.last) {
            self.received_at(t, time, event, interned, call);
        } else {
            self.strays += 1;
        }
    }

    fn mark(&mut self, rank: u32, time: u64, event: &TrackEvent, interned: &Interned) {
        let names = &mut self.trace.names;
        let mut args = Args::default();
        interned.arguments(&event.debug_annotations, names, &mut args);
        let category = interned.category(event, names);
        let name = interned.event(event, names);
        if names.text(category) == "recorder" {
            if let Some(rank) = self.ranks.get_mut(&rank) {
                rank.lost += args.lost.unwrap_or(0);
                rank.clock_error = rank.clock_error.max(args.clock_error.unwrap_or(0));
            }
            return;
        }
        if names.text(category) == "topology" {
            if let (Some(comm), Some(source)) = (args.comm_id, args.source) {
                let known = self.trace.neighbors.entry((rank, comm)).or_default();
                known.extend(u32::try_from(source));
            }
            return;
        }
        self.trace.marks.push(Mark {
            rank,
            time,
            category,
            name,
            args,
        });
    }

    /// The trace of all packets so far.
    pub fn finish(mut self) -> Trace {
        self.close_open_calls();
        let (ranks, threads) = self.places();
        self.sort(&threads);
        self.trace.ranks = ranks;
        self.spans();
        messages_rendezvous(&mut self.trace);
        collectives(&mut self.trace);
        self.trace.notes = notes(&self.trace, self.strays);
        self.trace
    }

    /// Extends unfinished calls to the end of the record of their thread.
    fn close_open_calls(&mut self) {
        for thread in &self.threads {
            for call in &thread.stack {
                let call = &mut self.trace.calls[*call];
                call.end = thread.latest.max(call.begin);
            }
        }
    }

    /// Ranks without gaps, in the order of their numbers, and the new index of each thread.
    fn places(&mut self) -> (Vec<Rank>, Vec<u32>) {
        let mut ranks: Vec<Rank> = std::mem::take(&mut self.ranks).into_values().collect();
        let place: HashMap<u32, u32> = (0..).zip(&ranks).map(|(i, r)| (r.number, i)).collect();
        for counter in &mut self.trace.counters {
            counter.rank = place[&counter.rank];
            counter.values.sort_by_key(|v| v.0);
        }
        for mark in &mut self.trace.marks {
            mark.rank = place[&mark.rank];
        }
        self.trace.marks.sort_by_key(|m| m.time);
        let mut order: Vec<usize> = (0..self.threads.len()).collect();
        order.sort_by_key(|t| (self.threads[*t].rank, self.threads[*t].uuid));
        let mut new = vec![0; order.len()];
        for (at, old) in order.iter().enumerate() {
            let thread = &self.threads[*old];
            let rank = place[&thread.rank];
            new[*old] = at as u32;
            ranks[rank as usize].threads.push(at as u32);
            self.trace.threads.push(Thread {
                rank,
                name: thread.name.clone(),
                calls: 0..0,
            });
        }
        (ranks, new)
    }

    /// Sorts calls by thread and start; messages get the new indices of their calls.
    fn sort(&mut self, threads: &[u32]) {
        let calls = &mut self.trace.calls;
        for call in calls.iter_mut() {
            call.thread = threads[call.thread as usize];
        }
        let mut order: Vec<u32> = (0..calls.len() as u32).collect();
        order.sort_by_key(|c| {
            let call = &calls[*c as usize];
            (call.thread, call.begin, call.depth, *c)
        });
        let mut new = vec![0u32; order.len()];
        let mut sorted = Vec::with_capacity(order.len());
        for (at, old) in order.iter().enumerate() {
            new[*old as usize] = at as u32;
            sorted.push(std::mem::take(&mut calls[*old as usize]));
        }
        *calls = sorted;
        self.take_others();
        self.thread_ranges();
        self.messages(&new);
    }

    fn take_others(&mut self) {
        for (at, call) in self.trace.calls.iter_mut().enumerate() {
            if !call.args.others.is_empty() {
                let others = std::mem::take(&mut call.args.others);
                self.trace.others.insert(at as u32, others);
            }
        }
    }

    fn thread_ranges(&mut self) {
        let calls = &self.trace.calls;
        for (t, thread) in self.trace.threads.iter_mut().enumerate() {
            let from = calls.partition_point(|c| (c.thread as usize) < t);
            let to = calls.partition_point(|c| c.thread as usize <= t);
            thread.calls = from..to;
        }
    }

    fn messages(&mut self, new: &[u32]) {
        for received in std::mem::take(&mut self.received) {
            let queue = self.sends.get_mut(&received.flow);
            let Some(send) = queue.and_then(VecDeque::pop_front) else {
                self.trace.unsent += 1;
                continue;
            };
            let (send, receive) = (new[send], new[received.call]);
            let args = received.args;
            let sending = &self.trace.calls[send as usize];
            self.trace.messages.push(Message {
                send,
                receive,
                from: self.trace.rank_of(send),
                to: self.trace.rank_of(receive),
                tag: args.tag.or(sending.args.tag).unwrap_or(0),
                comm: args.comm,
                bytes: args.bytes.or(sending.args.bytes).unwrap_or(0),
                sent: sending.begin,
                received: received.time.max(sending.begin),
                posted: args.posted,
                rendezvous: false,
            });
        }
        self.trace.messages.sort_by_key(|m| m.sent);
        self.trace.unreceived = self.sends.values().map(|q| q.len() as u64).sum();
    }

    fn spans(&mut self) {
        let trace = &mut self.trace;
        for rank in &mut trace.ranks {
            let calls = rank.threads.iter().flat_map(|t| {
                let range = trace.threads[*t as usize].calls.clone();
                &trace.calls[range]
            });
            let (mut from, mut to) = (u64::MAX, 0);
            for call in calls {
                (from, to) = (from.min(call.begin), to.max(call.end));
            }
            rank.span = from.min(to)..to;
        }
        let used = trace.ranks.iter().filter(|r| r.span.end > 0);
        let from = used.clone().map(|r| r.span.start).min().unwrap_or(0);
        let to = used.map(|r| r.span.end).max().unwrap_or(0);
        trace.span = from..to.max(from);
    }
}

/// Messages that the library has sent by rendezvous, according to its marks.
fn messages_rendezvous(trace: &mut Trace) {
    let mut seen: HashMap<(u32, u32, i32), Vec<u64>> = HashMap::new();
    for mark in &trace.marks {
        if trace.names.text(mark.name) == "rendezvous" {
            if let (Some(dest), Some(tag)) = (mark.args.dest, mark.args.tag) {
                let key = (mark.rank, dest as u32, tag);
                seen.entry(key).or_default().push(mark.time);
            }
        }
    }
    for message in &mut trace.messages {
        let dest = trace.ranks[message.to as usize].number;
        let times = seen.get(&(message.from, dest, message.tag));
        message.rendezvous = times.is_some_and(|times| {
            let at = times.partition_point(|t| *t < message.sent);
            times.get(at).is_some_and(|t| *t <= message.received)
        });
    }
}

/// Collects the calls of one collective. If a rank has the same one again (in a file that was
/// appended to another), it begins a new one.
fn collectives(trace: &mut Trace) {
    let mut rounds: HashMap<(u32, u64, u64), u32> = HashMap::new();
    let mut places: HashMap<(u64, u64, u32), usize> = HashMap::new();
    let mut all: Vec<Collective> = Vec::new();
    for (at, call) in trace.calls.iter().enumerate() {
        let (Some(comm), Some(coll)) = (call.args.comm_id, call.args.coll) else {
            continue;
        };
        let rank = trace.threads[call.thread as usize].rank;
        let round = rounds.entry((rank, comm, coll)).or_default();
        let place = *places.entry((comm, coll, *round)).or_insert_with(|| {
            all.push(Collective::default());
            all.len() - 1
        });
        *round += 1;
        all[place].members.push(at as u32);
    }
    let first = |c: &Collective| {
        c.members
            .iter()
            .map(|m| trace.calls[*m as usize].begin)
            .min()
    };
    all.sort_by_cached_key(first);
    trace.collectives = all;
}

/// Most spawned jobs that are named.
const MOST_JOBS: usize = 5;

/// Notes which ranks are those of spawned jobs (`rank 0 of job kw-17-... on host`).
fn spawned(trace: &Trace) -> Vec<String> {
    let mut jobs: Vec<(u32, u32, &str)> = Vec::new();
    for rank in trace.ranks.iter().filter(|r| r.name.contains(" of job ")) {
        let label = rank.labels.first().map_or("another job", String::as_str);
        match jobs.last_mut() {
            Some((_, last, job)) if *job == label => *last = rank.number,
            _ => jobs.push((rank.number, rank.number, label)),
        }
    }
    let more = jobs.len().saturating_sub(MOST_JOBS);
    let tell = |(first, last, label): &(u32, u32, &str)| match first == last {
        true => format!("Rank {first} is that of {label}."),
        false => format!("Ranks {first} to {last} are those of {label}."),
    };
    let mut notes: Vec<String> = jobs.iter().take(MOST_JOBS).map(tell).collect();
    if more > 0 {
        let jobs = if more == 1 { "job" } else { "jobs" };
        notes.push(format!(
            "The ranks behind them are those of {more} further spawned {jobs}."
        ));
    }
    notes
}

fn notes(trace: &Trace, strays: u64) -> Vec<String> {
    let mut notes = spawned(trace);
    let lost: u64 = trace.ranks.iter().map(|r| r.lost).sum();
    if lost > 0 {
        notes.push(format!(
            "The recorder had no room for {lost} events, which are missing below."
        ));
    }
    let open = trace.calls.iter().filter(|c| c.open).count();
    if open > 0 {
        notes.push(format!(
            "{open} calls had not ended when the recording ended."
        ));
    }
    if trace.unsent > 0 {
        notes.push(format!(
            "{} messages were received whose sends are not in the trace.",
            trace.unsent
        ));
    }
    if strays > 0 {
        notes.push(format!(
            "{strays} events refer to unknown objects and were ignored."
        ));
    }
    notes
}

impl Name {
    /// Whether there is a text.
    pub fn is_known(self) -> bool {
        self != Name::default()
    }
}
