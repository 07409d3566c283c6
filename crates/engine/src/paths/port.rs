//! Data from the paths, handed to the protocol machine.

use kw_base::Peer;
use kw_base::counters::Counter;
use kw_base::events::Event;
use kw_path::{Destination, Down, Inbound};
use kw_proto::endpoint::{Action, Refused, ReqId};
use kw_proto::machine::Machine;
use kw_proto::p2p::Target;
use kw_proto::wire::Header;
use kw_sys::buf::Buf;

/// Cookie of a frame that carries no payload of a request.
pub(crate) const NO_REQUEST: u64 = u64::MAX;

/// Takes incoming data from the paths, and gives it to the machine.
pub struct Port<'a> {
    machine: &'a mut Machine<Buf>,
    /// Frames handled.
    pub frames: u64,
}

impl<'a> Port<'a> {
    /// A port of this machine.
    #[inline]
    pub fn new(machine: &'a mut Machine<Buf>) -> Port<'a> {
        Port { machine, frames: 0 }
    }

    #[cold]
    fn refuse(&mut self, from: Peer, why: Refused) {
        let text = sentence(from, why);
        tracing::error!("{text}");
        self.machine.on_gone(from, &text);
    }
}

/// Reason for giving up a peer whose frame was refused.
fn sentence(from: Peer, why: Refused) -> String {
    match why {
        Refused::NoMemory(_) => format!("rank {from} can no longer be reached: {why}"),
        Refused::Envelope { .. } | Refused::Short(..) => {
            format!("protocol error: invalid frame from rank {from}: {why}")
        }
    }
}

impl Inbound for Port<'_> {
    #[inline]
    fn on_frame(&mut self, from: Peer, head: &Header, body: &[u8]) {
        self.frames += 1;
        if let Err(why) = self.machine.on_frame(from, head, body) {
            self.refuse(from, why);
        }
    }

    fn on_head(&mut self, from: Peer, head: &Header) -> Destination {
        self.frames += 1;
        let (target, buf) = match self.machine.receiver().on_head(from, head) {
            Ok(destination) => (destination.target, destination.buf),
            Err(why) => {
                self.refuse(from, why);
                (Target::Nowhere, Buf::EMPTY)
            }
        };
        Destination {
            cookie: target.to_cookie(),
            buf,
            at: 0,
        }
    }

    fn on_body(&mut self, _from: Peer, cookie: u64) {
        self.machine.receiver().on_body(Target::from_cookie(cookie));
    }

    fn on_sent(&mut self, _to: Peer, cookie: u64) {
        if cookie != NO_REQUEST {
            self.machine.sender().on_sent(ReqId::from_bits(cookie));
        }
    }

    fn on_down(&mut self, down: Down, clean: bool) {
        if !clean {
            self.machine.endpoint.out.counters.hit(Counter::PeersLost);
            let data = [down.peer.0 as i64, 0, 0, 0];
            self.machine.endpoint.out.record(Event::PeerLost, data);
            tracing::info!("rank {} is lost: {down}", down.peer);
            self.machine.on_gone(down.peer, &down.to_string());
        } else {
            self.machine.on_left(down.peer);
        }
    }

    fn on_stray(&mut self, peer: Peer) {
        self.machine.endpoint.out.actions.push(Action::Locate(peer));
    }

    fn on_repriced(&mut self, peer: Peer) {
        self.machine
            .endpoint
            .out
            .actions
            .push(Action::Reprice(peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::UNROUTED;
    use kw_base::events::{EventRecord, Wanted};

    fn lose(wanted: Wanted, clean: bool) -> Machine<Buf> {
        let mut machine = Machine::new(4, UNROUTED);
        machine.endpoint.out.wanted = wanted;
        let down = Down {
            path: "sim",
            peer: Peer(3),
            reason: "cut".into(),
        };
        Port::new(&mut machine).on_down(down, clean);
        machine
    }

    #[test]
    fn a_sender_is_not_blamed_for_memory_that_this_rank_lacks() {
        let text = sentence(Peer(3), Refused::NoMemory(9));
        let want =
            "rank 3 can no longer be reached: no memory for an unexpected message of 9 bytes";
        assert_eq!(text, want);
        let (context, rank) = (7, u32::MAX);
        let text = sentence(Peer(3), Refused::Envelope { context, rank });
        assert!(
            text.starts_with("protocol error: invalid frame from rank 3: context 7"),
            "{text}"
        );
    }

    #[test]
    fn a_lost_peer_is_counted_and_noticed_by_who_wants_to_hear_of_it() {
        let mut wanted = Wanted::default();
        assert!(lose(wanted, false).endpoint.out.actions.is_empty());
        wanted.add(Event::PeerLost);
        let machine = lose(wanted, false);
        let record = EventRecord {
            event: Event::PeerLost,
            data: [3, 0, 0, 0],
        };
        assert!(matches!(&machine.endpoint.out.actions[..], [Action::Event(n)] if *n == record));
        assert_eq!(machine.endpoint.out.counters.get(Counter::PeersLost), 1);
        assert!(lose(wanted, true).endpoint.out.actions.is_empty());
    }
}
