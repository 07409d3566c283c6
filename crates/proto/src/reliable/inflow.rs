//! The receiving half of a connection: bytes are passed on in order and once, and received packets
//! are acknowledged.
//!
//! Bytes that are next in line go straight to the reader; those that come too early wait here,
//! never more than the window. The reader takes everything at once, so the window never closes.

use super::packet::{Ack, MORE_RANGES};
use super::{Params, Ranges};
use kw_base::Tick;
use std::collections::BTreeMap;

/// The receiving half.
#[derive(Debug)]
pub struct Inflow {
    /// The next byte for the reader.
    next: u64,
    early: BTreeMap<u64, Vec<u8>>,
    numbers: Ranges,
    newest_at: Tick,
    /// Packets that want an acknowledgement and have none.
    owed: u32,
    owed_bytes: u64,
    owed_since: Tick,
    at_once: bool,
    /// When the packet of this number comes, the packets that were missing last are lost: the
    /// sender should know it at once.
    certain: u64,
    marked: u32,
}

/// No connection lasts for this many packets (RFC 9000, 12.3): a peer that uses a higher number is
/// faulty.
const LAST_NUMBER: u64 = (1 << 62) - 1;

/// The sender has sent more than it may, or numbers packets beyond [`LAST_NUMBER`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMuch;

impl Inflow {
    pub fn new() -> Inflow {
        Inflow {
            next: 0,
            early: BTreeMap::new(),
            numbers: Ranges::default(),
            newest_at: Tick::default(),
            owed: 0,
            owed_bytes: 0,
            owed_since: Tick::default(),
            at_once: false,
            certain: u64::MAX,
            marked: 0,
        }
    }

    /// A numbered packet came. Calls `reader` with the bytes that are next in line, in order.
    pub fn take(
        &mut self,
        now: Tick,
        number: u64,
        offset: u64,
        body: &[u8],
        params: &Params,
        reader: &mut dyn FnMut(&[u8]),
    ) -> Result<(), TooMuch> {
        let end = offset.checked_add(body.len() as u64).ok_or(TooMuch)?;
        if end > self.next + params.window || number > LAST_NUMBER {
            return Err(TooMuch);
        }
        self.note(now, number, body.len() as u64, params);
        if offset > self.next {
            self.keep(offset, body);
            return Ok(());
        }
        if end > self.next {
            reader(&body[(self.next - offset) as usize..]);
            self.next = end;
            self.release(reader);
        }
        Ok(())
    }

    /// Acknowledgements to send, and when (RFC 9000, 13.2.1: at once after a gap or a repeated
    /// packet), and once more when the sender may consider missing packets lost.
    fn note(&mut self, now: Tick, number: u64, bytes: u64, params: &Params) {
        let expected = self.numbers.largest().map_or(0, |l| l + 1);
        if number > expected {
            self.certain = number - 1 + params.reordering;
        }
        self.at_once |= number != expected || number == self.certain;
        if number >= expected {
            self.newest_at = now;
        }
        self.numbers.insert(number..number + 1);
        self.numbers.keep_newest(MORE_RANGES + 1);
        if self.owed == 0 {
            self.owed_since = now;
        }
        self.owed += 1;
        self.owed_bytes += bytes;
    }

    fn keep(&mut self, offset: u64, body: &[u8]) {
        let known = self.early.get(&offset).map_or(0, |b| b.len());
        if body.len() > known {
            self.early.insert(offset, body.to_vec());
        }
    }

    /// Data that waited and is next in line now.
    fn release(&mut self, reader: &mut dyn FnMut(&[u8])) {
        while let Some(entry) = self.early.first_entry() {
            if *entry.key() > self.next {
                return;
            }
            let (offset, body) = entry.remove_entry();
            let end = offset + body.len() as u64;
            if end > self.next {
                reader(&body[(self.next - offset) as usize..]);
                self.next = end;
            }
        }
    }

    /// The sender waits for the acknowledgement.
    pub fn hurry(&mut self) {
        self.at_once = true;
    }

    /// The network has marked a packet.
    pub fn mark(&mut self) {
        self.marked = self.marked.wrapping_add(1);
        self.at_once = true;
    }

    /// Bytes handed to the reader so far.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// When an acknowledgement has to be sent by itself.
    pub fn ack_due(&self, params: &Params) -> Tick {
        match self.owed {
            0 => Tick::NEVER,
            n if self.at_once || n >= params.ack_every || self.owed_bytes >= params.window / 4 => {
                self.owed_since
            }
            _ => self.owed_since + params.ack_delay,
        }
    }

    /// Whether something has not been acknowledged.
    pub fn owes(&self) -> bool {
        self.owed > 0
    }

    /// The acknowledgement, which is then no longer owed.
    pub fn ack(&mut self, now: Tick, params: &Params) -> Ack {
        (self.owed, self.owed_bytes) = (0, 0);
        self.at_once = false;
        Ack {
            numbers: self.numbers.clone(),
            limit: self.next + params.window,
            delay: now.since(self.newest_at),
            marked: self.marked,
        }
    }
}
