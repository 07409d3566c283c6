//! Format of a rank's call records over time (`mpiexec --trace`): rings of records in memory
//! provided by its launcher, which the launcher drains at any time, however the rank ends.
//!
//! ```text
//! header (4096 bytes): words, see the constants     communicators and windows: number on all members, length of the name, name
//! rings, one for each thread (of the sheet of the same number, `crate::profile`): words; records
//! record (64 bytes): 8 words, see [`Record`]
//! ```
//! Only the thread writes the head of its ring, only the launcher the tail. A record at the head is
//! that of the call in flight, while its end is 0. Between hosts the records are sent as
//! [`Batch::encode`] encodes them, with times in nanoseconds.

/// Process number of the recorder.
pub const PID: usize = 0;
/// Number of communicators and windows described so far; the first has number 1.
pub const COMMS_USED: usize = 8;
/// Number of times that one of them was given a name.
pub const COMMS_NAMED: usize = 16;
/// Number of rings used so far.
pub const RINGS_USED: usize = 24;
/// Offset of the communicators.
pub const COMMS_AT: usize = 4096;
/// Bytes of one.
pub const COMM: usize = 128;
/// Most communicators and windows; later ones are not described.
pub const COMMS: usize = 4095;
/// Offset of the name in a communicator.
pub const NAME_AT: usize = 16;
/// Offset of the rings.
pub const RINGS_AT: usize = COMMS_AT + (COMMS + 1) * COMM;
/// Most rings; further threads are not recorded.
pub const RINGS: usize = crate::profile::SHEETS - 1;
/// Records written so far.
pub const HEAD: usize = 0;
/// Events for which there was no room.
pub const LOST: usize = 8;
/// Thread id of the system.
pub const TID: usize = 16;
/// Records that the launcher has taken.
pub const TAIL: usize = 64;
/// Offset of the records in a ring.
pub const RECORDS_AT: usize = 4096;
/// Bytes of a record.
pub const RECORD: usize = 64;
/// Records of a ring, a power of two.
pub const RECORDS: usize = 32768;
/// Bytes of a ring.
pub const RING: usize = RECORDS_AT + RECORDS * RECORD;
/// Total bytes.
pub const SIZE: usize = (RINGS_AT + RINGS * RING).next_multiple_of(crate::profile::PAGE);

/// Value of an unknown or meaningless rank or tag.
pub const ABSENT: i32 = i32::MIN;
/// A receive that takes any source, or any tag.
pub const ANY: i32 = -1;
/// `level` of a call that locks memory of a window exclusively.
pub const EXCLUSIVE: i32 = 1;
/// `level` of a call that shares that lock.
pub const SHARES: i32 = 2;
/// Value of an unknown number.
pub const NONE: u64 = u64::MAX;

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call.
    Call,
    /// A message that the preceding call has sent; the record has its own `n` and those of further
    /// messages.
    Sent,
    /// A message that the preceding call has received.
    Received,
    /// A phase of the program (MPI_Pcontrol).
    Phase,
    /// The library has sent an RTS for a long message to `peer`.
    Offered,
    /// An RTS of `peer` has arrived, and there is no receive for it.
    Awaited,
    /// Sums of the library: see [`Record::sums`].
    Sums,
    /// In the topology of `comm` the rank receives from `source`.
    Neighbor,
    /// Sums of file access: see [`Record::sums`].
    Files,
    /// `peer` is in the group that the preceding call on a window names.
    Member,
}

impl Kind {
    /// The number in a record.
    pub const fn number(self) -> u8 {
        match self {
            Kind::Call => 1,
            Kind::Sent => 2,
            Kind::Received => 3,
            Kind::Phase => 4,
            Kind::Offered => 5,
            Kind::Awaited => 6,
            Kind::Sums => 7,
            Kind::Neighbor => 8,
            Kind::Files => 9,
            Kind::Member => 10,
        }
    }

    /// The kind with a number.
    pub fn of(number: u8) -> Option<Kind> {
        use Kind::*;
        let all = [
            Call, Sent, Received, Phase, Offered, Awaited, Sums, Neighbor, Files, Member,
        ];
        all.into_iter().find(|k| k.number() == number)
    }
}

