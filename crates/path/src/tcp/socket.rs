//! Interface of a connection's socket. Tests have another implementation, which accepts and returns
//! as many bytes as they say.

use kw_sys::buf::Buf;
use kw_sys::tcp::{Cuts, Got, Sock};
use std::io;

/// A connected socket; see [`Sock`] for what each function does.
pub trait Socket {
    /// Receives into a slice.
    fn recv(&self, into: &mut [u8]) -> io::Result<Got>;
    /// Receives into a range of a buffer, then into `rest`; `None`: receive elsewhere and copy.
    fn recv_into(&self, buf: &Buf, at: u64, len: u64, rest: &mut [u8]) -> Option<io::Result<Got>>;
    /// Sends what fits.
    fn send(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Sends what fits of `lead`, then of a range of a buffer, then of more pieces of it.
    fn send_cut(
        &self,
        lead: &[u8],
        buf: &Buf,
        from: u64,
        len: u64,
        cuts: &Cuts<'_>,
    ) -> io::Result<usize>;
    /// The position in the stream up to which the other side's kernel has acknowledged everything;
    /// the data that this socket took last ends at byte `sent`. A socket that sends more bytes than
    /// it takes (marks, tags of an encryption) counts those that it took.
    fn acknowledged(&self, sent: u64) -> io::Result<u64>;

    /// Whether the other side's kernel has acknowledged everything.
    fn is_acknowledged(&self) -> io::Result<bool> {
        Ok(self.acknowledged(u64::MAX)? == u64::MAX)
    }

    /// Sends what fits of `lead`, then of a range of a buffer.
    #[inline]
    fn send_with(&self, lead: &[u8], buf: &Buf, from: u64, len: u64) -> io::Result<usize> {
        self.send_cut(lead, buf, from, len, &Cuts::NONE)
    }
}

impl Socket for Sock {
    #[inline]
    fn recv(&self, into: &mut [u8]) -> io::Result<Got> {
        Sock::recv(self, into)
    }

    #[inline]
    fn recv_into(&self, buf: &Buf, at: u64, len: u64, rest: &mut [u8]) -> Option<io::Result<Got>> {
        Sock::recv_into(self, buf, at, len, rest)
    }

    #[inline]
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Sock::send(self, bytes)
    }

    #[inline]
    fn send_cut(
        &self,
        lead: &[u8],
        buf: &Buf,
        from: u64,
        len: u64,
        cuts: &Cuts<'_>,
    ) -> io::Result<usize> {
        Sock::send_cut(self, lead, buf, from, len, cuts)
    }

    #[inline]
    fn acknowledged(&self, sent: u64) -> io::Result<u64> {
        Ok(sent.saturating_sub(self.unacknowledged()?.into()))
    }
}

/// A socket without a kernel.
#[cfg(test)]
pub mod fake {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    /// Data is received from `incoming`, and sent to `sent`.
    #[derive(Debug, Default)]
    pub struct Fake {
        /// Pieces that have to be received, one by one: no call brings bytes of two.
        pub incoming: RefCell<VecDeque<Vec<u8>>>,
        /// Receives only into slices, as from a buffer in small pieces.
        pub scattered: bool,
        /// Bytes that it took.
        pub sent: RefCell<Vec<u8>>,
        /// Bytes that it takes from now on.
        pub room: Cell<usize>,
        /// Bytes of these that are acknowledged.
        pub acknowledged: Cell<usize>,
    }

    impl Fake {
        /// A socket that brings these pieces.
        pub fn bringing(pieces: impl IntoIterator<Item = Vec<u8>>) -> Fake {
            Fake {
                incoming: RefCell::new(pieces.into_iter().collect()),
                ..Fake::default()
            }
        }

        /// A socket that accepts this many bytes.
        pub fn with_room(bytes: usize) -> Fake {
            Fake {
                room: Cell::new(bytes),
                ..Fake::default()
            }
        }

        fn next(&self, most: usize) -> Vec<u8> {
            let mut incoming = self.incoming.borrow_mut();
            let Some(front) = incoming.front_mut() else {
                return Vec::new();
            };
            let n = front.len().min(most);
            let bytes = front.drain(..n).collect();
            if front.is_empty() {
                incoming.pop_front();
            }
            bytes
        }
    }

