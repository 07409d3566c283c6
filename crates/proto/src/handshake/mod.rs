//! How two ranks prove to each other that they belong to the same job, before the first frame.
//!
//! Every job has a 32-byte key. Both sides of a connection show that they know it by keyed BLAKE3
//! over fresh nonces of both; the proofs are bound to the job id, the protocol version, both ranks
//! and the direction, so that nothing that was said on one connection is of use on another (no
//! replay, no reflection). Nothing is encrypted. All messages have a fixed length, and a side reads
//! no byte past the message it waits for. Lines of text that follow prove themselves one by one
//! ([`Signer`], [`Verifier`]).
//!
//! ```text
//! initiator                                             acceptor
//! Offered    -- hello: magic version from to job nonce tag (96) -->  Listening
//!            <-- challenge: nonce, proof of the acceptor (64) --     Challenged
//! Answered   -- claim, proof of the initiator (56) -->               Proven
//!            <-- claim, verdict (56) --   Welcome: frames flow; Duplicate: there is another connection, close this one
//! ```
//!
//! `tag` depends on the key as well, so an unauthenticated peer does not even get an answer; only
//! `proof` protects from replay. Each state is a struct that is consumed by an event:
//! [`Progress::More`] returns it, [`Progress::Next`] returns the next one, and after a refusal
//! there is none. A [`Claim`] states each side's view of the link that the connection continues;
//! the proofs cover it. The verdict lets the acceptor choose between several connections of the
//! same pair (see `path/tcp`).

mod foreign;
mod lines;

pub use foreign::{Foreign, foreign_key};
pub use lines::{Signer, Verifier};

use crate::wire::VERSION;

/// Bytes of a nonce.
pub const NONCE_LEN: usize = 32;
/// Bytes of the initiator's first message.
pub const HELLO_LEN: usize = 96;
/// Bytes of the acceptor's answer.
pub const CHALLENGE_LEN: usize = 64;
/// Bytes of the initiator's proof, and of the verdict, each with its claim.
pub const PROOF_LEN: usize = CLAIM_LEN + TAG_LEN;
/// Bytes of a claim.
const CLAIM_LEN: usize = 24;
/// Bytes of a proof of the key.
const TAG_LEN: usize = 32;

const MAGIC: &[u8; 4] = b"KWhs";

/// One side's view of the link (see [`crate::retransmit`]) that a connection continues. All zero
/// for connections without links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Claim {
    /// Number of the link, chosen at random by the side that opened its first connection.
    pub link: u64,
    /// Connections that have carried the link so far, as far as this side knows.
    pub connections: u64,
    /// Bytes of the stream that were received.
    pub received: u64,
}

impl Claim {
    fn encode(self) -> [u8; CLAIM_LEN] {
        let mut b = [0; CLAIM_LEN];
        b[..8].copy_from_slice(&self.link.to_le_bytes());
        b[8..16].copy_from_slice(&self.connections.to_le_bytes());
        b[16..].copy_from_slice(&self.received.to_le_bytes());
        b
    }

    fn decode(b: &[u8]) -> Claim {
        let word = |at: usize| {
            let bytes = b.get(at..at + 8).and_then(|b| b.first_chunk());
            u64::from_le_bytes(*bytes.unwrap_or(&[0; 8]))
        };
        Claim {
            link: word(0),
            connections: word(8),
            received: word(16),
        }
    }
}

/// Fresh random bytes, given by the caller (this module has no source of them).
pub type Nonce = [u8; NONCE_LEN];

/// A key out of a secret that all know, for one purpose.
pub fn key_of(secret: &[u8], purpose: &str) -> [u8; 32] {
    let mut h = blake3::Hasher::new_derive_key("kittiwake: a key out of a secret");
    h.update(&(purpose.len() as u64).to_le_bytes());
    h.update(purpose.as_bytes());
    h.update(secret);
    *h.finalize().as_bytes()
}

fn id_of(name: &str) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&blake3::hash(name.as_bytes()).as_bytes()[..16]);
    id
}

/// Identity and secrets of this side.
#[derive(Clone)]
pub struct Identity {
    key: [u8; 32],
    job: [u8; 16],
    me: u32,
    size: u32,
    foreign: Vec<Foreign>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity {{ rank {} of {} }}", self.me, self.size)
    }
}

impl Identity {
    /// Rank `me` of the `size` ranks of a job.
    pub fn new(key: [u8; 32], job: &str, me: u32, size: u32) -> Identity {
        Identity {
            key,
            job: id_of(job),
            me,
            size,
            foreign: Vec::new(),
        }
    }

    /// Another job has been met.
    pub fn join(&mut self, foreign: Foreign) {
        self.foreign.push(foreign);
    }

