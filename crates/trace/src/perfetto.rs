//! The part of Perfetto's trace format that we write and read, as messages of Protocol Buffers.
//!
//! A trace is a sequence of packets, each field 1 of [`Trace`], so that a file can be appended to,
//! cut off, and concatenated. The numbers are those of Perfetto's public schema
//! (`protos/perfetto/trace`); the reader skips other fields. A member of a `oneof` is an optional
//! field here: the bytes are the same.

use prost::{Message, Oneof};

/// Bit of [`TracePacket::sequence_flags`]: what was interned on this sequence before is forgotten.
pub const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;
/// Bit of [`TracePacket::sequence_flags`]: the packet uses names that were interned before it.
pub const SEQ_NEEDS_INCREMENTAL_STATE: u32 = 2;

/// A whole file.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// Its packets, in the order in which they were written.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// One packet: an event, the description of a track, or names for what follows.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// Nanoseconds on the trace's clock.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The sequence of packets to which this belongs; interned names are valid within one.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// An event.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Names that later packets of this sequence refer to by number.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// [`SEQ_INCREMENTAL_STATE_CLEARED`] and [`SEQ_NEEDS_INCREMENTAL_STATE`].
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// The clock; unset is the trace's own.
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
    /// A track: a process, a thread, a counter, or a row of events below one of these.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// Kind of a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// Its number in the whole trace.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Its name, if process, thread or counter do not give it.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Set for the track of a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// Set for the track of a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// The parent track.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Set for the track of a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

/// A process.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    /// Its number, which is unique in a trace.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// The words of its command line.
    #[prost(string, repeated, tag = "2")]
    pub cmdline: Vec<String>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
    /// Other labels to be shown.
    #[prost(string, repeated, tag = "8")]
    pub process_labels: Vec<String>,
}

/// A thread.
#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    /// Its process.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its number.
    #[prost(int32, optional, tag = "2")]
    pub tid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// A counter; its name is that of its track.
#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    /// A [`Unit`].
    #[prost(enumeration = "Unit", optional, tag = "3")]
    pub unit: Option<i32>,
    /// Name of a unit that is not in [`Unit`].
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
    /// Values are differences to the previous one.
    #[prost(bool, optional, tag = "5")]
    pub is_incremental: Option<bool>,
}

/// Unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Unit {
    /// Unspecified.
    Unspecified = 0,
    /// Nanoseconds.
    TimeNs = 1,
    /// A number of objects.
    Count = 2,
    /// Bytes.
    SizeBytes = 3,
}

/// An event on a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// Its categories, as numbers of [`InternedData::event_categories`].
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub category_iids: Vec<u64>,
    /// Its arguments.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// An [`EventType`].
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Its name, as a number of [`InternedData::event_names`].
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// Its track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Its categories.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// Its name.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// The value of a counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// The value of a counter that is not an integer.
    #[prost(double, optional, tag = "44")]
    pub double_counter_value: Option<f64>,
    /// Arrows that begin here or pass through.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Arrows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// Kind of this event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// Unspecified.
    Unspecified = 0,
    /// Start of an event.
    SliceBegin = 1,
    /// End of the last event begun on this track.
    SliceEnd = 2,
    /// An event without duration.
    Instant = 3,
    /// A new value of a counter.
    Counter = 4,
}

/// An argument of an event: a name and a value.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// Its name, as a number of [`InternedData::debug_annotation_names`].
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// Its value.
    #[prost(oneof = "Value", tags = "2, 3, 4, 5, 6, 17")]
    pub value: Option<Value>,
}

/// The value of an argument.
#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    /// A truth value.
    #[prost(bool, tag = "2")]
    Bool(bool),
    /// A nonnegative number.
    #[prost(uint64, tag = "3")]
    Uint(u64),
    /// A number.
    #[prost(int64, tag = "4")]
    Int(i64),
    /// A number that is not an integer.
    #[prost(double, tag = "5")]
    Double(f64),
    /// Text.
    #[prost(string, tag = "6")]
    String(String),
    /// Text, as a number of [`InternedData::debug_annotation_string_values`].
    #[prost(uint64, tag = "17")]
    StringIid(u64),
}

/// Names that later packets of the same sequence refer to by number.
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    /// Categories.
    #[prost(message, repeated, tag = "1")]
    pub event_categories: Vec<InternedName>,
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    /// Names of arguments.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
    /// Texts that are values of arguments.
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<InternedName>,
}

/// A number and its meaning. (Perfetto has messages for each kind; all have this form.)
#[derive(Clone, PartialEq, Message)]
pub struct InternedName {
    /// The number; 0 is none.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// Its string.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}
