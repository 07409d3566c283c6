//! How two ranks make a connection: the handshake of [`crate::handshake`], whose messages may be
//! lost and repeated.
//!
//! ```text
//! Caller                                                              Listener
//! Hello, padded, to every address, again and again  -------------->   a guest is noted
//!        <--------------  Challenge, padded alike, to where the hello came from (again for every repetition)
//! Proof, to where the first challenge came from, again and again -->  proven: the owner welcomes, or waits
//!        <--------------  Verdict (again for every repetition of the proof)
//! ```
//! The first challenge that proves the key decides between the addresses: it is the fastest. Hello
//! and challenge are as long as the longest datagram that will be sent, so a route that does not
//! carry such datagrams is found before it matters: every third hello is as short as every network
//! must carry ([`SHORTEST`]).
//!
//! When both ranks call each other, the call of the lower one counts: it does not listen while it
//! calls. A datagram that proves nothing gets no answer and changes nothing; it is only counted.

use super::Session;
use super::packet::{self, HEAD_LEN, Head, Kind};
use crate::handshake::{
    Answered, Challenged, HELLO_LEN, Identity, Nonce, Offered, PROOF_LEN, Progress, Proven, Verdict,
};
use kw_base::Tick;
use std::time::Duration;

/// Bytes of the longest datagram that every network must carry: 1280 (RFC 8200, 5) less the headers
/// of IPv6 and UDP.
pub const SHORTEST: usize = 1232;
/// First pause before a message is repeated; it doubles.
const PAUSE: Duration = Duration::from_millis(5);
/// Longest pause: this long after it gets back to work, a rank that computed is connected.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How long a guest may take to prove itself.
const SLOW: Duration = Duration::from_secs(120);
/// Pending callers of one rank at a time: an attacker may repeat old hellos.
const GUESTS: usize = 4;
/// Guests that may be noted in addition to one for each rank.
const SPARE: usize = 32;

/// A message of the handshake as a datagram of `size` bytes, or just long enough when `size` is
/// less.
fn datagram(kind: Kind, from: u32, size: u64, body: &[u8], padded: usize) -> Vec<u8> {
    let head = Head {
        kind,
        flags: 0,
        from,
        session: 0,
        number: 0,
        offset: size,
    };
    let mut bytes = vec![0; packet::LONGEST_HEAD.max(HEAD_LEN + body.len())];
    let n = head.encode(None, &mut bytes);
    bytes[n..n + body.len()].copy_from_slice(body);
    bytes.truncate(n + body.len());
    bytes.resize(padded.max(bytes.len()), 0);
    packet::seal(&mut bytes, 0);
    bytes
}

fn session(secret: u64) -> Session {
    Session {
        // Zero means that there is none yet.
        number: (secret as u32).max(1),
        seed: (secret >> 32) as u32,
    }
}

/// State of a caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// A useless datagram.
    Nothing,
    /// The first challenge: from now on only this route is used. The proof is ready to be sent.
    Challenged,
    /// Frames may flow, in datagrams of at most this many bytes.
    Welcome(Session, usize),
}

#[derive(Debug)]
enum Stage {
    Offered(Offered, [u8; HELLO_LEN]),
    Answered(Answered, [u8; PROOF_LEN]),
}

/// One rank that calls another.
#[derive(Debug)]
pub struct Caller {
    me: u32,
    longest: usize,
    agreed: usize,
    stage: Stage,
    sent: u32,
    again: Tick,
}

impl Caller {
    /// Calls rank `to`; datagrams may be `longest` bytes long.
    pub fn new(identity: &Identity, me: u32, to: u32, nonce: Nonce, longest: usize) -> Caller {
        let (offered, hello) = identity.offer(to, nonce);
        Caller {
            me,
            longest,
            agreed: longest,
            stage: Stage::Offered(offered, hello),
            sent: 0,
            again: Tick::default(),
        }
    }

    /// Message to send now, to every address or, after the challenge, to its source.
    pub fn poll_transmit(&mut self, now: Tick) -> Option<Vec<u8>> {
        if now < self.again {
            return None;
        }
        self.again = now + (PAUSE * (1 << self.sent.min(8))).min(LONGEST_PAUSE);
        self.sent += 1;
        Some(match &self.stage {
            Stage::Offered(_, hello) => {
                let size = if self.sent.is_multiple_of(3) {
                    SHORTEST.min(self.longest)
                } else {
                    self.longest
                };
                datagram(Kind::Hello, self.me, 0, hello, size)
            }
            Stage::Answered(_, proof) => {
                datagram(Kind::Proof, self.me, self.agreed as u64, proof, 0)
            }
        })
    }

