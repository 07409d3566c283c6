//! Declared counters, read through `kwinfo`, MPI_T and the tests.
//!
//! A sent message is counted once, by path and protocol ([`Counters::sent`]); the counters of a
//! protocol or of a path are sums over that table, computed when they are read.

use crate::components::Component;
use crate::settings::Audience;

/// Class of a counter (MPI 5.0, 15.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Number of occurrences; grows by one.
    Count,
    /// A sum; grows.
    Sum,
    /// Current number.
    Level,
    /// Maximum of a level.
    Peak(Counter),
    /// One of these words, by position.
    State(&'static [&'static str]),
}

/// One declared counter.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Unit of the count.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// Group in which it is listed.
    pub component: Component,
    /// Its class.
    pub class: Class,
    /// Intended audience.
    pub audience: Audience,
}

macro_rules! counters {
    ($($id:ident = $name:literal, $unit:literal, $help:literal, $component:ident, $class:expr, $audience:ident;)*) => {
        /// Names a counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Counter { $($id),* }
        /// Every counter, by position.
        pub const ALL: &[Row] = {
            use Class::*;
            &[$(Row {
                name: $name,
                unit: $unit,
                help: $help,
                component: Component::$component,
                class: $class,
                audience: Audience::$audience,
            }),*]
        };
        const IDS: &[Counter] = &[$(Counter::$id),*];
    };
}

/// States of the progress thread, as in `waiting::async_progress`.
const ASYNC_STATES: &[&str] = &[
    "off",
    "idle",
    "watching",
    "preempted",
    "polling",
    "finished",
];

