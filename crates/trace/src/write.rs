//! Encodes the activity of ranks as packets, for a recorder while the job runs.
//!
//! Names and texts that occur repeatedly are interned ([`texts`]) for each sequence of packets,
//! which is a thread of a rank (and one more for the rank as a whole). A sequence begins with a
//! packet which says that nothing is interned yet, so files may be concatenated. Packets are
//! written directly as bytes ([`encode`]); descriptions of tracks, of which there are few, are
//! messages of `perfetto`.

mod encode;
mod texts;

use std::collections::{HashMap, HashSet};

use prost::Message;

use crate::perfetto::*;
use encode::{argument, bytes, fixed, length, number, varint};
pub use texts::Text;
use texts::{Defined, Texts, Use};

/// The sequence of a rank as a whole, among those of its threads; also its progress thread's track.
const WHOLE: u32 = 0xff;
/// The first track of a rank's counters.
const COUNTERS: u64 = 0x100;

/// A call of MPI. Ranks are those in MPI_COMM_WORLD, in a spawned job plus the number of its first
/// rank in the file; -1 is any.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Call<'a> {
    pub name: Text,
    pub begin: u64,
    /// `None`: it has not returned.
    pub end: Option<u64>,
    pub dest: Option<i64>,
    pub source: Option<i64>,
    pub root: Option<i64>,
    /// Whose memory it accesses, locks or completes; a rank of the window, plus the same number, if
    /// there is no `comm`.
    pub target: Option<i64>,
    pub tag: Option<i64>,
    /// The communicator or the window.
    pub comm: Option<Comm>,
    pub bytes: Option<u64>,
    /// Number of the collective in the communicator or the window.
    pub coll: Option<u64>,
    /// The caller's number in the communicator.
    pub place: Option<i64>,
    pub requests: Option<u64>,
    /// Of a send or a lock.
    pub mode: Option<Text>,
    /// Place in the program.
    pub at: Option<Text>,
    /// Source and tag of a message that it has found without receiving it.
    pub saw: Option<(i64, i64)>,
    /// Messages that it sends.
    pub flows: &'a [u64],
    /// The group that it names.
    pub group: &'a [i64],
}

impl Call<'_> {
    /// A call of which only this is known.
    pub fn new(name: Text, begin: u64) -> Self {
        Call {
            name,
            begin,
            end: None,
            dest: None,
            source: None,
            root: None,
            target: None,
            tag: None,
            comm: None,
            bytes: None,
            coll: None,
            place: None,
            requests: None,
            mode: None,
            at: None,
            saw: None,
            flows: &[],
            group: &[],
        }
    }
}

/// A communicator or a window: its name, and its number, the same on all members.
#[derive(Clone, Copy, Debug)]
pub struct Comm {
    /// Its name.
    pub name: Text,
    /// Its number.
    pub id: u64,
}

/// A message that was received.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Received {
    pub at: u64,
    pub posted: u64,
    pub source: Option<i64>,
    pub tag: i64,
    pub comm: Option<Comm>,
    pub bytes: Option<u64>,
    pub flow: Option<u64>,
}

/// Action of the library on a message of a rank.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Library {
    pub at: u64,
    pub name: Text,
    pub dest: Option<i64>,
    pub source: Option<i64>,
    pub tag: i64,
    pub bytes: u64,
}

/// The number of a message, made of the communicator, the ranks in MPI_COMM_WORLD, the tag, and its
/// number among messages of its kind.
pub fn flow(comm: u64, source: i32, dest: i32, tag: i32, n: u64) -> u64 {
    let ranks = u64::from(source as u32) | u64::from(dest as u32) << 32;
    let all = [comm, ranks, u64::from(tag as u32), n];
    // 0 means no flow
    all.into_iter().fold(1, |h, n| mix(h ^ mix(n))).max(1)
}

