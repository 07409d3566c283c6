//! Connections that break, and links that go on over the next one.
//!
//! A link outlives its connections ([`super::stream`], [`kw_proto::retransmit`]). When one ends
//! without a goodbye, the data that its kernel still has is read, and the side that finds out first
//! dials the peer again, over every pair of addresses. The new connection's handshake tells under
//! the key which link it carries on and how much of it each side has
//! ([`Claim`](kw_proto::handshake::Claim)), and each goes on from there.
//!
//! | what happened | which side finds out | how it goes on |
//! | --- | --- | --- |
//! | the connection was reset or closed on the way | both sides, at the next poll | dialled by both; the lower rank's call counts |
//! | only one side was told | that side | its call reaches the other, whose connection then ends |
//! | the rank ended | its kernel closes the connection | three rounds (0.4 s) in which all addresses refuse: lost |
//! | its host or the route is gone | the kernel, after `Tuning::silence` without an answer | dialled for 5 s, then lost |
//! | the rank is stopped | neither: its kernel answers | its full socket may end the connection; the call waits until it goes on |
//!
//! A rank that was connected to, and never sent first, does not know where the peer listens; it
//! asks ([`Inbound::on_stray`]).

use super::connector::Connector;
use super::disconnect::End;
use super::link::Link;
use super::net::Net;
use crate::contract::Inbound;
use kw_base::Peer;

/// State of a link whose connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum After {
    /// We wanted the connection closed, and nothing was in flight: the link rests.
    Rest,
    /// The peer no longer exists.
    Nothing,
    /// Another connection carries it on.
    GoOn,
}

/// `closed`: we have said goodbye to all.
fn after(link: &mut Link, end: &End, closed: bool) -> After {
    if link.is_parting() && end.may_go_on() && link.is_idle() && link.is_acknowledged() {
        return After::Rest;
    }
    let stream = link.stream();
    let over = stream.has_goodbye() || closed && stream.is_flushed();
    match over || !stream.is_reliable() || !end.may_go_on() {
        true => After::Nothing,
        false => After::GoOn,
    }
}

impl Connector {
    /// A connection ended.
    #[cold]
    pub fn ended(&mut self, net: &mut Net, peer: Peer, end: End, inbound: &mut dyn Inbound) {
        let closed = net.peers.is_closed();
        let Some(link) = net.peers.link_mut(peer) else {
            return;
        };
        let end = match end {
            End::Closed if link.is_silent() => End::Silent,
            end => end,
        };
        let what = end.what(net.local.me, peer, &link.way());
        match after(link, &end, closed) {
            After::Rest => net.rest(peer, inbound),
            After::Nothing => {
                net.bury(peer, format!("{what}; {}", end.advice(peer)), inbound);
            }
            After::GoOn => {
                tracing::info!("{what}; another one is made");
                net.peers.part(peer, Some(what));
                net.ask_for_address(peer, inbound);
                self.go_on(net, peer);
            }
        }
    }
}
