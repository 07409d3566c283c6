//! Two links between two hosts: long payloads go over both.
//!
//! The first connection of a peer carries every frame, in order. When a payload is long (`Tuning::stripe_from`) and both hosts have another
//! interface, further connections ("strands") are made, one for each pair of interfaces that no connection uses yet, and such payloads travel in
//! pieces over all of them (see [`kw_core::stripe`]): whichever has room takes the next. A strand is made as the first connection is: all addresses
//! raced, the key proved both ways; its claim says which link it belongs to.
//!
//! | what happened | how it goes on |
//! | --- | --- |
//! | a strand ends | what it carried, and the peer has not confirmed, goes again over the others |
//! | the first connection ends | it is made anew over any pair of addresses ([`super::remake`]); strands carry pieces meanwhile |
//! | it was made anew where a strand is | that strand is closed; another is made where there is room for one |
//! | a strand cannot be made | it is tried again after [`REST`], at the next long payload |
//!
//! Strands are read only while a payload comes in pieces, so that short messages cost nothing more.

use super::door::Knock;
use super::strand::Strand;
use super::stream::is_strand;
use super::stripe::{NOBODY, Stripes, head_of};
use super::*;
use kw_core::handshake::Verdict;
use kw_core::stripe::Carrier;

/// How long no strand is tried after one could not be made.
const REST: Duration = Duration::from_secs(20);

/// Strands are numbered from one to here, and from one again: the number of one must fit beside a rank's.
const MOST_IDS: Carrier = (1 << 24) - 1;

/// Further connections of one peer.
#[derive(Debug, Default)]
pub struct Bundle {
    pub strands: Vec<Strand>,
    dial: Option<Box<Dial>>,
    /// Before this no other is tried.
    rest: Tick,
    /// A long payload went over the first connection alone: a strand is wanted.
    wanted: bool,
    /// Names the next strand.
    next: Carrier,
}

impl Bundle {
    /// Sockets that it has open.
    pub fn sockets(&self) -> usize {
        self.strands.len() + self.dial.as_ref().map_or(0, |d| d.sockets())
    }
}

/// Number of a strand in the poller.
fn number_of(peer: Peer, id: Carrier) -> u64 {
    tag::STRAND | (id as u64) << 32 | peer.0 as u64
}

/// A link, whatever its connection does.
fn stream(slot: &mut Slot) -> Option<&mut Stream> {
    match slot {
        Slot::Idle(stream) => stream.as_deref_mut(),
        Slot::Dialing(dial) => Some(&mut dial.stream),
        Slot::Up(link) => Some(&mut link.stream),
        Slot::Gone(_) => None,
    }
}

/// What of it is under way in pieces.
fn stripes(slot: &mut Slot) -> Option<&mut Stripes> {
    stream(slot)?.stripes.as_deref_mut()
}

impl TcpPath {
    /// Sends a frame with a long payload in pieces, if there is a strand; asks for one otherwise.
    #[cold]
    pub(super) fn send_striped(
        &mut self,
        to: Peer,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
    ) -> Result<Option<Sent>, Down> {
        let Body::Payload { buf, from, len } = body else {
            return Ok(None);
        };
        if !segmented(head.kind) || self.closed {
            return Ok(None);
        }
        let Some(bundle) = self.bundles.get_mut(to.idx()) else {
            return Ok(None);
        };
        let bundle = bundle.get_or_insert_default();
        if bundle.strands.is_empty() {
            bundle.wanted = true;
            self.want(to);
            return Ok(None);
        }
        let Slot::Up(link) = &mut self.slots[to.idx()] else {
            return Ok(None);
        };
        if link.stream.bye {
            return Ok(None);
        }
        let out = &mut link.stream.stripes().out;
        let number = out.begin(buf.clone(), from, len, cookie);
        let striped = Header {
            token: number,
            ..Header::bare(Kind::Striped)
        };
        self.say(to, &striped, Body::Bytes(&head.encode()));
        self.striped_payloads += 1;
        self.note_striping(to);
        self.share(to);
        Ok(Some(Sent::Queued))
    }

    /// Sends a frame of the path's own over the first connection. What that refuses is noticed by its reading side.
    fn say(&mut self, to: Peer, head: &Header, body: Body<'_>) {
        let Slot::Up(link) = &mut self.slots[to.idx()] else {
            return;
        };
        let _ = self
            .lists
            .send(link, to, (head, body), NOBODY, &self.tuning);
    }

