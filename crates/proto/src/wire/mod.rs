//! The protocol: what one rank sends to another, byte by byte.
//!
//! A **frame** is a 32-byte header and a body. Paths carry frames, in order and whole, and know
//! nothing of their meaning; [`crate::p2p`] knows their meaning and nothing of paths. All numbers
//! are little-endian.
//!
//! ```text
//! byte 0      kind         see [`Kind`]
//!      1      flags        [`AHEAD`] or zero
//!      2..4   version      [`VERSION`]
//!      4..8   context      context id of the communicator      } or, in frames that answer, one 64-bit
//!      8..12  source       sender's rank in the communicator   } `aux` (a token of the answering side)
//!      12..16 tag          signed
//!      16..24 len          length of the message in bytes (not of the body)
//!      24..32 token        names a request of the sending or of the receiving rank
//! ```

/// Version of the frame format; both sides of a connection must have the same.
pub const VERSION: u16 = 10;

/// Flag of a path that joins short frames: the sender runs ahead, so frames that were read should
/// be acknowledged at once. Not part of a [`Header`].
pub const AHEAD: u8 = 1;

/// Bytes of a header.
pub const HEADER_LEN: usize = 32;

/// Bytes of the body of [`Kind::Rts`] and [`Kind::Announce`].
pub const EXTENSION_LEN: usize = 16;

/// Bytes of the body of [`Kind::KeyedRts`].
pub const KEYED_LEN: usize = EXTENSION_LEN + KEY_LEN;

/// Bytes of the key of remote memory.
pub const KEY_LEN: usize = 16;

/// Memory of another rank, as that rank named it: its first byte, and the key that a network card
/// needs to grant access. Its length travels beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteRegion {
    /// Address in the memory of that rank.
    pub address: u64,
    /// Key for a path that needs one; zeros: none. Paths between ranks of one host ignore it.
    pub key: [u8; KEY_LEN],
}

impl RemoteRegion {
    /// A region of a path that needs no key.
    #[inline]
    pub fn at(address: u64) -> RemoteRegion {
        RemoteRegion {
            address,
            key: [0; KEY_LEN],
        }
    }

    /// Whether it has a key.
    #[inline]
    pub fn is_keyed(&self) -> bool {
        self.key != [0; KEY_LEN]
    }
}

/// Kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A message with its payload. `token`: type signature of the data (KW_CHECK), or zero.
    Eager = 1,
    /// Like `Eager`, and the receiver answers `SyncAck` when it matches. `token`: sender's request.
    EagerSync = 2,
    /// Request to send. `token`: sender's request. Body: address of the payload in the sender's
    /// memory (u64, zero if it cannot be fetched), then a byte that is 1 if the sender asks to have
    /// it fetched whatever its length, 3 bytes of zero, and the type signature of the data (u32,
    /// KW_CHECK; or zero).
    Rts = 3,
    /// Clear to send. `token`: sender's request; `aux`: receiver's request; `len`: bytes wanted.
    Cts = 4,
    /// Payload of an `Rts`, after its `Cts` or an `Announce`. `token`: receiver's request; `aux`:
    /// sender's request.
    Data = 5,
    /// The receiver fetched the payload itself. `token`: sender's request.
    Fin = 6,
    /// An `EagerSync` was matched. `token`: sender's request.
    SyncAck = 7,
    /// A posted receive, announced to its source. `token`: receiver's request; `len`: its capacity;
    /// body: see [`crate::p2p`].
    Announce = 8,
    /// Payload into an announced receive. `token`: receiver's request; context, source and tag as
    /// in `Eager`.
    Write = 9,
    /// The sender wants a message back that has not been matched. `token`: sender's request.
    Cancel = 10,
    /// Answer to `Cancel`: `len` is 1 when the message was taken back, 0 when it had been matched.
    CancelAck = 11,
    /// The rank will send nothing more (MPI_Finalize).
    Bye = 12,
    /// The payload of the frame that was interrupted goes on. For paths that let small frames
    /// through between the segments of a long payload; never handed on.
    More = 13,
    /// The sender of this frame keeps enough messages that came before their receives: send no more
    /// of the messages that it has not asked for.
    Pause = 14,
    /// Takes `Pause` back.
    Resume = 15,
    /// The payload of a frame comes in pieces, over several connections. `token`: its number; body:
    /// the frame's header. For paths that have several connections to a peer (see
    /// [`crate::stripe`]); never handed on, like the two below.
    Striped = 16,
    /// A piece of such a payload. `token`: its number; `aux`: offset of the first byte; `len`:
    /// bytes.
    Piece = 17,
    /// All pieces of a payload are in place. `token`: its number.
    Taken = 18,
    /// The sender of this frame waits for the receiver, and wants the answer `Left` as soon as the
    /// receiver is in MPI_Finalize.
    Waits = 19,
    /// The sender of this frame is in MPI_Finalize: everything that it had to send went before, and
    /// it receives nothing more.
    Left = 20,
    /// Like `Rts`, for a path that reads the sender's memory by a key. Body: that of `Rts`, then
    /// the key (16 bytes). A frame of its own, so that a request to send without a key shares a
    /// cache line with its header.
    KeyedRts = 21,
}

