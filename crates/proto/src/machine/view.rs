//! Descriptions of requests and messages for users when nothing progresses; not used while messages
//! are transferred.

use super::Machine;
use crate::endpoint::{Memory, Req, ReqId, State};
use crate::matching::{Envelope, Pattern};
use crate::p2p::{Unreceived, is_p2p};
use kw_base::Peer;

/// Purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stand {
    /// A receive that no message has come for.
    Receive {
        /// Envelope that it accepts.
        want: Pattern,
        /// The peer that can send it, if there is only one.
        from: Option<Peer>,
        /// Capacity, bytes.
        room: u64,
    },
    /// A message that was offered, and that the receiver has not asked for.
    Send {
        /// The peer that receives it.
        to: Peer,
        /// Its envelope.
        env: Envelope,
        /// Bytes.
        len: u64,
        /// It has not even been offered: it is deferred until others were received.
        kept_back: bool,
    },
    /// The owner's own.
    Owner,
    /// It has ended, or its message is in flight.
    Moves,
}

impl<B: Memory> Machine<B> {
    /// Purpose of a request.
    pub fn stand(&self, key: ReqId) -> Stand {
        self.endpoint.requests.get(key).map_or(Stand::Moves, stand)
    }

    /// Whether a message of this rank, or one to it, is in flight as far as is known here.
    pub fn is_under_way(&self) -> bool {
        let mut requests = self.endpoint.requests.iter();
        let moves = |req: &Req<B>| req.state != State::Done && stand(req) == Stand::Moves;
        requests.any(|(_, r)| moves(r)) || self.p2p.receiving.is_arriving()
    }

    /// A receive of the program that has not ended and writes memory of this buffer: its envelope,
    /// or that of the message that it is matched with. Searches only if receives are posted.
    pub fn writes(&self, buf: &B) -> Option<Pattern> {
        if self.p2p.receiving.posted() == 0 {
            return None;
        }
        let mut all = self.endpoint.requests.iter();
        all.find_map(|(_, req)| {
            let want = match req.state {
                State::Posted(want) => want,
                State::Arriving | State::Asked { .. } | State::Claimed => Pattern {
                    context: req.env.context,
                    source: Some(req.env.source),
                    tag: Some(req.env.tag),
                },
                _ => return None,
            };
            let users = is_p2p(want.context) && want.tag.is_none_or(|t| t >= 0);
            (users && req.buf.overlaps(buf)).then_some(want)
        })
    }

    /// The messages that came before their receive.
    pub fn unexpected(&self) -> impl Iterator<Item = Unreceived<'_, B>> {
        self.p2p.receiving.unexpected()
    }
}

fn stand<B: Memory>(req: &Req<B>) -> Stand {
    let send = |kept_back| {
        let (env, len) = (req.env, req.buf.len());
        let send = |to| Stand::Send {
            to,
            env,
            len,
            kept_back,
        };
        req.peer.map_or(Stand::Moves, send)
    };
    match req.state {
        State::Posted(want) => Stand::Receive {
            want,
            from: req.peer,
            room: req.buf.len(),
        },
        State::KeptBack => send(true),
        State::Offered { cancelling: false }
        | State::SendingSync {
            sent: true,
            acked: false,
        } => send(false),
        State::Open => Stand::Owner,
        _ => Stand::Moves,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p2p::table::Choice;
    use crate::p2p::{Mode, Started};

    #[test]
    fn requests_say_what_they_wait_for() {
        let all = Choice {
            eager_max: u64::MAX,
            get_min: u64::MAX,
            announce_min: u64::MAX,
        };
        let mut machine: Machine<()> = Machine::new(2, all);
        let want = Pattern {
            context: 0,
            source: Some(1),
            tag: Some(7),
        };
        let key = machine.receiver().recv(want, Some(Peer(1)), ());
        let (from, room) = (Some(Peer(1)), 0);
        assert_eq!(machine.stand(key), Stand::Receive { want, from, room });
        assert!(!machine.is_under_way());
        let env = Envelope {
            context: 0,
            source: 0,
            tag: 3,
        };
        let sent = machine.sender().send(Peer(1), env, Mode::Synchronous, &());
        let Started::Request(send) = sent else {
            panic!("a synchronous send has a request");
        };
        assert!(machine.is_under_way(), "it has not left");
        assert_eq!(machine.stand(send), Stand::Moves);
        machine.cancel(key);
        assert_eq!(machine.stand(key), Stand::Moves);
    }
}