/// Bit of a record's flags: `n` is which collective of the communicator this is.
pub const COLLECTIVE: u8 = 1;
/// Bit of a record's flags: `peer` is the root.
pub const ROOT: u8 = 2;
/// Bit of a record's flags: the call has not returned.
pub const UNDER_WAY: u8 = 4;
/// Bit of a record's flags: the call has received a message, too. It came from `peer` with the tag
/// `level` and has `requests` bytes, and `n` is its number among messages of its kind.
pub const TAKES: u8 = 8;
/// Bit of a record's flags: the call has found a message, from `peer` with the tag `level`.
pub const SEES: u8 = 16;
/// Bit of a record's flags: the calling process is number `level` of the communicator.
pub const PLACED: u8 = 32;
/// Bit of a record's flags: `peer` is the target of a call on a window; its rank there if the window is
/// not known (`comm` is 0).
pub const TARGET: u8 = 128;
/// Bit of a record's flags: `begin` is in nanoseconds of the machine's clock instead of ticks.
pub const NANOSECONDS: u8 = 64;
/// Number of sums of the library: bytes sent; unexpected messages, their bytes, and how many of
/// them are queued; wake-ups of the progress thread. Files have the same number: bytes read and
/// written; system calls; bytes accessed for other ranks; nanoseconds of access.
pub const SUMMED: usize = 5;

/// Combines two numbers into a word.
#[inline(always)]
pub const fn two(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// A record. Ranks are those in MPI_COMM_WORLD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Start of the call, or time of the event.
    pub begin: u64,
    /// End of the call; for a received message, the time when its receive was posted. Not 0.
    pub end: u64,
    /// Number of the function.
    pub function: u16,
    /// A [`Kind::number`].
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// The row of the thread's sheet with function and place of the call; 0: none.
    pub row: u16,
    /// The ring of the thread that it describes.
    pub thread: u16,
    /// Destination, or the root.
    pub peer: i32,
    /// Source.
    pub source: i32,
    /// Tag.
    pub tag: i32,
    /// Number of the communicator or the window, or 0.
    pub comm: u32,
    /// Bytes.
    pub bytes: u64,
    /// For a message: its number among those of its kind; or the number of a collective.
    pub n: u64,
    /// Number of requests of the call.
    pub requests: u32,
    /// For a phase: its level; for MPI_Win_lock: [`EXCLUSIVE`] or [`SHARES`].
    pub level: i32,
}

impl Record {
    /// The word of `begin`.
    pub const BEGIN: usize = 0;
    /// The word of `end`.
    pub const END: usize = 1;
    /// The word of function, kind, flags, row and thread.
    pub const WHAT: usize = 2;
    /// The word of peer and source.
    pub const RANKS: usize = 3;
    /// The word of tag and communicator.
    pub const TAG: usize = 4;
    /// The word of `bytes`.
    pub const BYTES: usize = 5;
    /// The word of `n`.
    pub const N: usize = 6;
    /// The word of requests and level.
    pub const MORE: usize = 7;

    /// A record in which only the time is known.
    pub const EMPTY: Record = Record {
        begin: 0,
        end: 1,
        function: 0,
        kind: Kind::Call.number(),
        flags: 0,
        row: 0,
        thread: 0,
        peer: ABSENT,
        source: ABSENT,
        tag: ABSENT,
        comm: 0,
        bytes: NONE,
        n: NONE,
        requests: 0,
        level: 0,
    };

    /// A record of sums ([`Kind::Sums`] or [`Kind::Files`]) at a time, in nanoseconds.
    pub fn of_sums(kind: Kind, at: u64, sums: [u64; SUMMED]) -> Record {
        let mut words = Record {
            kind: kind.number(),
            flags: NANOSECONDS,
            begin: at,
            ..Record::EMPTY
        }
        .words();
        words[Record::RANKS..].copy_from_slice(&sums);
        Record::of(words)
    }

    /// The sums of such a record.
    pub fn sums(&self) -> [u64; SUMMED] {
        let words = self.words();
        std::array::from_fn(|n| words[Record::RANKS + n])
    }

    /// The words of the record in memory.
    #[inline(always)]
    pub fn words(&self) -> [u64; 8] {
        [
            self.begin,
            self.end,
            self.what(),
            two(self.peer as u32, self.source as u32),
            two(self.tag as u32, self.comm),
            self.bytes,
            self.n,
            two(self.requests, self.level as u32),
        ]
    }