    /// A socket that sends a tag behind the data that it takes in one call, and can open all of
    /// that or nothing at the other side: like an encrypted one.
    #[derive(Debug, Default)]
    pub struct Sealed {
        /// Data accepted by the kernel.
        pub kernel: Fake,
        /// Bytes that it took in each call.
        records: RefCell<Vec<u64>>,
    }

    /// Bytes of a tag.
    pub const TAG: usize = 16;

    impl Socket for Sealed {
        fn recv(&self, into: &mut [u8]) -> io::Result<Got> {
            self.kernel.recv(into)
        }

        fn recv_into(&self, _: &Buf, _: u64, _: u64, _: &mut [u8]) -> Option<io::Result<Got>> {
            None
        }

        fn send(&self, bytes: &[u8]) -> io::Result<usize> {
            self.kernel.room.set(bytes.len() + TAG);
            self.kernel.send(bytes)?;
            self.kernel.send(&[0; TAG])?;
            self.records.borrow_mut().push(bytes.len() as u64);
            Ok(bytes.len())
        }

        fn send_cut(
            &self,
            lead: &[u8],
            buf: &Buf,
            from: u64,
            len: u64,
            _: &Cuts<'_>,
        ) -> io::Result<usize> {
            let mut bytes = vec![0; len as usize];
            buf.read(from, &mut bytes);
            self.send(&[lead, &bytes].concat())
        }

        fn acknowledged(&self, sent: u64) -> io::Result<u64> {
            let mut left = self.kernel.acknowledged.get() as u64;
            let records = self.records.borrow();
            let unopened = records.iter().skip_while(|&&len| {
                let whole = len + TAG as u64;
                let there = left >= whole;
                left = left.saturating_sub(whole);
                there
            });
            Ok(sent.saturating_sub(unopened.sum()))
        }
    }

    fn got(n: usize) -> Got {
        match n {
            0 => Got::Nothing,
            n => Got::Bytes(n),
        }
    }

    impl Socket for Fake {
        fn recv(&self, into: &mut [u8]) -> io::Result<Got> {
            let bytes = self.next(into.len());
            into[..bytes.len()].copy_from_slice(&bytes);
            Ok(got(bytes.len()))
        }

        fn recv_into(
            &self,
            buf: &Buf,
            at: u64,
            len: u64,
            rest: &mut [u8],
        ) -> Option<io::Result<Got>> {
            if self.scattered {
                return None;
            }
            let bytes = self.next(len as usize + rest.len());
            let placed = bytes.len().min(len as usize);
            assert_eq!(buf.write(at, &bytes[..placed]), placed, "there is room");
            rest[..bytes.len() - placed].copy_from_slice(&bytes[placed..]);
            Some(Ok(got(bytes.len())))
        }

        fn send(&self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room.get());
            self.room.set(self.room.get() - n);
            self.sent.borrow_mut().extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn send_cut(
            &self,
            lead: &[u8],
            buf: &Buf,
            from: u64,
            len: u64,
            cuts: &Cuts<'_>,
        ) -> io::Result<usize> {
            let mut bytes = lead.to_vec();
            let mut add = |from: u64, len: u64| {
                let at = bytes.len();
                bytes.resize(at + len as usize, 0);
                let read = buf.read(from, &mut bytes[at..]);
                bytes.truncate(at + read);
            };
            add(from, len);
            let mut at = from + len;
            while at < cuts.end {
                let piece = cuts.every.min(cuts.end - at);
                bytes.extend_from_slice(cuts.mark);
                let start = bytes.len();
                bytes.resize(start + piece as usize, 0);
                buf.read(at, &mut bytes[start..]);
                at += piece;
            }
            self.send(&bytes)
        }

        fn acknowledged(&self, sent: u64) -> io::Result<u64> {
            let left = self.sent.borrow().len() - self.acknowledged.get();
            Ok(sent.saturating_sub(left as u64))
        }
    }
}