    /// A job has ended, and is forgotten: it began at this peer.
    pub fn forget(&mut self, first: u32) {
        self.foreign.retain(|f| f.first != first);
    }

    /// The job of a peer, where it is another one.
    fn foreign(&self, peer: u32) -> Option<&Foreign> {
        let mut all = self.foreign.iter();
        all.find(|f| peer >= f.first && peer - f.first < f.size)
    }

    /// Whether this rank comes before a peer if one of two must be the first: the peer decides
    /// alike.
    pub fn precedes(&self, peer: u32) -> bool {
        self.foreign(peer).map_or(self.me < peer, |f| f.precedes)
    }

    /// There are `size` ranks from now on. A handshake that has begun knows only the earlier ones.
    pub fn grow(&mut self, size: u32) {
        self.size = self.size.max(size);
    }

    /// Starts a handshake with the intended rank; returns the bytes to send.
    pub fn offer(&self, to: u32, nonce: Nonce) -> (Offered, [u8; HELLO_LEN]) {
        let mut hello = [0; HELLO_LEN];
        hello[..4].copy_from_slice(MAGIC);
        hello[4..6].copy_from_slice(&VERSION.to_le_bytes());
        let (key, job, rank) = match self.foreign(to) {
            Some(f) => (f.key, f.job, to - f.first),
            None => (self.key, self.job, to),
        };
        hello[8..12].copy_from_slice(&self.me.to_le_bytes());
        hello[12..16].copy_from_slice(&rank.to_le_bytes());
        hello[16..32].copy_from_slice(&job);
        hello[32..64].copy_from_slice(&nonce);
        let tag = blake3::keyed_hash(&key, &hello[..64]);
        hello[64..].copy_from_slice(tag.as_bytes());
        let offered = Offered {
            talk: Talk::new(key, &hello),
            got: Partial::new(),
        };
        (offered, hello)
    }

    /// Waits for the hello of a peer.
    pub fn listen(&self, nonce: Nonce) -> Listening {
        Listening {
            identity: self.clone(),
            nonce,
            got: Partial::new(),
        }
    }
}

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Not our protocol at all.
    #[error("the other side does not speak this protocol")]
    Garbage,
    /// Another version.
    #[error("the other side speaks version {0}, this library {VERSION}")]
    Version(u16),
    /// Another job.
    #[error("the other side belongs to another job")]
    Job,
    /// The key is not the job's, or the message is not fresh.
    #[error("the other side could not prove the key of the job")]
    Key,
    /// An invalid rank, or not the intended one.
    #[error("rank {from} asked for rank {to}, which is not on this connection")]
    Rank {
        /// The rank that it claims to be.
        from: u32,
        /// The rank that it asked for.
        to: u32,
    },
}

/// Result of giving bytes to a state.
#[derive(Debug)]
pub enum Progress<S, N> {
    /// The message is not complete.
    More(S),
    /// On to the next state.
    Next(N),
    /// Close the connection.
    Refuse(Refusal),
}

/// The acceptor's final message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// This connection is kept; frames may flow.
    Welcome,
    /// Another connection of this pair is kept; close this one.
    Duplicate,
}

/// A message of `N` bytes, as far as it came.
#[derive(Clone, Debug)]
struct Partial<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> Partial<N> {
    fn new() -> Self {
        Partial {
            bytes: [0; N],
            have: 0,
        }
    }

    /// Takes the missing bytes of the message; returns whether it is complete.
    fn take(&mut self, input: &mut &[u8]) -> bool {
        let n = input.len().min(N - self.have);
        self.bytes[self.have..self.have + n].copy_from_slice(&input[..n]);
        self.have += n;
        *input = &input[n..];
        self.have == N
    }

    fn lacks(&self) -> usize {
        N - self.have
    }
}

/// The key and all public data of the handshake: every proof is bound to these.
#[derive(Clone)]
struct Talk {
    key: [u8; 32],
    transcript: [u8; HELLO_LEN + NONCE_LEN],
}

impl std::fmt::Debug for Talk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Talk")
    }
}

impl Talk {
    fn new(key: [u8; 32], hello: &[u8; HELLO_LEN]) -> Talk {
        let mut transcript = [0; HELLO_LEN + NONCE_LEN];
        transcript[..HELLO_LEN].copy_from_slice(hello);
        Talk { key, transcript }
    }

    fn answer(&mut self, nonce: &[u8]) {
        self.transcript[HELLO_LEN..].copy_from_slice(nonce);
    }

    /// Proof of the side in this `role`. Two proofs are compared in constant time.
    fn proof(&self, role: &[u8; 16]) -> blake3::Hash {
        self.proof_of(role, &[])
    }

