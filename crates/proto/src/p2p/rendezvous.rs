//! Rendezvous and get: the sender offers, the receiver answers when it knows where the message
//! goes.

use super::eager::check;
use super::landing::{Landing, Place};
use super::peers::Peers;
use super::receiver::Receiver;
use super::sender::{Mode, Sender, Sending};
use super::unexpected::Early;
use crate::endpoint::{Action, Memory, Outcome, Refused};
use crate::endpoint::{ReqKey, Requests, State, envelope, header};
use crate::matching::Envelope;
use crate::wire::{EXTENSION_LEN, Header, Kind};
use kw_base::counters::{Counter, Protocol};
use kw_base::events::Event;
use kw_base::{Key, Peer};

/// What an RTS says beyond its header.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Offer {
    /// Address of the payload in the sender's memory; zero: none.
    address: u64,
    /// The sender asks to have it fetched, whatever its length.
    asks: bool,
}

impl Offer {
    fn decode(body: &[u8]) -> Result<Offer, Refused> {
        match body.split_first_chunk::<8>() {
            Some((address, rest)) => Ok(Offer {
                address: u64::from_le_bytes(*address),
                asks: rest.first().is_some_and(|&b| b != 0),
            }),
            None => Err(Refused::Short(Kind::Rts, body.len())),
        }
    }
}

impl<B: Memory> Sender<'_, B> {
    /// Offers a message: RTS with the payload's address, if it has one.
    pub(super) fn send_offer(&mut self, key: ReqKey, to: Peer, env: Envelope, mode: Mode, buf: &B) {
        self.requests
            .set_state(key, State::Offered { cancelling: false });
        self.sending.newest_offer = Some(key);
        self.out.counters.hit(Counter::RndvOffered);
        let (context, tag, len) = (env.context as i64, env.tag as i64, buf.len() as i64);
        self.out
            .record(Event::RendezvousBegun, [to.0 as i64, context, tag, len]);
        let mut body = [0; EXTENSION_LEN];
        if let (true, Some(address)) = (self.peers[to].messages.choice.can_get(), buf.address()) {
            body[..8].copy_from_slice(&address.to_le_bytes());
        }
        body[8] = (mode == Mode::Fetched) as u8;
        let head = header(Kind::Rts, env, buf.len(), key.to_bits());
        self.out.extended(to, head, body);
    }

    /// CTS came: send what the receiver wants.
    pub(super) fn on_clear(&mut self, from: Peer, head: &Header) {
        let key = Key::from_bits(head.token);
        if let Some(req) = self.requests.offered(key, from) {
            let len = head.len.min(req.buf.len());
            self.send_data(key, from, head.aux(), len, Protocol::Rendezvous);
        }
    }

    /// Sends the first `len` bytes of an offered message into a receive of the peer.
    pub(super) fn send_data(
        &mut self,
        key: ReqKey,
        to: Peer,
        token: u64,
        len: u64,
        protocol: Protocol,
    ) {
        let data = Header {
            len,
            token,
            ..Header::bare(Kind::Data)
        };
        self.stream(key, to, data.with_aux(key.to_bits()), protocol);
    }

    /// The receiver has fetched the message.
    pub(super) fn on_fetched(&mut self, from: Peer, head: &Header) {
        let key = Key::from_bits(head.token);
        if self.requests.offered(key, from).is_some() {
            let way = self.peers[from].way;
            self.out.counters.sent(way, Protocol::Get, head.len);
            self.finish(key, Outcome::CLEAN);
        }
    }
}

impl Sending {
    /// The message offered last, if it waits to be fetched: by whom, and its bytes.
    pub fn being_fetched<B: Memory>(
        &self,
        requests: &Requests<B>,
        peers: &Peers,
    ) -> Option<(Peer, u64)> {
        let req = requests.get(self.newest_offer?)?;
        let (peer, len) = (req.peer?, req.buf.len());
        let waits = matches!(req.state, State::Offered { .. });
        (waits && len >= peers[peer].messages.choice.get_min).then_some((peer, len))
    }
}

impl<B: Memory> Receiver<'_, B> {
    /// RTS came.
    pub(super) fn on_offer(
        &mut self,
        from: Peer,
        head: &Header,
        body: &[u8],
    ) -> Result<(), Refused> {
        let env = envelope(head);
        check(&env)?;
        let offer = Offer::decode(body)?;
        self.peers[from].messages.ours.seen += 1;
        match self.receiving.matching.arrive(env) {
            None => {
                self.store(from, head, false, Early::Offer(offer));
                let (context, tag) = (env.context as i64, env.tag as i64);
                let data = [from.0 as i64, context, tag, head.len as i64];
                self.out.record(Event::RendezvousWaits, data);
            }
            Some(key) => {
                self.out.counters.hit(Counter::Expected);
                self.taken_by_envelope(key, false);
                self.requests.matched(key, env, head.len);
                if let Some(req) = self.requests.get_mut(key) {
                    req.state = State::Landing;
                    req.peer = Some(from);
                }
                self.accept_offer(from, head.token, offer, head.len, key);
            }
        }
        Ok(())
    }

    /// Fetches an offered message, or asks for it.
    pub(super) fn accept_offer(
        &mut self,
        from: Peer,
        token: u64,
        offer: Offer,
        len: u64,
        key: ReqKey,
    ) {
        let Some(req) = self.requests.get_mut(key) else {
            return;
        };
        let wanted = len.min(req.buf.len());
        req.state = State::Asked { offer: token };
        let into = req.buf.clone();
        let peer = &self.peers[from];
        let long = match offer.asks {
            true => peer.messages.choice.can_get(),
            false => wanted >= peer.messages.choice.get_min,
        };
        if offer.address != 0 && !peer.messages.get_refused && long {
            self.out.actions.push(Action::Get {
                from,
                address: offer.address,
                into,
                len: wanted,
                req: key,
            });
        } else {
            self.out
                .control(from, Kind::Cts, token, key.to_bits(), wanted);
        }
    }

    /// A fetch was carried out, or refused.
    pub fn on_got(&mut self, req: ReqKey, ok: bool) {
        let Some(r) = self.requests.get(req) else {
            return;
        };
        let State::Asked { offer: token } = r.state else {
            return;
        };
        let Some(from) = r.peer else { return };
        let len = r.outcome.len;
        if ok {
            self.out.control(from, Kind::Fin, token, 0, len);
            self.requests.finish_recv(req);
        } else {
            self.peers[from].messages.get_refused = true;
            self.out.control(from, Kind::Cts, token, req.to_bits(), len);
        }
    }

    /// Payload of an offer.
    pub(super) fn data_landing(
        &mut self,
        from: Peer,
        head: &Header,
    ) -> Result<Landing<B>, Refused> {
        let key = Key::from_bits(head.token);
        let asked = State::Asked { offer: head.aux() };
        match self.requests.get(key) {
            Some(req) if req.peer == Some(from) && req.state == asked => Ok(Landing {
                place: Place::Request(key),
                buf: req.buf.clone(),
            }),
            _ => self.stray_landing(from, head),
        }
    }
}
