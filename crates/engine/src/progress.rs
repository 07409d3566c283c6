//! How an engine goes on: it polls its paths, carries out what the protocol machine wants, and lets
//! collectives and partitioned transfers go on with what has come.

use crate::engine::Engine;
use crate::paths::{NO_REQUEST, Port};
use kw_base::{Key, Peer};
use kw_path::tcp::Asleep;
use kw_path::{Body, Sent};
use kw_proto::p2p::{Action, FrameBody};
use kw_proto::wire::Kind;
use kw_sys::buf::Buf;
use std::time::Duration;

/// How long a program waits for something, and nothing comes, before peers that were told to hold
/// may send more.
const PATIENCE: Duration = Duration::from_millis(10);

/// A thread that waits for a message to be fetched polls so long at most; what takes longer is
/// worth a wake-up.
const LONGEST_FETCH: Duration = Duration::from_millis(1);

/// The payload of a message that was offered: its place among other frames is of no account.
fn is_data(action: &Action<Buf>) -> bool {
    matches!(action, Action::Frame { head, .. } if head.kind == Kind::Data)
}

impl Engine {
    /// Whether anything goes on that needs progress.
    #[inline]
    pub fn busy(&self) -> bool {
        self.machine.requests.active() != 0
            || self.collectives.active() != 0
            || self.paths.pending()
    }

    /// Whether something is left to send, in a path or because its receiver wants no more of it
    /// yet.
    pub fn pending(&self) -> bool {
        self.paths.pending() || self.machine.sending.keeps_back(&self.machine.peers)
    }

    /// Moves what can be moved, on all paths; never blocks. Returns whether anything moved.
    #[inline]
    pub fn progress(&mut self) -> bool {
        let mut port = Port::new(&mut self.machine);
        let moved = self.paths.poll(&mut port);
        let frames = port.frames;
        self.after_poll(frames, moved)
    }

    /// Like [`Engine::progress`], but looks only where frames of this peer come from.
    #[inline]
    pub fn progress_from(&mut self, peer: Peer) -> bool {
        let mut port = Port::new(&mut self.machine);
        let moved = self.paths.poll_from(peer, &mut port);
        let frames = port.frames;
        self.after_poll(frames, moved)
    }

    /// This rank is about to sleep, in one thread: what its runs wait for on boards shall wake it.
    /// Before the doorbell is armed.
    pub(crate) fn make_ready_to_sleep(&mut self) {
        self.collectives.make_ready_to_sleep();
    }

    /// It is awake, or does not sleep after all.
    pub(crate) fn awake(&mut self) {
        self.collectives.desks.awake();
    }

    /// The second drain of the contract of sleeping: looks at everything, and has every path wake
    /// us from now on.
    pub(crate) fn progress_before_sleep(&mut self) -> bool {
        self.paths.arm(Asleep::Waiting);
        self.progress()
    }

    /// As [`Engine::progress`], for the event thread after a sleep.
    pub(crate) fn progress_ready(&mut self) -> bool {
        let mut port = Port::new(&mut self.machine);
        let moved = self.paths.poll_ready(&mut port);
        let frames = port.frames;
        self.after_poll(frames, moved)
    }

    /// The event thread is about to sleep: every path wakes it from now on. Whether one of those
    /// moved that had to be looked at once more.
    pub(crate) fn progress_before_polling_asleep(&mut self) -> bool {
        self.paths.arm(match self.collectives.is_held_by_send() {
            false => Asleep::Polling,
            true => Asleep::Stepping,
        });
        let mut port = Port::new(&mut self.machine);
        let moved = self.paths.poll_unwatched(&mut port);
        let frames = port.frames;
        self.after_poll(frames, moved)
    }

    #[inline]
    pub(crate) fn after_poll(&mut self, frames: u64, mut moved: bool) -> bool {
        self.arrivals += frames;
        self.flush_some();
        if self.machine.sending.is_stalled() {
            moved |= self.release_held();
        }
        moved |= std::mem::take(&mut self.unsettled);
        if moved && self.partitioned.is_busy() {
            self.advance_partitioned();
        }
        if self.collectives.active() == 0 {
            return moved;
        }
        if moved {
            self.advance_collectives();
        }
        moved |= self.look_at_boards();
        self.settle();
        moved
    }

    /// What waits goes on with what has come while something was sent, until nothing more comes.
    /// Not while a collective is driven.
    #[inline]
    pub(crate) fn settle(&mut self) {
        while std::mem::take(&mut self.unsettled) {
            self.advance_partitioned();
            self.advance_collectives();
        }
    }