fn mix(n: u64) -> u64 {
    let n = (n.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// The writer.
#[derive(Debug, Default)]
pub struct Writer {
    texts: Texts,
    sequences: HashMap<u32, usize>,
    defined: Vec<Defined>,
    /// The last sequence that was used, and its index.
    last: Option<(u32, usize)>,
    threads: HashSet<(u32, u32)>,
    counters: HashSet<(u32, u32)>,
    /// The event in flight.
    body: Vec<u8>,
    out: Vec<u8>,
}

fn process_track(rank: u32) -> u64 {
    (u64::from(rank) + 1) << 16
}

fn thread_track(rank: u32, thread: u32) -> u64 {
    process_track(rank) + 1 + u64::from(thread)
}

fn sequence(rank: u32, thread: u32) -> u32 {
    1 + rank * 256 + thread
}

/// An event under construction.
struct Event<'a> {
    texts: &'a Texts,
    defined: &'a mut Defined,
    body: &'a mut Vec<u8>,
}

impl Event<'_> {
    #[inline(always)]
    fn head(&mut self, kind: EventType, track: u64, category: Text, name: Text) {
        let category = self.defined.number(self.texts, Use::Category, category);
        number(self.body, 3, category);
        number(self.body, 9, kind as u64);
        let name = self.defined.number(self.texts, Use::Event, name);
        number(self.body, 10, name);
        number(self.body, 11, track);
    }

    #[inline(always)]
    fn int(&mut self, name: Text, value: Option<i64>) {
        if let Some(value) = value {
            self.add(name, 4, value as u64);
        }
    }

    #[inline(always)]
    fn uint(&mut self, name: Text, value: Option<u64>) {
        if let Some(value) = value {
            self.add(name, 3, value);
        }
    }

    #[inline(always)]
    fn text(&mut self, name: Text, value: Option<Text>) {
        if let Some(value) = value {
            let value = self.defined.number(self.texts, Use::Value, value);
            self.add(name, 17, value);
        }
    }

    #[inline(always)]
    fn add(&mut self, name: Text, field: u32, value: u64) {
        let name = self.defined.number(self.texts, Use::Argument, name);
        argument(self.body, name, field, value);
    }

    fn comm(&mut self, comm: Option<Comm>) {
        if let Some(comm) = comm {
            self.text(texts::COMM, Some(comm.name));
            self.uint(texts::COMM_ID, Some(comm.id));
        }
    }

    /// Begins a call.
    fn call(&mut self, track: u64, call: &Call) {
        self.head(EventType::SliceBegin, track, texts::MPI, call.name);
        self.int(texts::DEST, call.dest);
        self.int(texts::SOURCE, call.source);
        self.int(texts::TAG, call.tag);
        self.int(texts::ROOT, call.root);
        self.int(texts::TARGET, call.target);
        self.comm(call.comm);
        self.uint(texts::BYTES, call.bytes);
        self.uint(texts::COLL, call.coll);
        self.int(texts::PLACE, call.place);
        self.uint(texts::REQUESTS, call.requests);
        self.text(texts::MODE, call.mode);
        self.text(texts::AT, call.at);
        for rank in call.group {
            self.int(texts::MEMBER, Some(*rank));
        }
        for flow in call.flows {
            fixed(self.body, 47, *flow);
        }
    }
}

impl Writer {
    /// All bytes since the last clear.
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// The earlier one.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Gives a text its number.
    pub fn text(&mut self, text: &str) -> Text {
        self.texts.text(text)
    }

    /// Adds a rank, with its name for people.
    pub fn process(&mut self, rank: u32, name: &str, program: &str, pid: u32) {
        self.track(
            sequence(rank, WHOLE),
            TrackDescriptor {
                uuid: Some(process_track(rank)),
                process: Some(ProcessDescriptor {
                    pid: Some(rank as i32 + 1),
                    process_name: Some(name.to_string()),
                    process_labels: vec![program.to_string(), format!("pid {pid}")],
                    ..ProcessDescriptor::default()
                }),
                ..TrackDescriptor::default()
            },
        );
        self.track(
            sequence(rank, WHOLE),
            TrackDescriptor {
                uuid: Some(process_track(rank) + u64::from(WHOLE)),
                parent_uuid: Some(process_track(rank)),
                name: Some("event thread".into()),
                ..TrackDescriptor::default()
            },
        );
    }

    /// Adds a thread of a rank.
    pub fn thread(&mut self, rank: u32, thread: u32, tid: u32) {
        if !self.threads.insert((rank, thread)) {
            return; // a later thread in place of an earlier one
        }
        let name = match thread {
            0 => "main".to_string(),
            n => format!("thread {n}"),
        };
        self.track(
            sequence(rank, thread),
            TrackDescriptor {
                uuid: Some(thread_track(rank, thread)),
                parent_uuid: Some(process_track(rank)),
                thread: Some(ThreadDescriptor {
                    pid: Some(rank as i32 + 1),
                    tid: Some(tid as i32),
                    thread_name: Some(name),
                }),
                ..TrackDescriptor::default()
            },
        );
    }