    /// The word [`Record::WHAT`].
    #[inline(always)]
    pub const fn what(&self) -> u64 {
        self.function as u64
            | (self.kind as u64) << 16
            | (self.flags as u64) << 24
            | (self.row as u64) << 32
            | (self.thread as u64) << 48
    }

    /// Reads a record from its words.
    pub fn of(w: [u64; 8]) -> Record {
        Record {
            begin: w[0],
            end: w[1],
            function: w[2] as u16,
            kind: (w[2] >> 16) as u8,
            flags: (w[2] >> 24) as u8,
            row: (w[2] >> 32) as u16,
            thread: (w[2] >> 48) as u16,
            peer: w[3] as i32,
            source: (w[3] >> 32) as i32,
            tag: w[4] as i32,
            comm: (w[4] >> 32) as u32,
            bytes: w[5],
            n: w[6],
            requests: w[7] as u32,
            level: (w[7] >> 32) as i32,
        }
    }

    /// Reads a record from the bytes of this machine's memory.
    pub fn read(bytes: &[u8]) -> Option<Record> {
        let mut words = [0; 8];
        for (word, b) in words.iter_mut().zip(bytes.chunks(8)) {
            *word = u64::from_ne_bytes(*b.first_chunk()?);
        }
        (bytes.len() >= RECORD).then(|| Record::of(words))
    }
}

/// A thread that was not reported before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its ring.
    pub ring: u16,
    /// Its number in the system.
    pub tid: u32,
}

/// A communicator or a window that was not reported before, or has got a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comm {
    /// Its number in records.
    pub number: u32,
    /// A number that is the same on all members.
    pub id: u64,
    /// Its name, if it has one.
    pub name: String,
}

/// A place in the program that was not reported before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The ring.
    pub ring: u16,
    /// The row.
    pub row: u16,
    /// The program or library; empty: none.
    pub file: String,
    /// Return address of the call in it.
    pub offset: u64,
}

/// Records taken from a rank's rings at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Process number, once there is one.
    pub pid: u32,
    /// Events for which there was no room so far.
    pub lost: u64,
    /// Whether the rank has ended: nothing follows.
    pub over: bool,
    /// Time of the batch in nanoseconds.
    pub now: u64,
    /// New threads.
    pub threads: Vec<Thread>,
    /// New communicators.
    pub comms: Vec<Comm>,
    /// New places.
    pub sites: Vec<Site>,
    /// The records, in order within each thread; times in nanoseconds.
    pub records: Vec<Record>,
}

