//! Carries out what the protocol machine wants done: frames, fetches, events for tools.

use crate::events::EventQueue;
use crate::paths::{NO_REQUEST, Paths, seen};
use kw_base::Peer;
use kw_boot::Launcher;
use kw_path::{Body, Down, Sent};
use kw_proto::endpoint::{Action, FrameBody, ReqId};
use kw_proto::machine::Machine;
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;

/// See the module. Machine and paths are given with each call: always the same.
pub(crate) struct Outlet {
    /// The launcher: it reports the addresses of peers.
    pub launcher: Box<dyn Launcher>,
    /// Events that have not been delivered to any tool yet.
    pub event_queue: EventQueue,
    /// Actions of the machine, while they are executed.
    actions: Vec<Action<Buf>>,
}

/// The payload of a message that was offered: its position among other frames does not matter.
fn is_data(action: &Action<Buf>) -> bool {
    matches!(action, Action::Frame { head, .. } if head.kind == Kind::Data)
}

impl Outlet {
    pub fn new(launcher: Box<dyn Launcher>) -> Outlet {
        Outlet {
            launcher,
            event_queue: EventQueue::default(),
            actions: Vec::new(),
        }
    }

    /// Carries out the machine's actions until there are none left.
    pub fn flush(&mut self, machine: &mut Machine<Buf>, paths: &mut Paths) {
        while !machine.endpoint.out.actions.is_empty() {
            std::mem::swap(&mut machine.endpoint.out.actions, &mut self.actions);
            let mut batch = std::mem::take(&mut self.actions);
            if batch.len() > 1 {
                // Short frames go first: otherwise an answer would wait until the connection has
                // accepted a whole message.
                batch.sort_by_key(is_data);
            }
            for action in batch.drain(..) {
                self.act(machine, paths, action);
            }
            self.actions = batch;
        }
    }

    #[inline]
    fn act(&mut self, machine: &mut Machine<Buf>, paths: &mut Paths, action: Action<Buf>) {
        tracing::trace!("{}", described(&action));
        match action {
            Action::Frame {
                to,
                head,
                body,
                req,
            } => {
                let body = match &body {
                    FrameBody::None => Body::None,
                    FrameBody::Extension(b) => Body::Bytes(b),
                    FrameBody::Keyed(b) => Body::Bytes(b),
                    FrameBody::Payload { buf, len } => Body::Payload {
                        buf,
                        from: 0,
                        len: *len,
                    },
                };
                let cookie = req.map_or(NO_REQUEST, ReqId::to_bits);
                match (self.deliver(machine, paths, to, &head, body, cookie), req) {
                    (Ok(Sent::Done), Some(req)) => machine.sender().on_sent(req),
                    (Ok(_), _) => {}
                    (Err(down), _) => machine.on_gone(to, &down.to_string()),
                }
            }
            Action::Get {
                from,
                region,
                into,
                len,
                req,
            } => {
                if !paths.is_routed(from) {
                    self.choose_path(machine, paths, from);
                }
                let ok = paths.get(from, region, &into, len);
                machine.receiver().on_got(req, ok);
            }
            Action::Reprice(peer) => {
                seen::note(paths, peer);
                reprice(machine, paths, peer);
            }
            Action::Event(record) => self.event_queue.push(paths.clock(), record),
            Action::Locate(peer) => {
                if let Err(down) = paths.locate(peer, self.launcher.as_mut()) {
                    machine.on_gone(peer, &down.to_string());
                }
            }
        }
    }

    /// Gives a frame to the path of a peer; chooses the path first if none was needed so far.
    #[inline]
    pub fn deliver(
        &mut self,
        machine: &mut Machine<Buf>,
        paths: &mut Paths,
        to: Peer,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
    ) -> Result<Sent, Down> {
        match paths.send(to, head, body, cookie) {
            Err(_) if !paths.is_routed(to) => {
                self.choose_path(machine, paths, to);
                paths.send(to, head, body, cookie)
            }
            sent => sent,
        }
    }

    /// Chooses the path of a peer: its first message goes there.
    #[cold]
    pub fn choose_path(&mut self, machine: &mut Machine<Buf>, paths: &mut Paths, to: Peer) {
        match paths.route(to, self.launcher.as_mut()) {
            Ok((way, choice)) => {
                machine.endpoint.peers.set_choice(to, way, choice);
                tracing::debug!("rank {to} by {way:?}: {}", paths.costs().why(to));
            }
            Err(down) => machine.on_gone(to, &down.to_string()),
        }
    }
}

/// The limits of the protocols are decided again for this peer.
#[cold]
pub(super) fn reprice(machine: &mut Machine<Buf>, paths: &Paths, peer: Peer) {
    machine
        .endpoint
        .peers
        .move_choice(peer, paths.costs().choice(peer));
    tracing::debug!("rank {peer} from now on: {}", paths.costs().why(peer));
}

/// An action, for the log.
fn described(action: &Action<Buf>) -> String {
    match action {
        Action::Frame { to, head, .. } => format!("to rank {to}: {head:?}"),
        Action::Get { from, len, .. } => format!("fetches {len} bytes of rank {from}"),
        Action::Reprice(_) | Action::Event(_) | Action::Locate(_) => format!("{action:?}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::messages::{SendMode, Started, Want};
    use crate::simulated::with_processors;
    use kw_base::settings::Settings;
    use kw_base::{ContextId, Peer};
    use kw_path::sim::{SimNet, SimOptions, SimPath};
    use kw_sys::buf::Buf;

    #[test]
    fn a_rank_that_only_receives_answers_over_a_path_chosen_then() {
        let (_net, paths) = SimNet::new(2, 1, SimOptions::calm());
        let start = |path: SimPath| {
            let me = path.me();
            with_processors(Box::new(path), me, &[0, 0], Settings::defaults()).expect("a rank")
        };
        let [mut from, mut to] = [0, 1].map({
            let mut ranks = paths.into_iter().map(start);
            move |_| ranks.next().expect("a rank")
        });
        let (context, buf) = (ContextId(0), Buf::alloc(8));
        let (mode, envelope) = (SendMode::Synchronous, (context, 0, 7));
        let sent = from.messages.send(Peer(1), envelope, mode, &buf);
        let Started::Request(sent) = sent else {
            panic!("it has not been received");
        };
        let want = Want {
            context,
            source: Some((0, Peer(0))),
            tag: Some(7),
        };
        let received = to.messages.recv(want, buf.clone());
        assert!(to.messages.paths.routed().is_empty());
        for _ in 0..100 {
            to.progress();
            from.progress();
        }
        assert!(to.messages.requests().is_done(received) && from.messages.requests().is_done(sent));
        assert_eq!(to.messages.paths.routed(), [Peer(0)]);
    }
}
