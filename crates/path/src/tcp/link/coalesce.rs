//! Short frames of a rank that runs ahead: it sends again and again without polling. Each frame in
//! a packet of its own would cost both kernels more than the frame is worth, so within a machine
//! the sender's kernel joins them (Nagle's algorithm): while the peer has not acknowledged a
//! packet, the data that follows waits and becomes one packet. The peer's acknowledgement sends it.
//!
//! So that no rank waits too long, the peer acknowledges at once the data that it has read. A mark
//! in the frames ([`AHEAD`]) requests this; usual acknowledgements are piggybacked or come 40 ms
//! later. A peer that waits reads the packet in flight, and has the rest before its next poll; one
//! that does not read needs none. Waiting data is in the kernel, so the sender may compute, sleep
//! or end. When it polls, all waiting data is sent.
//!
//! ```text
//!        more than `Tuning::coalesce_after` short frames       it is sent: at once,
//!        since the last look                                    and marked
//!   Off -----------------------------------------------> Marked ---------------------> On
//!    ^                                                      |                           |
//!    \------ a look at what comes; a long frame; a full socket ------------------------/
//! ```
//!
//! The first marked frame goes at once: the peer must have read a mark before anything waits for
//! it.

use super::Link;
use crate::tcp::Tuning;
use kw_proto::wire::{AHEAD, HEADER_LEN, Header};

/// How a link sends short frames.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Coalescing {
    /// Each at once.
    #[default]
    Off,
    /// Each at once, and the peer is told that more will follow.
    Marked,
    /// When the peer has acknowledged the one before.
    On,
}

/// Recent sends and polls of a link's rank.
#[derive(Clone, Copy, Default, Debug)]
pub struct Coalescer {
    state: Coalescing,
    /// Short frames since the rank's last poll.
    frames: u32,
    /// When that was, in polls.
    look: u64,
}

impl Link {
    /// A frame with this many bytes of payload will be sent, after this many polls of the rank.
    #[inline]
    pub fn count_frame(&mut self, len: u64, looks: u64, tuning: &Tuning) {
        let a = &mut self.coalescer;
        if len > tuning.send_joined as u64 || !self.stream.is_flushed() {
            return self.stop_coalescing();
        }
        if a.look != looks {
            (a.look, a.frames) = (looks, 0);
        }
        a.frames += 1;
        if a.frames > tuning.coalesce_after && a.state == Coalescing::Off && self.near {
            a.state = Coalescing::Marked;
        }
    }

    /// A frame was sent. Returns whether those that follow are joined from now on, and were not
    /// before.
    #[inline]
    pub fn coalesces_now(&mut self) -> bool {
        if self.coalescer.state == Coalescing::Off {
            return false;
        }
        self.begin_coalescing()
    }

    #[cold]
    fn begin_coalescing(&mut self) -> bool {
        if !self.stream.is_flushed() {
            self.stop_coalescing();
        }
        let new =
            self.coalescer.state == Coalescing::Marked && self.sock.set_coalescing(true).is_ok();
        if new {
            self.coalescer.state = Coalescing::On;
        }
        new
    }

    /// Every frame is sent at once from now on, and so is waiting data.
    #[inline]
    pub fn stop_coalescing(&mut self) {
        self.coalescer.frames = 0;
        if self.coalescer.state != Coalescing::Off {
            // A socket that refuses has ended.
            let _ = self.sock.set_coalescing(false);
            self.coalescer.state = Coalescing::Off;
        }
    }