/// Class of a frame: the part that handles it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A message between two ranks: [`crate::p2p`].
    Message,
    /// The ranks themselves: [`crate::endpoint`].
    Control,
    /// The connection: handled by the path itself.
    Path,
}

impl Kind {
    /// The class of a frame of this kind.
    #[inline]
    pub fn class(self) -> Class {
        use Kind::*;
        match self {
            Eager | EagerSync | Rts | KeyedRts | Cts | Data | Fin | SyncAck | Announce | Write
            | Cancel | CancelAck | Pause | Resume => Class::Message,
            Waits | Left => Class::Control,
            Bye | More | Striped | Piece | Taken => Class::Path,
        }
    }

    /// The kind for a byte, if there is one.
    #[inline]
    pub fn from_byte(b: u8) -> Option<Kind> {
        use Kind::*;
        const ALL: [Kind; 21] = [
            Eager, EagerSync, Rts, Cts, Data, Fin, SyncAck, Announce, Write, Cancel, CancelAck,
            Bye, More, Pause, Resume, Striped, Piece, Taken, Waits, Left, KeyedRts,
        ];
        ALL.get((b as usize).wrapping_sub(1)).copied()
    }
}

/// The head of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The frame's contents.
    pub kind: Kind,
    /// Context id, or the low half of `aux`.
    pub context: u32,
    /// Rank of the sender in the communicator, or the high half of `aux`.
    pub source: u32,
    /// Tag.
    pub tag: i32,
    /// Bytes of the message.
    pub len: u64,
    /// A request of one of the sides.
    pub token: u64,
}

/// Why bytes are not a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// Unknown kind.
    #[error("frame of unknown kind {0}")]
    Kind(u8),
    /// Another version of the format, or unknown flags.
    #[error("frame of version {0}, this library speaks version {VERSION}")]
    Version(u16),
    /// A frame that cannot follow what came before.
    #[error("frame of kind {0:?} where none can be")]
    Misplaced(Kind),
}

impl Header {
    /// A frame that consists of its kind alone.
    pub fn bare(kind: Kind) -> Header {
        Header {
            kind,
            context: 0,
            source: 0,
            tag: 0,
            len: 0,
            token: 0,
        }
    }

    /// Bytes that follow the header in the frame.
    #[inline]
    pub fn body_len(&self) -> u64 {
        match self.kind {
            Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write | Kind::Piece => self.len,
            Kind::Rts | Kind::Announce => EXTENSION_LEN as u64,
            Kind::KeyedRts => KEYED_LEN as u64,
            Kind::Striped => HEADER_LEN as u64,
            _ => 0,
        }
    }

    /// The 64-bit token carried in place of context and source.
    #[inline]
    pub fn aux(&self) -> u64 {
        self.context as u64 | (self.source as u64) << 32
    }

    /// Puts a 64-bit token in place of context and source.
    #[inline]
    pub fn with_aux(mut self, aux: u64) -> Header {
        self.context = aux as u32;
        self.source = (aux >> 32) as u32;
        self
    }

    /// The 32 bytes on the wire.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut b = [0; HEADER_LEN];
        b[0] = self.kind as u8;
        b[2..4].copy_from_slice(&VERSION.to_le_bytes());
        b[4..8].copy_from_slice(&self.context.to_le_bytes());
        b[8..12].copy_from_slice(&self.source.to_le_bytes());
        b[12..16].copy_from_slice(&self.tag.to_le_bytes());
        b[16..24].copy_from_slice(&self.len.to_le_bytes());
        b[24..32].copy_from_slice(&self.token.to_le_bytes());
        b
    }

    /// Reads 32 bytes from the wire.
    #[inline(always)]
    pub fn decode(b: &[u8; HEADER_LEN]) -> Result<Header, WireError> {
        let kind = Kind::from_byte(b[0]).ok_or(WireError::Kind(b[0]))?;
        let version = u16::from_le_bytes([b[2], b[3]]);
        if version != VERSION || b[1] & !AHEAD != 0 {
            return Err(WireError::Version(version));
        }
        Ok(Header {
            kind,
            context: word(b, 4),
            source: word(b, 8),
            tag: word(b, 12) as i32,
            len: word(b, 16) as u64 | (word(b, 20) as u64) << 32,
            token: word(b, 24) as u64 | (word(b, 28) as u64) << 32,
        })
    }
}

#[inline]
fn word(b: &[u8; HEADER_LEN], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_survives_the_wire(kind in 1u8..=21, context: u32, source: u32, tag: i32, len: u64, token: u64) {
            let h = Header { kind: Kind::from_byte(kind).unwrap(), context, source, tag, len, token };
            prop_assert_eq!(Header::decode(&h.encode()), Ok(h));
            prop_assert_eq!(h.with_aux(token).aux(), token);
        }

        #[test]
        fn any_bytes_decode_or_are_refused(b: [u8; HEADER_LEN]) {
            if let Ok(h) = Header::decode(&b) {
                let mut same = h.encode();
                same[1] = b[1] & AHEAD;
                prop_assert_eq!(same, b);
            }
        }
    }
}
