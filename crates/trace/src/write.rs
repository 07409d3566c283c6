//! Makes packets of what ranks did: for whoever records a job while it runs.
//!
//! Names and texts that come again are interned for each sequence of packets, which is a thread of a
//! rank (and one more for the rank as a whole). A sequence begins with a packet that says that nothing
//! is interned yet, so files may be put behind each other.

use std::collections::{HashMap, HashSet};

use prost::Message;

use crate::perfetto::*;

/// The sequence of a rank as a whole, among those of its threads; also its event thread's track.
const WHOLE: u32 = 0xff;

/// A call of MPI. Ranks are those in MPI_COMM_WORLD, -1 is any.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Call<'a> {
    pub name: &'a str,
    pub begin: u64,
    /// Nothing: it has not returned.
    pub end: Option<u64>,
    pub dest: Option<i64>,
    pub source: Option<i64>,
    pub root: Option<i64>,
    pub tag: Option<i64>,
    pub comm: Option<Comm<'a>>,
    pub bytes: Option<u64>,
    /// Which collective of the communicator.
    pub coll: Option<u64>,
    pub requests: Option<u64>,
    pub mode: Option<&'a str>,
    /// Where in the program.
    pub at: Option<&'a str>,
    /// Messages that it sends.
    pub flows: Vec<u64>,
}

/// A communicator: its name, and its number, the same on all members.
#[derive(Clone, Copy, Debug)]
pub struct Comm<'a> {
    /// May be empty.
    pub name: &'a str,
    /// See above.
    pub id: u64,
}

/// A message that came.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Received<'a> {
    pub at: u64,
    pub posted: u64,
    pub source: Option<i64>,
    pub tag: i64,
    pub comm: Option<Comm<'a>>,
    pub bytes: Option<u64>,
    pub flow: Option<u64>,
}

/// The number of a message: of the communicator, the ranks in MPI_COMM_WORLD, the tag, and which of
/// its kind it is.
pub fn flow(comm: u64, source: i32, dest: i32, tag: i32, n: u64) -> u64 {
    let ranks = u64::from(source as u32) | u64::from(dest as u32) << 32;
    let all = [comm, ranks, u64::from(tag as u32), n];
    // 0 is no flow
    all.into_iter().fold(1, |h, n| mix(h ^ mix(n))).max(1)
}