    /// After a send: looks at what comes, where much was sent without a look, or a look is to be
    /// gone on with. Not for use inside progress.
    #[inline(always)]
    pub fn look_after_sending(&mut self) {
        if self.machine.sending.owes_a_look() || self.unsettled {
            self.look();
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        self.progress();
    }

    /// Sends of what was kept back what may go.
    #[cold]
    fn release_held(&mut self) -> bool {
        let any = self.machine.sender().release_held();
        self.flush_some();
        any
    }

    /// The program waits, or has asked in vain whether something has ended. Where nothing has come
    /// for [`PATIENCE`], peers that were told to hold may send more: the program may be waiting for
    /// what depends on it.
    #[inline]
    pub fn asked_in_vain(&mut self) {
        self.take_rows_apart();
        if self.machine.receiving.is_holding() {
            self.lose_patience();
        }
    }

    #[cold]
    fn lose_patience(&mut self) {
        let now = self.clock();
        if self.quiet.0 != self.arrivals {
            self.quiet = (self.arrivals, now);
        } else if now.since(self.quiet.1) >= PATIENCE {
            self.quiet.1 = now;
            self.machine.receiver().let_through();
            self.flush();
        }
    }

    /// How long a waiting thread may sleep before it says again that it waits.
    pub(crate) fn patience(&self) -> Duration {
        match self.machine.receiving.is_holding() {
            true => PATIENCE,
            false => Duration::MAX,
        }
    }

    /// How long a waiting thread may sleep before it looks again for processes that have ended.
    pub(crate) fn until_end_told(&self) -> Duration {
        self.paths.until_end_told().unwrap_or(Duration::MAX)
    }

    /// The program has waited for long: ends what depends on ranks of this host whose process has
    /// ended.
    pub(crate) fn look_for_ended(&mut self) {
        let mut port = Port::new(&mut self.machine);
        if self.paths.poll_ended(&mut port) {
            let frames = port.frames;
            self.after_poll(frames, true);
        }
    }

    /// How long the peer that was offered a message last may take to fetch it: nobody sleeps for
    /// that, a wake-up would cost as much.
    pub(crate) fn fetch_time(&self) -> Duration {
        let machine = &self.machine;
        let fetch = machine
            .sending
            .being_fetched(&machine.requests, &machine.peers);
        fetch.map_or(Duration::ZERO, |(peer, len)| {
            // Twice what its line says: to fall asleep just before the end is the worst.
            (self.paths.fetch_time(peer, len) * 2).min(LONGEST_FETCH)
        })
    }

    #[inline]
    pub(crate) fn flush_some(&mut self) {
        if !self.machine.out.actions.is_empty() {
            self.flush();
        }
    }

    /// Carries out what the machine wants done, until it wants nothing more.
    pub(crate) fn flush(&mut self) {
        while !self.machine.out.actions.is_empty() {
            std::mem::swap(&mut self.machine.out.actions, &mut self.actions);
            let mut batch = std::mem::take(&mut self.actions);
            if batch.len() > 1 {
                // What is short goes first: an answer would else wait until the connection has
                // taken a whole message.
                batch.sort_by_key(is_data);
            }
            for action in batch.drain(..) {
                self.act(action);
            }
            self.actions = batch;
        }
    }

    #[inline]
    fn act(&mut self, action: Action<Buf>) {
        tracing::trace!("{}", described(&action));
        match action {
            Action::Frame {
                to,
                head,
                body,
                req,
            } => {
                self.route(to);
                let body = match &body {
                    FrameBody::None => Body::None,
                    FrameBody::Extension(b) => Body::Bytes(b),
                    FrameBody::Payload { buf, len } => Body::Payload {
                        buf,
                        from: 0,
                        len: *len,
                    },
                };
                let cookie = req.map_or(NO_REQUEST, Key::to_bits);
                match (self.paths.send(to, &head, body, cookie), req) {
                    (Ok(Sent::Done), Some(req)) => self.machine.sender().on_sent(req),
                    (Ok(_), _) => {}
                    (Err(down), _) => self.machine.on_gone(to, &down.to_string()),
                }
            }
            Action::Get {
                from,
                address,
                into,
                len,
                req,
            } => {
                self.route(from);
                let ok = self.paths.get(from, address, &into, len);
                self.machine.receiver().on_got(req, ok);
            }
            Action::Reprice(peer) => self.reprice(peer),
            Action::Notice(notice) => self.noticed.push(self.clock(), notice),
            Action::Locate(peer) => {
                if let Err(down) = self.paths.locate(peer, self.launcher.as_mut()) {
                    self.machine.on_gone(peer, &down.to_string());
                }
            }
        }
    }
}

/// An action, for the log.
fn described(action: &Action<Buf>) -> String {
    match action {
        Action::Frame { to, head, .. } => format!("to rank {to}: {head:?}"),
        Action::Get { from, len, .. } => format!("fetches {len} bytes of rank {from}"),
        Action::Reprice(_) | Action::Notice(_) | Action::Locate(_) => format!("{action:?}"),
    }
}
