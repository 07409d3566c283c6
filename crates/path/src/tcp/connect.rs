//! Peers without a connection: calling them, taking a connection into use, and the end of a peer.

use super::dial::Dialled;
use super::*;

impl TcpPath {
    /// The first frame to a peer we are not connected to.
    #[cold]
    pub(super) fn send_unconnected(
        &mut self,
        to: Peer,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
    ) -> Result<Sent, Down> {
        if to == self.me || to.idx() >= self.slots.len() {
            return Err(down(to, "TCP does not reach this rank"));
        }
        let known = !self.known[to.idx()].is_empty();
        if let Slot::Idle(stream) = &mut self.slots[to.idx()]
            && known
        {
            let stream = stream.take().map(|s| *s);
            self.dial(to, stream.unwrap_or_else(|| Stream::new(self.reliable)));
        }
        match &mut self.slots[to.idx()] {
            Slot::Dialing(dial) => {
                let sent = dial.stream.outbox.push(head, body, 0, cookie);
                self.start_dial(to);
                Ok(sent)
            }
            // It was there, and where it listens is being asked.
            Slot::Idle(Some(stream)) => Ok(stream.outbox.push(head, body, 0, cookie)),
            Slot::Gone(why) => Err(down(to, why.clone())),
            _ => Err(down(to, "its address is not known yet")),
        }
    }

    /// Begins to connect to a peer whose addresses are known.
    pub(super) fn dial(&mut self, to: Peer, mut stream: Stream) {
        while stream.number == 0 {
            // Without random numbers no handshake begins either; the attempts say so.
            let bytes = kw_sys::random::key().unwrap_or([1; 32]);
            stream.number = u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[1; 8]));
        }
        let addresses = self.known[to.idx()].addresses().collect();
        let dial = self.new_dial(to, tag::DIAL, addresses, stream);
        self.slots[to.idx()] = Slot::Dialing(Box::new(dial));
        self.lists.dialing.push(to);
        self.patience = 0;
    }

    /// A dial that has not begun, of some addresses of a peer.
    pub(super) fn new_dial(
        &self,
        to: Peer,
        kind: u64,
        at: Vec<SocketAddr>,
        stream: Stream,
    ) -> Dial {
        let own: Vec<IpAddr> = self.own.iter().map(|i| i.addr).collect();
        let host = &self.known[to.idx()].host;
        Dial::new(to, kind | to.0 as u64, at, &own, stream).of_host(host)
    }

    /// Takes an authenticated connection into use.
    fn adopt(&mut self, peer: Peer, sock: Sock, stream: Stream) -> std::io::Result<()> {
        if let Some(bytes) = self.tuning.socket_buffer {
            sock.set_buffers(bytes)?;
        }
        if !stream.is_flushed() {
            note(&mut self.lists.backlog, peer);
        }
        note(&mut self.lists.live, peer);
        self.lists.dialing.retain(|&p| p != peer);
        let mut link = Link::new(sock, stream, &self.tuning);
        let number = tag::LINK | peer.0 as u64;
        link.be_watched(&self.poller, number, self.way_to_watch()(Interest::Read))?;
        self.lists.note_owing(peer, &link);
        self.slots[peer.idx()] = Slot::Up(Box::new(link));
        if self.lists.live.len() == self.tuning.few_links + 1 {
            self.watch_all()?;
        }
        Ok(())
    }

    /// The end of a peer: tells it, unless a goodbye was told already.
    pub(super) fn bury<I: Inbound>(&mut self, peer: Peer, reason: String, inbound: &mut I) {
        let old = std::mem::replace(&mut self.slots[peer.idx()], Slot::Gone(reason.clone()));
        self.lists.forget(peer);
        self.bundles[peer.idx()] = None;
        self.striping.retain(|&p| p != peer);
        let told = matches!(&old, Slot::Up(link) if link.stream.bye);
        if !told && !self.closed {
            inbound.on_down(down(peer, reason), false);
        }
    }

    pub(super) fn advance_dial<I: Inbound>(
        &mut self,
        peer: Peer,
        now: Tick,
        inbound: &mut I,
    ) -> bool {
        let Slot::Dialing(dial) = &mut self.slots[peer.idx()] else {
            return false;
        };
        match dial.advance(now, &self.poller) {
            Dialled::Waiting => false,
            Dialled::Connected(sock, claim, others) => {
                let stream = std::mem::take(&mut dial.stream);
                self.made.retain(|(p, _)| *p != peer);
                self.made.push((peer, others));
                self.connected(peer, sock, stream, claim, inbound);
                true
            }
            Dialled::Exhausted => self.fall_back(peer, inbound),
        }
    }

    /// A connection to this peer is agreed upon: the link goes on over it.
    pub(super) fn connected<I: Inbound>(
        &mut self,
        peer: Peer,
        sock: Sock,
        mut stream: Stream,
        claim: Claim,
        inbound: &mut I,
    ) {
        self.acceptor.dismiss(peer);
        if !stream.resume(&claim, |cookie| inbound.on_sent(peer, cookie)) {
            let why = "its connection was made anew, but what one side wants again the other has not kept; something between them answers in their place";
            return self.bury(peer, why.to_string(), inbound);
        }
        if self.reliable {
            // Where the system does not know these options, it finds out later.
            let _ = sock.watch(self.tuning.silence);
        }
        match self.adopt(peer, sock, stream) {
            Ok(()) => {
                self.part_from_rails(peer);
                self.flush(inbound);
            }
            Err(e) => self.bury(
                peer,
                format!("the new connection could not be used ({e})"),
                inbound,
            ),
        }
    }
}
