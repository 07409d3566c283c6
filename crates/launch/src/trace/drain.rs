//! Takes the records that the recorders of this machine's ranks have written into their rings.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clock::Line;
use crate::profile::memory::Memory;
use kw_start::profile::{
    self, MODULE, MODULES, MODULES_AT, PATH_AT, ROW, ROWS, ROWS_AT, SHEET, SHEETS_AT,
};
use kw_start::trace::*;
use kw_sys::{clock, ticks};

/// The longest interval between two reads, and the shortest, for rings that fill fast.
const SELDOM: Duration = Duration::from_millis(50);
const OFTEN: Duration = Duration::from_millis(1);

/// Value for no row of a ring.
const NO_SITES: [u64; (ROWS + 1) / 64] = [0; (ROWS + 1) / 64];

/// Records taken from a rank.
#[derive(Debug)]
struct Taken {
    tails: [u64; RINGS],
    threads: usize,
    comms: u32,
    named: u64,
    /// For each ring a bit per row, set if the row was reported.
    sites: Vec<[u64; NO_SITES.len()]>,
    modules: Vec<(u64, String)>,
}

/// State of the reader.
#[derive(Debug)]
pub struct Drain {
    line: Line,
    counter: bool,
    ranks: BTreeMap<u32, Taken>,
    every: Duration,
}

impl Drain {
    /// Creates a reader for ranks that start from now on. `counter`: whether ticks are those of the
    /// processor.
    pub fn new(counter: bool) -> Drain {
        let mut drain = Drain {
            line: Line::default(),
            counter,
            ranks: BTreeMap::new(),
            every: OFTEN * 4,
        };
        drain.tick();
        drain
    }

    /// Time until the next read.
    pub fn every(&self) -> Duration {
        self.every
    }

    fn tick(&mut self) {
        self.line.add(ticks::now(self.counter), clock::now().0);
    }

    /// Takes the available records of some ranks. `over`: they have ended.
    pub fn take(&mut self, memory: &Memory, ranks: &[u32], over: bool) -> Vec<(u32, Batch)> {
        let mut all = Vec::new();
        let mut fullest = 0;
        for rank in ranks {
            let taken = self.ranks.entry(*rank).or_insert_with(Taken::new);
            let mut batch = Batch {
                over,
                ..Batch::default()
            };
            if let Some(most) = taken.rings(memory, *rank, &mut batch) {
                fullest = fullest.max(most);
            }
            all.push((*rank, batch));
        }
        self.tick(); // after all that was taken
        for (_, batch) in &mut all {
            batch.now = clock::now().0;
            for r in &mut batch.records {
                if r.flags & NANOSECONDS == 0 {
                    r.begin = self.line.at(r.begin);
                }
                if r.end > 1 {
                    r.end = self.line.at(r.end).max(2);
                }
            }
        }
        if !over {
            self.every = match fullest {
                n if n > RECORDS as u64 / 8 => (self.every / 2).max(OFTEN),
                _ => (self.every * 5 / 4).min(SELDOM),
            };
        }
        all.retain(|(_, batch)| !batch.is_empty());
        all
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 8).and_then(|b| b.first_chunk());
    found.map_or(0, |b| u64::from_ne_bytes(*b))
}

impl Taken {
    fn new() -> Taken {
        Taken {
            tails: [0; RINGS],
            threads: 0,
            comms: 0,
            named: 0,
            sites: Vec::new(),
            modules: Vec::new(),
        }
    }

    /// The records of all rings, and what they refer to; and the number of records in the fullest
    /// ring.
    fn rings(&mut self, memory: &Memory, rank: u32, batch: &mut Batch) -> Option<u64> {
        let mut head = [0; 64];
        memory.traced(rank, 0, &mut head)?;
        batch.pid = word(&head, PID) as u32;
        let used = (word(&head, RINGS_USED) as usize).min(RINGS);
        let mut fullest = 0;
        for ring in 0..used {
            let at = RINGS_AT + ring * RING;
            let mut words = [0; 64];
            memory.traced(rank, at, &mut words)?;
            batch.lost += word(&words, LOST);
            if ring >= self.threads {
                batch.threads.push(Thread {
                    ring: ring as u16,
                    tid: word(&words, TID) as u32,
                });
                self.threads = ring + 1;
            }
            fullest = fullest.max(self.ring(memory, rank, ring, word(&words, HEAD), batch)?);
        }
        self.tell_comms(
            memory,
            rank,
            word(&head, COMMS_USED),
            word(&head, COMMS_NAMED),
            batch,
        );
        self.tell_sites(memory, rank, batch);
        Some(fullest)
    }

