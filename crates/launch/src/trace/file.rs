//! The file of a trace: what was taken of the ranks, as packets, appended while the job runs.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::profile::function;
use crate::sites::Sites;
use kw_hang::Frame;
use kw_start::trace::{ABSENT, Batch, COLLECTIVE, Kind, NONE, ROOT, Record, UNDER_WAY};
use kw_trace::write::{self, Call, Received, Writer};

/// Who a rank is.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    /// Its number.
    pub rank: u32,
    /// Where it runs.
    pub host: &'a str,
    /// What it runs.
    pub program: &'a str,
}

/// What records of a rank refer to.
#[derive(Debug, Default)]
struct Known {
    begun: bool,
    comms: HashMap<u32, (u64, String)>,
    /// `FILE:LINE (FUNCTION)`, by ring and row.
    sites: HashMap<(u16, u16), String>,
}

/// See the module.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    /// Nothing once it could not be written.
    file: Option<File>,
    writer: Writer,
    ranks: HashMap<u32, Known>,
}

impl TraceFile {
    /// Begins a file; what stood there before is gone.
    pub fn create(path: &Path) -> io::Result<TraceFile> {
        Ok(TraceFile {
            path: path.into(),
            file: Some(File::create(path)?),
            writer: Writer::default(),
            ranks: HashMap::new(),
        })
    }

    /// Adds what was taken of a rank. `ours`: its times by our clock, which may be off by `error`
    /// nanoseconds.
    pub fn add(
        &mut self,
        who: Who,
        batch: &Batch,
        ours: impl Fn(u64) -> u64,
        error: u64,
        sites: &mut Sites,
    ) {
        let known = self.ranks.entry(who.rank).or_default();
        known.learn(batch, sites);
        if !known.begun && batch.pid != 0 {
            known.begun = true;
            self.writer
                .process(who.rank, who.host, who.program, batch.pid);
        }
        for thread in &batch.threads {
            self.writer.thread(who.rank, thread.ring.into(), thread.tid);
        }
        let mut records = batch.records.iter().peekable();
        while let Some(r) = records.next() {
            let mut flows = Vec::new();
            while let Some(sent) = records.next_if(|r| Kind::of(r.kind) == Some(Kind::Sent)) {
                flows.extend(known.flow(sent, who.rank as i32, sent.peer));
            }
            known.tell(&mut self.writer, who.rank, r, flows, &ours);
        }
        if batch.over {
            self.writer
                .end(who.rank, ours(batch.now), batch.lost, error);
        }
    }

    /// Writes what was added. The sentence when that cannot be: the first time.
    pub fn write(&mut self) -> Option<String> {
        let bytes = self.writer.take();
        let file = self.file.as_mut()?;
        match file.write_all(&bytes) {
            Ok(()) => None,
            Err(e) => {
                self.file = None;
                let path = self.path.display();
                Some(format!(
                    "mpiexec: the trace cannot be written to '{path}' any more: {e}; what it has so far stays, and the job goes on\n"
                ))
            }
        }
    }
}

fn world(rank: i32) -> Option<i64> {
    (rank != ABSENT).then(|| rank.into())
}

fn number(n: u64) -> Option<u64> {
    (n != NONE).then_some(n)
}

/// How a send is one, by the name of its function.
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

impl Known {
    fn learn(&mut self, batch: &Batch, sites: &mut Sites) {
        for c in &batch.comms {
            self.comms.insert(c.number, (c.id, c.name.clone()));
        }
        for s in batch.sites.iter().filter(|s| !s.file.is_empty()) {
            // The address is behind the call, which may be the last of its line.
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
            let text = match function.is_empty() {
                true => line,
                false => format!("{line} ({function})"),
            };
            self.sites.insert((s.ring, s.row), text);
        }
    }

    fn comm(&self, number: u32) -> Option<write::Comm<'_>> {
        let (id, name) = self.comms.get(&number)?;
        Some(write::Comm { name, id: *id })
    }

    /// The number of a message, where all of it is known.
    fn flow(&self, r: &Record, source: i32, dest: i32) -> Option<u64> {
        let comm = self.comm(r.comm)?;
        let known = r.n != NONE && source >= 0 && dest >= 0;
        known.then(|| write::flow(comm.id, source, dest, r.tag, r.n))
    }

    fn tell(
        &self,
        writer: &mut Writer,
        rank: u32,
        r: &Record,
        flows: Vec<u64>,
        ours: &impl Fn(u64) -> u64,
    ) {
        let thread = r.thread.into();
        match Kind::of(r.kind) {
            Some(Kind::Call) => self.tell_call(writer, rank, r, flows, ours),
            Some(Kind::Received) => writer.received(
                rank,
                thread,
                &Received {
                    at: ours(r.begin),
                    posted: ours(r.end),
                    source: world(r.source),
                    tag: r.tag.into(),
                    comm: self.comm(r.comm),
                    bytes: number(r.bytes),
                    flow: self.flow(r, r.source, rank as i32),
                },
            ),
            Some(Kind::Phase) => writer.phase(rank, thread, ours(r.begin), r.level.into()),
            Some(Kind::Sent) | None => {}
        }
    }

    fn tell_call(
        &self,
        writer: &mut Writer,
        rank: u32,
        r: &Record,
        mut flows: Vec<u64>,
        ours: &impl Fn(u64) -> u64,
    ) {
        let (name, _) = function(r.function.into());
        let has = |bit: u8| r.flags & bit != 0;
        if !has(COLLECTIVE) {
            flows.extend(self.flow(r, rank as i32, r.peer));
        }
        let peer = world(r.peer);
        let call = Call {
            name,
            begin: ours(r.begin),
            end: (!has(UNDER_WAY)).then(|| ours(r.end)),
            dest: peer.filter(|_| !has(ROOT)),
            source: world(r.source),
            root: peer.filter(|_| has(ROOT)),
            tag: world(r.tag),
            comm: self.comm(r.comm),
            bytes: number(r.bytes),
            coll: number(r.n).filter(|_| has(COLLECTIVE)),
            requests: (r.requests != 0).then(|| r.requests.into()),
            mode: mode(name),
            at: self.sites.get(&(r.thread, r.row)).map(String::as_str),
            flows,
        };
        writer.call(rank, r.thread.into(), &call);
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