fn mix(n: u64) -> u64 {
    let n = (n.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// What a sequence has interned.
#[derive(Debug, Default)]
struct Names {
    numbers: [HashMap<String, u64>; 4],
    begun: bool,
    new: InternedData,
}

/// What kinds of names are interned.
#[derive(Clone, Copy, Debug)]
enum Table {
    Category,
    Event,
    Argument,
    Text,
}

/// Texts of values that are interned on a sequence; further ones stand where they are used.
const MOST_TEXTS: usize = 4096;

impl Names {
    fn number(&mut self, table: Table, name: &str) -> u64 {
        let numbers = &mut self.numbers[table as usize];
        if let Some(known) = numbers.get(name) {
            return *known;
        }
        let next = numbers.len() as u64 + 1;
        numbers.insert(name.to_string(), next);
        let names = match table {
            Table::Category => &mut self.new.event_categories,
            Table::Event => &mut self.new.event_names,
            Table::Argument => &mut self.new.debug_annotation_names,
            Table::Text => &mut self.new.debug_annotation_string_values,
        };
        names.push(InternedName {
            iid: Some(next),
            name: Some(name.to_string()),
        });
        next
    }

    fn text(&mut self, text: &str) -> Value {
        match self.numbers[Table::Text as usize].len() < MOST_TEXTS {
            true => Value::StringIid(self.number(Table::Text, text)),
            false => Value::String(text.to_string()),
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Writer {
    sequences: HashMap<u32, Names>,
    threads: HashSet<(u32, u32)>,
    out: Vec<u8>,
}

/// The arguments of an event.
struct Arguments<'a> {
    names: &'a mut Names,
    all: Vec<DebugAnnotation>,
}

impl Arguments<'_> {
    fn add(&mut self, name: &str, value: Value) {
        self.all.push(DebugAnnotation {
            name_iid: Some(self.names.number(Table::Argument, name)),
            name: None,
            value: Some(value),
        });
    }

    fn int(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.add(name, Value::Int(value));
        }
    }

    fn uint(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.add(name, Value::Uint(value));
        }
    }

    fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value.filter(|v| !v.is_empty()) {
            let value = self.names.text(value);
            self.add(name, value);
        }
    }

    fn comm(&mut self, comm: Option<Comm>) {
        if let Some(comm) = comm {
            let plain = format!("comm {:04x}", comm.id & 0xffff);
            let name = if comm.name.is_empty() {
                &plain
            } else {
                comm.name
            };
            self.text("comm", Some(name));
            self.uint("comm_id", Some(comm.id));
        }
    }
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

impl Writer {
    /// All that was made since it was last taken.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Bytes that may be taken.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// A rank begins.
    pub fn process(&mut self, rank: u32, host: &str, program: &str, pid: u32) {
        self.track(
            sequence(rank, WHOLE),
            TrackDescriptor {
                uuid: Some(process_track(rank)),
                process: Some(ProcessDescriptor {
                    pid: Some(rank as i32 + 1),
                    process_name: Some(format!("rank {rank} on {host}")),
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

    /// A thread of a rank is seen first.
    pub fn thread(&mut self, rank: u32, thread: u32, tid: u32) {
        if !self.threads.insert((rank, thread)) {
            return; // a later thread in the place of an earlier one
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

    /// A call.
    pub fn call(&mut self, rank: u32, thread: u32, call: &Call) {
        let names = self.names(sequence(rank, thread));
        let mut a = Arguments {
            names,
            all: Vec::with_capacity(8),
        };
        a.int("dest", call.dest);
        a.int("source", call.source);
        a.int("tag", call.tag);
        a.int("root", call.root);
        a.comm(call.comm);
        a.uint("bytes", call.bytes);
        a.uint("coll", call.coll);
        a.uint("requests", call.requests);
        a.text("mode", call.mode);
        a.text("at", call.at);
        let all = a.all;
        let track = thread_track(rank, thread);
        let begin = TrackEvent {
            r#type: Some(EventType::SliceBegin as i32),
            track_uuid: Some(track),
            name_iid: Some(names.number(Table::Event, call.name)),
            category_iids: vec![names.number(Table::Category, "mpi")],
            debug_annotations: all,
            flow_ids: call.flows.clone(),
            ..TrackEvent::default()
        };
        self.event(sequence(rank, thread), call.begin, begin);
        if let Some(end) = call.end {
            let ends = TrackEvent {
                r#type: Some(EventType::SliceEnd as i32),
                track_uuid: Some(track),
                ..TrackEvent::default()
            };
            self.event(sequence(rank, thread), end, ends);
        }
    }

    /// A message that came.
    pub fn received(&mut self, rank: u32, thread: u32, m: &Received) {
        let mut a = Arguments {
            names: self.names(sequence(rank, thread)),
            all: Vec::with_capacity(6),
        };
        a.int("source", m.source);
        a.int("tag", Some(m.tag));
        a.comm(m.comm);
        a.uint("bytes", m.bytes);
        a.uint("posted", Some(m.posted));
        let all = a.all;
        let track = thread_track(rank, thread);
        let mut event = self.instant(sequence(rank, thread), track, "message", "received", all);
        event.terminating_flow_ids.extend(m.flow);
        self.event(sequence(rank, thread), m.at, event);
    }

    /// The program begins a phase.
    pub fn phase(&mut self, rank: u32, thread: u32, at: u64, level: i64) {
        let seq = sequence(rank, thread);
        let mut a = Arguments {
            names: self.names(seq),
            all: Vec::new(),
        };
        a.int("level", Some(level));
        let all = a.all;
        let event = self.instant(seq, thread_track(rank, thread), "user", "MPI_Pcontrol", all);
        self.event(seq, at, event);
    }

    /// The recording of a rank ends.
    pub fn end(&mut self, rank: u32, at: u64, lost: u64, clock_error: u64) {
        let seq = sequence(rank, WHOLE);
        let mut a = Arguments {
            names: self.names(seq),
            all: Vec::new(),
        };
        a.uint("lost", Some(lost));
        a.uint("clock_error", Some(clock_error));
        let all = a.all;
        let event = self.instant(seq, process_track(rank), "recorder", "end", all);
        self.event(seq, at, event);
    }

    fn names(&mut self, sequence: u32) -> &mut Names {
        self.sequences.entry(sequence).or_default()
    }

    fn instant(
        &mut self,
        sequence: u32,
        track: u64,
        category: &str,
        name: &str,
        debug_annotations: Vec<DebugAnnotation>,
    ) -> TrackEvent {
        let names = self.names(sequence);
        TrackEvent {
            r#type: Some(EventType::Instant as i32),
            track_uuid: Some(track),
            category_iids: vec![names.number(Table::Category, category)],
            name_iid: Some(names.number(Table::Event, name)),
            debug_annotations,
            ..TrackEvent::default()
        }
    }

    fn track(&mut self, sequence: u32, track_descriptor: TrackDescriptor) {
        self.packet(
            sequence,
            TracePacket {
                track_descriptor: Some(track_descriptor),
                ..TracePacket::default()
            },
        );
    }

    fn event(&mut self, sequence: u32, at: u64, event: TrackEvent) {
        self.packet(
            sequence,
            TracePacket {
                timestamp: Some(at),
                track_event: Some(event),
                ..TracePacket::default()
            },
        );
    }

    fn packet(&mut self, sequence: u32, mut packet: TracePacket) {
        let names = self.sequences.entry(sequence).or_default();
        packet.trusted_packet_sequence_id = Some(sequence);
        packet.sequence_flags = Some(match names.begun {
            true => SEQ_NEEDS_INCREMENTAL_STATE,
            false => SEQ_INCREMENTAL_STATE_CLEARED,
        });
        names.begun = true;
        if names.new != InternedData::default() {
            packet.interned_data = Some(std::mem::take(&mut names.new));
        }
        self.out.push(1 << 3 | 2); // field 1 of Trace
        // a Vec has room for all
        let _ = packet.encode_length_delimited(&mut self.out);
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
        w.process(2, "node", "./a", 77);
        w.thread(2, 0, 78);
        let call = Call {
            name: "MPI_Send",
            begin: 5,
            end: Some(9),
            dest: Some(1),
            comm: Some(Comm {
                name: "",
                id: 0xabc,
            }),
            at: Some("a.c:1 (f)"),
            flows: vec![flow(1, 2, 1, 0, 0)],
            ..Call::default()
        };
        w.call(2, 0, &call);
        w.call(2, 0, &call);
        w.end(2, 10, 3, 0);
        let all = read(&w.take());
        assert!(w.is_empty());
        assert_eq!(all.len(), 8);
        let flags: Vec<_> = all.iter().map(|p| p.sequence_flags.unwrap()).collect();
        assert_eq!(flags, [1, 2, 1, 2, 2, 2, 2, 2]);
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