    /// A proof that also covers a claim.
    fn proof_of(&self, role: &[u8; 16], claim: &[u8]) -> blake3::Hash {
        let mut h = blake3::Hasher::new_keyed(&self.key);
        h.update(role);
        h.update(&self.transcript);
        h.update(claim);
        h.finalize()
    }

    /// A claim, with the proof of the side in this `role`.
    fn claim(&self, role: &[u8; 16], claim: Claim) -> [u8; PROOF_LEN] {
        let mut bytes = [0; PROOF_LEN];
        let (transcript, proof) = bytes.split_at_mut(CLAIM_LEN);
        transcript.copy_from_slice(&claim.encode());
        proof.copy_from_slice(self.proof_of(role, transcript).as_bytes());
        bytes
    }

    /// The claim in `bytes`, if they prove this `role`.
    fn check(&self, role: &[u8; 16], bytes: &[u8; PROOF_LEN]) -> Option<Claim> {
        let (transcript, proof) = bytes.split_at(CLAIM_LEN);
        let proof = proof.first_chunk()?;
        matches(self.proof_of(role, transcript), proof).then(|| Claim::decode(transcript))
    }

    fn session(&self) -> u64 {
        let secret = self.proof(SESSION);
        u64::from_le_bytes(*secret.as_bytes().first_chunk().unwrap_or(&[0; 8]))
    }
}

const ACCEPTOR: &[u8; 16] = b"kw acceptor     ";
const INITIATOR: &[u8; 16] = b"kw initiator    ";
const WELCOME: &[u8; 16] = b"kw welcome      ";
const DUPLICATE: &[u8; 16] = b"kw duplicate    ";
const SESSION: &[u8; 16] = b"kw session      ";

fn matches(proof: blake3::Hash, bytes: &[u8; TAG_LEN]) -> bool {
    proof == blake3::Hash::from_bytes(*bytes)
}

/// Initiator: hello is sent, the challenge is awaited.
#[derive(Clone, Debug)]
pub struct Offered {
    talk: Talk,
    got: Partial<CHALLENGE_LEN>,
}

impl Offered {
    /// Bytes that may be read from the connection now.
    pub fn wants(&self) -> usize {
        self.got.lacks()
    }

    /// Takes bytes of the challenge; in the end gives the proof to be sent.
    pub fn handle(self, input: &mut &[u8]) -> Progress<Offered, (Answered, [u8; PROOF_LEN])> {
        self.handle_with(input, Claim::default())
    }

    /// Encodes with a proof that also covers this side's claim.
    pub fn handle_with(
        mut self,
        input: &mut &[u8],
        claim: Claim,
    ) -> Progress<Offered, (Answered, [u8; PROOF_LEN])> {
        if !self.got.take(input) {
            return Progress::More(self);
        }
        let (nonce, proof) = self.got.bytes.split_at(NONCE_LEN);
        self.talk.answer(nonce);
        let mut theirs = [0; TAG_LEN];
        theirs.copy_from_slice(proof);
        if !matches(self.talk.proof(ACCEPTOR), &theirs) {
            return Progress::Refuse(Refusal::Key);
        }
        let mine = self.talk.claim(INITIATOR, claim);
        let next = Answered {
            talk: self.talk,
            got: Partial::new(),
        };
        Progress::Next((next, mine))
    }
}

/// Initiator: the proof is sent, the verdict is awaited.
#[derive(Clone, Debug)]
pub struct Answered {
    talk: Talk,
    got: Partial<PROOF_LEN>,
}

impl Answered {
    /// Bytes that may be read from the connection now.
    pub fn wants(&self) -> usize {
        self.got.lacks()
    }

    /// A number known only to the two sides of this handshake.
    pub fn session(&self) -> u64 {
        self.talk.session()
    }

    /// Takes bytes of the verdict.
    pub fn handle(self, input: &mut &[u8]) -> Progress<Answered, Verdict> {
        match self.handle_with(input) {
            Progress::More(s) => Progress::More(s),
            Progress::Next((verdict, _)) => Progress::Next(verdict),
            Progress::Refuse(why) => Progress::Refuse(why),
        }
    }

    /// Also returns the other side's claim about the link.
    pub fn handle_with(mut self, input: &mut &[u8]) -> Progress<Answered, (Verdict, Claim)> {
        if !self.got.take(input) {
            return Progress::More(self);
        }
        let transcript = |role| self.talk.check(role, &self.got.bytes);
        match (transcript(WELCOME), transcript(DUPLICATE)) {
            (Some(claim), _) => Progress::Next((Verdict::Welcome, claim)),
            (_, Some(claim)) => Progress::Next((Verdict::Duplicate, claim)),
            _ => Progress::Refuse(Refusal::Key),
        }
    }
}

