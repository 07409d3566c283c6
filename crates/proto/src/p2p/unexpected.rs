//! Messages that came before their receive: the contents received so far, and the memory of all.

use super::rendezvous::Offer;
use crate::endpoint::{Found, ReqId};
use crate::matching::Envelope;
use kw_base::{Key, Peer, Slab};

/// Contents received so far of an unexpected message.
#[derive(Debug)]
pub(super) enum Early<B> {
    /// The whole payload.
    Whole(B),
    /// Payload still arriving in our buffer; the request that has claimed it meanwhile.
    Arriving(B, Option<ReqId>),
    /// Only the offer.
    Offer(Offer),
}

#[derive(Debug)]
pub(super) struct Message<B> {
    pub from: Peer,
    pub env: Envelope,
    pub len: u64,
    pub token: u64,
    /// The sender waits for the answer that it was matched.
    pub sync: bool,
    pub early: Early<B>,
}

impl<B> Message<B> {
    /// Bytes of its payload that are kept here.
    pub fn kept(&self) -> u64 {
        match self.early {
            Early::Offer(_) => 0,
            Early::Whole(_) | Early::Arriving(..) => self.len,
        }
    }

    pub fn found(&self) -> Found {
        Found {
            source: self.env.source,
            tag: self.env.tag,
            len: self.len,
        }
    }
}

/// The table of such messages.
#[derive(Debug)]
pub(super) struct Unexpected<B> {
    messages: Slab<Message<B>>,
    /// Bytes of payload that are kept.
    bytes: u64,
}

impl<B> Default for Unexpected<B> {
    fn default() -> Self {
        Unexpected {
            messages: Slab::new(),
            bytes: 0,
        }
    }
}

impl<B> Unexpected<B> {
    /// Bytes of payload that are kept.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn get(&self, key: Key) -> Option<&Message<B>> {
        self.messages.get(key)
    }

    pub fn insert(&mut self, m: Message<B>) -> Key {
        self.bytes += m.kept();
        self.messages.insert(m)
    }

    /// Puts a message back under the key it had.
    pub fn put_back(&mut self, key: Key, m: Message<B>) {
        self.bytes += m.kept();
        self.messages.put_back(key, m);
    }

    pub fn remove(&mut self, key: Key) -> Option<Message<B>> {
        let m = self.messages.remove(key)?;
        self.bytes -= m.kept();
        Some(m)
    }

    /// The offer of a peer that its sender knows by this token.
    pub fn offer(&self, from: Peer, token: u64) -> Option<Key> {
        self.find(|m| m.from == from && m.token == token && matches!(m.early, Early::Offer(_)))
    }

    /// The message of a peer that its sender takes back, unless part of it is still arriving.
    pub fn cancelled(&self, from: Peer, env: Envelope, token: u64) -> Option<Key> {
        let is_it = |m: &Message<B>| m.from == from && m.env == env && m.token == token;
        self.find(|m| is_it(m) && !matches!(m.early, Early::Arriving(..)))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Message<B>> {
        self.messages.iter().map(|(_, m)| m)
    }

    fn find(&self, which: impl Fn(&Message<B>) -> bool) -> Option<Key> {
        let mut all = self.messages.iter();
        all.find(|(_, m)| which(m)).map(|(key, _)| key)
    }
}

impl<B: Clone> Unexpected<B> {
    /// The payload of a message has arrived. Returns the request that has claimed it, with the
    /// payload.
    pub fn on_body(&mut self, key: Key) -> Option<(ReqId, B)> {
        let m = self.messages.get_mut(key)?;
        let Early::Arriving(buf, claimed) = &m.early else {
            return None;
        };
        match *claimed {
            Some(req) => Some((req, buf.clone())),
            None => {
                m.early = Early::Whole(buf.clone());
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(token: u64, len: u64, early: Early<u8>) -> Message<u8> {
        let env = Envelope {
            context: 4,
            source: 1,
            tag: 7,
        };
        Message {
            from: Peer(1),
            env,
            len,
            token,
            sync: false,
            early,
        }
    }

    #[test]
    fn bytes_are_those_of_payload_that_is_here_or_lands_here() {
        let mut table = Unexpected::default();
        let offer = table.insert(message(1, 1000, Early::Offer(Offer::default())));
        assert_eq!(table.bytes(), 0);
        let arriving = table.insert(message(2, 30, Early::Arriving(0, None)));
        let whole = table.insert(message(3, 5, Early::Whole(0)));
        assert_eq!(table.bytes(), 35);
        let mut m = table.remove(offer).unwrap();
        m.early = Early::Arriving(0, None);
        table.put_back(offer, m);
        assert_eq!(table.bytes(), 1035);
        for key in [offer, arriving, whole] {
            assert!(table.remove(key).is_some() && table.remove(key).is_none());
        }
        assert_eq!(table.bytes(), 0);
    }

    #[test]
    fn what_has_arrived_waits_for_its_receive_or_goes_to_the_one_that_claimed_it() {
        let mut table = Unexpected::default();
        let req = ReqId::from_bits(9);
        let free = table.insert(message(1, 30, Early::Arriving(6, None)));
        let claimed = table.insert(message(2, 30, Early::Arriving(8, Some(req))));
        assert_eq!(table.on_body(free), None);
        assert!(matches!(table.get(free).unwrap().early, Early::Whole(6)));
        assert_eq!(table.on_body(free), None, "a second time means nothing");
        assert_eq!(table.on_body(claimed), Some((req, 8)));
    }

    #[test]
    fn a_message_that_lands_cannot_be_taken_back_and_is_no_offer() {
        let mut table = Unexpected::default();
        let offer = table.insert(message(1, 30, Early::Offer(Offer::default())));
        let arriving = table.insert(message(2, 30, Early::Arriving(0, None)));
        let env = table.get(arriving).unwrap().env;
        assert_eq!(table.offer(Peer(1), 1), Some(offer));
        assert_eq!(table.offer(Peer(2), 1), None, "another peer's token");
        assert_eq!(table.offer(Peer(1), 2), None);
        assert_eq!(table.cancelled(Peer(1), env, 1), Some(offer));
        assert_eq!(table.cancelled(Peer(1), env, 2), None);
    }
}