    /// Adds a call.
    pub fn call(&mut self, rank: u32, thread: u32, call: &Call) {
        let sequence = sequence(rank, thread);
        let track = thread_track(rank, thread);
        self.event(sequence, call.begin, |e| e.call(track, call));
        if let Some(end) = call.end {
            self.event(sequence, end, |e| {
                number(e.body, 9, EventType::SliceEnd as u64);
                number(e.body, 11, track);
                if let Some((source, tag)) = call.saw {
                    e.int(texts::SOURCE, Some(source));
                    e.int(texts::TAG, Some(tag));
                }
            });
        }
    }

    /// Adds a received message.
    pub fn received(&mut self, rank: u32, thread: u32, m: &Received) {
        let track = thread_track(rank, thread);
        self.event(sequence(rank, thread), m.at, |e| {
            e.head(EventType::Instant, track, texts::MESSAGE, texts::RECEIVED);
            e.int(texts::SOURCE, m.source);
            e.int(texts::TAG, Some(m.tag));
            e.comm(m.comm);
            e.uint(texts::BYTES, m.bytes);
            e.uint(texts::POSTED, Some(m.posted));
            if let Some(flow) = m.flow {
                fixed(e.body, 48, flow);
            }
        });
    }

    /// Adds the start of a phase of the program.
    pub fn phase(&mut self, rank: u32, thread: u32, at: u64, level: i64) {
        let track = thread_track(rank, thread);
        self.event(sequence(rank, thread), at, |e| {
            e.head(EventType::Instant, track, texts::USER, texts::PCONTROL);
            e.int(texts::LEVEL, Some(level));
        });
    }

    /// Adds an action of the library.
    pub fn library(&mut self, rank: u32, did: &Library) {
        let track = process_track(rank);
        self.event(sequence(rank, WHOLE), did.at, |e| {
            e.head(EventType::Instant, track, texts::LIBRARY, did.name);
            e.int(texts::DEST, did.dest);
            e.int(texts::SOURCE, did.source);
            e.int(texts::TAG, Some(did.tag));
            e.uint(texts::BYTES, Some(did.bytes));
        });
    }

    /// Adds that a rank receives from another one in the topology of a communicator.
    pub fn neighbor(&mut self, rank: u32, at: u64, comm: Comm, source: i64) {
        self.event(sequence(rank, WHOLE), at, |e| {
            let track = process_track(rank);
            e.head(EventType::Instant, track, texts::TOPOLOGY, texts::NEIGHBOR);
            e.int(texts::SOURCE, Some(source));
            e.comm(Some(comm));
        });
    }

    /// Adds a value of a rank's counter with this number and name.
    pub fn counter(&mut self, rank: u32, index: u32, name: &str, unit: Unit, at: u64, value: u64) {
        let uuid = process_track(rank) + COUNTERS + u64::from(index);
        let sequence = sequence(rank, WHOLE);
        if self.counters.insert((rank, index)) {
            let counter = CounterDescriptor {
                unit: Some(unit as i32),
                ..CounterDescriptor::default()
            };
            self.track(
                sequence,
                TrackDescriptor {
                    uuid: Some(uuid),
                    parent_uuid: Some(process_track(rank)),
                    name: Some(name.to_string()),
                    counter: Some(counter),
                    ..TrackDescriptor::default()
                },
            );
        }
        self.event(sequence, at, |e| {
            number(e.body, 9, EventType::Counter as u64);
            number(e.body, 11, uuid);
            number(e.body, 30, value);
        });
    }

    /// Adds the end of a rank's recording.
    pub fn end(&mut self, rank: u32, at: u64, lost: u64, clock_error: u64) {
        self.event(sequence(rank, WHOLE), at, |e| {
            e.head(
                EventType::Instant,
                process_track(rank),
                texts::RECORDER,
                texts::END,
            );
            e.uint(texts::LOST, Some(lost));
            e.uint(texts::CLOCK_ERROR, Some(clock_error));
        });
    }

    fn track(&mut self, sequence: u32, track: TrackDescriptor) {
        self.packet(sequence, None, 60, &track.encode_to_vec());
    }

    #[inline(always)]
    fn event(&mut self, sequence: u32, time: u64, make: impl FnOnce(&mut Event)) {
        let at = self.sequence(sequence);
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        make(&mut Event {
            texts: &self.texts,
            defined: &mut self.defined[at],
            body: &mut body,
        });
        self.packet(sequence, Some(time), 11, &body);
        self.body = body;
    }