    /// When `poll_transmit` has a message.
    pub fn next_timeout(&self) -> Tick {
        self.again
    }

    /// Handles a datagram of the rank that is called.
    pub fn receive(&mut self, datagram: &[u8]) -> Heard {
        let Some(packet) = packet::open(datagram, 0) else {
            return Heard::Nothing;
        };
        match (&self.stage, packet.head.kind) {
            (Stage::Offered(offered, _), Kind::Challenge) => {
                let mut body = packet.body;
                let Progress::Next((answered, proof)) = offered.clone().handle(&mut body) else {
                    return Heard::Nothing;
                };
                self.agreed = datagram.len().min(self.longest);
                self.stage = Stage::Answered(answered, proof);
                (self.sent, self.again) = (0, Tick::default());
                Heard::Challenged
            }
            (Stage::Answered(answered, _), Kind::Verdict) => {
                let (secret, mut body) = (answered.session(), packet.body);
                match answered.clone().handle(&mut body) {
                    Progress::Next(Verdict::Welcome) => {
                        Heard::Welcome(session(secret), self.agreed)
                    }
                    _ => Heard::Nothing,
                }
            }
            _ => Heard::Nothing,
        }
    }
}

/// A rank that has said hello, and has not proven itself.
#[derive(Debug)]
struct Guest {
    from: u32,
    hello: [u8; HELLO_LEN],
    challenge: [u8; crate::handshake::CHALLENGE_LEN],
    state: Challenged,
    until: Tick,
}

/// The listener's reaction to a datagram.
#[derive(Debug)]
pub enum Caught {
    /// None; `true`: it was not authenticated.
    Nothing(bool),
    /// This is the answer, to where it came from.
    Answer(Vec<u8>),
    /// The rank has proven itself.
    Proven(Box<Arrival>),
}

/// A rank that has proven itself and waits for the verdict.
#[derive(Debug)]
pub struct Arrival {
    proven: Proven,
    me: u32,
    proof: [u8; PROOF_LEN],
    /// Bytes of the longest datagram.
    pub datagram: usize,
}

/// The welcome of a connection that is in use, for callers that did not receive it.
#[derive(Clone, Debug)]
pub struct Welcome {
    proof: [u8; PROOF_LEN],
    verdict: Vec<u8>,
}

impl Arrival {
    /// The rank.
    pub fn rank(&self) -> u32 {
        self.proven.rank()
    }

    /// Accepts it: the session, and the welcome that has to be sent.
    pub fn welcome(self) -> (Session, Welcome) {
        let session = session(self.proven.session());
        let verdict = self.proven.verdict(Verdict::Welcome);
        let verdict = datagram(Kind::Verdict, self.me, 0, &verdict, 0);
        let welcome = Welcome {
            proof: self.proof,
            verdict,
        };
        (session, welcome)
    }
}

impl Welcome {
    /// The datagram.
    pub fn datagram(&self) -> &[u8] {
        &self.verdict
    }

    /// Whether this datagram repeats the proof that was welcomed: the welcome was lost.
    pub fn is_asked_for(&self, datagram: &[u8]) -> bool {
        packet::open(datagram, 0)
            .is_some_and(|p| p.head.kind == Kind::Proof && p.body.starts_with(&self.proof))
    }
}

/// The listening side, which notes a rank's guests.
#[derive(Debug)]
pub struct Listener {
    identity: Identity,
    me: u32,
    longest: usize,
    guests: Vec<Guest>,
    most: usize,
}

impl Listener {
    /// The listener of rank `me` of a job of `size` ranks; datagrams may be `longest` bytes long.
    pub fn new(identity: Identity, me: u32, size: u32, longest: usize) -> Listener {
        Listener {
            identity,
            me,
            longest,
            guests: Vec::new(),
            most: size as usize + SPARE,
        }
    }

