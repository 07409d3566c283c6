//! Connecting to a peer: all its addresses at once, the first that proves the key wins. The kernel
//! chooses from which of our addresses; when none has won after [`WIDEN`], each is tried from all
//! our other addresses as well, so that every pair of addresses of the two hosts takes part.
//! Addresses that this host has too (a container bridge has the same on every host) lead to
//! ourselves and are left out.
//!
//! An attempt that fails is noted with its reason. When all have failed, they are made again after
//! a pause that doubles, until [`UNREACHABLE_AFTER`] is over; an address that has taken our hello
//! may take its time, since its rank may be computing.

use super::attempt::{Attempt, Pair, Step, Why};
use super::stream::Broken;
use super::watcher::Token;
use kw_base::{Peer, Tick};
use kw_proto::handshake::{Claim, Identity};
use kw_sys::poller::Poller;
use kw_sys::tcp::Sock;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long a peer may stay unreachable.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(9);
/// The limit if there was a connection: with the silence that ended it (see `Tuning::silence`) less
/// than 15 s.
const AGAIN: Duration = Duration::from_secs(5);
/// The limit if the connection was abandoned before the kernel would have ended it.
const LONGER: Duration = Duration::from_secs(12);
/// After this many rounds in which all addresses refuse, the rank is taken to have ended.
const REFUSED: u32 = 3;
/// How long the kernel's choice of our own address is the only one.
const WIDEN: Duration = Duration::from_millis(250);
/// First pause before all addresses are tried again.
const PAUSE: Duration = Duration::from_millis(50);
/// Fewest rounds that are made, however rarely this rank polls.
const ROUNDS: u32 = 4;

/// Result of the attempts.
#[derive(Debug)]
pub enum Dialled {
    /// They go on.
    Waiting,
    /// This one is welcome, with the peer's view of the link; and the results of the others.
    Connected(Sock, Claim, String),
    /// None is left for now.
    Exhausted,
}

/// The peer cannot be reached: [`Dial::sentence`] says why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreachable;

/// All attempts to reach one peer, and the link that the connection will carry.
#[derive(Debug)]
pub struct Dial {
    peer: Peer,
    /// Name of its host; empty: it is not known.
    host: String,
    /// Names its sockets in the poller.
    token: Token,
    addresses: Vec<SocketAddr>,
    /// Addresses that this host has as well.
    ours_too: Vec<SocketAddr>,
    attempts: Vec<Attempt>,
    failures: Vec<(Pair, Why)>,
    /// When our other addresses take part.
    widen: Option<Tick>,
    wide: bool,
    /// This side's view of the link that the connection will carry.
    claim: Claim,
    /// End of the connection before.
    broken: Option<Broken>,
    begun: bool,
    deadline: Option<Tick>,
    again: Tick,
    rounds: u32,
}

impl Dial {
    /// A dial of some addresses of a peer; `own` is every address of this host. A link that was
    /// connected before is tried from all our addresses at once, and not for so long.
    pub fn new(
        (peer, token): (Peer, Token),
        addresses: Vec<SocketAddr>,
        own: &[IpAddr],
        (claim, broken): (Claim, Option<Broken>),
    ) -> Dial {
        let (ours_too, addresses) = foreign(addresses, own);
        Dial {
            peer,
            host: String::new(),
            token,
            addresses,
            ours_too,
            widen: None,
            wide: broken.is_some(),
            attempts: Vec::new(),
            failures: Vec::new(),
            claim,
            broken,
            begun: false,
            deadline: None,
            again: Tick::NEVER,
            rounds: 0,
        }
    }

    /// The name of the peer's host, for people.
    pub fn of_host(mut self, name: &str) -> Dial {
        if !name.is_empty() {
            self.host = format!(" {name}");
        }
        self
    }

    /// Whether it has begun; until then it waits for room.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether no attempt is in flight.
    pub fn is_idle(&self) -> bool {
        self.attempts.is_empty()
    }

