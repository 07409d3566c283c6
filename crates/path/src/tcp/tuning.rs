//! The numbers of the TCP path, in one place, and their sources: built-in values, measured on one
//! machine.
//!
//! Ping-pong (`examples/pingpong.rs`, `bench/p2p.c`) on the loopback interface of a 2-core machine, microseconds one way,
//! both sides polling:
//!
//! | bytes | plain sockets | path | what was tried |
//! | --- | --- | --- | --- |
//! | 8 | 3.40 | 3.58 | |
//! | 1 KB | 3.46 | 3.70 (3.60 with header and payload joined in one piece) | `send_joined` |
//! | 8 KB | 3.9 | 4.3 (5.1 when `read_first` is smaller than the frame) | `read_first` |
//! | 64 KB | 8.8 | 10.0 with `read_head` 512, 10.2 with 2 KB, 10.8 with 16 KB | `read_head` |
//! | 512 KB | 42 | 47, and 53 in chunks of 256 KB, 65 in chunks of 128 KB | `send_chunk` |
//! | 4 MB | 565 | 460 to 650 (two modes of the system's buffer tuning) | `socket_buffer` |
//!
//! On loopback the congestion control is Reno, whatever the system's is (`sys::tcp`). A system
//! whose default is BBR paces: 1 MB between two processes that poll (C program, frames with a
//! header, after an RTS and a CTS; 4 runs in turns, mean of each) takes 137 to 152 us one way and
//! 278 to 310 when both send at once; with Reno 107 to 117 and 152 to 174. If it is set only once
//! there is a connection, pacing stays: 124 to 141 and 164 to 215. Cubic is as fast as Reno except
//! for rare slow messages, and not permitted to all users.
//!
//! Between hosts (host lab, 1 Gb/s, a CPU for each host): CPU time of the progress thread while
//! both sides exchange 1 MB and compute, microseconds; two threads that do the same with plain
//! sockets and sleep in `recv` and `send` use 300 to 440:
//!
//! | `segment` and `part` (of both kinds) | woken by every packet | once a segment |
//! | --- | --- | --- |
//! | 128 KB | 790 to 1050 | 680 to 900 |
//! | 256 KB | | 520 to 670 |
//! | 512 KB | | 430 to 570 |
//!
//! So it is 256 KB: an answer that must wait for 512 KB waits 4 ms. If payloads go alone
//! `part_alone` counts instead, at the same segments (`bulk_detector`).
//!
//! Two hosts without a limit (veth), microseconds one way: a call for a segment of 256 KB each
//! takes 250 for 1 MB and 980 for 4 MB, one for all segments up to 2 MB (`send_chunk`) 194 and 630;
//! a loop over `send` and `recv` 135 and 510. The first segment in the same call: 1 MB 150 instead
//! of 185 where the loop takes 134 (least of the batches, machine not quiet). A call that is cut in
//! two after 256 KB costs the loop 16 as well, marks between segments nothing, the two frames of a
//! rendezvous 10, and a poller that watches the socket 0.3 for each packet.
//!
//! Socket buffers are left to the system: buffers of 4 MB make 4 MB messages steadier on loopback
//! (412 to 460), of 256 KB slower (640, and 70 instead of 47 at 512 KB), and any fixed size is
//! wrong for some network.

use kw_proto::stripe::STRIPE_FROM;
use std::time::Duration;

