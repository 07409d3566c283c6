//! Eager: payload goes at once.

use super::destination::{Destination, Target};
use super::receiver::Receiver;
use super::sender::{Mode, Sender};
use super::unexpected::Early;
use crate::endpoint::{Memory, Outcome, Refused, ReqId, State, envelope, header};
use crate::matching::Envelope;
use crate::wire::{Header, Kind};
use kw_base::Peer;
use kw_base::counters::{Counter, Protocol};

/// Largest context id and rank that a frame may name.
const MAX_CONTEXT: u32 = 1 << 31;
const MAX_RANK: u32 = 1 << 22;

impl<B: Memory> Sender<'_, B> {
    pub(super) fn send_eager(&mut self, key: ReqId, to: Peer, env: Envelope, mode: Mode, buf: &B) {
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
        self.sending.throttle.queued(self.peers, to, len);
        let way = self.peers[to].way;
        self.out.counters.sent(way, Protocol::Eager, len);
        let token = match kind {
            Kind::Eager => self.signature(to, env, buf) as u64,
            _ => key.to_bits(),
        };
        let head = header(kind, env, len, token);
        self.out.payload(to, head, buf.clone(), key);
    }

    /// A synchronous message was matched.
    pub(super) fn on_sync_ack(&mut self, head: &Header) {
        let key = ReqId::from_bits(head.token);
        match self.requests.get_mut(key).map(|r| &mut r.state) {
            Some(State::SendingSync { sent: true, .. }) => self.finish(key, Outcome::CLEAN),
            Some(State::SendingSync { acked, .. }) => *acked = true,
            _ => {}
        }
    }
}

impl<B: Memory> Receiver<'_, B> {
    /// A whole frame.
    #[inline]
    pub(crate) fn on_eager(
        &mut self,
        from: Peer,
        head: &Header,
        body: &[u8],
    ) -> Result<(), Refused> {
        let env = envelope(head);
        check(&env)?;
        self.peers[from].messages.ours.seen += 1;
        let Some(key) = self.receiving.matching.arrive(env).map(ReqId) else {
            return self.keep(from, head, body);
        };
        self.out.counters.hit(Counter::Expected);
        if head.token != 0 {
            let (signature, len) = (head.token as u32, head.len);
            self.requests.compare_types(key, env, signature, len);
        }
        if let Some(from) = self.requests.receive(key, env, head.len, body) {
            self.peers[from].messages.ours.taken_by_envelope(key, true);
        }
        Ok(())
    }

    /// Keeps a small unexpected message.
    #[cold]
    fn keep(&mut self, from: Peer, head: &Header, body: &[u8]) -> Result<(), Refused> {
        let buf = room::<B>(head.len)?;
        buf.write(0, body);
        self.store(from, head, false, Early::Whole(buf));
        Ok(())
    }

    /// Payload that came with an envelope: into the posted receive, or into an unexpected buffer.
    pub(super) fn message_destination(
        &mut self,
        from: Peer,
        head: &Header,
    ) -> Result<Destination<B>, Refused> {
        let env = envelope(head);
        check(&env)?;
        self.peers[from].messages.ours.seen += 1;
        let sync = head.kind == Kind::EagerSync;
        let Some(key) = self.receiving.matching.arrive(env).map(ReqId) else {
            let buf = room::<B>(head.len)?;
            let key = self.store(from, head, sync, Early::Arriving(buf.clone(), None));
            let target = Target::Early(key);
            return Ok(Destination { target, buf });
        };
        self.out.counters.hit(Counter::Expected);
        self.taken_by_envelope(key, true);
        if sync {
            self.out.control(from, Kind::SyncAck, head.token, 0, 0);
        } else if head.token != 0 {
            let (signature, len) = (head.token as u32, head.len);
            self.requests.compare_types(key, env, signature, len);
        }
        Ok(self.land_in(key, from, env, head.len))
    }
}

/// Memory for an unexpected message.
pub(super) fn room<B: Memory>(len: u64) -> Result<B, Refused> {
    B::alloc(len).ok_or(Refused::NoMemory(len))
}

#[inline]
pub(super) fn check(env: &Envelope) -> Result<(), Refused> {
    if env.context >= MAX_CONTEXT || env.source >= MAX_RANK {
        return Err(Refused::Envelope {
            context: env.context,
            rank: env.source,
        });
    }
    Ok(())
}
