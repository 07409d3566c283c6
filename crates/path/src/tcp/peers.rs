//! The peers of a TCP path: the address of each, its connection or the state instead, and pending
//! work for it.
//!
//! ```text
//!         send                    welcome (theirs or ours)              end after a goodbye, or not reliable
//! Idle ---------> Dialing ------------------------------> Up(Link) ------------------------------------> Gone
//!  |              ^   \--- no answer for 9 s (5 s), or all refuse ------------------------------------->  ^
//!  |              \---------------- end without a goodbye: see `reconnect` ----/
//!  \------ a stranger proves to be this peer: welcome ---> Up
//! ```

use super::Tuning;
use super::dial::Dial;
use super::disconnect::End;
use super::link::{Link, Watch};
use super::ready_lists::ReadyLists;
use super::stream::Stream;
use super::stripe::{NOBODY, Stripes};
use super::watcher::{Token, Watcher};
use crate::address::Known;
use crate::contract::{Body, Down, Inbound, Sent};
use crate::peer_set::PeerSet;
use kw_base::Peer;
use kw_proto::p2p::prices::Network;
use kw_proto::wire::{Header, Kind};
use kw_sys::poller::{Interest, Poller};
use std::io;
use std::ops::Range;

/// State of a peer.
#[derive(Debug)]
pub enum Slot {
    /// No connection; perhaps there was one, and its link will continue.
    Idle(Option<Box<Stream>>),
    /// It is being called.
    Dialing(Box<Dialing>),
    /// There is a connection.
    Up(Box<Link>),
    /// It cannot be reached any more, for this reason.
    Gone(String),
}

/// A call, and the link that the connection will carry.
#[derive(Debug)]
pub struct Dialing {
    pub dial: Dial,
    pub stream: Stream,
}

/// Result of reading from a connection.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pulled {
    /// Something came.
    pub moved: bool,
    /// The peer wants the connection closed.
    pub unwanted: bool,
    /// Something is in flight in pieces.
    pub striping: bool,
}

/// Where each peer listens, as far as that was asked for.
#[derive(Debug)]
pub struct Addresses(Vec<Known>);

impl Addresses {
    /// Addresses of a peer.
    pub fn of(&self, peer: Peer) -> &Known {
        &self.0[peer.idx()]
    }

    /// A peer listens there. `false`: there is no such rank.
    pub fn learn(&mut self, peer: Peer, address: Known) -> bool {
        let Some(known) = self.0.get_mut(peer.idx()) else {
            return false;
        };
        if known.is_empty() {
            *known = address;
        }
        true
    }
}

/// All peers of one rank.
#[derive(Debug)]
pub struct Peers {
    me: Peer,
    slots: Vec<Slot>,
    /// Where they listen.
    pub addresses: Addresses,
    lists: ReadyLists,
    /// We have said goodbye to all.
    closed: bool,
}

/// Why a path cannot serve a peer.
pub fn down(peer: Peer, reason: impl Into<String>) -> Down {
    Down {
        path: "tcp",
        peer,
        reason: reason.into(),
    }
}

/// If few connections are read directly the poller watches them for the next sleep only.
fn way_to_watch(live: &PeerSet, tuning: &Tuning) -> fn(Interest) -> Watch {
    match live.len() <= tuning.few_links {
        true => Watch::Once,
        false => Watch::Always,
    }
}

impl Peers {
    /// `size` ranks, of which we are `me`; no connections.
    pub fn new(me: Peer, size: u32) -> Peers {
        Peers {
            me,
            slots: (0..size).map(|_| Slot::Idle(None)).collect(),
            addresses: Addresses(vec![Known::default(); size as usize]),
            lists: ReadyLists::default(),
            closed: false,
        }
    }

    /// There are `size` ranks from now on.
    pub fn grow(&mut self, size: u32) {
        for _ in self.slots.len()..size as usize {
            self.slots.push(Slot::Idle(None));
        }
        self.addresses.0.resize(self.slots.len(), Known::default());
    }

    /// Forgets peers, if all of them are gone or were never connected; returns whether that is so.
    pub fn forget(&mut self, which: Range<u32>) -> bool {
        let over = |p: u32| matches!(self.slots[p as usize], Slot::Gone(_) | Slot::Idle(None));
        if !which.clone().all(over) {
            return false;
        }
        for p in which {
            self.slots[p as usize] = Slot::Idle(None);
            self.addresses.0[p as usize] = Known::default();
        }
        true
    }

    /// The state of a peer; `None`: there is no such rank.
    #[inline]
    pub fn slot(&self, peer: Peer) -> Option<&Slot> {
        self.slots.get(peer.idx())
    }