/// Values measured with a ping-pong on loopback, which an experiment may change.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Bytes of the read buffer of a connection.
    pub read_buffer: usize,
    /// Bytes asked for when a small frame is expected.
    pub read_first: usize,
    /// Bytes asked for when a large frame is expected, because the last one was: data beyond it is
    /// received in place instead of being copied.
    pub read_head: usize,
    /// Payloads from this size on are large.
    pub large: u64,
    /// Payloads up to this size are put behind their header before they are sent: one piece is
    /// cheaper for the kernel than two.
    pub send_joined: usize,
    /// Frames with payloads of up to `send_joined` bytes that go one by one before those that
    /// follow are joined (see `link::coalesce`).
    pub coalesce_after: u32,
    /// Most payload bytes for one system call, in as many segments as that takes.
    pub send_chunk: u64,
    /// Bytes of a segment between hosts: an answer may have to wait for this much, and it wakes the
    /// progress thread once; at least 4 KB. Part of the wire: the same on both sides.
    pub segment: u64,
    /// The values on loopback, where segments only cost system calls.
    pub segment_loopback: u64,
    /// Bytes of a piece of a payload that several connections carry. Part of the wire, like the
    /// segment.
    pub piece: u64,
    /// Payloads from this size on are carried by all connections of a peer.
    pub stripe_from: u64,
    /// Further connections of a peer may use the same interfaces as the first one (for tests, on
    /// loopback).
    pub rails_anywhere: bool,
    /// Between two wake-ups of the progress thread for a long payload, where short frames pass it:
    /// bytes that the kernel may hold unsent (between hosts; the other thing that an answer may
    /// have to wait for), and bytes of the segment that wait in the socket while the progress
    /// thread sleeps.
    pub part: u32,
    /// The values if long payloads go alone (see `bulk_detector`).
    pub part_alone: u32,
    /// Payloads up to this size are copied when they are sent, because they may be wanted again;
    /// longer ones stay where they are.
    pub copied: u64,
    /// Bytes kept before the system is asked what has been acknowledged.
    pub keep: u64,
    /// Polls after which the rest of a longer payload is copied too, so that its sender may go on.
    pub patient_polls: u32,
    /// The value if at most `little` bytes are left.
    pub hasty_polls: u32,
    /// Size whose copy takes no longer than a few polls.
    pub little: u64,
    /// How long the other side's kernel may be silent.
    pub silence: Duration,
    /// System calls on one connection before the others get their turn.
    pub turns: u32,
    /// Up to this many connections are read directly, without asking epoll first.
    pub few_links: usize,
    /// Direct reads between two looks at epoll (for new connections).
    pub look_every: u32,
    /// Fixed size of socket buffers; `None` leaves them to the system.
    pub socket_buffer: Option<usize>,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning {
            read_buffer: 64 << 10,
            read_first: (16 << 10) + 64,
            read_head: 2 << 10,
            large: 32 << 10,
            send_joined: 2 << 10,
            coalesce_after: 8,
            send_chunk: 2 << 20,
            segment: 256 << 10,
            segment_loopback: u64::MAX,
            piece: 256 << 10,
            stripe_from: STRIPE_FROM,
            rails_anywhere: false,
            part: 256 << 10,
            part_alone: 1 << 20,
            copied: 64 << 10,
            keep: 16 << 10,
            patient_polls: 32,
            hasty_polls: 1,
            little: 64 << 10,
            silence: Duration::from_secs(8),
            turns: 8,
            few_links: 4,
            look_every: 256,
            socket_buffer: None,
        }
    }
}

impl Tuning {
    /// The measured numbers for a job of this many ranks: with many connections each has a smaller
    /// buffer, and keeps less.
    pub fn for_size(ranks: u32) -> Tuning {
        let read_buffer = match ranks {
            0..=16 => 64 << 10,
            17..=64 => 32 << 10,
            _ => (16 << 10) + 64,
        };
        let keep = if ranks <= 16 { 16 << 10 } else { 3 << 10 };
        Tuning {
            read_buffer,
            keep,
            ..Tuning::default()
        }
    }

    /// For ranks that share cores: a rank that polls lets others run, and they receive, so that
    /// after a few polls little is left to be copied. With a core each, a copy of 32 KB takes less
    /// time than these polls (a stream of such messages was 1.2 to 1.5 times as long). 64 KB, 7 and
    /// 5 rounds in turns, copied at once : lent: alltoall of 4 ranks 289 : 246 us, of 8 2293 :
    /// 1925, allgather 258 : 226 and 1078 : 961, bcast of 8 213 : 164; with 32 KB nothing was
    /// gained.
    pub fn on_shared_cores(self) -> Tuning {
        Tuning {
            copied: 32 << 10,
            hasty_polls: 4,
            ..self
        }
    }
}
