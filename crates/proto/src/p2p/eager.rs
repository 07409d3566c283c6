//! Eager: payload goes at once. Arrivals of every protocol that carry an envelope are matched here.

use super::machine::{Early, Machine, Message, Mode};
use super::outbox::header;
use super::requests::{ReqKey, State};
use super::{Memory, Outcome};
use crate::matching::Envelope;
use crate::wire::{Header, Kind};
use kw_base::counters::{Counter, Protocol};
use kw_base::events::Event;
use kw_base::{Key, Peer};

/// Largest context id and rank that a frame may name.
const MAX_CONTEXT: u32 = 1 << 31;
const MAX_RANK: u32 = 1 << 22;

/// What the payload of a frame belongs to whose body is still on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The buffer of a receive.
    Request(ReqKey),
    /// The buffer of a message whose receive has not come.
    Early(Key),
    /// Nobody wants it.
    Nowhere,
}

/// How a place is told to a path: a byte that says which it is, above the 56 bits of a key.
const WHICH: u32 = 56;

impl Place {
    /// The place as a number that a path gives back.
    #[inline]
    pub fn to_cookie(self) -> u64 {
        match self {
            Place::Request(key) => key.to_bits(),
            Place::Early(key) => 1 << WHICH | key.to_bits(),
            Place::Nowhere => 2 << WHICH,
        }
    }

    /// Inverse of [`Place::to_cookie`].
    #[inline]
    pub fn from_cookie(cookie: u64) -> Place {
        match cookie >> WHICH {
            0 => Place::Request(Key::from_bits(cookie)),
            1 => Place::Early(Key::from_bits(cookie)),
            _ => Place::Nowhere,
        }
    }
}

/// Where the payload of a frame goes whose body is still on its way.
#[derive(Clone, Debug)]
pub struct Landing<B> {
    /// For `on_landed`.
    pub place: Place,
    /// Bytes go to this buffer from its start; what does not fit is thrown away.
    pub buf: B,
}

impl<B: Memory> Landing<B> {
    /// Of bytes that nobody wants.
    pub fn nowhere() -> Landing<B> {
        Landing {
            place: Place::Nowhere,
            buf: B::nothing(),
        }
    }
}

#[inline]
fn envelope(head: &Header) -> Envelope {
    Envelope {
        context: head.context,
        source: head.source,
        tag: head.tag,
    }
}

impl<B: Memory> Machine<B> {
    pub(super) fn send_eager(&mut self, key: ReqKey, to: Peer, env: Envelope, mode: Mode, buf: &B) {
        let (kind, state) = match mode {
            Mode::Standard | Mode::Fetched => (Kind::Eager, State::Sending),
            Mode::Synchronous => (
                Kind::EagerSync,
                State::SendingSync {
                    sent: false,
                    acked: false,
                },
            ),
        };
        self.requests.set_state(key, state);
        let len = buf.len();
        self.flow_control.queued(&mut self.peers, to, len);
        let way = self.peers[to].way;
        self.out.counters.sent(way, Protocol::Eager, len);
        let head = header(kind, env, len, key.to_bits());
        self.out.payload(to, head, buf.clone(), key);
    }

    /// A whole frame. Says what is wrong with it, if anything is.
    #[inline]
    pub fn on_frame(&mut self, from: Peer, head: &Header, body: &[u8]) -> Result<(), String> {
        if head.kind == Kind::Eager {
            return self.on_eager(from, head, body);
        }
        match head.kind {
            Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write => {
                let landing = self.on_head(from, head)?;
                landing.buf.write(0, body);
                self.on_landed(landing.place);
                Ok(())
            }
            Kind::Rts => self.on_offer(from, head, body),
            Kind::Cts => self.on_clear(from, head),
            Kind::Fin => self.on_fetched(from, head),
            Kind::SyncAck => self.on_sync_ack(head),
            Kind::Announce => self.on_announce(from, head, body),
            Kind::Cancel => self.on_cancel(from, head),
            Kind::CancelAck => self.on_cancel_ack(head),
            Kind::Hold => self.flow_control.on_peer_flow(&mut self.peers, from, true),
            Kind::Go => self.flow_control.on_peer_flow(&mut self.peers, from, false),
            Kind::Waits => self.peers.on_waits(from, &mut self.out),
            Kind::Left => {
                self.on_left(from);
                Ok(())
            }
            Kind::Bye | Kind::More => Ok(()),
            // A path's own: it hands none on.
            Kind::Striped | Kind::Piece | Kind::Taken => Ok(()),
        }
    }

    #[inline]
    fn on_eager(&mut self, from: Peer, head: &Header, body: &[u8]) -> Result<(), String> {
        let env = envelope(head);
        check(&env)?;
        self.peers[from].flow.seen += 1;
        let Some(key) = self.matching.arrive(env) else {
            return self.keep(from, head, body);
        };
        self.out.counters.hit(Counter::Expected);
        self.taken_by_envelope(key, true);
        self.requests.matched(key, env, head.len);
        if let Some(req) = self.requests.get_mut(key) {
            req.buf.write(0, body);
            req.state = State::Done;
            self.requests.note_end(key);
        }
        Ok(())
    }

    /// Keeps a small unexpected message.
    #[cold]
    fn keep(&mut self, from: Peer, head: &Header, body: &[u8]) -> Result<(), String> {
        let buf = self.room(head.len)?;
        buf.write(0, body);
        self.store(from, head, false, Early::Whole(buf));
        Ok(())
    }

    pub(super) fn room(&mut self, len: u64) -> Result<B, String> {
        B::alloc(len).ok_or_else(|| format!("no memory for an unexpected message of {len} bytes"))
    }

