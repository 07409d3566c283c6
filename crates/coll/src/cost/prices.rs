//! The prices of one machine, and where each comes from: a figure of the host, or a built-in value.

use kw_base::Calibration;
use kw_base::calibration::Figure;
use kw_base::overheads::{LOOPBACK, RING, TCP_BYTE, TCP_FRAME, WINDOW};

/// Source of a price; numbers are nanoseconds, or multiples of the figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Source {
    /// It is not measured.
    Start(f64),
    /// A cache line from one core to another of its package.
    LineNear,
    /// A cache line from one core to another that shares its last-level cache.
    LineCache,
    /// A cache line over the largest distance on the host.
    Line,
    /// A byte through an area that two cores of a package share.
    StreamNear(f64),
    /// A byte through an area that two cores share which share a last-level cache.
    StreamCache(f64),
    /// A byte through an area that two cores share, over the largest distance on the host.
    Stream(f64),
    /// A byte of a short message, over the largest distance on the host: the copy into memory that
    /// two cores share and the copy out of it.
    ShortMessage(f64),
    /// A byte copied within a core's caches.
    CopyNear,
    /// A byte combined within a core's caches.
    CombineNear(f64),
    /// Bytes that the caches of a socket hold.
    Cache,
    /// A byte that no cache holds, of those that the cores of a last-level cache copy together.
    Memory,
    /// A call that reads another process's memory; infinite where the host allows none.
    FetchCall,
    /// A byte of it.
    FetchByte(f64),
    /// The round trip between two hosts.
    RoundTrip(f64),
    /// A byte from one host to another.
    NetByte,
}

impl Source {
    /// The price, by these figures.
    pub fn value(self, c: &Calibration) -> f64 {
        match self {
            Source::Start(value) => value,
            Source::LineNear => c.line_near(),
            Source::LineCache => c.line_cache(),
            Source::Line => c.line_between(),
            Source::StreamNear(times) => times * c.stream_near(),
            Source::StreamCache(times) => times * c.stream_cache(),
            Source::Stream(times) => times * c.stream_between(),
            Source::ShortMessage(times) => times * c.short_message_between(),
            Source::CopyNear => c.get_or_start(Figure::CopyNear),
            Source::CombineNear(times) => times * c.get_or_start(Figure::CombineNear),
            Source::Cache => c.get_or_start(Figure::Cache),
            Source::Memory => c.get_or_start(Figure::Memory),
            Source::FetchCall => c.fetch().map_or(f64::INFINITY, |f| f.t0),
            Source::FetchByte(times) => c.fetch().map_or(0.0, |f| times * f.tb),
            Source::RoundTrip(times) => times * c.get_or_start(Figure::NetTrip),
            Source::NetByte => c.get_or_start(Figure::NetByte),
        }
    }

    /// How many times its figure the price is.
    pub fn times(self) -> f64 {
        match self {
            Source::StreamNear(times)
            | Source::StreamCache(times)
            | Source::Stream(times)
            | Source::ShortMessage(times)
            | Source::CombineNear(times)
            | Source::FetchByte(times)
            | Source::RoundTrip(times) => times,
            _ => 1.0,
        }
    }

    /// The price if nothing was measured.
    pub fn start(self) -> f64 {
        self.value(&Calibration::START)
    }

    /// The figures; the first that the host has makes the price. None: a built-in value.
    pub fn figures(self) -> &'static [Figure] {
        match self {
            Source::Start(_) => &[],
            Source::LineNear => &Calibration::LINES_NEAR,
            Source::LineCache => &Calibration::LINES_CACHE,
            Source::Line => &Calibration::LINES,
            Source::StreamNear(_) => &Calibration::STREAMS_NEAR,
            Source::StreamCache(_) => &Calibration::STREAMS_CACHE,
            Source::Stream(_) => &Calibration::STREAMS,
            Source::ShortMessage(_) => &[Figure::ShortMessage],
            Source::CopyNear => &[Figure::CopyNear],
            Source::CombineNear(_) => &[Figure::CombineNear],
            Source::Cache => &[Figure::Cache],
            Source::Memory => &[Figure::Memory],
            Source::FetchCall => &[Figure::FetchCall],
            Source::FetchByte(_) => &[Figure::FetchRate],
            Source::RoundTrip(_) => &[Figure::NetTrip],
            Source::NetByte => &[Figure::NetByte],
        }
    }
}

/// One price: its name, its source, and its description.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    /// Its name in descriptions of machines.
    pub name: &'static str,
    /// Its source in a job.
    pub source: Source,
    /// Its description.
    pub help: &'static str,
}

