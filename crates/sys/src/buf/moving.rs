//! Buffers whose memory moves: arrays in the heap of a language with a garbage collector.
//!
//! The address of such a buffer is that of a [`Holder`], whose functions belong to the language's
//! binding: one holds the memory and returns its address, the other one ends that. The library
//! holds it for one piece at a time, at most [`HELD`] bytes or one system call of [`HELD_BY_CALL`],
//! and never while it waits, because a collection may have to wait until it is released.

use super::{Addr, Buf, Shape};
use std::ops::Deref;

/// Most bytes that are copied while memory is held: some microseconds.
pub const HELD: u64 = 128 << 10;
/// Most bytes that one call of a non-blocking socket moves while memory is held: about 100 us.
/// Shorter calls cost more than their number: 1 MB over the loopback interface takes twice as long
/// in calls of 128 KB.
pub const HELD_BY_CALL: u64 = 1 << 20;

/// What a binding passes as the address of a buffer. Any thread of the library may call the
/// functions, one after the other, until the operation that has the buffer is complete.
#[repr(C)]
struct Holder {
    /// Holds the memory; returns the address of the buffer's first byte.
    hold: unsafe extern "C" fn(holder: usize) -> usize,
    /// Releases the memory that is at this address.
    release: unsafe extern "C" fn(holder: usize, address: usize),
}

/// A buffer whose memory stays where it is as long as this exists. It must not be kept while a
/// thread waits.
#[derive(Debug)]
pub enum Fixed<'a> {
    /// It stays in any case.
    Still(&'a Buf),
    /// It is held.
    Held {
        /// The memory.
        buf: Buf,
        /// Address of the [`Holder`].
        holder: usize,
        /// The address that was returned.
        address: usize,
    },
}

/// A buffer that is copied piece by piece, without a wait between pieces that are asked for one
/// after the other: memory that moves is held for up to [`HELD`] bytes at a time.
#[derive(Debug)]
pub struct Pieces<'a> {
    buf: &'a Buf,
    fixed: Option<Fixed<'a>>,
    /// Bytes until it is released.
    left: u64,
}

impl Pieces<'_> {
    /// The buffer, for a copy of `n` more bytes.
    #[inline]
    pub fn next(&mut self, n: u64) -> &Buf {
        if n > self.left && self.buf.is_moving() {
            // Released first: other threads may wait for that.
            self.fixed = None;
            self.left = HELD.max(n);
        }
        self.left = self.left.saturating_sub(n);
        self.fixed.get_or_insert_with(|| self.buf.fixed())
    }
}

impl Buf {
    /// This buffer, to be copied piece by piece.
    #[inline]
    pub fn pieces(&self) -> Pieces<'_> {
        Pieces {
            buf: self,
            fixed: None,
            left: 0,
        }
    }

    /// `len` bytes in memory that moves. The address is that of two functions of C, `void
    /// *hold(self)` and `void release(self, void *)`, where `self` is this address: the first one
    /// returns the address of the bytes, which is valid until it is passed to the second one.
    ///
    /// This is part of the promise that comes with the [`Addr`].
    pub fn moving(addr: Addr, len: u64) -> Buf {
        Buf {
            base: addr.bits(),
            len,
            shape: Shape::Moving { skip: 0 },
            keep: None,
        }
    }

    /// Whether its memory moves.
    #[inline]
    pub fn is_moving(&self) -> bool {
        matches!(self.shape, Shape::Moving { .. })
    }

    /// This buffer where it is at present, and stays as long as the result exists.
    #[inline]
    pub fn fixed(&self) -> Fixed<'_> {
        match self.shape {
            Shape::Moving { skip } => self.held(skip),
            _ => Fixed::Still(self),
        }
    }

    fn held(&self, skip: u64) -> Fixed<'_> {
        let holder = self.base;
        // SAFETY: the promise of the `Addr` that this was made of.
        let address = unsafe { ((*(holder as *const Holder)).hold)(holder) };
        let buf = Buf::bytes(Addr(address.wrapping_add(skip as usize)), self.len);
        Fixed::Held {
            buf,
            holder,
            address,
        }
    }

    /// Copies bytes `from..from+n`, which exist, to or from a packed stream, a piece at a time.
    ///
    /// # Safety
    /// As [`Buf::transfer`].
    #[cold]
    pub(super) unsafe fn transfer_held<const PACKS: bool>(&self, from: u64, n: u64, stream: usize) {
        let mut done = 0;
        while done < n {
            let some = HELD.min(n - done);
            let stream = stream.wrapping_add(done as usize);
            // SAFETY: a part of what the caller promises.
            unsafe { self.fixed().transfer::<PACKS>(from + done, some, stream) };
            done += some;
        }
    }
}

impl Deref for Fixed<'_> {
    type Target = Buf;

    #[inline]
    fn deref(&self) -> &Buf {
        match self {
            Fixed::Still(buf) => buf,
            Fixed::Held { buf, .. } => buf,
        }
    }
}

