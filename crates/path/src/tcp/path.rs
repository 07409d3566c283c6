//! What the engine calls: TCP as a [`Path`].

use super::disconnect::End;
use super::*;

impl Path for TcpPath {
    /// Measured on loopback with `examples/tcp_pingpong.rs`; a real network is slower to start and to move.
    fn caps(&self, _peer: Peer) -> Caps {
        let line = |t0, tb| CostLine { t0, tb };
        Caps {
            name: "tcp",
            stream: line(4_200.0, 0.12),
            copy: line(60.0, 0.06),
            control: line(4_200.0, 0.0),
            get: None,
            put: None,
        }
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn wants_address(&self, peer: Peer) -> bool {
        let idle = matches!(self.slot(peer), Some(Slot::Idle(_)));
        peer != self.me && idle && self.known[peer.idx()].is_empty()
    }

    fn introduce(&mut self, peer: Peer, text: &str) -> Result<(), Down> {
        let told = Known::read(text).map_err(|why| down(peer, why))?;
        let Some(known) = self.known.get_mut(peer.idx()) else {
            return Err(down(peer, "there is no such rank"));
        };
        if known.is_empty() {
            *known = told;
        }
        self.go_on(peer);
        Ok(())
    }

    #[inline]
    fn send(&mut self, to: Peer, head: &Header, body: Body<'_>, cookie: u64) -> Result<Sent, Down> {
        debug_assert_eq!(body.len(), head.body_len(), "body of {head:?}");
        if body.len() >= self.stripe_from
            && let Some(sent) = self.send_striped(to, head, body, cookie)?
        {
            return Ok(sent);
        }
        let Some(Slot::Up(link)) = self.slots.get_mut(to.idx()) else {
            return self.send_unconnected(to, head, body, cookie);
        };
        if self.closed || link.stream.bye {
            return Err(down(to, "goodbye has been said (MPI_Finalize)"));
        }
        let sent = self
            .lists
            .send(link, to, (head, body), cookie, &self.tuning);
        sent.map_err(|e| {
            let end = End::Failed(e);
            let what = end.what(self.me, to, &link.way());
            down(to, format!("{what}; {}", end.advice(to)))
        })
    }

    fn poll<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> bool {
        self.note_look();
        let mut moved = !self.lists.backlog.is_empty() && self.flush(inbound);
        moved |= !self.lists.owing.is_empty() && self.settle(inbound);
        let few = self.lists.live.len() <= self.tuning.few_links;
        if few {
            for i in (0..self.lists.live.len()).rev() {
                // A pull may end a connection, and with it shorten the list.
                if let Some(&peer) = self.lists.live.get(i) {
                    moved |= self.pull(peer, inbound);
                }
            }
            self.patience = self.patience.saturating_sub(1);
        }
        if !few || self.patience == 0 || self.is_urgent(now) {
            moved |= self.look(now, inbound);
        }
        if !self.striping.is_empty() {
            moved |= self.serve_striping(inbound);
        }
        moved
    }

    #[inline]
    fn poll_from<I: Inbound>(&mut self, peer: Peer, now: Tick, inbound: &mut I) -> bool {
        if self.patience == 0 || !matches!(self.slot(peer), Some(Slot::Up(_))) {
            return self.poll(now, inbound);
        }
        self.patience -= 1;
        self.note_look();
        let mut moved = !self.lists.backlog.is_empty() && self.flush(inbound);
        moved |= !self.lists.owing.is_empty() && self.settle(inbound);
        moved |= self.pull(peer, inbound);
        if !self.striping.is_empty() {
            moved |= self.serve_striping(inbound);
        }
        moved
    }

    fn pending(&self) -> bool {
        let dialing =
            |&p: &Peer| matches!(self.slot(p), Some(Slot::Dialing(d)) if !d.stream.is_flushed());
        !self.lists.backlog.is_empty() || self.lists.dialing.iter().any(dialing)
    }

    fn close(&mut self) {
        if self.closed {
            return;
        }
        self.closed = true;
        let bye = Header::bare(Kind::Bye);
        for i in 0..self.slots.len() {
            match &mut self.slots[i] {
                Slot::Up(link) => {
                    link.stream.outbox.seal();
                    let to = Peer(i as u32);
                    // A connection that is broken needs no goodbye.
                    let _ = self
                        .lists
                        .send(link, to, (&bye, Body::None), 0, &self.tuning);
                    if link.stream.is_flushed() {
                        link.sock.shut_write();
                    }
                }
                Slot::Dialing(dial) if !dial.stream.is_flushed() => {
                    dial.stream.outbox.seal();
                    dial.stream.outbox.push(&bye, Body::None, 0, 0);
                }
                _ => {}
            }
        }
    }
}