    /// Something is under way in pieces with this peer.
    pub(super) fn note_striping(&mut self, peer: Peer) {
        note(&mut self.striping, peer);
    }

    /// Deals out pieces to every connection that has room.
    pub(super) fn share(&mut self, peer: Peer) -> bool {
        let mut moved = false;
        // By turns, so that a payload of a few pieces is not all on one.
        while self.feed_first(peer) | self.feed_strands(peer) {
            moved = true;
        }
        moved
    }

    /// Gives the first connection a piece, if it has sent all that it had.
    fn feed_first(&mut self, peer: Peer) -> bool {
        let Slot::Up(link) = &mut self.slots[peer.idx()] else {
            return false;
        };
        if !link.stream.is_flushed() {
            return false;
        }
        let end = link.sent();
        let Some(stripes) = link.stream.stripes.as_deref_mut() else {
            return false;
        };
        if let Some(number) = stripes.main.take() {
            stripes.out.went(number, end);
        }
        let Some(piece) = stripes.out.hand_out(0) else {
            return false;
        };
        let Some((buf, from)) = stripes.out.source(&piece) else {
            return false;
        };
        let buf = buf.clone();
        stripes.main = Some(piece.number);
        let body = Body::Payload {
            buf: &buf,
            from,
            len: piece.len,
        };
        self.say(peer, &head_of(&piece), body);
        true
    }

    fn feed_strands(&mut self, peer: Peer) -> bool {
        let (slot, bundle) = (&mut self.slots[peer.idx()], &mut self.bundles[peer.idx()]);
        let (Some(stripes), Some(bundle)) = (stripes(slot), bundle) else {
            return false;
        };
        let (mut moved, mut broken) = (false, Vec::new());
        for strand in &mut bundle.strands {
            if !strand.is_sending()
                && let Some(piece) = stripes.out.hand_out(strand.id)
            {
                strand.begin(piece);
            }
            match strand.push(stripes, &self.tuning) {
                Ok(went) => moved |= went,
                Err(_) => broken.push(strand.id),
            }
        }
        for id in broken {
            self.drop_strand(peer, id);
            moved = true;
        }
        moved
    }

    /// A further connection is over: what it carried goes again.
    #[cold]
    pub(super) fn drop_strand(&mut self, peer: Peer, id: Carrier) {
        if let Some(bundle) = &mut self.bundles[peer.idx()] {
            for strand in bundle.strands.iter().filter(|s| s.id == id) {
                self.striped_bytes += strand.sent;
            }
            bundle.strands.retain(|s| s.id != id);
        }
        if let Some(stripes) = stripes(&mut self.slots[peer.idx()]) {
            self.striped_again += stripes.out.lost(id) as u64;
            self.note_striping(peer);
        }
    }

    /// Closes all further connections of a peer.
    pub(super) fn drop_strands(&mut self, peer: Peer) {
        let all = self.bundles[peer.idx()].iter().flat_map(|b| &b.strands);
        for id in all.map(|s| s.id).collect::<Vec<_>>() {
            self.drop_strand(peer, id);
        }
        if let Some(bundle) = &mut self.bundles[peer.idx()] {
            bundle.dial = None;
        }
    }

    /// Moves what is under way in pieces, with every peer.
    #[cold]
    pub(super) fn serve_striping<I: Inbound>(&mut self, inbound: &mut I) -> bool {
        let mut moved = false;
        for i in (0..self.striping.len()).rev() {
            let Some(&peer) = self.striping.get(i) else {
                continue;
            };
            let comes = stripes(&mut self.slots[peer.idx()]).is_some_and(|s| !s.into.is_empty());
            moved |= self.serve_strands(peer, comes, inbound);
            if stripes(&mut self.slots[peer.idx()]).is_none_or(|s| s.is_idle()) {
                self.striping.retain(|&p| p != peer);
                self.listen_to_strands(peer);
            }
        }
        moved
    }

    fn serve_strands<I: Inbound>(&mut self, peer: Peer, read: bool, inbound: &mut I) -> bool {
        let mut moved = self.tell_owners(peer, inbound);
        moved |= read && self.pull_strands(peer, inbound);
        moved |= self.confirm(peer);
        moved | self.share(peer)
    }

