//! Links that have gone silent, where there is another one.
//!
//! The kernel ends a connection that is not answered for `Tuning::silence`. Where both hosts have another link that is a long time to wait: every
//! [`LOOK`] kernels are asked, and a connection whose bytes the other side's kernel has left without any answer for [`SILENT`], although they were
//! sent again twice, is left. A slow link is not silent: its round trips are what the kernel's patience before it sends again is made of. Nor is
//! a rank that is stopped or computes: its kernel answers that there is no room.
//!
//! | what is silent | what is done |
//! | --- | --- |
//! | a further link | as when it ends ([`super::rails`]): its pieces go over the others, and it is tried again at the next long payload |
//! | the first connection | as when it breaks ([`super::reconnect`]), but all is tried for as long as the kernel would have waited too: whoever answers first has it |
//!
//! Nothing is lost either way, so that a link that was left wrongly costs a handshake.

use super::disconnect::End;
use super::*;

/// How long a link may leave without an answer what was sent over it.
pub const SILENT: Duration = Duration::from_secs(1);
/// How often the kernel is asked.
const LOOK: Duration = Duration::from_millis(250);

impl TcpPath {
    /// Leaves connections that are silent; says when to come again, if anything waits for an answer.
    pub(super) fn leave_silent<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> Tick {
        if now >= self.listen_at {
            self.listen_at = now + LOOK;
            let rails = self.leave_silent_rails();
            self.waiting = self.leave_silent_links(inbound) || rails;
        }
        match self.waiting {
            true => self.listen_at,
            false => Tick::NEVER,
        }
    }

    /// Whether any rail waits for an answer.
    fn leave_silent_rails(&mut self) -> bool {
        let (mut waits, mut silent) = (false, Vec::new());
        for (peer, rail_set) in self.bundles.iter().enumerate() {
            for rail in rail_set.iter().flat_map(|b| &b.rails) {
                let unanswered = rail.sock.unanswered();
                waits |= unanswered.is_some();
                if unanswered >= Some(SILENT) {
                    silent.push((Peer(peer as u32), rail.id));
                }
            }
        }
        for (peer, id) in silent {
            self.silent_left += 1;
            self.drop_rail(peer, id);
        }
        waits
    }

    /// Whether any first connection waits for an answer.
    fn leave_silent_links<I: Inbound>(&mut self, inbound: &mut I) -> bool {
        let mut waits = false;
        for i in (0..self.lists.live.len()).rev() {
            let Some(&peer) = self.lists.live.get(i) else {
                continue;
            };
            let Slot::Up(link) = &mut self.slots[peer.idx()] else {
                continue;
            };
            let unanswered = link.sock.unanswered();
            waits |= unanswered.is_some();
            if unanswered < Some(SILENT) || link.stream.kept.is_none() || link.stream.silent {
                continue;
            }
            match &self.known[peer.idx()] {
                known if known.is_empty() => inbound.on_stray(peer),
                known if known.has_links() => {
                    self.silent_left += 1;
                    link.stream.silent = true;
                    // What has come is read, then its end: then it is made anew.
                    link.sock.shut();
                }
                _ => {}
            }
        }
        waits
    }
}

/// Why a connection is over that we have shut.
pub fn why(end: End, stream: &Stream) -> End {
    match end {
        End::Closed if stream.silent => End::Silent,
        end => end,
    }
}
