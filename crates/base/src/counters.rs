//! Declared counters: what `kwinfo`, MPI_T and the tests read to see who moved which bytes.

macro_rules! counters {
    ($($id:ident = $name:literal, $unit:literal, $help:literal;)*) => {
        /// Names a counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Counter { $($id),* }
        /// `(name, unit, help)` of every counter, by position.
        pub const ALL: &[(&str, &str, &str)] = &[$(($name, $unit, $help)),*];
    };
}

counters! {
    EagerSent = "eager_sent", "messages", "Messages sent by the eager protocol.";
    EagerBytes = "eager_bytes", "bytes", "Payload sent by the eager protocol.";
    RndvSent = "rndv_sent", "messages", "Messages sent by rendezvous (RTS, CTS, data).";
    RndvBytes = "rndv_bytes", "bytes", "Payload sent by rendezvous.";
    GetSent = "get_sent", "messages", "Messages the receiver fetched from this rank's memory.";
    GetBytes = "get_bytes", "bytes", "Payload the receiver fetched.";
    WriteSent = "write_sent", "messages", "Messages written straight into an announced receive.";
    WriteBytes = "write_bytes", "bytes", "Payload written into announced receives.";
    WriteAnnounced = "write_announced", "receives", "Receives this rank announced to their sender.";
    WriteDropped = "write_dropped", "receives", "Announcements dropped because a message was already under way.";
    Expected = "expected", "messages", "Messages whose receive was posted when they arrived.";
    Unexpected = "unexpected", "messages", "Messages that arrived before their receive.";
    EventTakeovers = "event_takeovers", "times", "Times the event thread took the lane.";
    EventProgress = "event_progress", "frames", "Frames that the event thread handled.";
    WaitsSpun = "waits_spun", "waits", "Waits that ended while polling.";
    WaitsSlept = "waits_slept", "waits", "Waits that slept in the kernel.";
    Doorbells = "doorbells", "times", "Times this rank woke a sleeping peer.";
    PeersLost = "peers_lost", "peers", "Peers that went away without saying goodbye.";
    Refused = "strangers_refused", "connections", "Connections closed because they could not prove the job's key.";
}

/// One rank's counters. Owned by the lane, so plain integers.
#[derive(Clone, Debug)]
pub struct Counters {
    values: [u64; ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            values: [0; ALL.len()],
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

    /// The value of the counter at a position of [`ALL`].
    pub fn at(&self, position: usize) -> u64 {
        self.values[position]
    }

    /// The value so far.
    pub fn get(&self, c: Counter) -> u64 {
        self.values[c as usize]
    }
}