impl Batch {
    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        let count = self.threads.len() + self.comms.len() + self.sites.len() + self.records.len();
        count == 0 && !self.over
    }

    /// End of a part of the records that begins at `from` and has this many; a call stays together
    /// with its sent messages and the group that it names.
    pub fn piece(&self, from: usize, records: usize) -> usize {
        let all = self.records.len();
        let behind = self.records.get(from + records..).unwrap_or_default();
        let goes_on = |r: &Record| matches!(Kind::of(r.kind), Some(Kind::Sent | Kind::Member));
        let next = behind.iter().position(|r| !goes_on(r));
        next.map_or(all, |n| from + records + n)
    }

    /// Encodes the batch for another host.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.records.len() * RECORD + 256);
        let mut put = |n: u64| out.extend_from_slice(&n.to_le_bytes());
        for n in [
            u64::from(self.pid),
            self.lost,
            self.over.into(),
            self.now,
            self.threads.len() as u64,
            self.comms.len() as u64,
            self.sites.len() as u64,
            self.records.len() as u64,
        ] {
            put(n);
        }
        for t in &self.threads {
            put(u64::from(t.ring) | u64::from(t.tid) << 32);
        }
        for c in &self.comms {
            put(u64::from(c.number));
            put(c.id);
            put(c.name.len() as u64);
        }
        for s in &self.sites {
            put(u64::from(s.ring) | u64::from(s.row) << 32);
            put(s.offset);
            put(s.file.len() as u64);
        }
        for r in &self.records {
            r.words().into_iter().for_each(&mut put);
        }
        for text in self.texts() {
            out.extend_from_slice(text.as_bytes());
        }
        out
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        let names = self.comms.iter().map(|c| &c.name);
        names.chain(self.sites.iter().map(|s| &s.file))
    }

    /// Decodes a batch; `None` if the bytes are damaged.
    pub fn decode(bytes: &[u8]) -> Option<Batch> {
        let mut rest = bytes;
        let mut take = || {
            let (head, tail) = rest.split_first_chunk::<8>()?;
            rest = tail;
            Some(u64::from_le_bytes(*head))
        };
        let mut batch = Batch {
            pid: take()? as u32,
            lost: take()?,
            over: take()? != 0,
            now: take()?,
            ..Batch::default()
        };
        let [threads, comms, sites, records] = [take()?, take()?, take()?, take()?];
        for _ in 0..threads {
            let both = take()?;
            batch.threads.push(Thread {
                ring: both as u16,
                tid: (both >> 32) as u32,
            });
        }
        let mut lengths = Vec::new();
        for _ in 0..comms {
            let (number, id) = (take()? as u32, take()?);
            lengths.push(take()?);
            let name = String::new();
            batch.comms.push(Comm { number, id, name });
        }
        for _ in 0..sites {
            let (both, offset) = (take()?, take()?);
            lengths.push(take()?);
            batch.sites.push(Site {
                ring: both as u16,
                row: (both >> 32) as u16,
                file: String::new(),
                offset,
            });
        }
        for _ in 0..records {
            let mut words = [0; 8];
            for w in &mut words {
                *w = take()?;
            }
            batch.records.push(Record::of(words));
        }
        let names = batch.comms.iter_mut().map(|c| &mut c.name);
        let texts = names.chain(batch.sites.iter_mut().map(|s| &mut s.file));
        for (text, len) in texts.zip(lengths) {
            let (head, tail) = rest.split_at_checked(usize::try_from(len).ok()?)?;
            rest = tail;
            *text = String::from_utf8_lossy(head).into_owned();
        }
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> Record {
        Record {
            begin: 5,
            end: 9,
            function: 300,
            kind: Kind::Received.number(),
            flags: ROOT,
            row: 1022,
            thread: 30,
            peer: -1,
            source: 7,
            tag: i32::MAX,
            comm: 4095,
            bytes: 1 << 40,
            n: NONE,
            requests: 3,
            level: -2,
        }
    }

    #[test]
    fn a_record_is_its_words() {
        let words = record().words();
        assert_eq!(Record::of(words), record());
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert_eq!(Record::read(&bytes), Some(record()));
        assert_eq!(Record::read(&bytes[..63]), None);
    }

    #[test]
    fn sums_come_back() {
        let sums = [1, u64::MAX, 3 << 40, 4, 1 << 63];
        for kind in [Kind::Sums, Kind::Files] {
            let record = Record::of(Record::of_sums(kind, 9, sums).words());
            assert_eq!((record.begin, record.sums()), (9, sums));
            assert_eq!(Kind::of(record.kind), Some(kind));
        }
    }

    #[test]
    fn kinds_come_back() {
        for number in 0..=255 {
            assert!(Kind::of(number).is_none_or(|k| k.number() == number));
        }
    }

    fn batch() -> Batch {
        Batch {
            pid: 77,
            lost: 3,
            over: true,
            now: 12,
            threads: vec![Thread { ring: 2, tid: 78 }],
            comms: vec![Comm {
                number: 1,
                id: 9 << 50,
                name: "MPI_COMM_WORLD".into(),
            }],
            sites: vec![Site {
                ring: 2,
                row: 4,
                file: "/a".into(),
                offset: 16,
            }],
            records: vec![record(), Record::EMPTY],
        }
    }

    #[test]
    fn a_part_of_a_batch_keeps_a_call_with_what_it_sent() {
        let sent = Record {
            kind: Kind::Sent.number(),
            ..record()
        };
        let records = vec![Record::EMPTY, Record::EMPTY, sent, sent, record()];
        let whole = Batch { records, ..batch() };
        for (from, records, to) in [
            (0, 1, 1),
            (0, 2, 4),
            (1, 2, 4),
            (0, 4, 4),
            (4, 1, 5),
            (4, 9, 5),
        ] {
            assert_eq!(whole.piece(from, records), to, "{from} {records}");
        }
    }

    #[test]
    fn another_host_reads_the_same() {
        let bytes = batch().encode();
        assert_eq!(Batch::decode(&bytes), Some(batch()));
        assert!((0..bytes.len()).all(|n| Batch::decode(&bytes[..n]).is_none()));
    }

    proptest! {
        #[test]
        fn fuzz_a_damaged_batch(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Batch::decode(&bytes);
        }
    }
}
