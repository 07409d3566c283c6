//! A wait that lasts: whether it is for a rank that has called MPI_Finalize ([`kw_proto::p2p::Awaits`]) or whose process has ended, and
//! never ends.
//!
//! Called by the thread that waits, or has looked in vain for long, with the lane held.

use crate::collective::Failure;
use crate::collective::Watch;
use crate::engine::{Engine, ReqId, Want};
use crate::wait::WaitOn;
use kw_base::{ContextId, Peer};
use kw_proto::p2p::Awaits;
use kw_types::comm::Group;
use std::sync::Arc;
use std::time::Duration;

/// A wait that has lasted so long is doubted: whom it depends on is asked, at the price of one short message for each pair of ranks.
pub(crate) const DOUBT: Duration = Duration::from_millis(100);

impl Engine {
    /// This rank is in MPI_Finalize, and what it had to send is out.
    pub fn leave_job(&mut self) {
        self.machine.peers.leave(&mut self.machine.out);
        self.flush();
    }

    /// Offers what waits for an announcement; asks those whom a wait depends on whether they have
    /// left, and ends with an error what waits for those that have. A wait for several requests goes
    /// on while any of them can end.
    pub fn doubt(&mut self, on: WaitOn<'_>) {
        self.look_for_ended();
        self.machine.sender().offer_withheld();
        self.flush_some();
        if self.machine.peers.is_leaving() {
            return;
        }
        match (on.board, on.from) {
            (Some(watch), _) => {
                if let Some(why) = self.doubt_board(watch) {
                    self.collectives.departed = Some((watch, why));
                }
            }
            (None, Some(peer)) if on.requests.is_empty() => _ = self.doubt_peer(peer),
            (None, None) if on.requests.is_empty() => {
                if let Some(context) = on.context {
                    self.doubt_all(context);
                }
            }
            _ => {
                let why: Option<Vec<String>> =
                    on.requests.iter().map(|&r| self.doubt_request(r)).collect();
                for (&req, why) in on.requests.iter().zip(why.unwrap_or_default()) {
                    self.end_hopeless(req, why);
                }
            }
        }
        self.flush();
    }

    /// Says who sends in a context; in others all ranks of the job do.
    pub fn set_senders(&mut self, context: ContextId, senders: Arc<Group>) {
        self.senders.insert(context, senders);
    }

    /// The context is free.
    pub fn forget_senders(&mut self, context: ContextId) {
        self.senders.remove(&context);
    }

    /// Why a probe that has found nothing never will.
    pub fn never_comes(&self, want: &Want) -> Option<Failure> {
        let why = match want.source {
            Some((_, peer)) => self.machine.peers.why_left(peer),
            None => self.all_left(want.context),
        };
        why.map(Failure::gone)
    }

    /// What went wrong with a collective that waits on a board for a rank that has left.
    pub fn departed(&self, watch: Watch) -> Option<Failure> {
        let departed = self.collectives.departed.as_ref();
        departed
            .filter(|d| d.0 == watch)
            .map(|d| Failure::gone(d.1.clone()))
    }

    fn doubt_request(&mut self, req: ReqId) -> Option<String> {
        match self.machine.requests.awaits(req.0) {
            Awaits::Nobody => None,
            Awaits::Peer(peer) => self.doubt_peer(peer),
            Awaits::Anyone(context) => self.doubt_all(context),
            Awaits::Owner => self.doubt_run(req),
        }
    }

    fn doubt_peer(&mut self, peer: Peer) -> Option<String> {
        if peer == self.me() {
            return None;
        }
        self.machine.peers.ask(peer, &mut self.machine.out);
        self.machine.peers.why_left(peer)
    }

    /// One that is still there is enough, and so is one question.
    fn doubt_all(&mut self, context: ContextId) -> Option<String> {
        if let Some(peer) = self.find_sender(context, |p| !self.machine.peers.has_left(p)) {
            self.machine.peers.ask(peer, &mut self.machine.out);
        }
        self.all_left(context)
    }

    fn all_left(&self, context: ContextId) -> Option<String> {
        let has_left = |p| self.machine.peers.has_left(p);
        if self.find_sender(context, |p| !has_left(p)).is_some() {
            return None;
        }
        // Whoever waits for nobody but itself is not told of others.
        self.find_sender(context, has_left)?;
        let itself = self.senders.get(&context);
        let itself = itself.is_none_or(|senders| senders.contains(self.me()));
        if itself && self.has_threads && kw_sys::threads::are_others() {
            return None;
        }
        let gone = self.find_sender(context, |p| self.machine.peers.why_gone(p).is_some());
        if let Some(why) = gone.and_then(|p| self.machine.peers.why_gone(p)) {
            return Some(why.to_string());
        }
        let who = match self.senders.contains_key(&context) {
            true => "every rank of the communicator that could send",
            false => "every other rank of the job",
        };
        Some(format!(
            "{who} has called MPI_Finalize: nobody is left that could send"
        ))
    }

    /// Another rank that sends in a context.
    fn find_sender(&self, context: ContextId, mut which: impl FnMut(Peer) -> bool) -> Option<Peer> {
        let mut other = |p: &Peer| *p != self.me() && which(*p);
        match self.senders.get(&context) {
            Some(senders) => senders.iter().find(&mut other),
            None => (0..self.size()).map(Peer).find(other),
        }
    }

    /// A rank that has left has done all it will on the board before it said so.
    fn doubt_board(&mut self, watch: Watch) -> Option<String> {
        let place = self.collectives.desks.place_of(watch)?;
        let mut all = (0..self.size()).map(Peer);
        let peer = all.find(|&p| self.paths.place(p) == Some(place))?;
        let why = self.doubt_peer(peer)?;
        (!self.collectives.desks.reached(watch)).then_some(why)
    }

    fn doubt_run(&mut self, req: ReqId) -> Option<String> {
        let (watch, flights) = self.collectives.waits_of(req)?;
        if let Some(watch) = watch {
            return self.doubt_board(watch);
        }
        flights.into_iter().find_map(|r| self.doubt_request(r))
    }

    fn end_hopeless(&mut self, req: ReqId, why: String) {
        if self.machine.requests.awaits(req.0) != Awaits::Owner {
            return self.machine.fail(req.0, &why);
        }
        if let Some(run) = self.collectives.take_running(req) {
            let failure = self.abandon(run, Failure::gone(why));
            self.end_collective(req, failure);
        }
    }
}