    /// The records of one ring.
    fn ring(
        &mut self,
        memory: &Memory,
        rank: u32,
        ring: usize,
        head: u64,
        batch: &mut Batch,
    ) -> Option<u64> {
        let tail = self.tails[ring];
        let count = head.wrapping_sub(tail).min(RECORDS as u64);
        let at = RINGS_AT + ring * RING;
        let place = |n: u64| at + RECORDS_AT + (n as usize % RECORDS) * RECORD;
        let first = (RECORDS - tail as usize % RECORDS).min(count as usize);
        for (from, records) in [(tail, first), (tail + first as u64, count as usize - first)] {
            let mut bytes = vec![0; records * RECORD];
            memory.traced(rank, place(from), &mut bytes)?;
            batch
                .records
                .extend(bytes.chunks(RECORD).filter_map(Record::read));
        }
        if count > 0 {
            self.tails[ring] = head;
            memory.taken(rank, at + TAIL, head);
        }
        if batch.over && count < RECORDS as u64 {
            let mut bytes = [0; RECORD];
            memory.traced(rank, place(head), &mut bytes)?;
            let last = Record::read(&bytes)?;
            if last.end == 0 && last.begin != 0 {
                batch.records.push(Record {
                    end: 1,
                    flags: last.flags | UNDER_WAY,
                    ..last
                });
            }
        }
        Some(count)
    }

    fn tell_comms(&mut self, memory: &Memory, rank: u32, used: u64, named: u64, batch: &mut Batch) {
        let used = used.min(COMMS as u64) as u32;
        if named != self.named {
            (self.named, self.comms) = (named, 0); // all once more
        }
        for number in self.comms + 1..=used {
            let mut bytes = [0; COMM];
            let at = COMMS_AT + number as usize * COMM;
            if memory.traced(rank, at, &mut bytes).is_none() {
                return;
            }
            let len = (word(&bytes, 8) as usize).min(COMM - NAME_AT);
            batch.comms.push(Comm {
                number,
                id: word(&bytes, 0),
                name: String::from_utf8_lossy(&bytes[NAME_AT..][..len]).into_owned(),
            });
        }
        self.comms = used;
    }

    /// Places that records name and that were not reported before.
    fn tell_sites(&mut self, memory: &Memory, rank: u32, batch: &mut Batch) {
        for r in &batch.records {
            let (ring, row) = (usize::from(r.thread), usize::from(r.row));
            if row == 0 || row >= ROWS || ring >= RINGS {
                continue;
            }
            if self.sites.len() <= ring {
                self.sites.resize(ring + 1, NO_SITES);
            }
            let (written, bit) = (&mut self.sites[ring][row / 64], 1 << (row % 64));
            if *written & bit == 0 {
                *written |= bit;
                let site = site(memory, rank, &mut self.modules, r.thread, r.row);
                batch.sites.extend(site);
            }
        }
    }
}

/// The return address in a row of the table of calls.
fn site(
    memory: &Memory,
    rank: u32,
    modules: &mut Vec<(u64, String)>,
    ring: u16,
    row: u16,
) -> Option<Site> {
    let mut bytes = [0; ROW];
    let sheet = SHEETS_AT + ring as usize * SHEET;
    memory.counted(rank, sheet + ROWS_AT + row as usize * ROW, &mut bytes)?;
    let (address, number) = (word(&bytes, 0), word(&bytes, 8) >> 32);
    while modules.len() <= number as usize && (number as usize) < MODULES {
        let mut bytes = [0; MODULE];
        memory.counted(rank, MODULES_AT + modules.len() * MODULE, &mut bytes)?;
        let len = (word(&bytes, 8) as usize).min(MODULE - PATH_AT);
        let path = String::from_utf8_lossy(&bytes[PATH_AT..][..len]).into_owned();
        modules.push((word(&bytes, 0), path));
    }
    let known = modules
        .get(number as usize)
        .filter(|_| number as u32 != profile::NONE);
    let (base, file) = known.map_or((0, String::new()), |(base, file)| (*base, file.clone()));
    Some(Site {
        ring,
        row,
        file,
        offset: address.saturating_sub(base),
    })
}
