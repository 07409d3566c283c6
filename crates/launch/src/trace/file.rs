//! The file of a trace: records of the ranks as packets, appended while the job runs.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::shared::{self, Sharing};
use crate::profile::function;
use crate::sites::Sites;
use kw_hang::Frame;
use kw_start::trace::*;
use kw_trace::perfetto::Unit;
use kw_trace::write::{self, Call, Library, Received, Text, Writer};

/// Identity of a rank.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    /// Its number.
    pub rank: u32,
    /// Its host.
    pub host: &'a str,
    /// Its program.
    pub program: &'a str,
    /// The name of its job, if that was spawned.
    pub job: Option<&'a str>,
}

/// Objects to which records of a rank refer.
#[derive(Debug, Default)]
struct Known {
    begun: bool,
    /// Bytes received so far.
    received: u64,
    /// Last written value of each of [`COUNTERS`] and [`FILE_COUNTERS`].
    written: [Option<u64>; COUNTERS.len() + FILE_COUNTERS.len()],
    /// By number.
    comms: Vec<Option<write::Comm>>,
    /// `FILE:LINE (FUNCTION)`, by ring and row.
    sites: Vec<Vec<Option<Text>>>,
}

/// Counters over time: the sums of a record, and received bytes.
const COUNTERS: [(&str, Unit); SUMMED + 1] = [
    ("bytes sent", Unit::SizeBytes),
    ("unexpected messages", Unit::Count),
    ("unexpected bytes", Unit::SizeBytes),
    ("unexpected messages waiting", Unit::Count),
    ("progress thread woke", Unit::Count),
    ("bytes received", Unit::SizeBytes),
];

/// Counters of access to files over time.
const FILE_COUNTERS: [(&str, Unit); SUMMED] = [
    ("file bytes read", Unit::SizeBytes),
    ("file bytes written", Unit::SizeBytes),
    ("file system calls", Unit::Count),
    ("file bytes for other ranks", Unit::SizeBytes),
    ("file access time", Unit::TimeNs),
];

/// A function, as the writer knows it.
#[derive(Clone, Copy, Debug)]
struct Function {
    name: Text,
    mode: Option<Text>,
}

/// The writer of a trace.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    sharing: Sharing,
    /// The number of the job's first rank in the file.
    first: u32,
    /// `None` after a failed write.
    file: Option<File>,
    writer: Writer,
    ranks: HashMap<u32, Known>,
    /// Functions, by number.
    functions: Vec<Option<Function>>,
    /// Messages of the current call.
    flows: Vec<u64>,
    /// The group that it names.
    group: Vec<i64>,
}

impl TraceFile {
    /// Opens the file for a job of `ranks` ranks: that of the parent job, or a new one.
    pub fn open(path: &Path, sharing: &Sharing, ranks: u32) -> io::Result<TraceFile> {
        let (file, first) = match sharing.joins {
            true => shared::join(path, sharing, ranks)?,
            false => (shared::create(path, sharing, ranks)?, 0),
        };
        Ok(TraceFile {
            path: path.into(),
            sharing: sharing.clone(),
            first,
            file: Some(file),
            writer: Writer::default(),
            ranks: HashMap::new(),
            functions: Vec::new(),
            flows: Vec::new(),
            group: Vec::new(),
        })
    }

    /// Adds a part of a rank's records, preceded by new objects that they refer to. `ours`: its
    /// times by our clock, with an error of at most `error` nanoseconds.
    pub fn add(
        &mut self,
        who: Who,
        batch: &Batch,
        part: Range<usize>,
        ours: impl Fn(u64) -> u64,
        error: u64,
        sites: &mut Sites,
    ) {
        let (rank, last) = (who.rank, part.end == batch.records.len());
        if part.start == 0 {
            self.begin(who, batch, sites);
        }
        let Some(known) = self.ranks.get_mut(&rank) else {
            return;
        };
        let mut tell = Tell {
            writer: &mut self.writer,
            functions: &mut self.functions,
            known,
            first: self.first,
            rank: self.first + rank,
            ours,
        };
        let mut records = batch.records[part].iter().peekable();
        while let Some(r) = records.next() {
            self.flows.clear();
            self.group.clear();
            while let Some(sent) = records.next_if(|r| Kind::of(r.kind) == Some(Kind::Sent)) {
                let flow = tell.known.flow(sent, rank as i32, sent.peer);
                self.flows.extend(flow);
            }
            while let Some(member) = records.next_if(|r| Kind::of(r.kind) == Some(Kind::Member)) {
                self.group.extend(tell.world(member.peer));
            }
            tell.record(r, &mut self.flows, &self.group);
        }
        if batch.over && last {
            let now = (tell.ours)(batch.now);
            self.writer.end(self.first + rank, now, batch.lost, error);
        }
    }

