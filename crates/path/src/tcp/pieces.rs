//! Long payloads in pieces over several connections: dealing out, receiving, confirming.

use super::stripe::{NOBODY, head_of};
use super::*;

impl TcpPath {
    /// Sends a frame with a long payload in pieces, if there is a rail; asks for one otherwise.
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
        let Some(rail_set) = self.bundles.get_mut(to.idx()) else {
            return Ok(None);
        };
        let rail_set = rail_set.get_or_insert_default();
        if rail_set.rails.is_empty() {
            rail_set.wanted = true;
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
        while self.feed_first(peer) | self.feed_rails(peer) {
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

    fn feed_rails(&mut self, peer: Peer) -> bool {
        let (slot, rail_set) = (&mut self.slots[peer.idx()], &mut self.bundles[peer.idx()]);
        let (Some(stripes), Some(rail_set)) = (slot.stripes(), rail_set) else {
            return false;
        };
        let (mut moved, mut broken) = (false, Vec::new());
        for rail in &mut rail_set.rails {
            if !rail.is_sending()
                && let Some(piece) = stripes.out.hand_out(rail.id)
            {
                rail.begin(piece);
            }
            match rail.push(stripes, &self.tuning) {
                Ok(went) => moved |= went,
                Err(_) => broken.push(rail.id),
            }
        }
        for id in broken {
            self.drop_rail(peer, id);
            moved = true;
        }
        moved
    }

    /// Moves what is under way in pieces, with every peer.
    #[cold]
    pub(super) fn serve_striping<I: Inbound>(&mut self, inbound: &mut I) -> bool {
        let mut moved = false;
        for i in (0..self.striping.len()).rev() {
            let Some(&peer) = self.striping.get(i) else {
                continue;
            };
            let comes = self.slots[peer.idx()]
                .stripes()
                .is_some_and(|s| !s.into.is_empty());
            moved |= self.serve_rails(peer, comes, inbound);
            if self.slots[peer.idx()].stripes().is_none_or(|s| s.is_idle()) {
                self.striping.retain(|&p| p != peer);
                self.listen_to_rails(peer);
            }
        }
        moved
    }

    pub(super) fn serve_rails<I: Inbound>(
        &mut self,
        peer: Peer,
        read: bool,
        inbound: &mut I,
    ) -> bool {
        let mut moved = self.tell_owners(peer, inbound);
        moved |= read && self.pull_rails(peer, inbound);
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

    /// Reads the rails of a peer.
    fn pull_rails<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        let (slot, rail_set) = (&mut self.slots[peer.idx()], &mut self.bundles[peer.idx()]);
        let Some(rail_set) = rail_set else {
            return false;
        };
        let mut none = Stripes::new(1);
        let stripes = slot.stripes().unwrap_or(&mut none);
        let (mut moved, mut landed, mut ended) = (false, Vec::new(), Vec::new());
        for rail in &mut rail_set.rails {
            match rail.pull(stripes, &self.tuning, &mut landed) {
                Ok(came) => moved |= came,
                Err(_) => ended.push(rail.id),
            }
        }
        for (number, cookie) in landed {
            if let Some(stream) = self.slots[peer.idx()].stream() {
                stream.stop_writing(number);
            }
            inbound.on_landed(peer, cookie);
        }
        for id in ended {
            self.drop_rail(peer, id);
            moved = true;
        }
        moved
    }

    /// Tells the peer which payloads have come.
    fn confirm(&mut self, peer: Peer) -> bool {
        if !matches!(self.slots[peer.idx()], Slot::Up(_)) {
            return false;
        }
        let stripes = self.slots[peer.idx()].stripes();
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

    /// What went over rails: payloads that were sent in pieces, bytes of those that did not go over the first connection, and pieces that
    /// went again.
    pub fn striped(&self) -> [u64; 3] {
        let rails = self.bundles.iter().flatten().flat_map(|b| &b.rails);
        let bytes = rails.map(|s| s.sent).sum::<u64>() + self.striped_bytes;
        [self.striped_payloads, bytes, self.striped_again]
    }
}