counters! {
    EagerSent = "eager_sent", "messages", "Messages sent by the eager protocol.", Protocols, Count, User;
    EagerBytes = "eager_bytes", "bytes", "Payload sent by the eager protocol.", Protocols, Sum, User;
    RndvSent = "rndv_sent", "messages", "Messages sent by rendezvous (RTS, CTS, data).", Protocols, Count, User;
    RndvBytes = "rndv_bytes", "bytes", "Payload sent by rendezvous.", Protocols, Sum, User;
    GetSent = "get_sent", "messages", "Messages that the receiver read from this rank's memory.", Protocols, Count, User;
    GetBytes = "get_bytes", "bytes", "Payload that receivers read from this rank's memory.", Protocols, Sum, User;
    WriteSent = "write_sent", "messages", "Messages written directly into a receive buffer announced by the receiver.", Protocols, Count, User;
    WriteBytes = "write_bytes", "bytes", "Payload written into announced receive buffers.", Protocols, Sum, User;
    SelfSent = "self_sent", "messages", "Messages this rank sent to itself.", Paths, Count, User;
    SelfBytes = "self_bytes", "bytes", "Payload this rank sent to itself.", Paths, Sum, User;
    ShmSent = "shm_sent", "messages", "Messages sent over shared memory.", Paths, Count, User;
    ShmBytes = "shm_bytes", "bytes", "Payload sent over shared memory.", Paths, Sum, User;
    TcpSent = "tcp_sent", "messages", "Messages sent over TCP.", Paths, Count, User;
    TcpBytes = "tcp_bytes", "bytes", "Payload sent over TCP.", Paths, Sum, User;
    StripedSent = "striped_sent", "messages", "Long messages sent over several links between two hosts (KW_STRIPE).", Paths, Count, User;
    StripedBytes = "striped_bytes", "bytes", "Payload of striped messages that did not use the first link.", Paths, Sum, User;
    StripedAgain = "striped_again", "pieces", "Pieces of striped messages (256 KB) resent because their link was lost.", Paths, Count, Tuner;
    SilentLeft = "silent_left", "connections", "Connections abandoned because the peer did not answer for a second while another link was available.", Paths, Count, User;
    UdpSent = "udp_sent", "messages", "Messages sent over UDP.", Paths, Count, User;
    UdpBytes = "udp_bytes", "bytes", "Payload sent over UDP.", Paths, Sum, User;
    UdpPackets = "udp_packets", "packets", "Datagrams sent over UDP, except pure acknowledgements.", Paths, Count, Tuner;
    UdpRepeated = "udp_repeated", "packets", "Datagrams retransmitted or sent to probe for loss.", Paths, Count, Tuner;
    RndvOffered = "rndv_offered", "messages", "Rendezvous requests (RTS) that this rank sent.", Protocols, Count, Tuner;
    WriteAnnounced = "write_announced", "receives", "Receives that this rank announced to their sender.", Protocols, Count, Tuner;
    WriteDropped = "write_dropped", "receives", "Announcements dropped, or matched by a message already in flight.", Protocols, Count, Tuner;
    Expected = "expected", "messages", "Messages whose receive was posted when they arrived.", Matching, Count, User;
    Unexpected = "unexpected", "messages", "Messages that arrived before their receive was posted.", Matching, Count, User;
    UnexpectedBytes = "unexpected_bytes", "bytes", "Payload of unexpected messages, including rendezvous requests.", Matching, Sum, User;
    UnexpectedWaiting = "unexpected_waiting", "messages", "Messages in the unexpected queue now.", Matching, Level, User;
    UnexpectedWaitingPeak = "unexpected_waiting_peak", "messages", "Largest length of the unexpected queue.", Matching, Peak(Counter::UnexpectedWaiting), User;
    UnexpectedHeld = "unexpected_held", "bytes", "Memory that buffers unexpected messages now.", Matching, Level, User;
    UnexpectedHeldPeak = "unexpected_held_peak", "bytes", "Largest amount of memory that buffered unexpected messages.", Matching, Peak(Counter::UnexpectedHeld), User;
    PausesSent = "pauses_sent", "times", "Times this rank paused a sender because of unexpected messages (KW_UNEXPECTED).", Matching, Count, User;
    SendsKeptBack = "sends_kept_back", "messages", "Sends deferred because the receiver paused this rank or the transport was busy.", Matching, Count, User;
    ReceivesPosted = "receives_posted", "receives", "Posted receives that have not been matched.", Matching, Level, User;
    RequestsActive = "requests_active", "requests", "Transfers of this rank that are not complete.", Progress, Level, User;
    CollectivesActive = "collectives_active", "operations", "Nonblocking collective operations that are not complete.", Collectives, Level, User;
    ShmCollectives = "shm_collectives", "operations", "Collective operations in which this rank used shared memory.", Collectives, Count, User;
    ShmCollectiveBytes = "shm_collective_bytes", "bytes", "Data of these operations, in the size measure used to select algorithms (kwinfo --choices).", Collectives, Sum, User;
    FileReadBytes = "file_read_bytes", "bytes", "Data delivered by this rank's file reads.", Files, Sum, User;
    FileWriteBytes = "file_write_bytes", "bytes", "Data accepted by this rank's file writes.", Files, Sum, User;
    FileCalls = "file_calls", "calls", "System calls that read or wrote file data, for this rank and, if it is an aggregator, for others.", Files, Count, User;
    FilePieces = "file_pieces", "pieces", "Contiguous pieces of files that hold the data of this rank's accesses.", Files, Sum, User;
    FileTime = "file_time", "ns", "Time in which this rank accessed files, for itself and, if it is an aggregator, for others.", Files, Sum, User;
    FileExchangeTime = "file_exchange_time", "ns", "Time of collective file operations outside file_time: communication and waiting for other ranks.", Files, Sum, User;
    FileForOthers = "file_for_others", "bytes", "Data that this rank, as an aggregator, read or wrote for other ranks.", Files, Sum, User;
    FileExchanges = "file_exchanges", "operations", "Collective file operations in which ranks exchanged data with aggregators.", Files, Count, User;
    WindowDirect = "window_direct", "operations", "Operations of this rank on memory of windows that it reaches with loads and stores.", Windows, Count, User;
    WindowDirectBytes = "window_direct_bytes", "bytes", "Data of these operations.", Windows, Sum, User;
    WindowSent = "window_sent", "operations", "Operations of this rank on memory of windows that it reaches by messages.", Windows, Count, User;
    WindowSentBytes = "window_sent_bytes", "bytes", "Data of these operations.", Windows, Sum, User;
    WindowServed = "window_served", "operations", "Operations of other ranks that came as messages and that this rank did on its memory.", Windows, Count, User;
    WindowEpochs = "window_epochs", "epochs", "Epochs in which this rank accesses windows: fences, starts, locks.", Windows, Count, User;
    WindowLockWaits = "window_lock_waits", "locks", "Locks of this rank's memory that another rank had to wait for.", Windows, Count, User;
    EventTakeovers = "event_takeovers", "times", "Times the progress thread took over communication.", Progress, Count, User;
    EventLooks = "event_looks", "times", "Times the progress thread woke to check whether the program is outside MPI.", Progress, Count, User;
    EventProgress = "event_progress", "frames", "Frames handled by the progress thread.", Progress, Count, User;
    EventState = "event_state", "state", "Current state of the progress thread.", Progress, State(ASYNC_STATES), Developer;
    WaitsSpun = "waits_spun", "waits", "Waits that ended while polling.", Progress, Count, User;
    WaitsSlept = "waits_slept", "waits", "Waits that slept in the kernel.", Progress, Count, User;
    PollsYielded = "polls_yielded", "calls", "Unsuccessful test calls (MPI_Test, MPI_Iprobe, ...) after which the rank yielded its CPU.", Progress, Count, User;
    PollsSlept = "polls_slept", "calls", "Unsuccessful test calls after which the rank slept in the kernel, in total no longer than the program had been running.", Progress, Count, User;
    Spread = "spread", "times", "Times this rank moved to a CPU with fewer ranks while it waited.", Progress, Count, Tuner;
    WakeupsLost = "wakeups_lost", "times", "Sleeps that ran their full second although data had arrived; should be 0.", Progress, Count, Developer;
    Doorbells = "doorbells", "times", "Times this rank woke a sleeping peer.", Progress, Count, Tuner;
    PeersLost = "peers_lost", "peers", "Peers that disconnected without a shutdown message.", Paths, Count, User;
    Refused = "connections_refused", "connections", "Connections closed or datagrams dropped because the peer did not authenticate with the job's key.", Paths, Count, User;
}