    /// Sockets that it has open.
    pub fn sockets(&self) -> usize {
        self.attempts.len()
    }

    /// Begins, if it has not begun.
    pub fn start(&mut self, identity: &Identity, poller: &Poller, sources: &[IpAddr]) {
        if !self.begun {
            self.begun = true;
            self.round(identity, poller, sources);
        }
    }

    /// Tries every address, from our address that the kernel chooses and, once it is time, from all
    /// `sources`.
    fn round(&mut self, identity: &Identity, poller: &Poller, sources: &[IpAddr]) {
        self.rounds += 1;
        self.again = Tick::NEVER;
        self.failures.clear();
        for to in self.addresses.clone() {
            self.try_pair(Pair { from: None, to }, identity, poller);
        }
        if self.wide {
            self.try_sources(identity, poller, sources);
        }
    }

    /// Tries every address from our addresses that the kernel did not choose.
    fn try_sources(&mut self, identity: &Identity, poller: &Poller, sources: &[IpAddr]) {
        for to in self.addresses.clone() {
            for &from in sources.iter().filter(|s| s.is_ipv4() == to.is_ipv4()) {
                let pair = Pair {
                    from: Some(from),
                    to,
                };
                let known = self.attempts.iter().any(|a| a.pair == pair)
                    || self.failures.iter().any(|(p, _)| *p == pair);
                if !known {
                    self.try_pair(pair, identity, poller);
                }
            }
        }
    }

    fn try_pair(&mut self, pair: Pair, identity: &Identity, poller: &Poller) {
        match Attempt::begin(pair, self.peer, self.token.bits(), identity, poller) {
            Ok(a) => self.attempts.push(a),
            Err(e) => self.failures.push((pair, e.into())),
        }
    }

    /// Moves every attempt on.
    pub fn advance(&mut self, now: Tick, poller: &Poller) -> Dialled {
        let mut going = Vec::with_capacity(self.attempts.len());
        let (number, claim) = (self.token.bits(), self.claim);
        while let Some(attempt) = self.attempts.pop() {
            let pair = attempt.pair;
            match attempt.step(number, claim, poller) {
                Ok(Step::On(a)) => going.push(a),
                Ok(Step::Welcome(sock, theirs)) => {
                    // data that this one had before it in the list may still be on its way
                    let late = going.iter().chain(&self.attempts);
                    let others = self.others(late.map(|a| a.pair));
                    return Dialled::Connected(sock, theirs, others);
                }
                Err(why) => self.failures.push((pair, why)),
            }
        }
        self.attempts = going;
        if !self.attempts.is_empty() {
            return Dialled::Waiting;
        }
        self.pause(now);
        Dialled::Exhausted
    }

    fn pause(&mut self, now: Tick) {
        if self.again == Tick::NEVER {
            let shift = self.rounds.min(6);
            self.again = now + PAUSE * (1 << shift);
        }
    }

    /// Time has passed: tries again or gives up. Returns when it wants to be called again.
    pub fn tick(
        &mut self,
        now: Tick,
        identity: &Identity,
        poller: &Poller,
        sources: &[IpAddr],
    ) -> Result<Tick, Unreachable> {
        let patience = self.patience();
        let deadline = *self.deadline.get_or_insert(now + patience);
        let widen = *self.widen.get_or_insert(now + WIDEN);
        if now >= widen && !self.wide {
            self.wide = true;
            self.try_sources(identity, poller, sources);
        }
        if self.attempts.is_empty() {
            self.pause(now);
        }
        if self.is_refused() {
            return Err(Unreachable);
        }
        if now >= deadline && self.rounds >= ROUNDS && self.attempts.is_empty() {
            return Err(Unreachable);
        }
        if now >= deadline {
            self.give_up_connecting();
            if self.attempts.is_empty() && self.rounds >= 1 && self.again == Tick::NEVER {
                return Err(Unreachable);
            }
        }
        if now >= self.again {
            self.round(identity, poller, sources);
        }
        if !self.wide {
            return Ok(widen.min(self.again));
        }
        let next = if now >= deadline {
            self.again
        } else {
            deadline.min(self.again)
        };
        Ok(next)
    }