    /// New data of a rank.
    fn begin(&mut self, who: Who, batch: &Batch, sites: &mut Sites) {
        let known = self.ranks.entry(who.rank).or_default();
        known.learn(batch, sites, &mut self.writer, self.first);
        if !known.begun && batch.pid != 0 {
            known.begun = true;
            self.writer
                .process(self.first + who.rank, &who.title(), who.program, batch.pid);
        }
        for thread in &batch.threads {
            let rank = self.first + who.rank;
            self.writer.thread(rank, thread.ring.into(), thread.tid);
        }
    }

    /// Writes the added packets. Returns the sentence about the first failure.
    pub fn write(&mut self) -> Option<String> {
        let written = match &mut self.file {
            Some(file) => {
                let ours = self.sharing.check(file);
                ours.and_then(|()| file.write_all(self.writer.bytes()))
            }
            None => Ok(()),
        };
        self.writer.clear();
        let e = written.err()?;
        self.file = None;
        let path = self.path.display();
        let kept = match e.kind() {
            io::ErrorKind::InvalidData => "",
            _ => "the part written so far remains and ",
        };
        Some(format!(
            "mpiexec: the trace can no longer be written to '{path}': {e}; {kept}the job continues\n"
        ))
    }
}

impl Who<'_> {
    /// Name of the rank.
    fn title(&self) -> String {
        let Who { rank, host, .. } = self;
        match self.job {
            Some(job) => format!("rank {rank} of job {job} on {host}"),
            None => format!("rank {rank} on {host}"),
        }
    }
}

fn number(n: u64) -> Option<u64> {
    (n != NONE).then_some(n)
}

/// Kind of a send, from the name of its function.
fn mode(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("MPI_")?.to_lowercase();
    let name = name.strip_prefix('i').unwrap_or(&name);
    let kinds = [
        ("ssend", "synchronous"),
        ("rsend", "ready"),
        ("bsend", "buffered"),
    ];
    let found = kinds.iter().find(|(head, _)| name.starts_with(head));
    found.map(|(_, mode)| *mode)
}

/// Stores a value at an index of a list, which grows as needed.
fn put<T: Clone>(list: &mut Vec<Option<T>>, at: usize, value: T) {
    if list.len() <= at {
        list.resize(at + 1, None);
    }
    list[at] = Some(value);
}

impl Known {
    fn learn(&mut self, batch: &Batch, sites: &mut Sites, writer: &mut Writer, first: u32) {
        for c in &batch.comms {
            let name = match c.name.is_empty() {
                true => writer.text(&format!("comm {:04x}", c.id & 0xffff)),
                false => writer.text(&c.name),
            };
            put(
                &mut self.comms,
                c.number as usize,
                write::Comm {
                    name,
                    // ranks of several jobs have the same numbers, each in its own
                    id: c.id ^ u64::from(first) << 32,
                },
            );
        }
        for s in batch.sites.iter().filter(|s| !s.file.is_empty()) {
            let text = writer.text(&place(s, sites));
            let ring = usize::from(s.ring);
            if self.sites.len() <= ring {
                self.sites.resize(ring + 1, Vec::new());
            }
            put(&mut self.sites[ring], s.row.into(), text);
        }
    }

    fn comm(&self, number: u32) -> Option<write::Comm> {
        *self.comms.get(number as usize)?
    }