impl Counter {
    /// The counter at a position of [`ALL`].
    pub fn at(position: usize) -> Option<Counter> {
        IDS.get(position).copied()
    }

    /// Its row.
    pub fn row(self) -> &'static Row {
        &ALL[self as usize]
    }
}

/// How a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// At once.
    Eager,
    /// Announced with an RTS, requested, sent.
    Rendezvous,
    /// Announced with an RTS and fetched.
    Get,
    /// Into an announced receive.
    Write,
}

/// Path that carries the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Not chosen yet, or the simulated network of the tests.
    #[default]
    Other,
    /// This process.
    Own,
    /// Shared memory.
    Shm,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

const PROTOCOLS: usize = 4;
const WAYS: usize = 5;

/// Messages and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traffic {
    messages: u64,
    bytes: u64,
}

/// One rank's counters. Owned by the lock, so plain integers.
#[derive(Clone, Debug)]
pub struct Counters {
    values: [u64; ALL.len()],
    /// Largest values since [`Counters::take_peak`], for rows of [`Class::Peak`].
    recent: [u64; ALL.len()],
    sent: [[Traffic; PROTOCOLS]; WAYS],
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            values: [0; ALL.len()],
            recent: [0; ALL.len()],
            sent: [[Traffic::default(); PROTOCOLS]; WAYS],
        }
    }
}

impl Counters {
    /// Adds one.
    #[inline]
    pub fn hit(&mut self, c: Counter) {
        self.values[c as usize] += 1;
    }

