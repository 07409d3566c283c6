//! Links that have gone silent, if there is another one.
//!
//! The kernel ends a connection that is not answered for `Tuning::silence`. If both hosts have
//! another link, that is a long time to wait: every [`ASK_EVERY`] kernels are queried, and a
//! connection whose bytes the other side's kernel has left without any answer for [`SILENT`],
//! although they were sent again twice, is left. A slow link is not silent: the kernel waits a
//! number of its round trips before it sends again. Nor is a rank that is stopped or computes: its
//! kernel answers that there is no room.
//!
//! | what is silent | what is done |
//! | --- | --- |
//! | a further link | as when it ends ([`super::rails`]): its pieces go over the others, and it is tried again at the next long payload |
//! | the first connection | as when it breaks ([`super::reconnect`]), but all is tried for as long as the kernel would have waited too: the first to answer has it |
//!
//! Nothing is lost either way, so that a link that was left wrongly costs a handshake.

use super::peers::Peers;
use super::striping::Striping;
use crate::contract::Inbound;
use kw_base::{Peer, Tick};
use std::time::Duration;

/// How long a link may leave sent data without an answer.
const SILENT: Duration = Duration::from_secs(1);
/// How often the kernel is asked.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// When kernels are queried, and the results.
#[derive(Debug)]
pub struct UnackedTimeout {
    /// This host has several interfaces that the ranks may use; otherwise nothing is done.
    linked: bool,
    /// When kernels are queried next.
    at: Tick,
    /// Whether anything was unanswered at the last query.
    waiting: bool,
    /// Connections that were left.
    left: u64,
}

/// Judgement of a connection's silence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Silence {
    /// Everything was answered.
    None,
    /// Something was not, for a while.
    Short,
    /// It is left.
    Long,
}

impl Silence {
    fn of(unanswered: Option<Duration>) -> Silence {
        match unanswered {
            None => Silence::None,
            Some(time) if time < SILENT => Silence::Short,
            Some(_) => Silence::Long,
        }
    }
}

impl UnackedTimeout {
    /// `linked`: this host has several interfaces that the ranks may use.
    pub fn new(linked: bool) -> UnackedTimeout {
        UnackedTimeout {
            linked,
            at: Tick(0),
            waiting: false,
            left: 0,
        }
    }

    /// Connections that were left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Leaves connections that are silent; returns when to come again, if anything waits for an
    /// answer.
    pub fn tick(
        &mut self,
        now: Tick,
        striping: &mut Striping,
        peers: &mut Peers,
        inbound: &mut dyn Inbound,
    ) -> Tick {
        if !self.linked {
            return Tick::NEVER;
        }
        if now >= self.at {
            self.at = now + ASK_EVERY;
            let rails = self.leave_rails(striping, peers);
            self.waiting = self.leave_links(peers, inbound) || rails;
        }
        match self.waiting {
            true => self.at,
            false => Tick::NEVER,
        }
    }

    /// Whether any rail waits for an answer.
    fn leave_rails(&mut self, striping: &mut Striping, peers: &mut Peers) -> bool {
        let all = striping.rails().all();
        let all: Vec<_> = all
            .map(|(peer, rail)| (peer, rail.id(), Silence::of(rail.unanswered())))
            .filter(|(_, _, silence)| *silence != Silence::None)
            .collect();
        for &(peer, id, _) in all.iter().filter(|(_, _, s)| *s == Silence::Long) {
            self.left += 1;
            striping.drop_rail(peer, id, peers);
        }
        !all.is_empty()
    }

    /// Whether any first connection waits for an answer.
    fn leave_links(&mut self, peers: &mut Peers, inbound: &mut dyn Inbound) -> bool {
        let live: Vec<Peer> = peers.lists().live.iter().collect();
        let mut waits = false;
        for peer in live {
            let Some(link) = peers.link(peer) else {
                continue;
            };
            let silence = Silence::of(link.unanswered());
            waits |= silence != Silence::None;
            let may_go_on = link.stream().is_reliable() && !link.is_silent();
            if silence != Silence::Long || !may_go_on {
                continue;
            }
            let known = peers.addresses.of(peer);
            if known.is_empty() {
                inbound.on_stray(peer);
            } else if known.has_links() {
                self.left += 1;
                peers
                    .link_mut(peer)
                    .into_iter()
                    .for_each(|l| l.leave_silent());
            }
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_silence_is_one() {
        let of = |millis| Silence::of(Some(Duration::from_millis(millis)));
        assert_eq!(Silence::of(None), Silence::None);
        assert_eq!((of(0), of(999)), (Silence::Short, Silence::Short));
        assert_eq!(of(1000), Silence::Long);
    }
}
