//! Rendezvous and get: the sender offers, the receiver answers when it knows where the message
//! goes.

use super::destination::{Destination, Target};
use super::eager::check;
use super::peers::Peers;
use super::receiver::Receiver;
use super::sender::{Mode, Sender, Sending};
use super::unexpected::Early;
use crate::endpoint::{Action, FrameBody, Memory, Outcome, Refused};
use crate::endpoint::{ReqId, Requests, State, envelope, header};
use crate::matching::Envelope;
use crate::wire::{EXTENSION_LEN, Header, KEY_LEN, KEYED_LEN, Kind, RemoteRegion};
use kw_base::Peer;
use kw_base::counters::{Counter, Protocol};
use kw_base::events::Event;

/// Contents of an RTS beyond its header.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Offer {
    /// The payload in the sender's memory, if it may be fetched.
    region: Option<RemoteRegion>,
    /// The sender asks to have it fetched, whatever its length.
    asks: bool,
    /// Type signature of the data (KW_CHECK), or 0.
    pub(super) signature: u32,
}

impl Offer {
    fn is_keyed(&self) -> bool {
        self.region.is_some_and(|r| r.is_keyed())
    }

    /// Kind and body of the RTS.
    fn encode<B>(&self) -> (Kind, FrameBody<B>) {
        let mut body = [0; KEYED_LEN];
        let (plain, key) = body.split_at_mut(EXTENSION_LEN);
        plain[8] = self.asks as u8;
        plain[12..].copy_from_slice(&self.signature.to_le_bytes());
        if let Some(region) = self.region {
            plain[..8].copy_from_slice(&region.address.to_le_bytes());
            key.copy_from_slice(&region.key);
        }
        match body.first_chunk() {
            Some(plain) if !self.is_keyed() => (Kind::Rts, FrameBody::Extension(*plain)),
            _ => (Kind::KeyedRts, FrameBody::Keyed(body)),
        }
    }

    fn decode(kind: Kind, body: &[u8]) -> Result<Offer, Refused> {
        let short = || Refused::Short(kind, body.len());
        let (plain, rest) = body
            .split_first_chunk::<EXTENSION_LEN>()
            .ok_or_else(short)?;
        let (address, more) = plain.split_first_chunk::<8>().ok_or_else(short)?;
        let key = match kind {
            Kind::KeyedRts => *rest.first_chunk().ok_or_else(short)?,
            _ => [0; KEY_LEN],
        };
        let region = RemoteRegion {
            address: u64::from_le_bytes(*address),
            key,
        };
        Ok(Offer {
            region: (region.address != 0).then_some(region),
            asks: more[0] != 0,
            signature: u32::from_le_bytes([more[4], more[5], more[6], more[7]]),
        })
    }
}

impl<B: Memory> Sender<'_, B> {
    /// Offers a message: RTS with the payload's address, if it has one.
    pub(super) fn send_offer(&mut self, key: ReqId, to: Peer, env: Envelope, mode: Mode, buf: &B) {
        self.requests
            .set_state(key, State::Offered { cancelling: false });
        self.sending.newest_offer = Some(key);
        self.out.counters.hit(Counter::RndvOffered);
        let (context, tag, len) = (env.context as i64, env.tag as i64, buf.len() as i64);
        self.out
            .record(Event::RendezvousBegun, [to.0 as i64, context, tag, len]);
        let can_get = self.peers[to].messages.choice.can_get();
        let offer = Offer {
            region: buf.region().filter(|_| can_get),
            asks: mode == Mode::Fetched,
            signature: self.signature(to, env, buf),
        };
        let (kind, body) = offer.encode();
        let head = header(kind, env, buf.len(), key.to_bits());
        self.out.extended(to, head, body);
    }

    /// CTS came: sends the bytes that the receiver wants.
    pub(super) fn on_clear(&mut self, from: Peer, head: &Header) {
        let key = ReqId::from_bits(head.token);
        if let Some(req) = self.requests.offered(key, from) {
            let len = head.len.min(req.buf.len());
            self.send_data(key, from, head.aux(), len, Protocol::Rendezvous);
        }
    }

    /// Sends the first `len` bytes of an offered message into a receive of the peer.
    pub(super) fn send_data(
        &mut self,
        key: ReqId,
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
        let key = ReqId::from_bits(head.token);
        if self.requests.offered(key, from).is_some() {
            let way = self.peers[from].way;
            self.out.counters.sent(way, Protocol::Get, head.len);
            self.finish(key, Outcome::CLEAN);
        }
    }
}