    /// Index of a sequence's interned texts.
    #[inline(always)]
    fn sequence(&mut self, sequence: u32) -> usize {
        match self.last {
            Some((last, at)) if last == sequence => at,
            _ => self.other_sequence(sequence),
        }
    }

    fn other_sequence(&mut self, sequence: u32) -> usize {
        let at = *self.sequences.entry(sequence).or_insert(self.defined.len());
        if at == self.defined.len() {
            self.defined.push(Defined::default());
        }
        self.last = Some((sequence, at));
        at
    }

    /// Adds a packet with this field.
    fn packet(&mut self, sequence: u32, time: Option<u64>, field: u32, body: &[u8]) {
        let at = self.sequence(sequence);
        let defined = &mut self.defined[at];
        let flags = match defined.begun {
            true => SEQ_NEEDS_INCREMENTAL_STATE,
            false => SEQ_INCREMENTAL_STATE_CLEARED,
        };
        defined.begun = true;
        let new = (!defined.new.is_empty()).then_some(defined.new.len());
        let len = time.map_or(0, |t| 1 + length(t))
            + 1
            + length(sequence.into())
            + 2
            + new.map_or(0, |n| 1 + length(n as u64) + n)
            + length(u64::from(field) << 3)
            + length(body.len() as u64)
            + body.len();
        self.out.push(1 << 3 | 2); // field 1 of the trace
        varint(&mut self.out, len as u64);
        if let Some(time) = time {
            number(&mut self.out, 8, time);
        }
        number(&mut self.out, 10, sequence.into());
        if new.is_some() {
            bytes(&mut self.out, 12, &defined.new);
            defined.new.clear();
        }
        number(&mut self.out, 13, flags.into());
        bytes(&mut self.out, field, body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<TracePacket> {
        Trace::decode(bytes).unwrap().packet
    }

    #[test]
    fn what_is_written_is_read() {
        let mut w = Writer::default();
        w.process(2, "rank 2 on node", "./a", 77);
        w.thread(2, 0, 78);
        let name = w.text("world");
        let call = Call {
            end: Some(9),
            dest: Some(1),
            comm: Some(Comm { name, id: 0xabc }),
            at: Some(w.text("a.c:1 (f)")),
            flows: &[flow(1, 2, 1, 0, 0)],
            ..Call::new(w.text("MPI_Send"), 5)
        };
        w.call(2, 0, &call);
        w.call(2, 0, &call);
        w.end(2, 10, 3, 0);
        w.counter(2, 1, "bytes sent", Unit::SizeBytes, 11, 1 << 40);
        let all = read(w.bytes());
        w.clear();
        assert!(w.bytes().is_empty());
        assert_eq!(all.len(), 10);
        let flags: Vec<_> = all.iter().map(|p| p.sequence_flags.unwrap()).collect();
        assert_eq!(flags, [1, 2, 1, 2, 2, 2, 2, 2, 2, 2]);
        let first = all[3].track_event.as_ref().unwrap();
        assert_eq!(
            (all[3].timestamp, first.track_uuid),
            (Some(5), Some((3 << 16) + 1))
        );
        assert!(all[3].interned_data.is_some() && all[5].interned_data.is_none());
        assert_eq!(
            all[5].track_event.as_ref().unwrap().name_iid,
            first.name_iid
        );
        assert_eq!(all[4].track_event.as_ref().unwrap().r#type, Some(2));
        let text = |p: &TracePacket| p.interned_data.clone().unwrap().event_names[0].name.clone();
        assert_eq!(text(&all[3]).as_deref(), Some("MPI_Send"));
        let track = all[8].track_descriptor.as_ref().unwrap();
        let value = all[9].track_event.as_ref().unwrap();
        assert_eq!(
            (track.uuid, value.counter_value),
            (value.track_uuid, Some(1 << 40))
        );
    }

    #[test]
    fn messages_of_different_kinds_have_different_numbers() {
        let a = flow(1, 2, 3, 4, 5);
        assert_eq!(a, flow(1, 2, 3, 4, 5));
        for b in [
            flow(1, 3, 2, 4, 5),
            flow(2, 2, 3, 4, 5),
            flow(1, 2, 3, 5, 4),
            flow(1, 2, 3, 4, 6),
        ] {
            assert_ne!(a, b);
        }
    }
}
