//! Frames out of a stream of bytes that comes in pieces.

use crate::contract::{Destination, Inbound};
use kw_base::Peer;
use kw_proto::wire::{HEADER_LEN, Header, Kind, WireError};

/// Owner of the next bytes.
#[derive(Debug)]
enum ReadState {
    /// A header, of which this many bytes have arrived.
    Head(usize),
    /// The small body of a frame of protocol.
    Small(Header, Vec<u8>),
    /// A payload: where it goes, its length, bytes that have come.
    Payload(Destination, u64, u64),
}

/// The reading end of a stream.
#[derive(Debug)]
pub struct Reader {
    head: [u8; HEADER_LEN],
    place: ReadState,
    /// The goodbye was read: nothing follows.
    pub bye: bool,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            head: [0; HEADER_LEN],
            place: ReadState::Head(0),
            bye: false,
        }
    }
}

fn is_payload(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write
    )
}

impl Reader {
    /// Takes the next bytes, and passes on complete frames. A goodbye is noted, not passed on.
    pub fn take(
        &mut self,
        peer: Peer,
        mut bytes: &[u8],
        inbound: &mut dyn Inbound,
    ) -> Result<(), WireError> {
        while !bytes.is_empty() {
            bytes = match &mut self.place {
                ReadState::Head(have) => {
                    let n = bytes.len().min(HEADER_LEN - *have);
                    self.head[*have..*have + n].copy_from_slice(&bytes[..n]);
                    *have += n;
                    let rest = &bytes[n..];
                    if *have < HEADER_LEN {
                        return Ok(());
                    }
                    self.begin(peer, rest, inbound)?
                }
                ReadState::Small(head, body) => {
                    let n = bytes.len().min(head.body_len() as usize - body.len());
                    body.extend_from_slice(&bytes[..n]);
                    if body.len() as u64 == head.body_len() {
                        inbound.on_frame(peer, head, body);
                        self.place = ReadState::Head(0);
                    }
                    &bytes[n..]
                }
                ReadState::Payload(destination, len, done) => {
                    let n = (*len - *done).min(bytes.len() as u64);
                    let room = destination.buf.len().saturating_sub(destination.at);
                    let placed = room.saturating_sub(*done).min(n) as usize;
                    if placed > 0 {
                        destination
                            .buf
                            .write(destination.at + *done, &bytes[..placed]);
                    }
                    *done += n;
                    if done == len {
                        inbound.on_body(peer, destination.cookie);
                        self.place = ReadState::Head(0);
                    }
                    &bytes[n as usize..]
                }
            };
        }
        Ok(())
    }

    /// A header is complete; `rest` follows it. Returns what follows the frame, or its beginning.
    fn begin<'a>(
        &mut self,
        peer: Peer,
        rest: &'a [u8],
        inbound: &mut dyn Inbound,
    ) -> Result<&'a [u8], WireError> {
        let head = Header::decode(&self.head)?;
        if self.bye || of_connections(head.kind) {
            return Err(WireError::Misplaced(head.kind));
        }
        let len = head.body_len();
        self.place = ReadState::Head(0);
        if head.kind == Kind::Bye {
            self.bye = true;
            return Ok(rest);
        }
        if len <= rest.len() as u64 {
            let (body, rest) = rest.split_at(len as usize);
            inbound.on_frame(peer, &head, body);
            return Ok(rest);
        }
        self.place = if is_payload(head.kind) {
            ReadState::Payload(inbound.on_head(peer, &head), len, 0)
        } else {
            ReadState::Small(head, Vec::with_capacity(len as usize))
        };
        Ok(rest)
    }
}

/// Kinds that only paths with connections send.
fn of_connections(kind: Kind) -> bool {
    matches!(kind, Kind::More | Kind::Striped | Kind::Piece | Kind::Taken)
}