impl Sending {
    /// The message offered last, if it waits to be read: the peer and its bytes.
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
        let offer = Offer::decode(head.kind, body)?;
        self.peers[from].messages.ours.seen += 1;
        match self.receiving.matching.arrive(env).map(ReqId) {
            None => {
                self.store(from, head, false, Early::Offer(offer));
                let (context, tag) = (env.context as i64, env.tag as i64);
                let data = [from.0 as i64, context, tag, head.len as i64];
                self.out.record(Event::RendezvousWaits, data);
            }
            Some(key) => {
                self.out.counters.hit(Counter::Expected);
                self.taken_by_envelope(key, false);
                if offer.signature != 0 {
                    let signature = offer.signature;
                    self.requests.compare_types(key, env, signature, head.len);
                }
                self.requests.matched(key, env, head.len);
                if let Some(req) = self.requests.get_mut(key) {
                    req.state = State::Arriving;
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
        key: ReqId,
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
        match offer.region.filter(|_| !peer.messages.get_refused && long) {
            Some(region) => self.out.actions.push(Action::Get {
                from,
                region,
                into,
                len: wanted,
                req: key,
            }),
            None => self
                .out
                .control(from, Kind::Cts, token, key.to_bits(), wanted),
        }
    }

    /// A fetch was carried out, or refused.
    pub fn on_got(&mut self, req: ReqId, ok: bool) {
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
    pub(super) fn data_destination(
        &mut self,
        from: Peer,
        head: &Header,
    ) -> Result<Destination<B>, Refused> {
        let key = ReqId::from_bits(head.token);
        let asked = State::Asked { offer: head.aux() };
        match self.requests.get(key) {
            Some(req) if req.peer == Some(from) && req.state == asked => Ok(Destination {
                target: Target::Request(key),
                buf: req.buf.clone(),
            }),
            _ => self.stray_destination(from, head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The offer that another rank reads.
    fn sent(offer: Offer) -> (Kind, Result<Offer, Refused>) {
        let (kind, body) = offer.encode::<()>();
        let bytes = match &body {
            FrameBody::Extension(b) => &b[..],
            FrameBody::Keyed(b) => b,
            _ => &[],
        };
        assert_eq!(Header::bare(kind).body_len(), bytes.len() as u64);
        (kind, Offer::decode(kind, bytes))
    }

    proptest! {
        #[test]
        fn an_offer_survives_the_wire(address in 1u64.., key: [u8; KEY_LEN], asks: bool, signature: u32) {
            let keyed = Offer { region: Some(RemoteRegion { address, key }), asks, signature };
            prop_assert_eq!(sent(keyed).1, Ok(keyed));
            let plain = Offer { region: Some(RemoteRegion::at(address)), asks, signature };
            prop_assert_eq!(sent(plain), (Kind::Rts, Ok(plain)));
            let nowhere = Offer { region: None, asks, signature };
            prop_assert_eq!(sent(nowhere), (Kind::Rts, Ok(nowhere)));
        }

        #[test]
        fn an_offer_that_is_too_short_is_refused(len in 0..KEYED_LEN) {
            let body = [1; KEYED_LEN];
            let read = |kind| Offer::decode(kind, &body[..len]);
            prop_assert_eq!(read(Kind::KeyedRts), Err(Refused::Short(Kind::KeyedRts, len)));
            prop_assert_eq!(read(Kind::Rts).is_err(), len < EXTENSION_LEN);
        }
    }
}