    /// How long the peer may stay unreachable.
    fn patience(&self) -> Duration {
        match &self.broken {
            None => UNREACHABLE_AFTER,
            Some(broken) if broken.silent => LONGER,
            Some(_) => AGAIN,
        }
    }

    /// Whether a peer that was there no longer listens.
    fn is_refused(&self) -> bool {
        let all = || self.failures.iter().all(|(_, why)| why.is_refused());
        self.broken.is_some() && self.rounds >= REFUSED && self.attempts.is_empty() && all()
    }

    /// After the deadline an address that has not even answered is no longer waited for.
    fn give_up_connecting(&mut self) {
        let (gone, going) = std::mem::take(&mut self.attempts)
            .into_iter()
            .partition::<Vec<_>, _>(Attempt::is_connecting);
        self.attempts = going;
        let patience = self.patience();
        let silent = |a: Attempt| (a.pair, Why::Silent(patience));
        self.failures.extend(gone.into_iter().map(silent));
    }

    /// Results for all pairs but the chosen one; the `late` ones were merely slower.
    fn others(&self, late: impl Iterator<Item = Pair>) -> String {
        let late = late.map(|pair| format!("{pair} (slower)"));
        let failed = self.failures.iter();
        let failed = failed.map(|(pair, why)| format!("{pair} ({why})"));
        let ours = self.ours_too.iter();
        let ours = ours.map(|a| format!("{} (both hosts have it)", a.ip()));
        let all: Vec<_> = late.chain(failed).chain(ours).collect();
        all.join(", ")
    }

    /// Results for all addresses, as text.
    pub fn sentence(&self) -> String {
        let failed = self.failures.iter();
        let failed = failed.map(|(pair, why)| format!("{pair}: {why}"));
        let ours = self.ours_too.iter();
        let ours = ours.map(|a| format!("{}: both hosts have this address", a.ip()));
        let list: Vec<_> = failed.chain(ours).collect();
        if let Some(broken) = &self.broken {
            let (broke, peer, host) = (&broken.what, self.peer, &self.host);
            return format!(
                "{broke}; reconnecting failed ({}): rank {peer} or its host{host} has probably died, see its own messages",
                list.join("; ")
            );
        }
        let advice = if self.failures.iter().any(|(_, why)| why.wants_files()) {
            "let every rank open more files (ulimit -n), or fewer connections with KW_RELIABLE=yes"
        } else {
            "check the firewall and KW_INTERFACES"
        };
        let host = match self.host.as_str() {
            "" => String::new(),
            host => format!(" on host{host}"),
        };
        format!(
            "none of its addresses{host} could be reached ({}); {advice}",
            list.join("; ")
        )
    }
}

/// Separates addresses that are also ours from those that lead to another host. A peer that has no
/// others is on this host.
fn foreign(addresses: Vec<SocketAddr>, own: &[IpAddr]) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
    let (ours, others): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|a| own.contains(&a.ip()));
    match others.is_empty() {
        true => (others, ours),
        false => (ours, others),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_both_hosts_have_are_left_out_unless_there_is_no_other() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let own: Vec<IpAddr> = ["10.0.0.1", "172.17.0.1"]
            .map(|a| a.parse().unwrap())
            .to_vec();
        let peer = vec![at("10.0.0.2:7"), at("172.17.0.1:7")];
        assert_eq!(
            foreign(peer, &own),
            (vec![at("172.17.0.1:7")], vec![at("10.0.0.2:7")])
        );
        let neighbour = vec![at("10.0.0.1:8"), at("172.17.0.1:8")];
        assert_eq!(foreign(neighbour.clone(), &own), (vec![], neighbour));
    }
}
