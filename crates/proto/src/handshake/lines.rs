//! Authenticated lines of text after a handshake: each proves its sender, connection and line
//! number.
//!
//! On the wire a line is its proof (64 hexadecimal digits), a space, and the text. The proof is
//! keyed BLAKE3 under a key that only the two sides of this handshake can derive (from fresh nonces
//! of both), over the direction, the line number and the text. So an attacker cannot forge, repeat,
//! drop, reorder or reflect a line without detection. The text is not encrypted.

use super::{ACCEPTOR, Answered, INITIATOR, Proven, Talk, matches};

/// Sends lines.
pub struct Signer(End);

/// Receives lines.
pub struct Verifier(End);

/// One direction of a connection.
struct End {
    key: [u8; 32],
    role: &'static [u8; 16],
    /// Lines so far.
    count: u64,
}

impl End {
    fn proof(&self, line: &str) -> blake3::Hash {
        let mut h = blake3::Hasher::new_keyed(&self.key);
        h.update(self.role);
        h.update(&self.count.to_le_bytes());
        h.update(line.as_bytes());
        h.finalize()
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer {{ {} lines }}", self.0.count)
    }
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Verifier {{ {} lines }}", self.0.count)
    }
}

impl Signer {
    /// The text of one or more lines, each with its newline, as it is sent.
    pub fn sign(&mut self, lines: &str) -> String {
        let mut signed = String::new();
        for line in lines.lines() {
            let proof = self.0.proof(line);
            self.0.count += 1;
            signed += &format!("{} {line}\n", proof.to_hex());
        }
        signed
    }
}

impl Verifier {
    /// The text of a line that came, without its newline; `None` if it is not the next one of the
    /// other side.
    pub fn check<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        let (proof, line) = line.split_once(' ')?;
        if !matches(
            self.0.proof(line),
            blake3::Hash::from_hex(proof).ok()?.as_bytes(),
        ) {
            return None;
        }
        self.0.count += 1;
        Some(line)
    }
}

fn ends(talk: &Talk, ours: &'static [u8; 16], theirs: &'static [u8; 16]) -> (Signer, Verifier) {
    let key = *talk.proof(LINES).as_bytes();
    let end = |role| End {
        key,
        role,
        count: 0,
    };
    (Signer(end(ours)), Verifier(end(theirs)))
}

const LINES: &[u8; 16] = b"kw lines        ";

impl Answered {
    /// Authenticates the lines that this side sends, and verifies the other side's.
    pub fn lines(&self) -> (Signer, Verifier) {
        ends(&self.talk, INITIATOR, ACCEPTOR)
    }
}

impl Proven {
    /// Authenticates the lines that this side sends, and verifies the other side's.
    pub fn lines(&self) -> (Signer, Verifier) {
        ends(&self.talk, ACCEPTOR, INITIATOR)
    }
}