    pub(super) fn store(&mut self, from: Peer, head: &Header, sync: bool, early: Early<B>) -> Key {
        let env = envelope(head);
        let key = self.hold(Message {
            from,
            env,
            len: head.len,
            token: head.token,
            sync,
            early,
        });
        self.matching.store(env, key);
        self.note_unexpected(from, &env, head.len);
        key
    }

    fn note_unexpected(&mut self, from: Peer, env: &Envelope, len: u64) {
        self.out.counters.hit(Counter::Unexpected);
        self.out.counters.add(Counter::UnexpectedBytes, len);
        let waiting = self.matching.waiting();
        self.out
            .counters
            .raise(Counter::UnexpectedWaitingPeak, waiting);
        let data = [
            from.0 as i64,
            env.context as i64,
            env.tag as i64,
            len as i64,
        ];
        self.out.notice(Event::UnexpectedMessage, data);
    }

    /// A header whose payload follows.
    pub fn on_head(&mut self, from: Peer, head: &Header) -> Result<Landing<B>, String> {
        match head.kind {
            Kind::Data => self.data_landing(from, head),
            Kind::Write => self.write_landing(from, head),
            _ => self.message_landing(from, head),
        }
    }

    /// Payload that came with an envelope: into the posted receive, or into an unexpected buffer.
    pub(super) fn message_landing(
        &mut self,
        from: Peer,
        head: &Header,
    ) -> Result<Landing<B>, String> {
        let env = envelope(head);
        check(&env)?;
        self.peers[from].flow.seen += 1;
        let sync = head.kind == Kind::EagerSync;
        let Some(key) = self.matching.arrive(env) else {
            let buf = self.room(head.len)?;
            let key = self.store(from, head, sync, Early::Landing(buf.clone(), None));
            let place = Place::Early(key);
            return Ok(Landing { place, buf });
        };
        self.out.counters.hit(Counter::Expected);
        self.taken_by_envelope(key, true);
        if sync {
            self.out.control(from, Kind::SyncAck, head.token, 0, 0);
        }
        Ok(self.land_in(key, from, env, head.len))
    }

    /// Payload goes straight into a receive's buffer.
    pub(super) fn land_in(
        &mut self,
        key: ReqKey,
        from: Peer,
        env: Envelope,
        len: u64,
    ) -> Landing<B> {
        self.requests.matched(key, env, len);
        match self.requests.get_mut(key) {
            Some(req) => {
                req.state = State::Landing;
                req.peer = Some(from);
                Landing {
                    place: Place::Request(key),
                    buf: req.buf.clone(),
                }
            }
            None => Landing::nowhere(),
        }
    }

    /// Payload of an offer.
    fn data_landing(&mut self, from: Peer, head: &Header) -> Result<Landing<B>, String> {
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

    /// The payload of a landing is in place.
    pub fn on_landed(&mut self, place: Place) {
        match place {
            Place::Request(key) => self.requests.finish_recv(key),
            Place::Early(key) => self.landed_early(key),
            Place::Nowhere => {}
        }
    }

    fn landed_early(&mut self, key: Key) {
        let Some(m) = self.early.get_mut(key) else {
            return;
        };
        let Early::Landing(buf, claimed) = &m.early else {
            return;
        };
        match claimed {
            None => m.early = Early::Whole(buf.clone()),
            Some(req) => {
                let (req, buf, len) = (*req, buf.clone(), m.len);
                self.let_go(key);
                self.fill_claimed(req, &buf, len);
            }
        }
    }

    fn fill_claimed(&mut self, req: ReqKey, kept: &B, len: u64) {
        if let Some(r) = self.requests.get(req) {
            kept.copy_to(&r.buf, len.min(r.buf.len()));
        }
        self.requests.finish_recv(req);
    }

    /// A receive claims a message that is still landing: it keeps its place in the table until it
    /// has landed.
    pub(super) fn claim_landing(&mut self, old: Key, mut m: Message<B>, req: ReqKey) {
        if let Early::Landing(_, claimed) = &mut m.early {
            *claimed = Some(req);
        }
        if let Some(r) = self.requests.get_mut(req) {
            r.state = State::Claimed;
        }
        self.put_back(old, m);
    }

    fn on_sync_ack(&mut self, head: &Header) -> Result<(), String> {
        let key = Key::from_bits(head.token);
        match self.requests.get_mut(key).map(|r| &mut r.state) {
            Some(State::SendingSync { sent: true, .. }) => self.finish(key, Outcome::CLEAN),
            Some(State::SendingSync { acked, .. }) => *acked = true,
            _ => {}
        }
        Ok(())
    }

    fn on_cancel(&mut self, from: Peer, head: &Header) -> Result<(), String> {
        let env = envelope(head);
        let hit = self.early.iter().find(|(_, m)| {
            m.from == from
                && m.env == env
                && m.token == head.token
                && !matches!(m.early, Early::Landing(..))
        });
        let key = hit.map(|(k, _)| k);
        let gone = key.is_some_and(|k| self.matching.forget(env, k));
        if let (true, Some(k)) = (gone, key) {
            self.let_go(k);
        }
        self.out
            .control(from, Kind::CancelAck, head.token, 0, gone as u64);
        Ok(())
    }

    fn on_cancel_ack(&mut self, head: &Header) -> Result<(), String> {
        let key = Key::from_bits(head.token);
        if let (1, Some(_)) = (head.len, self.requests.get(key)) {
            self.finish(key, Outcome::CANCELLED);
        }
        Ok(())
    }
}

#[inline]
pub(super) fn check(env: &Envelope) -> Result<(), String> {
    if env.context >= MAX_CONTEXT || env.source >= MAX_RANK {
        return Err(format!(
            "frame names context {} and rank {}, which cannot be",
            env.context, env.source
        ));
    }
    Ok(())
}