    /// There are `size` ranks from now on.
    pub fn grow(&mut self, size: u32) {
        self.identity.grow(size);
        self.most = self.most.max(size as usize + SPARE);
    }

    /// Processes a datagram from an address without a connection. `nonce`: fresh random bytes, in
    /// case they are needed.
    pub fn receive(&mut self, now: Tick, datagram: &[u8], nonce: Nonce) -> Caught {
        let Some(packet) = packet::open(datagram, 0) else {
            return Caught::Nothing(true);
        };
        match packet.head.kind {
            Kind::Hello => self.hello(now, datagram.len(), packet.body, nonce),
            Kind::Proof => self.proof(packet.head, packet.body),
            // Late messages of a handshake that is over.
            _ => Caught::Nothing(false),
        }
    }

    fn hello(&mut self, now: Tick, size: usize, body: &[u8], nonce: Nonce) -> Caught {
        let Some(hello) = body.first_chunk::<HELLO_LEN>() else {
            return Caught::Nothing(true);
        };
        let (me, size) = (self.me, size.min(self.longest));
        let known = self.guests.iter().position(|g| g.hello == *hello);
        let guest = match known {
            Some(i) => &self.guests[i],
            None => match self.note(now, hello, nonce) {
                Some(guest) => guest,
                None => return Caught::Nothing(true),
            },
        };
        Caught::Answer(datagram(Kind::Challenge, me, 0, &guest.challenge, size))
    }

    /// A new guest, if the hello shows the key.
    fn note(&mut self, now: Tick, hello: &[u8; HELLO_LEN], nonce: Nonce) -> Option<&Guest> {
        let mut input = &hello[..];
        let Progress::Next((state, challenge)) = self.identity.listen(nonce).handle(&mut input)
        else {
            return None;
        };
        let from = state.claims();
        self.guests.retain(|g| g.until > now);
        let same = self.guests.iter().filter(|g| g.from == from).count();
        if same >= GUESTS || self.guests.len() >= self.most {
            let oldest = self
                .guests
                .iter()
                .position(|g| same < GUESTS || g.from == from);
            self.guests.remove(oldest.unwrap_or(0));
        }
        self.guests.push(Guest {
            from,
            hello: *hello,
            challenge,
            state,
            until: now + SLOW,
        });
        self.guests.last()
    }

    fn proof(&mut self, head: Head, body: &[u8]) -> Caught {
        let Some(proof) = body.first_chunk::<PROOF_LEN>() else {
            return Caught::Nothing(true);
        };
        let datagram = (head.offset as usize).clamp(SHORTEST.min(self.longest), self.longest);
        for guest in self.guests.iter().filter(|g| g.from == head.from) {
            let mut input = &proof[..];
            if let Progress::Next(proven) = guest.state.clone().handle(&mut input) {
                return Caught::Proven(Box::new(Arrival {
                    proven,
                    me: self.me,
                    proof: *proof,
                    datagram,
                }));
            }
        }
        Caught::Nothing(true)
    }