    /// The header as it is sent.
    #[inline]
    pub fn lead(&self, head: &Header) -> [u8; HEADER_LEN] {
        let mut bytes = head.encode();
        if self.coalescer.state != Coalescing::Off {
            bytes[1] |= AHEAD;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Body;
    use crate::tcp::ready_lists::ReadyLists;
    use crate::tcp::stream::Stream;
    use kw_base::Peer;
    use kw_proto::wire::Kind;
    use kw_sys::buf::Buf;
    use kw_sys::tcp::{Connect, Got, Sock};
    use std::net::Ipv4Addr;

    /// A link of a rank to a socket that is not read, and the data that the rank would keep.
    struct Rank {
        link: Link,
        lists: ReadyLists,
        tuning: Tuning,
        far: Sock,
    }

    /// Events of a link.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        Short,
        Long,
        Look,
        Full,
    }

    impl Rank {
        fn new() -> Rank {
            let (listener, at) = Sock::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
            let near = Sock::connect(None, at).unwrap();
            let far = loop {
                if let Some(far) = listener.accept().unwrap() {
                    break far;
                }
            };
            while near.connecting().unwrap() == Connect::Pending {}
            let tuning = Tuning::default();
            let link = Link::new(near, Stream::new(false), &tuning);
            let lists = ReadyLists::default();
            Rank {
                link,
                lists,
                tuning,
                far,
            }
        }

        fn send(&mut self, len: u64) {
            let buf = Buf::alloc(len as usize);
            let head = Header {
                len,
                ..Header::bare(Kind::Eager)
            };
            let body = Body::Payload {
                buf: &buf,
                from: 0,
                len,
            };
            let sent = self
                .lists
                .send(&mut self.link, Peer(0), (&head, body), 0, &self.tuning);
            sent.unwrap();
        }

        fn on(&mut self, event: Event) {
            match event {
                Event::Short => self.send(8),
                Event::Long => self.send(self.tuning.send_joined as u64 + 1),
                Event::Look => {
                    self.lists.looked();
                    for _ in self.lists.coalescing.take() {
                        self.link.stop_coalescing();
                    }
                }
                Event::Full => {
                    while self.link.stream.is_flushed() {
                        self.send(1 << 20);
                    }
                    self.send(8);
                }
            }
        }

        /// A rank whose link has that state.
        fn at(state: Coalescing) -> Rank {
            let mut rank = Rank::new();
            for _ in 0..rank.tuning.coalesce_after {
                rank.on(Event::Short);
            }
            match state {
                Coalescing::Off => {}
                Coalescing::Marked => rank.link.count_frame(8, 0, &rank.tuning),
                Coalescing::On => rank.on(Event::Short),
            }
            assert_eq!(rank.link.coalescer.state, state);
            rank
        }
    }

    #[test]
    fn every_event_in_every_pace() {
        use {Coalescing::*, Event::*};
        let table = [
            (Off, Short, On),
            (Off, Long, Off),
            (Off, Look, Off),
            (Off, Full, Off),
            (Marked, Short, On),
            (Marked, Long, Off),
            (Marked, Full, Off),
            (On, Short, On),
            (On, Long, Off),
            (On, Look, Off),
            (On, Full, Off),
        ];
        for (state, event, next) in table {
            let mut rank = Rank::at(state);
            rank.on(event);
            assert_eq!(rank.link.coalescer.state, next, "{state:?}, {event:?}");
        }
    }

    #[test]
    fn a_look_begins_the_count_anew_and_other_networks_join_nothing() {
        let mut rank = Rank::at(Coalescing::Off);
        rank.on(Event::Look);
        rank.on(Event::Short);
        assert_eq!(rank.link.coalescer.state, Coalescing::Off);
        let mut rank = Rank::at(Coalescing::Off);
        rank.link.near = false;
        rank.on(Event::Short);
        assert_eq!(rank.link.coalescer.state, Coalescing::Off);
    }

    #[test]
    fn no_frame_waits_for_one_without_a_mark() {
        let rank = Rank::at(Coalescing::On);
        let mut bytes = [0; 1 << 12];
        let mut n = 0;
        let frame = HEADER_LEN + 8;
        let all = frame * (rank.tuning.coalesce_after as usize + 1);
        while n < all {
            if let Got::Bytes(more) = rank.far.recv(&mut bytes[n..]).unwrap() {
                n += more;
            }
        }
        let mut marks = bytes[..all].chunks(frame).map(|f| f[1]);
        let unmarked = marks.clone().take(rank.tuning.coalesce_after as usize);
        assert!(unmarked.eq(std::iter::repeat_n(0, rank.tuning.coalesce_after as usize)));
        assert_eq!(marks.next_back(), Some(AHEAD));
    }
}
