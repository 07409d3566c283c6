//! Checks of a wait that lasts: it never ends if it is for a rank that has called MPI_Finalize
//! ([`kw_proto::endpoint::Awaits`]) or whose process has ended.
//!
//! Called by the thread that waits, or has polled without success for long, with the lock held.

use crate::collective::{Collectives, Failure, Watch};
use crate::engine::Engine;
use crate::messages::{Messages, ReqId, Want};
use crate::wait::WaitOn;
use kw_base::{ContextId, Peer};
use kw_boot::Job;
use kw_proto::endpoint::Awaits;
use kw_types::comm::Group;
use std::collections::HashMap;
use std::sync::Arc;

/// Peers this rank is waiting for.
#[derive(Debug)]
pub struct Departed {
    me: Peer,
    /// Ranks of the job.
    size: u32,
    /// Other threads of this rank may send to it while one waits.
    has_threads: bool,
    /// Possible senders in a context, if that is not the whole job.
    senders: HashMap<ContextId, Arc<Group>>,
    /// A wait on a shm region for a rank that has left, and why it never ends.
    shm_region: Option<(Watch, String)>,
}

impl Departed {
    pub(crate) fn new(job: &Job) -> Departed {
        Departed {
            me: job.me,
            size: job.size(),
            has_threads: true,
            senders: HashMap::new(),
            shm_region: None,
        }
    }

    /// Sets whether other threads of this rank may be in MPI while one is.
    pub fn set_threads(&mut self, has: bool) {
        self.has_threads = has;
    }

    /// Whether other threads of this rank may be in MPI while one is.
    #[cold]
    pub(crate) fn has_threads(&self) -> bool {
        self.has_threads
    }

    /// Sets which ranks send in a context; in others all ranks of the job do.
    pub fn set_senders(&mut self, context: ContextId, senders: Arc<Group>) {
        self.senders.insert(context, senders);
    }

    /// The context is free.
    pub fn forget_senders(&mut self, context: ContextId) {
        self.senders.remove(&context);
    }

    /// Why a probe that has found nothing never will.
    pub fn never_comes(&self, messages: &Messages, want: &Want) -> Option<Failure> {
        let why = match want.source {
            Some((_, peer)) => messages.machine.endpoint.peers.why_left(peer),
            None => self.all_left(messages, want.context),
        };
        why.map(Failure::gone)
    }

    /// Error of a collective that waits on a shm region for a rank that has left.
    pub fn on_shm_region(&self, watch: Watch) -> Option<Failure> {
        let departed = self.shm_region.as_ref().filter(|d| d.0 == watch);
        departed.map(|d| Failure::gone(d.1.clone()))
    }

    /// Asks the ranks that a wait depends on whether they have left; returns the requests that can
    /// never end, each with the reason. A wait for several requests continues while any of them can
    /// end.
    fn ask(
        &mut self,
        messages: &mut Messages,
        collectives: &Collectives,
        on: WaitOn<'_>,
    ) -> Vec<(ReqId, String)> {
        match (on.shm_region, on.from) {
            (Some(watch), _) => {
                if let Some(why) = self.ask_shm_region(messages, collectives, watch) {
                    self.shm_region = Some((watch, why));
                }
            }
            (None, Some(peer)) if on.requests.is_empty() => _ = self.ask_peer(messages, peer),
            (None, None) if on.requests.is_empty() => {
                if let Some(want) = on.probe {
                    self.ask_all(messages, want.context);
                }
            }
            _ => {
                let why = |&req| Some((req, self.ask_request(messages, collectives, req)?));
                let all: Option<Vec<_>> = on.requests.iter().map(why).collect();
                return all.unwrap_or_default();
            }
        }
        Vec::new()
    }

    fn ask_request(
        &self,
        messages: &mut Messages,
        collectives: &Collectives,
        req: ReqId,
    ) -> Option<String> {
        match messages.requests().awaits(req) {
            Awaits::NoPeer => None,
            Awaits::Peer(peer) => self.ask_peer(messages, peer),
            Awaits::Anyone(context) => self.ask_all(messages, context),
            Awaits::Owner => self.ask_run(messages, collectives, req),
        }
    }

    fn ask_peer(&self, messages: &mut Messages, peer: Peer) -> Option<String> {
        if peer == self.me {
            return None;
        }
        messages.machine.endpoint.ask(peer);
        messages.machine.endpoint.peers.why_left(peer)
    }

    /// One that is still there is enough, and one question is enough.
    fn ask_all(&self, messages: &mut Messages, context: ContextId) -> Option<String> {
        let peers = &messages.machine.endpoint.peers;
        if let Some(peer) = self.find_sender(context, |p| !peers.has_left(p)) {
            messages.machine.endpoint.ask(peer);
        }
        self.all_left(messages, context)
    }