    /// The rank has a connection: its guests are forgotten.
    pub fn forget(&mut self, rank: u32) {
        self.guests.retain(|g| g.from != rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [5; 32];
    const LONGEST: usize = 1472;

    fn rank(me: u32) -> Identity {
        Identity::new(KEY, "job", me, 4)
    }

    fn listener(me: u32) -> Listener {
        Listener::new(rank(me), me, 4, LONGEST)
    }

    fn call(me: u32, to: u32) -> Caller {
        Caller::new(&rank(me), me, to, [me as u8; 32], LONGEST)
    }

    fn at(ms: u64) -> Tick {
        Tick(ms * 1_000_000)
    }

    fn answer(c: Caught) -> Vec<u8> {
        match c {
            Caught::Answer(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    fn arrival(c: Caught) -> Arrival {
        match c {
            Caught::Proven(a) => *a,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn two_ranks_come_to_one_session_though_everything_is_sent_twice() {
        let (mut caller, mut listener) = (call(1, 0), listener(0));
        let hello = caller.poll_transmit(at(0)).unwrap();
        assert_eq!(hello.len(), LONGEST);
        let challenge = answer(listener.receive(at(1), &hello, [8; 32]));
        assert_eq!(
            challenge,
            answer(listener.receive(at(2), &hello, [9; 32])),
            "the same guest"
        );
        assert_eq!(caller.receive(&challenge), Heard::Challenged);
        assert_eq!(caller.receive(&challenge), Heard::Nothing);
        let proof = caller.poll_transmit(at(3)).unwrap();
        assert_eq!(caller.poll_transmit(at(4)), None, "not before the pause");
        assert_eq!(caller.poll_transmit(at(9)).as_ref(), Some(&proof));
        let a = arrival(listener.receive(at(4), &proof, [8; 32]));
        assert_eq!((a.rank(), a.datagram), (1, LONGEST));
        let (session, welcome) = a.welcome();
        assert!(welcome.is_asked_for(&proof) && !welcome.is_asked_for(&hello));
        assert_eq!(
            caller.receive(welcome.datagram()),
            Heard::Welcome(session, LONGEST)
        );
    }

    #[test]
    fn a_way_that_carries_no_long_datagrams_gets_short_ones() {
        let (mut caller, mut listener) = (call(1, 0), listener(0));
        let hellos: Vec<_> = (0..3)
            .filter_map(|i| caller.poll_transmit(at(1000 * i)))
            .collect();
        let short = hellos
            .iter()
            .find(|h| h.len() == SHORTEST)
            .expect("one is short");
        let challenge = answer(listener.receive(at(1), short, [8; 32]));
        assert_eq!(challenge.len(), SHORTEST);
        caller.receive(&challenge);
        let proof = caller.poll_transmit(at(5000)).unwrap();
        assert_eq!(
            arrival(listener.receive(at(2), &proof, [8; 32])).datagram,
            SHORTEST
        );
    }

    #[test]
    fn strangers_liars_and_echoes_change_nothing() {
        let mut listener = listener(0);
        let other_key = Identity::new([6; 32], "job", 1, 4);
        let mut stranger = Caller::new(&other_key, 1, 0, [1; 32], LONGEST);
        let wrong_rank = call(1, 2).poll_transmit(at(0)).unwrap();
        let good = call(1, 0).poll_transmit(at(0)).unwrap();
        let mut damaged = good.clone();
        damaged[60] ^= 1;
        let short = &good[..70];
        for bytes in [
            &stranger.poll_transmit(at(0)).unwrap()[..],
            &wrong_rank,
            &damaged,
            short,
            b"GET / HTTP/1.0",
            b"",
        ] {
            assert!(
                matches!(
                    listener.receive(at(0), bytes, [8; 32]),
                    Caught::Nothing(true)
                ),
                "{} bytes",
                bytes.len()
            );
        }
        assert!(listener.guests.is_empty());
        // An old hello, repeated by an eavesdropper, gets an answer that is useless to it.
        let challenge = answer(listener.receive(at(0), &good, [8; 32]));
        let mut liar = Caller::new(&other_key, 1, 0, [1; 32], LONGEST);
        assert_eq!(liar.receive(&challenge), Heard::Nothing);
        let old_proof = {
            let (mut c, mut d) = (call(1, 0), super::tests::listener(0));
            let hello = c.poll_transmit(at(0)).unwrap();
            c.receive(&answer(d.receive(at(0), &hello, [77; 32])));
            c.poll_transmit(at(0)).unwrap()
        };
        assert!(
            matches!(
                listener.receive(at(0), &old_proof, [8; 32]),
                Caught::Nothing(true)
            ),
            "of another challenge"
        );
    }

    #[test]
    fn old_hellos_do_not_fill_the_table_of_guests_or_drive_another_rank_out() {
        let mut listener = listener(0);
        let mut honest = call(2, 0);
        let challenge =
            answer(listener.receive(at(0), &honest.poll_transmit(at(0)).unwrap(), [1; 32]));
        for i in 0..100 {
            let mut c = Caller::new(&rank(1), 1, 0, [i; 32], LONGEST);
            answer(listener.receive(at(1), &c.poll_transmit(at(0)).unwrap(), [2; 32]));
        }
        assert!(
            listener.guests.len() <= GUESTS + 1,
            "{}",
            listener.guests.len()
        );
        honest.receive(&challenge);
        let proof = honest.poll_transmit(at(2)).unwrap();
        assert_eq!(arrival(listener.receive(at(2), &proof, [3; 32])).rank(), 2);
        listener.forget(1);
        assert_eq!(listener.guests.len(), 1);
    }
}