    /// Adds `n`.
    #[inline]
    pub fn add(&mut self, c: Counter, n: u64) {
        self.values[c as usize] += n;
    }

    /// A message was sent.
    #[inline]
    pub fn sent(&mut self, way: Way, protocol: Protocol, bytes: u64) {
        let t = &mut self.sent[way as usize][protocol as usize];
        t.messages += 1;
        t.bytes += bytes;
    }

    /// A level is `now`; the row of its peak remembers the largest.
    pub fn raise(&mut self, peak: Counter, now: u64) {
        let i = peak as usize;
        self.values[i] = self.values[i].max(now);
        self.recent[i] = self.recent[i].max(now);
    }

    /// The largest value of a level since the last call; from here on it is at least `now`.
    pub fn take_peak(&mut self, peak: Counter, now: u64) -> u64 {
        std::mem::replace(&mut self.recent[peak as usize], now).max(now)
    }

    /// The value so far.
    pub fn get(&self, c: Counter) -> u64 {
        use Counter::*;
        let by = |p: Protocol| self.sent.iter().map(|w| w[p as usize]).fold(NONE, plus);
        let over = |w: Way| self.sent[w as usize].iter().copied().fold(NONE, plus);
        match c {
            EagerSent => by(Protocol::Eager).messages,
            EagerBytes => by(Protocol::Eager).bytes,
            RndvSent => by(Protocol::Rendezvous).messages,
            RndvBytes => by(Protocol::Rendezvous).bytes,
            GetSent => by(Protocol::Get).messages,
            GetBytes => by(Protocol::Get).bytes,
            WriteSent => by(Protocol::Write).messages,
            WriteBytes => by(Protocol::Write).bytes,
            SelfSent => over(Way::Own).messages,
            SelfBytes => over(Way::Own).bytes,
            ShmSent => over(Way::Shm).messages,
            ShmBytes => over(Way::Shm).bytes,
            TcpSent => over(Way::Tcp).messages,
            TcpBytes => over(Way::Tcp).bytes,
            UdpSent => over(Way::Udp).messages,
            UdpBytes => over(Way::Udp).bytes,
            _ => self.values[c as usize],
        }
    }
}

const NONE: Traffic = Traffic {
    messages: 0,
    bytes: 0,
};

fn plus(a: Traffic, b: Traffic) -> Traffic {
    Traffic {
        messages: a.messages + b.messages,
        bytes: a.bytes + b.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_shows_in_the_row_of_its_protocol_and_of_its_path() {
        let mut c = Counters::default();
        c.sent(Way::Shm, Protocol::Eager, 8);
        c.sent(Way::Tcp, Protocol::Eager, 100);
        c.sent(Way::Tcp, Protocol::Get, 1000);
        assert_eq!(c.get(Counter::EagerSent), 2);
        assert_eq!(c.get(Counter::EagerBytes), 108);
        assert_eq!(c.get(Counter::TcpSent), 2);
        assert_eq!(c.get(Counter::TcpBytes), 1100);
        assert_eq!(c.get(Counter::ShmBytes), 8);
        assert_eq!(c.get(Counter::SelfSent), 0);
    }

    #[test]
    fn a_peak_is_kept_for_ever_and_since_it_was_asked() {
        let mut c = Counters::default();
        let peak = Counter::UnexpectedHeldPeak;
        c.raise(peak, 7);
        assert_eq!(c.take_peak(peak, 3), 7);
        c.raise(peak, 5);
        assert_eq!(c.take_peak(peak, 1), 5);
        assert_eq!(c.take_peak(peak, 1), 1);
        assert_eq!(c.get(peak), 7);
    }

    #[test]
    fn names_are_unique_and_positions_are_ids() {
        for (i, row) in ALL.iter().enumerate() {
            assert_eq!(Counter::at(i).unwrap() as usize, i);
            assert!(ALL[..i].iter().all(|other| other.name != row.name));
        }
    }
}