    /// Mutable state of a rank that exists.
    pub fn slot_mut(&mut self, peer: Peer) -> &mut Slot {
        &mut self.slots[peer.idx()]
    }

    /// The connection of a peer.
    #[inline]
    pub fn link(&self, peer: Peer) -> Option<&Link> {
        match self.slots.get(peer.idx()) {
            Some(Slot::Up(link)) => Some(link),
            _ => None,
        }
    }

    /// The link to a peer, mutable.
    #[inline]
    pub fn link_mut(&mut self, peer: Peer) -> Option<&mut Link> {
        match self.slots.get_mut(peer.idx()) {
            Some(Slot::Up(link)) => Some(link),
            _ => None,
        }
    }

    /// The call of a peer.
    pub fn dialing_mut(&mut self, peer: Peer) -> Option<&mut Dialing> {
        match self.slots.get_mut(peer.idx()) {
            Some(Slot::Dialing(dialing)) => Some(dialing),
            _ => None,
        }
    }

    /// The link of a peer, whatever its connection does.
    pub fn stream_mut(&mut self, peer: Peer) -> Option<&mut Stream> {
        match self.slots.get_mut(peer.idx())? {
            Slot::Idle(stream) => stream.as_deref_mut(),
            Slot::Dialing(dialing) => Some(&mut dialing.stream),
            Slot::Up(link) => Some(link.stream_mut()),
            Slot::Gone(_) => None,
        }
    }

    /// Its striped payloads.
    pub fn stripes(&mut self, peer: Peer) -> Option<&mut Stripes> {
        self.stream_mut(peer)?.stripes()
    }

    /// Whether this rank must be told where a peer listens before it can send there.
    pub fn wants_address(&self, peer: Peer) -> bool {
        let idle = matches!(self.slot(peer), Some(Slot::Idle(_)));
        peer != self.me && idle && self.addresses.of(peer).is_empty()
    }

    /// Peers visited by a turn.
    #[inline]
    pub fn lists(&self) -> &ReadyLists {
        &self.lists
    }

    /// Whether we have said goodbye.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Known properties of the route to a peer: none before there is a connection.
    pub fn network(&self, peer: Peer) -> Network {
        self.link(peer).map_or(Network::default(), Link::network)
    }

