//! Frames on their way out, as one stream of bytes: kept until they have arrived, and read again
//! when a piece was lost.

use crate::contract::{Body, Sent};
use crate::slowed::Slowed;
use kw_proto::wire::Header;
use kw_sys::buf::Buf;
use std::collections::VecDeque;

// Starting values; those below `LONGEST_COPY` bound memory.
/// Payload up to this size is copied at once, and its sender is done with it.
const COPIED: u64 = 2 << 10;
/// Up to this size it is copied, too, but sent first ([`Queue::keep`]).
const COPIED_LATER: u64 = 16 << 10;
/// A longer one is copied, too, while no more than this has not arrived: a send that waits for its
/// acknowledgement also delays the next one's start (a stream of 64 KB messages between two hosts
/// of the lab: 38 us each, 48 to 80 without).
const AHEAD: u64 = 512 << 10;
/// But not one that is longer than this.
const LONGEST_COPY: u64 = 256 << 10;
/// Most bytes that wait here, not arrived, while small payloads are taken and their senders go on:
/// one window, and a little.
const MAX_WAITING: u64 = 5 << 18;
/// From here on down more are wanted.
const FEW: u64 = 1 << 20;
/// Copies share a piece of memory up to this size.
const SHARED: usize = 32 << 10;
/// Bytes of emptied pieces of memory that are kept.
const SPARES: usize = 1 << 20;

#[derive(Debug)]
enum What {
    /// The first bytes of a piece of memory; the item's length tells how many.
    Bytes(Vec<u8>),
    Payload {
        buf: Buf,
        from: u64,
        cookie: u64,
    },
}

/// A piece of the stream.
#[derive(Debug)]
struct Item {
    start: u64,
    len: u64,
    what: What,
}

impl Item {
    fn end(&self) -> u64 {
        self.start + self.len
    }
}

/// The stream to one peer.
#[derive(Debug, Default)]
pub struct Queue {
    items: VecDeque<Item>,
    end: u64,
    /// Payloads that were copied although too much waits: their senders go on when less does.
    slowed: Slowed,
    /// Emptied pieces of memory, for the next copies.
    spares: Vec<Vec<u8>>,
    /// The last item is payload in memory of a caller that does not wait until it has arrived.
    lent: bool,
}

impl Queue {
    /// Bytes of the stream so far.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether everything has arrived.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds a frame; everything before `arrived` has arrived. To be followed by [`Queue::keep`]
    /// before the caller goes on.
    pub fn push(&mut self, head: &Header, body: Body<'_>, cookie: u64, arrived: u64) -> Sent {
        self.copy(&head.encode());
        match body {
            Body::None => Sent::Done,
            Body::Bytes(bytes) => {
                self.copy(bytes);
                Sent::Done
            }
            Body::Payload { buf, from, len } => self.payload(buf, from, len, cookie, arrived),
        }
    }

    fn payload(&mut self, buf: &Buf, from: u64, len: u64, cookie: u64, arrived: u64) -> Sent {
        let ahead = self.end - arrived;
        let ours = len <= COPIED_LATER || len <= LONGEST_COPY && ahead + len <= AHEAD;
        if ours && len <= COPIED {
            buf.read(from, self.room(len as usize));
        } else {
            let buf = buf.clone();
            self.add(len, What::Payload { buf, from, cookie });
            self.lent = ours;
        }
        match ours {
            true => self.slowed.copied(cookie, ahead, MAX_WAITING),
            false => Sent::Queued,
        }
    }

    /// Copies what was added last, if its sender does not wait until it has arrived. It has been
    /// sent by now, if it could be: the copy is made while it is on its way.
    #[inline]
    pub fn keep(&mut self) {
        if std::mem::take(&mut self.lent) {
            self.copy_lent();
        }
    }

    fn copy_lent(&mut self) {
        let Some(item) = self.items.back_mut() else {
            return;
        };
        let What::Payload { buf, from, .. } = &item.what else {
            return;
        };
        let mut memory = self.spares.pop().unwrap_or_default();
        let n = item.len as usize;
        if memory.len() < n {
            memory.resize(n, 0);
        }
        buf.read(*from, &mut memory[..n]);
        item.what = What::Bytes(memory);
    }