    fn site(&self, r: &Record) -> Option<Text> {
        let ring = self.sites.get(usize::from(r.thread))?;
        *ring.get(usize::from(r.row))?
    }

    /// The number of a message, if all its parts are known.
    fn flow(&self, r: &Record, source: i32, dest: i32) -> Option<u64> {
        self.flow_of(r, source, dest, r.tag)
    }

    fn flow_of(&self, r: &Record, source: i32, dest: i32, tag: i32) -> Option<u64> {
        let comm = self.comm(r.comm)?;
        let known = r.n != NONE && source >= 0 && dest >= 0;
        known.then(|| write::flow(comm.id, source, dest, tag, r.n))
    }
}

/// `FILE:LINE (FUNCTION)`.
fn place(s: &Site, sites: &mut Sites) -> String {
    // The return address is after the call, which may be the last instruction of its line.
    let frame = Frame {
        file: s.file.clone(),
        offset: s.offset.saturating_sub(1),
    };
    let (function, line) = sites.place(&frame);
    let name = Path::new(&s.file).file_name();
    let name = name.map_or_else(|| s.file.clone(), |n| n.to_string_lossy().into_owned());
    let line = match line.is_empty() {
        true => format!("{name}+{:#x}", s.offset),
        false => line,
    };
    match function.is_empty() {
        true => line,
        false => format!("{line} ({function})"),
    }
}

/// Writer of the records of one rank.
struct Tell<'a, F> {
    writer: &'a mut Writer,
    functions: &'a mut Vec<Option<Function>>,
    known: &'a mut Known,
    /// The number of the job's first rank in the file, and that of this one.
    first: u32,
    rank: u32,
    ours: F,
}

