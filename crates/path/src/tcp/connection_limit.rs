//! More peers than connections: a process may open only a limited number of files.
//!
//! When a connection has to be made or accepted and there is no room, the idle one that was used
//! longest ago is given up: this rank sends a goodbye that is the connection's and not the rank's
//! ([`PARTING`](super::reader::PARTING)), and the peer closes it as soon as nothing is in flight
//! and our kernel has acknowledged all that it sent. The link stays, and continues over the next
//! connection, as after one that broke ([`super::reconnect`]). If anything was sent after the
//! goodbye, that connection is made at once.
//!
//! A quarter of the room is kept for incoming calls: if all ranks were full of outgoing calls, none
//! would be answered. Calls without room wait here; incoming calls wait in the system's queue, with
//! the acceptor shut, so that they do not keep this rank awake.

/// The fewest connections that are worth trying with.
const LEAST: usize = 4;

/// How many connections may be open at once.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimit {
    /// `None`: as many as there are peers.
    most: Option<usize>,
}

impl ConnectionLimit {
    /// `most` connections, if links can do without one for a while; `usize::MAX` means unlimited.
    pub fn new(reliable: bool, most: usize) -> ConnectionLimit {
        let limited = reliable && most < usize::MAX;
        ConnectionLimit {
            most: limited.then_some(most.max(LEAST)),
        }
    }

    /// Whether a peer may be called while this many connections are open.
    pub fn may_call(&self, open: usize) -> bool {
        self.most.is_none_or(|most| open + most / 4 < most)
    }

    /// Whether a further connection of a peer may be made.
    pub fn may_add_rail(&self, open: usize) -> bool {
        self.most.is_none_or(|most| open * 2 < most)
    }

    /// How many callers may come in.
    pub fn room(&self, open: usize) -> usize {
        self.most
            .map_or(usize::MAX, |most| most.saturating_sub(open))
    }

    /// The system gives no more than these: the program has opened files itself. Returns whether
    /// there is a limit at all.
    pub fn found_full(&mut self, open: usize) -> bool {
        if let Some(most) = &mut self.most {
            *most = open.max(LEAST);
        }
        self.most.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_kept_for_those_who_call() {
        let limit = ConnectionLimit::new(true, 8);
        let may: Vec<_> = (0..9).filter(|&open| limit.may_call(open)).collect();
        assert_eq!(may, [0, 1, 2, 3, 4, 5]);
        assert_eq!([0, 6, 8, 9].map(|open| limit.room(open)), [8, 2, 0, 0]);
        assert!(limit.may_add_rail(3) && !limit.may_add_rail(4));
    }

    #[test]
    fn too_few_are_not_tried_with() {
        let mut limit = ConnectionLimit::new(true, 1);
        assert_eq!(limit.room(0), LEAST);
        assert!(limit.found_full(7));
        assert_eq!(limit.room(0), 7);
        assert!(limit.found_full(0));
        assert_eq!(limit.room(0), LEAST);
    }

    #[test]
    fn a_link_that_ends_with_its_connection_is_not_given_up() {
        for mut limit in [
            ConnectionLimit::new(false, 5),
            ConnectionLimit::new(true, usize::MAX),
        ] {
            assert!(limit.may_call(1 << 20) && limit.may_add_rail(1 << 20));
            assert!(!limit.found_full(3));
            assert!(limit.room(1 << 20) > 1 << 20);
        }
    }
}