    fn add(&mut self, len: u64, what: What) {
        let start = self.end;
        self.items.push_back(Item { start, len, what });
        self.end += len;
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Room for `n` more bytes of the queue's own at the end of the stream.
    fn room(&mut self, n: usize) -> &mut [u8] {
        let used = match self.items.back() {
            Some(Item {
                len,
                what: What::Bytes(_),
                ..
            }) => Some(*len as usize),
            _ => None,
        };
        let used = used.filter(|u| u + n <= SHARED).unwrap_or_else(|| {
            let memory = self.spares.pop().unwrap_or_default();
            self.add(0, What::Bytes(memory));
            0
        });
        self.end += n as u64;
        match self.items.back_mut() {
            Some(Item {
                len,
                what: What::Bytes(memory),
                ..
            }) => {
                *len += n as u64;
                if memory.len() < used + n {
                    memory.resize(used + n, 0);
                }
                &mut memory[used..used + n]
            }
            // The last item is bytes: either it was, or it has just been made so.
            _ => unreachable!("the last item of the queue is bytes"),
        }
    }

    /// Reads bytes of the stream from `offset` on, which are still here.
    pub fn read(&self, mut offset: u64, mut out: &mut [u8]) {
        let first = self.items.partition_point(|i| i.end() <= offset);
        for item in self.items.range(first..) {
            if out.is_empty() {
                break;
            }
            let skip = offset - item.start;
            let n = (item.len - skip).min(out.len() as u64);
            let (now, later) = out.split_at_mut(n as usize);
            match &item.what {
                What::Bytes(b) => now.copy_from_slice(&b[skip as usize..(skip + n) as usize]),
                What::Payload { buf, from, .. } => {
                    buf.read(from + skip, now);
                }
            }
            (out, offset) = (later, offset + n);
        }
    }

    fn spare(&mut self, memory: Vec<u8>) {
        let kept: usize = self.spares.iter().map(Vec::len).sum();
        if kept + memory.len() <= SPARES {
            self.spares.push(memory);
        }
    }

    /// Everything before `arrived` has arrived: forgets it, and calls `sent` for every payload
    /// whose sender may go on.
    pub fn release(&mut self, arrived: u64, mut sent: impl FnMut(u64)) {
        self.slowed.go_on(self.end - arrived, FEW, &mut sent);
        while self.items.front().is_some_and(|i| i.end() <= arrived) {
            match self.items.pop_front().map(|i| i.what) {
                Some(What::Bytes(memory)) => self.spare(memory),
                Some(What::Payload { cookie, .. }) => sent(cookie),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_proto::wire::{HEADER_LEN, Kind};

    /// A flood of small messages over a slow link filled the memory of its sender.
    #[test]
    fn small_payloads_are_slowed_down_when_too_much_has_not_arrived() {
        let (mut queue, buf) = (Queue::default(), Buf::alloc(1000));
        let push = |queue: &mut Queue, cookie, arrived| {
            let payload = Body::Payload {
                buf: &buf,
                from: 0,
                len: 1000,
            };
            let sent = queue.push(&Header::bare(Kind::Eager), payload, cookie, arrived);
            queue.keep();
            sent
        };
        let mut taken = 0;
        while push(&mut queue, 7, 0) == Sent::Done {
            taken += 1;
        }
        assert!((MAX_WAITING / 1032..MAX_WAITING / 1032 + 2).contains(&taken));
        assert_eq!(push(&mut queue, 8, 0), Sent::Queued);
        let (mut completed, end) = (Vec::new(), queue.end());
        queue.release(end - FEW - 1, |c| completed.push(c));
        assert_eq!(completed, []);
        queue.release(end - FEW, |c| completed.push(c));
        assert_eq!(completed, [7, 8]);
        assert_eq!(push(&mut queue, 9, end - FEW), Sent::Done);
    }

    #[test]
    fn any_piece_of_the_stream_is_read_until_it_has_arrived() {
        let (mut queue, mut stream, mut queued) = (Queue::default(), Vec::new(), Vec::new());
        for (k, n) in [0usize, 8, 300_000, 16_384, 200_000, 100_000, 3, 30_000]
            .into_iter()
            .enumerate()
        {
            let body: Vec<u8> = (0..n).map(|i| (i * 7 + k) as u8).collect();
            let (buf, mut head) = (Buf::alloc(n + 5), Header::bare(Kind::Eager));
            buf.write(5, &body);
            head.len = n as u64;
            let payload = Body::Payload {
                buf: &buf,
                from: 5,
                len: n as u64,
            };
            let sent = queue.push(&head, payload, k as u64, 0);
            queue.keep();
            match sent {
                Sent::Queued => queued.push(k as u64),
                // The sender continues, and uses its memory for something else.
                Sent::Done => _ = buf.write(5, &vec![0xee; n]),
            }
            stream.extend_from_slice(&head.encode());
            stream.extend_from_slice(&body);
            assert_eq!(queue.end(), stream.len() as u64);
        }
        assert_eq!(queued, [2, 5, 7]);
        for step in [1usize, 1440, 50_001] {
            for at in (0..stream.len()).step_by(step.max(777)) {
                let mut piece = vec![0; step.min(stream.len() - at)];
                queue.read(at as u64, &mut piece);
                assert!(piece == stream[at..at + piece.len()], "{at}+{step}");
            }
        }
        let mut completed = Vec::new();
        let third = (3 * HEADER_LEN + 8 + 300_000) as u64;
        queue.release(third - 1, |c| completed.push(c));
        assert_eq!(completed, []);
        queue.release(third, |c| completed.push(c));
        assert_eq!(completed, [2]);
        // Memory of arrived data is used again, and only data written now is read.
        let before = queue.end();
        queue.push(&Header::bare(Kind::Fin), Body::None, 0, before);
        let mut again = [0; HEADER_LEN];
        queue.read(before, &mut again);
        assert_eq!(again, Header::bare(Kind::Fin).encode());
        queue.release(queue.end(), |c| completed.push(c));
        assert!(queue.is_empty() && completed == queued);
    }
}