    /// Sends a frame over the connection of a peer; `None`: there is none.
    #[inline]
    pub fn send(
        &mut self,
        to: Peer,
        frame: (&Header, Body<'_>),
        cookie: u64,
        tuning: &Tuning,
    ) -> Option<Result<Sent, Down>> {
        let Some(Slot::Up(link)) = self.slots.get_mut(to.idx()) else {
            return None;
        };
        if self.closed || link.stream().has_goodbye() {
            return Some(Err(down(to, "this rank has called MPI_Finalize")));
        }
        let sent = self.lists.send(link, to, frame, cookie, tuning);
        Some(sent.map_err(|e| {
            let end = End::Failed(e);
            let what = end.what(self.me, to, &link.way());
            down(to, format!("{what}; {}", end.advice(to)))
        }))
    }

    /// Sends a frame of the path's own over a connection. A failure is noticed by its reading side.
    pub fn say(&mut self, to: Peer, head: &Header, body: Body<'_>, tuning: &Tuning) {
        if let Some(Slot::Up(link)) = self.slots.get_mut(to.idx()) {
            let _ = self.lists.send(link, to, (head, body), NOBODY, tuning);
        }
    }

    /// The rank polls: it does not run ahead.
    #[inline]
    pub fn looked(&mut self) {
        self.lists.looked();
        if !self.lists.coalescing.is_empty() {
            self.stop_coalescing();
        }
    }

    #[cold]
    fn stop_coalescing(&mut self) {
        for peer in self.lists.coalescing.take() {
            if let Some(link) = self.link_mut(peer) {
                link.stop_coalescing();
            }
        }
    }

    /// Reads from one connection.
    #[inline]
    pub fn pull(
        &mut self,
        peer: Peer,
        tuning: &Tuning,
        inbound: &mut dyn Inbound,
    ) -> Result<Pulled, End> {
        let Some(Slot::Up(link)) = self.slots.get_mut(peer.idx()) else {
            return Ok(Pulled::default());
        };
        if !link.pull(peer, tuning, inbound)? {
            return Ok(Pulled::default());
        }
        self.lists.used(link);
        Ok(Pulled {
            moved: true,
            unwanted: link.stream().is_unwanted(),
            striping: link.stream().is_striping(),
        })
    }

    /// Sends queued data for one peer. Returns whether some was sent. The rest stays in the list
    /// until [`Peers::end_push`].
    pub fn push(&mut self, peer: Peer, tuning: &Tuning, inbound: &mut dyn Inbound) -> bool {
        let Some(Slot::Up(link)) = self.slots.get_mut(peer.idx()) else {
            return false;
        };
        // The reading side finds out what happened, after all that came before the end.
        let sent = link.push(peer, tuning, inbound).unwrap_or_else(|_| {
            link.stream_mut().drop_queue();
            false
        });
        self.lists.note_unacked(peer, link);
        sent
    }

    /// Whether a connection has sent all that it had, and something is in flight in pieces.
    pub fn wants_pieces(&self, peer: Peer) -> bool {
        self.link(peer)
            .is_some_and(|l| l.stream().is_flushed() && l.stream().is_striping())
    }

    /// Queued data has been sent as far as possible. Returns whether all was sent: then the peer
    /// leaves the list.
    pub fn end_push(&mut self, peer: Peer) -> bool {
        let flushed = match self.link(peer) {
            Some(link) => {
                let flushed = link.stream().is_flushed();
                if flushed && self.closed {
                    link.shut_write();
                }
                flushed
            }
            None => true,
        };
        flushed && self.lists.backlog.remove(peer)
    }

    /// The poller has reported a connection. Returns whether it reports nothing more of it.
    pub fn on_reported(&mut self, peer: Peer) -> bool {
        self.link_mut(peer).is_some_and(Link::on_reported)
    }

    /// Before a sleep: the poller has to report everything that matters. The progress thread sleeps
    /// until as much has come as `patient` says.
    pub fn arm(&mut self, patient: bool, tuning: &Tuning, poller: &Poller) {
        let how = way_to_watch(&self.lists.live, tuning);
        for peer in self.lists.live.iter() {
            let Some(Slot::Up(link)) = self.slots.get_mut(peer.idx()) else {
                continue;
            };
            let part = link.stream().reader().part(tuning);
            link.wake_for(if patient { part } else { 0 });
            let interest = match link.stream().is_flushed() {
                true => Interest::Read,
                false => Interest::Both,
            };
            // If the system refuses, the alarm or the next poll still finds incoming data.
            let _ = link.be_watched(poller, Token::Link(peer).bits(), how(interest));
        }
    }

    /// Notifies senders whose payload is acknowledged. Returns whether any peer no longer has to be
    /// waited for.
    pub fn reap_acks(&mut self, tuning: &Tuning, inbound: &mut dyn Inbound) -> bool {
        let before = self.lists.unacked.len();
        for i in (0..before).rev() {
            let Some(peer) = self.lists.unacked.get(i) else {
                continue;
            };
            let owes = self
                .slots
                .get_mut(peer.idx())
                .is_some_and(|slot| match slot {
                    Slot::Up(link) => {
                        let (unacked, sock) = link.unacked();
                        unacked.reap_acks(sock, tuning, |cookie| inbound.on_sent(peer, cookie));
                        let owes = unacked.awaits_ack();
                        if link.learn_network() {
                            inbound.on_repriced(peer);
                        }
                        owes
                    }
                    _ => false,
                });
            if !owes {
                self.lists.unacked.remove(peer);
            }
        }
        before > self.lists.unacked.len()
    }

    /// Lent bytes for which a sender waits.
    pub fn unacked_bytes(&self) -> u64 {
        let owing = self.lists.unacked.iter().filter_map(|p| self.link(p));
        owing.map(|l| l.stream().unacked().lent()).sum()
    }

    /// Copies the bytes for which senders wait; returns the senders that can be notified.
    pub fn copy_unacked(&mut self, completed: &mut Vec<(Peer, u64)>) {
        for peer in self.lists.unacked.iter() {
            if let Some(Slot::Up(link)) = self.slots.get_mut(peer.idx()) {
                let (unacked, sock) = link.unacked();
                completed.extend(unacked.copy_out(sock).into_iter().map(|c| (peer, c)));
            }
        }
    }

    /// The peer has all of payloads that went in pieces, each up to a byte of our stream: notifies
    /// their owners.
    pub fn give_back(&mut self, peer: Peer, all: &[(u64, u64)], inbound: &mut dyn Inbound) {
        let Some(Slot::Up(link)) = self.slots.get_mut(peer.idx()) else {
            return;
        };
        let (unacked, sock) = link.unacked();
        for &given in all {
            unacked.give_back(given, sock, |cookie| inbound.on_sent(peer, cookie));
        }
        self.lists.note_unacked(peer, link);
    }

    /// A peer whose link has no connection is called.
    pub fn begin_dial(&mut self, peer: Peer, dial: Dial, stream: Stream) {
        self.slots[peer.idx()] = Slot::Dialing(Box::new(Dialing { dial, stream }));
        self.lists.dialing.insert(peer);
    }

    /// Takes an authenticated connection into use.
    pub fn adopt(
        &mut self,
        peer: Peer,
        mut link: Link,
        tuning: &Tuning,
        watcher: &Watcher,
    ) -> io::Result<()> {
        if !link.stream().is_flushed() {
            self.lists.backlog.insert(peer);
        }
        self.lists.live.insert(peer);
        self.lists.dialing.remove(peer);
        let watch = way_to_watch(&self.lists.live, tuning)(Interest::Read);
        link.be_watched(watcher.poller(), Token::Link(peer).bits(), watch)?;
        self.lists.note_unacked(peer, &link);
        self.slots[peer.idx()] = Slot::Up(Box::new(link));
        if self.lists.live.len() == tuning.few_links + 1 {
            self.watch_all(watcher.poller())?;
        }
        Ok(())
    }

    /// There are more connections than are read directly: the poller reports each from now on.
    #[cold]
    fn watch_all(&mut self, poller: &Poller) -> io::Result<()> {
        for peer in self.lists.live.iter() {
            if let Some(Slot::Up(link)) = self.slots.get_mut(peer.idx()) {
                let watch = Watch::Always(Interest::Read);
                link.be_watched(poller, Token::Link(peer).bits(), watch)?;
            }
        }
        Ok(())
    }

    /// Takes the link from its connection, which is closed; `what` happened to the connection,
    /// unless nothing was in flight.
    pub fn part(&mut self, peer: Peer, what: Option<String>) {
        let slot = &mut self.slots[peer.idx()];
        let old = std::mem::replace(slot, Slot::Idle(None));
        if let Slot::Up(link) = old {
            *slot = Slot::Idle(Some(Box::new(link.into_stream(what))));
        }
        self.lists.forget(peer);
    }

    /// The end of a peer. Returns whether it has not been reported.
    pub fn bury(&mut self, peer: Peer, reason: String) -> bool {
        let old = std::mem::replace(&mut self.slots[peer.idx()], Slot::Gone(reason));
        self.lists.forget(peer);
        let left = matches!(&old, Slot::Up(link) if link.stream().has_goodbye());
        !left && !self.closed
    }

    /// A connection has to be closed when nothing is in flight. Returns whether that is new.
    pub fn note_yielding(&mut self, peer: Peer) -> bool {
        self.lists.yielding.insert(peer)
    }

    /// The peers whose connection has to be closed; they have to be noted again.
    pub fn take_yielding(&mut self) -> Vec<Peer> {
        self.lists.yielding.take()
    }

    /// The idle connection that was used longest ago, unless `most` are being given up already.
    pub fn longest_idle(&self, most: usize) -> Option<Peer> {
        let live = self.lists.live.iter();
        let links = live.filter_map(|p| self.link(p).map(|l| (p, l)));
        if links.clone().filter(|(_, l)| l.is_parting()).count() >= most {
            return None;
        }
        let idle =
            links.filter(|(_, l)| l.is_idle() && !l.is_parting() && !l.stream().has_goodbye());
        idle.min_by_key(|(_, l)| l.last_use()).map(|(p, _)| p)
    }

    /// Whether anything has to be sent to a connected peer or one that is being called.
    pub fn has_pending(&self) -> bool {
        let waits =
            |p: Peer| matches!(self.slot(p), Some(Slot::Dialing(d)) if !d.stream.is_flushed());
        !self.lists.backlog.is_empty() || self.lists.dialing.iter().any(waits)
    }

    /// Says goodbye to all.
    pub fn close(&mut self, tuning: &Tuning) {
        self.closed = true;
        for i in 0..self.slots.len() {
            let to = Peer(i as u32);
            match &mut self.slots[i] {
                Slot::Up(link) => {
                    link.stream_mut().seal();
                    // A connection that is broken needs no goodbye.
                    let bye = (&Header::bare(Kind::Bye), Body::None);
                    let _ = self.lists.send(link, to, bye, 0, tuning);
                    if link.stream().is_flushed() {
                        link.shut_write();
                    }
                }
                Slot::Dialing(dialing) => dialing.stream.queue_goodbye(),
                _ => {}
            }
        }
    }
}