    /// Tells the owners of payloads that the peer has.
    fn tell_owners<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        let Slot::Up(link) = &mut self.slots[peer.idx()] else {
            return false;
        };
        let (flushed, end) = (link.stream.is_flushed(), link.sent());
        let Some(stripes) = link.stream.stripes.as_deref_mut() else {
            return false;
        };
        if flushed && let Some(number) = stripes.main.take() {
            stripes.out.went(number, end);
        }
        let mut given = Vec::new();
        // A piece that goes again over the first connection, although the peer has it, is still read from the owner's memory.
        let busy = stripes.main;
        stripes.confirmed.retain(|&number| {
            let later = busy == Some(number);
            if !later {
                given.extend(stripes.out.confirmed(number));
            }
            later
        });
        for &(cookie, end) in &given {
            link.give_back(peer, cookie, end, inbound);
        }
        self.lists.note_owing(peer, link);
        !given.is_empty()
    }

    /// Reads the strands of a peer.
    fn pull_strands<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        let (slot, bundle) = (&mut self.slots[peer.idx()], &mut self.bundles[peer.idx()]);
        let Some(bundle) = bundle else {
            return false;
        };
        let mut none = Stripes::new(1);
        let stripes = stripes(slot).unwrap_or(&mut none);
        let (mut moved, mut landed, mut ended) = (false, Vec::new(), Vec::new());
        for strand in &mut bundle.strands {
            match strand.pull(stripes, &self.tuning, &mut landed) {
                Ok(came) => moved |= came,
                Err(_) => ended.push(strand.id),
            }
        }
        for (number, cookie) in landed {
            if let Some(stream) = stream(&mut self.slots[peer.idx()]) {
                stream.stop_writing(number);
            }
            inbound.on_landed(peer, cookie);
        }
        for id in ended {
            self.drop_strand(peer, id);
            moved = true;
        }
        moved
    }

    /// Tells the peer which payloads have come.
    fn confirm(&mut self, peer: Peer) -> bool {
        if !matches!(self.slots[peer.idx()], Slot::Up(_)) {
            return false;
        }
        let stripes = stripes(&mut self.slots[peer.idx()]);
        let taken = stripes.map_or_else(Vec::new, |s| std::mem::take(&mut s.taken));
        for &number in &taken {
            let head = Header {
                token: number,
                ..Header::bare(Kind::Taken)
            };
            self.say(peer, &head, Body::None);
        }
        !taken.is_empty()
    }

    /// The poller tells of a strand: it can be read or written, or has ended. (Of one that waits for its payload to begin, only its end.)
    pub(super) fn strand_ready<I: Inbound>(&mut self, number: u64, inbound: &mut I) -> bool {
        let (peer, id) = (Peer(number as u32), (number >> 32) as Carrier);
        let bundle = self.bundles[peer.idx()].iter();
        let ended = |s: &Strand| s.id == id && s.heard == Interest::End;
        if bundle.flat_map(|b| &b.strands).any(ended) {
            self.drop_strand(peer, id);
        }
        let moved = self.serve_strands(peer, true, inbound);
        self.listen_to_strands(peer);
        moved
    }

    /// Has the poller tell of what matters of the strands of a peer.
    fn listen_to_strands(&mut self, peer: Peer) {
        let bundle = self.bundles[peer.idx()].iter_mut();
        for strand in bundle.flat_map(|b| &mut b.strands) {
            let want = match (strand.is_early(), strand.is_sending()) {
                (true, _) => Interest::End,
                (_, true) => Interest::Both,
                _ => Interest::Read,
            };
            let number = number_of(peer, strand.id);
            // A descriptor of ours that is registered can be changed.
            if strand.heard != want && self.poller.change(&strand.sock, number, want).is_ok() {
                strand.heard = want;
            }
        }
    }

    /// Before a sleep.
    pub(super) fn arm_strands(&mut self, batch: u32) {
        for i in 0..self.striping.len() {
            let peer = self.striping[i];
            self.listen_to_strands(peer);
            let bundle = self.bundles[peer.idx()].iter_mut();
            for strand in bundle.flat_map(|b| &mut b.strands) {
                strand.wake_for(batch);
            }
        }
    }

    /// Our interface with this address; an address of none stands for itself.
    pub(super) fn interface(&self, address: IpAddr) -> String {
        let found = self.own.iter().find(|i| i.addr == address);
        found.map_or_else(|| address.to_string(), |i| i.name.clone())
    }

    /// Whether a connection between these addresses would be on a link that no other connection to this peer uses.
    fn is_other_link(&self, peer: Peer, here: IpAddr, there: IpAddr) -> bool {
        let bundle = self.bundles[peer.idx()].as_ref();
        let strands = bundle.iter().flat_map(|b| &b.strands);
        let first = match &self.slots[peer.idx()] {
            Slot::Up(link) => link.addresses(),
            _ => None,
        };
        let mut used = strands.map(|s| (s.here, s.there)).chain(first);
        if self.tuning.strands_anywhere {
            return bundle.is_none_or(|b| b.strands.is_empty());
        }
        let known = &self.known[peer.idx()];
        let (ours, theirs) = (self.interface(here), known.interface_of(there));
        used.all(|(h, t)| {
            let apart = theirs.is_none() || known.interface_of(t) != theirs;
            self.interface(h) != ours && apart
        })
    }

    /// Whether our host has several interfaces that the ranks may use.
    pub(super) fn has_links(&self) -> bool {
        let mut names = self.sources.iter().map(|&a| self.interface(a));
        let first = names.next();
        self.tuning.strands_anywhere || names.any(|n| Some(n) != first)
    }

    /// Dials strands that are wanted, moves those that are being dialled, and says when to come again.
    pub(super) fn dial_strands<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> Tick {
        let mut next = Tick::NEVER;
        for peer in std::mem::take(&mut self.wanting) {
            let at = self.want_strand(peer, now, inbound);
            next = next.min(at);
            if at != Tick::NEVER {
                self.want(peer);
            }
        }
        next
    }

    /// A further connection to this peer is to be made.
    fn want(&mut self, peer: Peer) {
        if note(&mut self.wanting, peer) {
            self.patience = 0;
        }
    }

    /// When to come again; never: there is nothing to do for now.
    fn want_strand<I: Inbound>(&mut self, peer: Peer, now: Tick, inbound: &mut I) -> Tick {
        self.advance_strand(peer, now);
        let Some(bundle) = &mut self.bundles[peer.idx()] else {
            return Tick::NEVER;
        };
        if let Some(dial) = &mut bundle.dial {
            if let Ok(at) = dial.tick(now, &self.identity, &self.poller, &[]) {
                return at;
            }
            bundle.dial = None;
            bundle.rest = now + REST;
            return Tick::NEVER;
        }
        if !std::mem::take(&mut bundle.wanted) || now < bundle.rest || self.closed {
            return Tick::NEVER;
        }
        if self.known[peer.idx()].is_empty() {
            inbound.on_stray(peer);
            return Tick::NEVER;
        }
        if !matches!(self.slots[peer.idx()], Slot::Up(_)) {
            return Tick::NEVER;
        }
        match self.begin_strand(peer) {
            true => now,
            false => {
                if let Some(bundle) = &mut self.bundles[peer.idx()]
                    && bundle.strands.is_empty()
                {
                    bundle.rest = now + REST;
                }
                Tick::NEVER
            }
        }
    }

    /// Dials the peer's addresses on links that are not used yet. `false`: there are none, or there is no room.
    fn begin_strand(&mut self, peer: Peer) -> bool {
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return false;
        };
        let number = link.stream.number;
        let bundle = self.bundles[peer.idx()].iter();
        let strands = bundle.flat_map(|b| &b.strands).map(|s| s.there);
        let used = strands.chain(link.addresses().map(|a| a.1));
        let known = &self.known[peer.idx()];
        let used: Vec<_> = used.map(|a| known.interface_of(a)).collect();
        let anywhere = self.tuning.strands_anywhere && used.len() < 2;
        let elsewhere = |a: &SocketAddr| anywhere || !used.contains(&known.interface_of(a.ip()));
        let addresses: Vec<_> = known.addresses().filter(elsewhere).collect();
        let room = self.most == usize::MAX || self.connections() * 2 < self.most;
        if addresses.is_empty() || number == 0 || !room {
            return false;
        }
        let mut dial = self.new_dial(peer, tag::STRAND_DIAL, addresses, Stream::strand(number));
        dial.start(&self.identity, &self.poller, &[]);
        if let Some(bundle) = &mut self.bundles[peer.idx()] {
            bundle.dial = Some(Box::new(dial));
        }
        true
    }

    /// Moves the dial of a strand on.
    pub(super) fn advance_strand(&mut self, peer: Peer, now: Tick) -> bool {
        let Some(bundle) = &mut self.bundles[peer.idx()] else {
            return false;
        };
        let Some(dial) = &mut bundle.dial else {
            return false;
        };
        match dial.advance(now, &self.poller) {
            Dialled::Connected(sock, _, _) => {
                bundle.dial = None;
                self.add_strand(peer, sock);
                true
            }
            _ => false,
        }
    }

    /// Takes a connection into use as a strand; one that turns out to be on a link that is used already is closed.
    fn add_strand(&mut self, peer: Peer, sock: Sock) {
        let ends = sock.here().ok().zip(sock.there().ok());
        let Some((here, there)) = ends.map(|(h, t)| (h.ip(), t.ip())) else {
            return;
        };
        let other = self.is_other_link(peer, here, there);
        let bundle = self.bundles[peer.idx()].get_or_insert_default();
        bundle.next = bundle.next % MOST_IDS + 1;
        let number = number_of(peer, bundle.next);
        if !other || self.poller.change(&sock, number, Interest::Read).is_err() {
            return;
        }
        // Where the system does not know these options, it finds out later that a link is gone.
        let _ = sock.watch(self.tuning.silence);
        let strand = Strand::new(sock, bundle.next, here, there, &self.tuning);
        bundle.strands.push(strand);
        // Perhaps there is a third link.
        bundle.wanted = true;
        self.want(peer);
    }

    /// A connected peer wants to have a further connection.
    pub(super) fn strand_knock(&mut self, peer: Peer, key: u64) -> bool {
        let Some(knock) = self.door.take(key) else {
            return false;
        };
        let answer = match self.wants_strand(peer, &knock) {
            true => Verdict::Welcome,
            false => Verdict::Duplicate,
        };
        let claim = knock.claim();
        if let Some(sock) = knock.answer(answer, claim)
            && answer == Verdict::Welcome
            && self.poller.add(&sock, tag::STRAND, Interest::Read).is_ok()
        {
            let bundle = self.bundles[peer.idx()].get_or_insert_default();
            bundle.dial = None;
            self.add_strand(peer, sock);
        }
        true
    }

    fn wants_strand(&self, peer: Peer, knock: &Knock) -> bool {
        let Some(Slot::Up(link)) = self.slot(peer) else {
            return false;
        };
        let bundle = self.bundles[peer.idx()].as_ref();
        let ours_counts = self.me < peer && bundle.is_some_and(|b| b.dial.is_some());
        let known = is_strand(&knock.claim()) && link.stream.number == knock.claim().link;
        let ends = knock.ends();
        let other = |(here, there)| self.is_other_link(peer, here, there);
        self.stripes && !self.closed && known && !ours_counts && ends.is_some_and(other)
    }

    /// The first connection was made anew: strands on its link are closed.
    pub(super) fn part_from_strands(&mut self, peer: Peer) {
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return;
        };
        let first = link.addresses();
        if self.tuning.strands_anywhere {
            return;
        }
        let strands = self.bundles[peer.idx()].iter().flat_map(|b| &b.strands);
        let same = |s: &&Strand| {
            first.is_some_and(|(here, _)| self.interface(here) == self.interface(s.here))
        };
        for id in strands.filter(same).map(|s| s.id).collect::<Vec<_>>() {
            self.drop_strand(peer, id);
        }
    }

    /// Closes the strands of a peer with which nothing is under way in pieces, to make room. Whether there was one.
    pub(super) fn drop_idle_strands(&mut self) -> bool {
        let idle = |i: &usize| {
            let open = self.bundles[*i].as_ref().is_some_and(|b| b.sockets() > 0);
            open && !self.striping.contains(&Peer(*i as u32))
        };
        let Some(at) = (0..self.bundles.len()).find(idle) else {
            return false;
        };
        self.drop_strands(Peer(at as u32));
        true
    }

    /// What went over strands: payloads that were sent in pieces, bytes of those that did not go over the first connection, and pieces that
    /// went again.
    pub fn striped(&self) -> [u64; 3] {
        let strands = self.bundles.iter().flatten().flat_map(|b| &b.strands);
        let bytes = strands.map(|s| s.sent).sum::<u64>() + self.striped_bytes;
        [self.striped_payloads, bytes, self.striped_again]
    }

    /// Which strands there are, for people.
    pub(super) fn network_of_strands(&self) -> Vec<String> {
        let all = self.bundles.iter().enumerate();
        let strands = all.flat_map(|(i, b)| {
            b.iter()
                .flat_map(move |b| b.strands.iter().map(move |s| (i, s)))
        });
        let line = |(peer, s): (usize, &Strand)| {
            let device = self.interface(s.here);
            let (here, there, sent) = (s.here, s.there, s.sent);
            format!(
                "tcp to rank {peer}, further link: {here} ({device}) to {there}; {sent} bytes of long messages sent over it"
            )
        };
        strands.map(line).collect()
    }
}