impl<F: Fn(u64) -> u64> Tell<'_, F> {
    /// The number in the file of a rank of the job; a negative number stands for several ranks, or
    /// none.
    fn world(&self, rank: i32) -> Option<i64> {
        let first = if rank < 0 { 0 } else { i64::from(self.first) };
        (rank != ABSENT).then(|| first + i64::from(rank))
    }

    /// Its number in the job.
    fn own(&self) -> i32 {
        (self.rank - self.first) as i32
    }

    fn record(&mut self, r: &Record, flows: &mut Vec<u64>, group: &[i64]) {
        let thread = r.thread.into();
        match Kind::of(r.kind) {
            Some(Kind::Call) => self.call(r, flows, group),
            Some(Kind::Received) => {
                self.known.received += number(r.bytes).unwrap_or(0);
                let received = Received {
                    at: (self.ours)(r.begin),
                    posted: (self.ours)(r.end),
                    source: self.world(r.source),
                    tag: r.tag.into(),
                    comm: self.known.comm(r.comm),
                    bytes: number(r.bytes),
                    flow: self.known.flow(r, r.source, self.own()),
                };
                self.writer.received(self.rank, thread, &received);
            }
            Some(Kind::Phase) => {
                let at = (self.ours)(r.begin);
                self.writer.phase(self.rank, thread, at, r.level.into());
            }
            Some(Kind::Offered) => self.library(r, "rendezvous", true),
            Some(Kind::Awaited) => self.library(r, "rendezvous waits", false),
            Some(Kind::Sums) => self.sums(r),
            Some(Kind::Files) => self.tell(r.begin, COUNTERS.len(), &FILE_COUNTERS, r.sums()),
            Some(Kind::Neighbor) => self.neighbor(r),
            Some(Kind::Sent | Kind::Member) | None => {}
        }
    }

    /// Writes the offer of a long message, by this rank or to it.
    fn library(&mut self, r: &Record, name: &str, ours: bool) {
        let peer = self.world(r.peer);
        let did = Library {
            at: (self.ours)(r.begin),
            name: self.writer.text(name),
            dest: peer.filter(|_| ours),
            source: peer.filter(|_| !ours),
            tag: r.tag.into(),
            bytes: r.bytes,
        };
        self.writer.library(self.rank, &did);
    }

    fn neighbor(&mut self, r: &Record) {
        let at = (self.ours)(r.begin);
        if let Some(comm) = self.known.comm(r.comm) {
            let source = self.world(r.source).unwrap_or(r.source.into());
            self.writer.neighbor(self.rank, at, comm, source);
        }
    }

    fn sums(&mut self, r: &Record) {
        let received = [self.known.received];
        let all = r.sums().into_iter().chain(received);
        self.tell(r.begin, 0, &COUNTERS, all);
    }

    /// Writes the values of counters that have changed; the first has number `first`.
    fn tell(
        &mut self,
        at: u64,
        first: usize,
        counters: &[(&str, Unit)],
        values: impl IntoIterator<Item = u64>,
    ) {
        let at = (self.ours)(at);
        for (index, ((name, unit), value)) in (first..).zip(counters.iter().zip(values)) {
            if self.known.written[index].replace(value) != Some(value) {
                self.writer
                    .counter(self.rank, index as u32, name, *unit, at, value);
            }
        }
    }

    fn function(&mut self, number: u16) -> Function {
        if let Some(Some(known)) = self.functions.get(usize::from(number)) {
            return *known;
        }
        let (name, _) = function(number.into());
        let new = Function {
            name: self.writer.text(name),
            mode: mode(name).map(|mode| self.writer.text(mode)),
        };
        put(self.functions, number.into(), new);
        new
    }

    /// Kind of a lock.
    fn lock(&mut self, r: &Record) -> Option<Text> {
        let kind = match r.level {
            _ if r.flags & TARGET == 0 => return None,
            EXCLUSIVE => "exclusive",
            SHARES => "shared",
            _ => return None,
        };
        Some(self.writer.text(kind))
    }

    fn call(&mut self, r: &Record, flows: &mut Vec<u64>, group: &[i64]) {
        let Function { name, mode } = self.function(r.function);
        let has = |bit: u8| r.flags & bit != 0;
        let ended = !has(UNDER_WAY);
        let (takes, sees) = (has(TAKES) && ended, has(SEES) && ended);
        if !has(COLLECTIVE | TAKES | SEES) {
            flows.extend(self.known.flow(r, self.own(), r.peer));
        }
        let peer = self.world(r.peer).filter(|_| !has(TAKES | SEES));
        let comm = self.known.comm(r.comm);
        let begin = (self.ours)(r.begin);
        let end = ended.then(|| (self.ours)(r.end));
        let call = Call {
            end,
            dest: peer.filter(|_| !has(ROOT | TARGET)),
            target: peer.filter(|_| has(TARGET)),
            source: self.world(r.source),
            root: peer.filter(|_| has(ROOT)),
            tag: (r.tag != ABSENT).then(|| r.tag.into()),
            comm,
            bytes: number(r.bytes),
            coll: number(r.n).filter(|_| has(COLLECTIVE)),
            place: has(PLACED).then_some(r.level.into()),
            requests: (r.requests != 0 && !has(TAKES)).then(|| r.requests.into()),
            mode: mode.or_else(|| self.lock(r)),
            at: self.known.site(r),
            saw: sees.then(|| {
                let source = self.world(r.peer).unwrap_or(r.peer.into());
                (source, r.level.into())
            }),
            flows: flows.as_slice(),
            group,
            ..Call::new(name, begin)
        };
        let thread = r.thread.into();
        self.writer.call(self.rank, thread, &call);
        if let (true, Some(at)) = (takes, end) {
            self.known.received += u64::from(r.requests);
            let received = Received {
                at,
                posted: begin,
                source: self.world(r.peer),
                tag: r.level.into(),
                comm,
                bytes: Some(r.requests.into()),
                flow: self.known.flow_of(r, r.peer, self.own(), r.level),
            };
            self.writer.received(self.rank, thread, &received);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_those_of_the_names() {
        for (name, expected) in [
            ("MPI_Send", None),
            ("MPI_Isend", None),
            ("MPI_Ssend_init", Some("synchronous")),
            ("MPI_Irsend_c", Some("ready")),
            ("MPI_Ibsend", Some("buffered")),
            ("MPI_Iscan", None),
        ] {
            assert_eq!(mode(name), expected, "{name}");
        }
    }
}
