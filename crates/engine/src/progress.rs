//! How an engine progresses: it polls its paths, and lets its parts continue with the arrived data.

use crate::engine::Engine;
use crate::paths::{Paths, Port};
use crate::windows::Taken;
use kw_base::Peer;
use kw_path::Asleep;

impl Engine {
    /// Whether anything is active that needs progress.
    #[inline]
    pub fn busy(&self) -> bool {
        self.messages.requests().active() != 0 || self.may_hold_up_others()
    }

    /// Whether others may wait for what this rank does about it. Not if it only waits for messages
    /// that come eagerly: those are with its paths already, and are safe there as well as in its
    /// memory.
    #[inline]
    pub fn may_hold_up_others(&self) -> bool {
        self.messages.requests().may_hold_up_others()
            || self.parts.may_hold_up_others()
            || self.messages.paths.pending()
    }

    /// Moves everything that can be moved, on all paths; never blocks. Returns whether anything
    /// moved.
    #[inline]
    pub fn progress(&mut self) -> bool {
        self.progress_by(|paths, port| paths.poll(port))
    }

    /// Like [`Engine::progress`], but looks only where frames of this peer come from.
    #[inline]
    pub fn progress_from(&mut self, peer: Peer) -> bool {
        self.progress_by(|paths, port| paths.poll_from(peer, port))
    }

    /// Like [`Engine::progress`], for the progress thread after a sleep.
    pub(crate) fn progress_ready(&mut self) -> bool {
        self.progress_by(|paths, port| paths.poll_ready(port))
    }

    #[inline(always)]
    fn progress_by(&mut self, how: impl FnOnce(&mut Paths, &mut Port<'_>) -> bool) -> bool {
        let taken = match self.parts.windows.serve() {
            true => self.take_for_windows(),
            false => Taken::None,
        };
        let moved = self.messages.poll(how);
        self.go_on(moved | (taken == Taken::Unsettled)) | (taken != Taken::None)
    }

    #[inline(never)]
    fn take_for_windows(&mut self) -> Taken {
        self.parts.windows.take_frames(&mut self.messages)
    }

    /// The second drain of the contract of sleeping: polls everything, and has every path wake us
    /// from now on.
    pub(crate) fn progress_before_sleep(&mut self) -> bool {
        self.messages.paths.arm(Asleep::Waiting);
        self.progress()
    }

    /// The progress thread is about to sleep: every path wakes it from now on. Returns whether a
    /// path that had to be polled once more moved.
    pub(crate) fn progress_before_polling_asleep(&mut self) -> bool {
        self.messages.paths.arm(match self.parts.is_held_by_send() {
            false => Asleep::Polling,
            true => Asleep::Stepping,
        });
        self.progress_by(|paths, port| paths.poll_unwatched(port))
    }

    /// The program has waited for long: ends what depends on ranks of this host whose process has
    /// ended.
    pub(crate) fn look_for_ended(&mut self) {
        if self.messages.poll(|paths, port| paths.poll_ended(port)) {
            self.go_on(true);
        }
    }

    /// After a poll in which something has `moved`, or nothing: continues everything that waits for
    /// it. Returns whether anything moved in the end.
    #[inline]
    fn go_on(&mut self, mut moved: bool) -> bool {
        moved |= self.messages.go_on();
        if !self.parts.are_busy() {
            return moved;
        }
        if moved {
            self.parts.advance(&mut self.messages);
        }
        moved |= self.parts.look(&mut self.messages);
        self.settle();
        moved
    }

    /// Waiting operations advance with the data that arrived while something was sent, until
    /// nothing more arrives. Not while a collective is driven.
    #[inline]
    pub(crate) fn settle(&mut self) {
        while std::mem::take(&mut self.messages.unsettled) {
            self.parts.advance(&mut self.messages);
            self.messages.flush();
        }
    }

    /// After a send: polls, if much was sent without a poll, or an earlier poll has to be
    /// continued. Not for use inside progress.
    #[inline(always)]
    pub fn look_after_sending(&mut self) {
        if self.messages.machine.p2p.sending.owes_a_look() {
            self.look();
        } else if self.messages.unsettled {
            self.look_for_others();
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        self.progress();
    }

    /// Frames have come during a send: they may be what others wait for.
    #[cold]
    #[inline(never)]
    fn look_for_others(&mut self) {
        if self.parts.are_busy() {
            self.progress();
        } else {
            self.messages.unsettled = false;
        }
    }

    /// The program waits, or has tested without success.
    #[inline]
    pub fn asked_in_vain(&mut self) {
        self.parts.asked_in_vain(&mut self.messages);
        self.messages.asked_in_vain();
    }
}