macro_rules! prices {
    ($($id:ident = $name:literal, $source:expr, $help:literal;)*) => {
        /// Prices of one machine: nanoseconds, or nanoseconds per byte if the name says so.
        #[derive(Clone, Copy, PartialEq, Debug, Default)]
        pub struct Prices {
            $(#[doc = $help] pub $id: f64,)*
        }

        /// Every price, in the order of the fields.
        pub const PRICES: &[Price] = &[$(Price {
            name: $name,
            source: $source,
            help: $help,
        }),*];

        impl Prices {
            /// Prices of which each is the result of `of`.
            pub fn each<E>(mut of: impl FnMut(&Price) -> Result<f64, E>) -> Result<Prices, E> {
                let mut all = PRICES.iter();
                // As many rows as fields.
                let mut next = || all.next().map_or(Ok(0.0), &mut of);
                Ok(Prices { $($id: next()?,)* })
            }

            /// The values, in the order of [`PRICES`].
            pub fn values(&self) -> impl Iterator<Item = f64> {
                [$(self.$id),*].into_iter()
            }
        }
    };
}

use Source::{
    Cache, CombineNear, CopyNear, FetchByte, FetchCall, Line, LineCache, LineNear, Memory, NetByte,
    RoundTrip, ShortMessage, Start, Stream, StreamCache, StreamNear,
};

// Starting values, and the multiples of figures, are fitted to measurements on a virtual machine
// with two cores (2 ranks, a core each) unless something else is stated; `kwlab check` shows how
// well on a measured machine. `recv` and `write` are those of two cores that share a cache in some
// minutes and not in others (docs/decisions.md#prices-on-cores-that-share-no-cache).
prices! {
    call = "call", Start(60.0), "Overhead of a collective call, without its steps.";
    step = "step", Start(5.0), "Overhead of one step.";
    line = "line", LineNear, "A cache line from one core to another of its socket.";
    cache_line = "cache-line", LineCache, "A cache line between two cores that share a last-level cache.";
    far_line = "far-line", Line, "A cache line from one socket to another.";
    reader = "reader", Start(20.0), "Delay for each further core that reads the same line at the same time (assumed).";
    more = "more", Start(10.0), "Each further line when many are polled (assumed).";
    copy = "copy-byte", CopyNear, "A byte copied in private memory.";
    write = "write-byte", Stream(1.0), "A byte copied to a shm buffer whose lines other cores have read.";
    read = "read-byte", StreamNear(0.75), "A byte copied from the shm buffer of another core of the socket.";
    cache_read = "cache-read-byte", StreamCache(0.75), "A byte copied from the shm buffer of a core that shares a last-level cache.";
    far_read = "far-read-byte", Stream(0.75), "A byte copied from the shm buffer of a core of another socket.";
    combine = "combine-byte", CombineNear(1.0), "A byte combined, without reading its operands.";
    send = "send", Start(100.0), "Work of the sender of a message through shared memory.";
    way = "way", Start(RING), "Time of a message through shared memory in addition to a cache line.";
    recv = "recv", Start(75.0), "Work of its receiver, in addition to a cache line.";
    eager = "eager-bytes", Start(8192.0), "Largest eager message in shared memory, bytes.";
    send_byte = "eager-send-byte", ShortMessage(0.5), "Work of the sender for an eager byte.";
    recv_byte = "eager-recv-byte", ShortMessage(0.5), "Work of the receiver for an eager byte.";
    long_byte = "long-byte", Stream(1.0), "A byte of a longer message: both sides copy at the same time.";
    fetch = "fetch", FetchCall, "A call that reads another process's memory.";
    fetch_byte = "fetch-byte", FetchByte(1.5), "A byte of such a call.";
    net_send = "net-send", Start(TCP_FRAME / 2.0), "Work of the sender of a message over the network.";
    net_recv = "net-recv", Start(TCP_FRAME / 2.0), "Work of its receiver.";
    net_byte = "net-byte", Start(TCP_BYTE), "Work of either side for a byte over the network.";
    net_eager = "net-eager-bytes", Start(WINDOW as f64), "Largest eager message over the network, bytes.";
    latency = "latency", RoundTrip(0.5), "From one host to another, without the work of both.";
    link = "link-byte", NetByte, "A byte out of or into a host.";
    sockets = "sockets", Start(1.0), "Sockets of a host.";
    caches = "caches", Start(1.0), "Last-level caches of a socket.";
    cache = "cache-bytes", Cache, "Bytes that the caches of a socket hold.";
    memory = "memory-byte", Memory, "Time of a socket's memory for a byte that its caches do not hold.";
    switch = "switch", Start(550.0), "Switching the core to another rank, for each rank of the core, because waiting ranks poll without success.";
}

impl Prices {
    /// The prices if nothing was measured.
    pub fn start() -> Prices {
        Prices::of(&Calibration::START)
    }

    /// The prices by the figures of a host; built-in values for those that were not measured.
    pub fn of(c: &Calibration) -> Prices {
        let value = |p: &Price| Ok::<f64, std::convert::Infallible>(p.source.value(c));
        let Ok(prices) = Prices::each(value);
        prices
    }

    /// These prices if messages of this many bytes are sent to other hosts before the receiver
    /// requests them.
    pub fn eager_between_hosts(self, bytes: u64) -> Prices {
        Prices {
            net_eager: bytes as f64,
            ..self
        }
    }

    /// These prices if all ranks are on one host: network messages stay inside it.
    pub fn on_one_host(self) -> Prices {
        Prices {
            latency: LOOPBACK,
            link: 0.0,
            ..self
        }
    }
}