impl Drop for Fixed<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Fixed::Held {
            holder, address, ..
        } = *self
        {
            // SAFETY: the holder's function, with the address that it has returned.
            unsafe { ((*(holder as *const Holder)).release)(holder, address) };
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// Memory that lies elsewhere each time that it is held.
    #[repr(C)]
    pub(crate) struct Wanderer {
        holder: Holder,
        bytes: RefCell<Vec<u8>>,
        held: Cell<Option<usize>>,
        /// How often it was held.
        pub(crate) times: Cell<usize>,
    }

    unsafe extern "C" fn hold(holder: usize) -> usize {
        // SAFETY: the address of a Wanderer begins with its Holder.
        let all = unsafe { &*(holder as *const Wanderer) };
        let mut moved = all.bytes.borrow().clone();
        let address = moved.as_mut_ptr() as usize;
        assert_eq!(all.held.replace(Some(address)), None);
        // What was there before is overwritten, so that a use of the old address shows.
        all.bytes.replace(moved).fill(0xdd);
        all.times.set(all.times.get() + 1);
        address
    }

    unsafe extern "C" fn release(holder: usize, address: usize) {
        // SAFETY: as above.
        let all = unsafe { &*(holder as *const Wanderer) };
        assert_eq!(all.held.take(), Some(address));
    }

    impl Wanderer {
        pub(crate) fn new(bytes: Vec<u8>) -> Box<Wanderer> {
            Box::new(Wanderer {
                holder: Holder { hold, release },
                bytes: RefCell::new(bytes),
                held: Cell::new(None),
                times: Cell::new(0),
            })
        }

        /// All of it as a buffer, which must not outlive it.
        pub(crate) fn buf(&self) -> Buf {
            let len = self.bytes.borrow().len() as u64;
            // SAFETY: the two functions are there as long as the tests use the buffer.
            Buf::moving(unsafe { Addr::new(std::ptr::from_ref(self).cast()) }, len)
        }

        pub(crate) fn bytes(&self) -> Vec<u8> {
            assert_eq!(self.held.get(), None);
            self.bytes.borrow().clone()
        }
    }

    pub(crate) fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
    }

    #[test]
    fn it_is_read_and_written_a_piece_at_a_time() {
        let len = 2 * HELD as usize + 1000;
        let (all, data) = (Wanderer::new(pattern(len)), pattern(len));
        let mut out = vec![0; len];
        assert_eq!(all.buf().read(0, &mut out), len);
        assert_eq!((out == data, all.times.get()), (true, 3));
        let part = all.buf().slice(500, 2000).slice(100, 300);
        assert_eq!(part.read(10, &mut out[..400]), 290);
        assert_eq!(out[..290], data[610..900]);
        assert_eq!(part.write(290, &[1; 50]), 10);
        let mut expected = data;
        expected[890..900].fill(1);
        assert!(all.bytes() == expected);
    }

    #[test]
    fn it_is_copied_between_buffers_of_all_kinds() {
        let (a, b) = (
            Wanderer::new(pattern(20_000)),
            Wanderer::new(vec![0; 20_000]),
        );
        assert_eq!(a.buf().copy_to(0, &b.buf(), 0, 20_000), 20_000);
        assert!(b.bytes() == pattern(20_000));
        let own = a.buf().packed(true);
        assert_eq!(own.copy_to(1, &b.buf(), 0, 5000), 5000);
        assert!(b.bytes()[..5000] == pattern(20_000)[1..5001]);
        assert!(!a.buf().shares_memory(&a.buf()));
    }

    #[test]
    fn it_is_held_for_several_pieces_and_not_for_too_many() {
        let all = Wanderer::new(pattern(1000));
        let buf = all.buf();
        let mut pieces = buf.pieces();
        assert_eq!(all.times.get(), 0);
        for _ in 0..4 {
            assert_eq!(pieces.next(HELD / 2).len(), 1000);
        }
        assert_eq!(all.times.get(), 2);
        assert_eq!(pieces.next(HELD + 1).len(), 1000);
        assert_eq!(all.times.get(), 3);
        drop(pieces);
        assert_eq!(all.held.get(), None);
    }

    #[test]
    fn it_has_an_address_while_it_is_fixed() {
        let all = Wanderer::new(pattern(1000));
        let buf = all.buf().slice(10, 100);
        assert!(buf.is_moving() && buf.contiguous().is_none());
        {
            let fixed = buf.fixed();
            assert!(!fixed.is_moving() && fixed.len() == 100);
            assert_eq!(fixed.contiguous(), all.held.get().map(|at| at + 10));
        }
        assert_eq!(all.held.get(), None);
        let still = Buf::alloc(5);
        assert_eq!(still.fixed().contiguous(), still.contiguous());
    }
}