    fn all_left(&self, messages: &Messages, context: ContextId) -> Option<String> {
        let peers = &messages.machine.endpoint.peers;
        let has_left = |p| peers.has_left(p);
        if self.find_sender(context, |p| !has_left(p)).is_some() {
            return None;
        }
        // A wait that depends on no other rank is not told of others.
        self.find_sender(context, has_left)?;
        let itself = self.senders.get(&context);
        let itself = itself.is_none_or(|senders| senders.contains(self.me));
        if itself && self.has_threads && kw_sys::threads::are_others() {
            return None;
        }
        let gone = self.find_sender(context, |p| peers.why_gone(p).is_some());
        if let Some(why) = gone.and_then(|p| peers.why_gone(p)) {
            return Some(why.to_string());
        }
        let who = match self.senders.contains_key(&context) {
            true => "every rank of the communicator that could send",
            false => "every other rank of the job",
        };
        Some(format!(
            "{who} has called MPI_Finalize: no process is left that could send"
        ))
    }

    /// Another rank that sends in a context.
    fn find_sender(&self, context: ContextId, mut which: impl FnMut(Peer) -> bool) -> Option<Peer> {
        let mut other = |p: &Peer| *p != self.me && which(*p);
        match self.senders.get(&context) {
            Some(senders) => senders.iter().find(&mut other),
            None => (0..self.size).map(Peer).find(other),
        }
    }

    /// A rank that has left has done all its part on the shm region before it said so.
    fn ask_shm_region(
        &self,
        messages: &mut Messages,
        collectives: &Collectives,
        watch: Watch,
    ) -> Option<String> {
        let place = collectives.channels.place_of(watch)?;
        let mut all = (0..self.size).map(Peer);
        let peer = all.find(|&p| messages.paths.place(p) == Some(place))?;
        let why = self.ask_peer(messages, peer)?;
        (!collectives.channels.reached(watch)).then_some(why)
    }

    fn ask_run(
        &self,
        messages: &mut Messages,
        collectives: &Collectives,
        req: ReqId,
    ) -> Option<String> {
        let (watch, flights) = collectives.running.waits_of(req)?;
        if let Some(watch) = watch {
            return self.ask_shm_region(messages, collectives, watch);
        }
        let mut flights = flights.into_iter();
        flights.find_map(|r| self.ask_request(messages, collectives, r))
    }
}

impl Engine {
    /// Offers the messages that wait for an announcement; asks the ranks that a wait depends on
    /// whether they have left, and ends with an error the requests that wait for those that have.
    pub fn doubt(&mut self, on: WaitOn<'_>) {
        self.look_for_ended();
        self.messages.machine.sender().offer_deferred();
        self.messages.flush_some();
        if self.messages.machine.endpoint.peers.is_leaving() {
            return;
        }
        let departed = &mut self.departed;
        let hopeless = departed.ask(&mut self.messages, &self.parts.collectives, on);
        for (req, why) in hopeless {
            end_hopeless(self, req, why);
        }
        self.messages.flush();
    }
}

fn end_hopeless(engine: &mut Engine, req: ReqId, why: String) {
    if engine.messages.requests().awaits(req) != Awaits::Owner {
        return engine.messages.machine.fail(req, &why);
    }
    if let Some(run) = engine.parts.collectives.running.take(req) {
        let failure = engine.abandon(run, Failure::gone(why));
        let collectives = &mut engine.parts.collectives;
        collectives.end(&mut engine.messages, req, failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::with_processors;
    use kw_base::settings::Settings;
    use kw_path::sim::{SimNet, SimOptions};

    /// Rank 0 of three, which waits for any source in context 8, in which only rank 1 sends.
    fn rank() -> (Engine, Want) {
        let (_net, mut paths) = SimNet::new(3, 1, SimOptions::calm());
        let path = paths.remove(0);
        let start = with_processors(Box::new(path), Peer(0), &[0; 3], Settings::defaults());
        let mut engine = start.expect("a rank");
        let context = ContextId(8);
        let senders = Arc::new(Group::new(vec![Peer(1)]));
        engine.departed.set_senders(context, senders);
        let want = Want {
            context,
            source: None,
            tag: None,
        };
        (engine, want)
    }

    fn never_comes(engine: &Engine, want: Want) -> bool {
        let departed = &engine.departed;
        departed.never_comes(&engine.messages, &want).is_some()
    }

    #[test]
    fn a_wait_for_anybody_ends_when_all_who_send_there_have_left() {
        let (mut engine, want) = rank();
        let elsewhere = Want {
            context: ContextId(9),
            ..want
        };
        assert!(!never_comes(&engine, want));
        engine.messages.machine.on_left(Peer(2));
        assert!(!never_comes(&engine, want), "rank 1 is still there");
        engine.messages.machine.on_left(Peer(1));
        assert!(never_comes(&engine, want));
        engine.departed.set_threads(false);
        assert!(never_comes(&engine, elsewhere), "no rank is left at all");
    }
}