/// Acceptor: waits for hello.
#[derive(Debug)]
pub struct Listening {
    identity: Identity,
    nonce: Nonce,
    got: Partial<HELLO_LEN>,
}

impl Listening {
    /// Bytes that may be read from the connection now.
    pub fn wants(&self) -> usize {
        self.got.lacks()
    }

    /// Takes bytes of hello; in the end gives the challenge to be sent.
    pub fn handle(
        mut self,
        input: &mut &[u8],
    ) -> Progress<Listening, (Challenged, [u8; CHALLENGE_LEN])> {
        let complete = self.got.take(input);
        let begun = self.got.have.min(MAGIC.len());
        if self.got.bytes[..begun] != MAGIC[..begun] {
            return Progress::Refuse(Refusal::Garbage);
        }
        if !complete {
            return Progress::More(self);
        }
        let (from, key) = match self.check() {
            Ok(known) => known,
            Err(why) => return Progress::Refuse(why),
        };
        let mut talk = Talk::new(key, &self.got.bytes);
        talk.answer(&self.nonce);
        let mut challenge = [0; CHALLENGE_LEN];
        challenge[..NONCE_LEN].copy_from_slice(&self.nonce);
        challenge[NONCE_LEN..].copy_from_slice(talk.proof(ACCEPTOR).as_bytes());
        let next = Challenged {
            from,
            talk,
            got: Partial::new(),
        };
        Progress::Next((next, challenge))
    }

    /// The peer that says hello, and the key that it has shown.
    fn check(&self) -> Result<(u32, [u8; 32]), Refusal> {
        let b = &self.got.bytes;
        let word = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let version = u16::from_le_bytes([b[4], b[5]]);
        if version != VERSION || b[6..8] != [0, 0] {
            return Err(Refusal::Version(version));
        }
        let identity = &self.identity;
        let foreign = identity.foreign.iter().find(|f| b[16..32] == f.job);
        let (key, first, size) = match foreign {
            _ if b[16..32] == identity.job => (identity.key, 0, identity.size),
            Some(f) => (f.key, f.first, f.size),
            None => return Err(Refusal::Job),
        };
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&b[64..]);
        if !matches(blake3::keyed_hash(&key, &b[..64]), &tag) {
            return Err(Refusal::Key);
        }
        let (from, to) = (word(8), word(12));
        let itself = first == 0 && from == to;
        if to != identity.me || itself || from >= size {
            return Err(Refusal::Rank { from, to });
        }
        Ok((first + from, key))
    }
}

/// Acceptor: the challenge is sent, the proof is awaited.
#[derive(Clone, Debug)]
pub struct Challenged {
    from: u32,
    talk: Talk,
    got: Partial<PROOF_LEN>,
}

impl Challenged {
    /// Bytes that may be read from the connection now.
    pub fn wants(&self) -> usize {
        self.got.lacks()
    }

    /// The rank that the other side claims to be (not proven yet).
    pub fn claims(&self) -> u32 {
        self.from
    }

    /// Takes bytes of the proof.
    pub fn handle(mut self, input: &mut &[u8]) -> Progress<Challenged, Proven> {
        if !self.got.take(input) {
            return Progress::More(self);
        }
        let Some(claim) = self.talk.check(INITIATOR, &self.got.bytes) else {
            return Progress::Refuse(Refusal::Key);
        };
        Progress::Next(Proven {
            from: self.from,
            claim,
            talk: self.talk,
        })
    }
}

/// Acceptor: the other side has proven its rank and waits for the verdict.
#[derive(Debug)]
pub struct Proven {
    from: u32,
    claim: Claim,
    talk: Talk,
}

impl Proven {
    /// The rank of the other side.
    pub fn rank(&self) -> u32 {
        self.from
    }

    /// A number known only to the two sides of this handshake.
    pub fn session(&self) -> u64 {
        self.talk.session()
    }

    /// The other side's claim about the link.
    pub fn claim(&self) -> Claim {
        self.claim
    }

    /// The bytes of the verdict.
    pub fn verdict(self, verdict: Verdict) -> [u8; PROOF_LEN] {
        self.verdict_with(verdict, Claim::default())
    }

    /// Finishes with this side's claim.
    pub fn verdict_with(self, verdict: Verdict, claim: Claim) -> [u8; PROOF_LEN] {
        let role = match verdict {
            Verdict::Welcome => WELCOME,
            Verdict::Duplicate => DUPLICATE,
        };
        self.talk.claim(role, claim)
    }
}

#[cfg(test)]
mod tests;
