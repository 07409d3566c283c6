//! One connection in use: bytes out, bytes in.

use super::Tuning;
use super::coalesce::Coalescer;
use super::disconnect::End;
use super::stream::Stream;
use super::traffic::TrafficMix;
use crate::contract::Inbound;
use kw_base::Peer;
use kw_sys::poller::{Interest, Poller};
use kw_sys::tcp::{Got, Sock};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// What the poller tells of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    /// Nothing, or what it has told already.
    Nothing,
    /// The first thing that happens: a connection that is read directly needs the poller only for a sleep, and one that it watches
    /// costs the kernel 0.3 us for each packet.
    Once(Interest),
    /// Everything.
    Always(Interest),
}

/// A welcomed connection, and the link that it carries.
#[derive(Debug)]
pub struct Link {
    pub sock: Sock,
    pub stream: Stream,
    /// What the poller watches.
    pub watch: Watch,
    /// Bytes kept at which the system is asked what is acknowledged.
    pub look_at: u64,
    /// Polls since somebody waits for an acknowledgement.
    pub waited: u32,
    /// When it was used last, in uses of all connections.
    pub used: u64,
    /// Within a machine: short frames of a rank that runs ahead may be joined, and the kernel may hold what it likes.
    pub near: bool,
    pub ahead: Coalescer,
    /// We have asked the peer to close it.
    pub parting: bool,
    /// What we send over it, where it leaves the machine.
    pub leaves: TrafficMix,
    /// Our address and the peer's.
    way: Option<(SocketAddr, SocketAddr)>,
}

impl Link {
    pub fn new(sock: Sock, mut stream: Stream, tuning: &Tuning) -> Link {
        let near = sock.is_loopback();
        let segment = if near {
            tuning.segment_loopback
        } else {
            // Where the kernel does not know this option, answers wait behind what it holds.
            let _ = sock.limit_unsent(tuning.part);
            tuning.segment
        };
        stream.open(segment, tuning);
        let kept = stream.kept.as_ref().map_or(0, |k| k.len());
        Link {
            watch: Watch::Nothing,
            look_at: kept + tuning.keep,
            waited: 0,
            used: 0,
            near,
            ahead: Coalescer::default(),
            parting: false,
            leaves: TrafficMix::default(),
            way: sock.here().ok().zip(sock.there().ok()),
            sock,
            stream,
        }
    }

    /// Has the poller watch the connection under this number. A descriptor of ours that is registered can be changed.
    pub fn be_watched(&mut self, poller: &Poller, number: u64, watch: Watch) -> io::Result<()> {
        if watch == self.watch {
            return Ok(());
        }
        match watch {
            Watch::Nothing => {}
            Watch::Once(interest) => poller.change_once(&self.sock, number, interest)?,
            Watch::Always(interest) => poller.change(&self.sock, number, interest)?,
        }
        self.watch = watch;
        Ok(())
    }

    /// The poller has told of something. Whether it tells nothing more.
    pub fn was_told(&mut self) -> bool {
        let once = matches!(self.watch, Watch::Once(_));
        if once {
            self.watch = Watch::Nothing;
        }
        once
    }

    /// Our address and the peer's.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        self.way.map(|(here, there)| (here.ip(), there.ip()))
    }

    /// The two addresses, for people.
    pub fn way(&self) -> String {
        self.way.map_or_else(String::new, |(here, there)| {
            format!("{} to {}", here.ip(), there.ip())
        })
    }

    /// Has a sleep on the socket end when `most` bytes of what is being received have come, or its end; with zero, as soon as anything has
    /// come. More than the rest is never waited for: nothing else is certain to come.
    pub fn wake_for(&mut self, most: u32) {
        let rest = self.stream.awaited();
        self.sock.wake_at(rest.min(most as u64) as u32);
    }

    /// Whether nothing is under way, as far as this side knows.
    pub fn is_idle(&self) -> bool {
        self.stream.is_flushed() && !self.owes() && self.stream.is_between_frames()
    }

    /// Receives, for as many turns as it gets, and hands frames over.
    #[inline]
    pub fn pull<I: Inbound>(
        &mut self,
        peer: Peer,
        tuning: &Tuning,
        inbound: &mut I,
    ) -> Result<bool, End> {
        let mut moved = false;
        for _ in 0..tuning.turns {
            let Received { got, asked, direct } = self.receive();
            let n = match got? {
                Got::Bytes(n) => n,
                Got::Nothing => break,
                Got::End => return Err(End::Closed),
            };
            moved = true;
            self.stream.place(n, direct);
            let frames = self.stream.parse(peer, inbound)?;
            self.stream.adapt(n == asked, frames, tuning);
            // Less than asked: the socket is empty. After a payload that is complete one more look is worth its price: the
            // sender may have announced where the answer goes.
            if n < asked {
                break;
            }
        }
        if self.sock.wakes_at() > 1 {
            self.wake_for(self.sock.wakes_at());
        }
        if moved && self.stream.hurried {
            self.sock.acknowledge();
        }
        Ok(moved)
    }

    /// One system call: into the payload's place when one is awaited, else into the buffer.
    #[inline]
    fn receive(&mut self) -> Received {
        let s = &mut self.stream;
        let mut ask = s.ask.min(s.buffer.len());
        if let Some(f) = &s.inflow {
            let want = f.fits().saturating_sub(f.done);
            let whole = f.fits() == f.stop;
            let tail = if whole { ask } else { 0 };
            if want > 0 {
                let at = f.landing.at + f.done;
                let rest = &mut s.buffer[..tail];
                if let Some(got) = self.sock.recv_into(&f.landing.buf, at, want, rest) {
                    let asked = want as usize + tail;
                    return Received {
                        got,
                        asked,
                        direct: want,
                    };
                }
            }
            ask = s.buffer.len();
        }
        let to = s.buffer.len().min(s.end + ask);
        let place = &mut s.buffer[s.end..to];
        Received {
            asked: place.len(),
            got: self.sock.recv(place),
            direct: 0,
        }
    }
}

/// What one receive brought.
struct Received {
    got: io::Result<Got>,
    asked: usize,
    /// Bytes of these that were asked for in the payload's place.
    direct: u64,
}
