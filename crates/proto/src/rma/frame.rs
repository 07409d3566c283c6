//! Frames: what an origin and a target say to each other. A message carries one or several, one
//! after the other.
//!
//! All integers are little-endian; a frame is a byte that names its kind, then its fields in the
//! order in which [`Frame`] lists them. Bytes are preceded by their number (u32), except operands
//! of a compare-and-swap, whose number follows from the element.

use kw_types::layout::Basic;

/// How a target is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// With others that lock it so.
    Shared,
    /// Alone.
    Exclusive,
}

/// Where an operation works, in bytes from the beginning of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Bytes in a row.
    Row {
        /// First byte.
        at: i64,
        /// Bytes.
        len: u64,
    },
    /// Elements of a datatype that was sent before.
    Typed {
        /// Displacement 0 of the first element.
        at: i64,
        /// Elements.
        count: u64,
        /// Number of the datatype.
        id: u32,
    },
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// Writes bytes, not more than there is room for.
    Put {
        /// Where.
        place: Place,
        /// All of them.
        data: &'a [u8],
    },
    /// Writes bytes that come in a message of their own, not more than there is room for.
    PutLong {
        /// Where.
        place: Place,
        /// Its tag.
        tag: i32,
    },
    /// Sends bytes back in a message.
    Get {
        /// Where.
        place: Place,
        /// Its tag.
        tag: i32,
    },
    /// Combines bytes of the packed data with operands; elements are whole.
    Accumulate {
        /// Where all of the data is.
        place: Place,
        /// Handle of the operation.
        op: u8,
        /// Element.
        basic: Basic,
        /// First byte of the packed data.
        from: u64,
        /// Operands.
        data: &'a [u8],
    },
    /// The same, and sends the bytes as they were before back in a message.
    GetAccumulate {
        /// Where all of the data is.
        place: Place,
        /// Handle of the operation.
        op: u8,
        /// Element.
        basic: Basic,
        /// First byte of the packed data.
        from: u64,
        /// Bytes.
        len: u64,
        /// Tag of the message.
        tag: i32,
        /// Operands; none for MPI_NO_OP.
        data: &'a [u8],
    },
    /// Replaces an element that equals `compare`; sends back what it was.
    CompareAndSwap {
        /// Its first byte.
        at: i64,
        /// Element.
        basic: Basic,
        /// Tag of the message.
        tag: i32,
        /// Value to compare with.
        compare: &'a [u8],
        /// New value.
        swap: &'a [u8],
    },
    /// Defines a datatype.
    Type {
        /// Its number.
        id: u32,
        /// [`kw_types::layout::Layout::encode`].
        layout: &'a [u8],
    },
    /// All datatypes are forgotten.
    ForgetTypes,
    /// A lock epoch begins, when the lock is granted.
    Lock(LockMode),
    /// A lock epoch begins without a lock (MPI_MODE_NOCHECK).
    Unchecked,
    /// A lock epoch ends; answered when everything before it has ended.
    Unlock {
        /// Tag of the answer.
        tag: i32,
    },
    /// Answered when everything before it has ended.
    Flush {
        /// Tag of the answer.
        tag: i32,
    },
    /// What follows belongs to this fence epoch.
    Fence(u64),
    /// What follows belongs to an epoch that the target has posted.
    Start,
    /// That epoch ends.
    Complete,
    /// To an origin: this rank exposes its memory to it.
    Post,
    /// To an origin that waits for a lock in shared memory: look again.
    Wake,
}

const MOST_ELEMENT: usize = 32;

impl Frame<'_> {
    /// Whether the frame is for the origin role of its receiver, and never waits.
    pub fn is_for_origin(&self) -> bool {
        matches!(self, Frame::Post | Frame::Wake)
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut w = Writer(out);
        match *self {
            Frame::Put { place, data } => w.kind(1).place(place).bytes(data),
            Frame::PutLong { place, tag } => w.kind(2).place(place).tag(tag),
            Frame::Get { place, tag } => w.kind(3).place(place).tag(tag),
            Frame::Accumulate {
                place,
                op,
                basic,
                from,
                data,
            } => w.kind(4).place(place).op(op, basic).word(from).bytes(data),
            Frame::GetAccumulate {
                place,
                op,
                basic,
                from,
                len,
                tag,
                data,
            } => {
                let w = w.kind(5).place(place).op(op, basic);
                w.word(from).word(len).tag(tag).bytes(data)
            }
            Frame::CompareAndSwap {
                at,
                basic,
                tag,
                compare,
                swap,
            } => {
                let w = w.kind(6).word(at as u64).op(0, basic).tag(tag);
                w.raw(compare).raw(swap)
            }
            Frame::Type { id, layout } => w.kind(7).tag(id as i32).bytes(layout),
            Frame::ForgetTypes => w.kind(8),
            Frame::Lock(LockMode::Shared) => w.kind(9),
            Frame::Lock(LockMode::Exclusive) => w.kind(10),
            Frame::Unchecked => w.kind(11),
            Frame::Unlock { tag } => w.kind(12).tag(tag),
            Frame::Flush { tag } => w.kind(13).tag(tag),
            Frame::Fence(number) => w.kind(14).word(number),
            Frame::Start => w.kind(15),
            Frame::Complete => w.kind(16),
            Frame::Post => w.kind(17),
            Frame::Wake => w.kind(18),
        };
    }

    /// Reads the frame at the front of some bytes, and the rest of them; `None` when they are not a
    /// frame.
    pub fn decode(bytes: &[u8]) -> Option<(Frame<'_>, &[u8])> {
        let mut r = Reader(bytes);
        let [kind] = r.take()?;
        let frame = match kind {
            1 => Frame::Put {
                place: r.place()?,
                data: r.bytes()?,
            },
            2 => Frame::PutLong {
                place: r.place()?,
                tag: r.tag().filter(|&t| super::is_data(t))?,
            },
            3 => Frame::Get {
                place: r.place()?,
                tag: r.reply()?,
            },
            4 => r.accumulate()?,
            5 => r.get_accumulate()?,
            6 => r.compare_and_swap()?,
            7 => Frame::Type {
                id: r.tag()? as u32,
                layout: r.bytes()?,
            },
            8 => Frame::ForgetTypes,
            9 => Frame::Lock(LockMode::Shared),
            10 => Frame::Lock(LockMode::Exclusive),
            11 => Frame::Unchecked,
            12 => Frame::Unlock { tag: r.reply()? },
            13 => Frame::Flush { tag: r.reply()? },
            14 => Frame::Fence(r.word()?),
            15 => Frame::Start,
            16 => Frame::Complete,
            17 => Frame::Post,
            18 => Frame::Wake,
            _ => return None,
        };
        Some((frame, r.0))
    }
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }

    fn kind(&mut self, kind: u8) -> &mut Self {
        self.raw(&[kind])
    }

    fn word(&mut self, word: u64) -> &mut Self {
        self.raw(&word.to_le_bytes())
    }

    fn tag(&mut self, tag: i32) -> &mut Self {
        self.raw(&tag.to_le_bytes())
    }

    fn op(&mut self, op: u8, basic: Basic) -> &mut Self {
        self.raw(&[op, basic as u8])
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.raw(&(bytes.len() as u32).to_le_bytes()).raw(bytes)
    }

    fn place(&mut self, place: Place) -> &mut Self {
        match place {
            Place::Row { at, len } => self.kind(0).word(at as u64).word(len),
            Place::Typed { at, count, id } => {
                self.kind(1).word(at as u64).word(count).tag(id as i32)
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (word, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*word)
    }

    fn word(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn tag(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    fn reply(&mut self) -> Option<i32> {
        self.tag().filter(|&t| super::is_reply(t))
    }

    fn raw(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.take().map(u32::from_le_bytes)?;
        self.raw(len as usize)
    }

    fn place(&mut self) -> Option<Place> {
        let [kind] = self.take()?;
        let at = self.word()? as i64;
        let n = self.word()?;
        match kind {
            0 => Some(Place::Row { at, len: n }),
            1 => Some(Place::Typed {
                at,
                count: n,
                id: self.tag()? as u32,
            }),
            _ => None,
        }
    }

    fn op(&mut self) -> Option<(u8, Basic)> {
        let [op, basic] = self.take()?;
        Some((op, *Basic::ALL.get(basic as usize)?))
    }

    fn accumulate(&mut self) -> Option<Frame<'a>> {
        let (place, (op, basic)) = (self.place()?, self.op()?);
        let (from, data) = (self.word()?, self.bytes()?);
        let whole = data.len() as u64 % basic.size() == 0 && from % basic.size() == 0;
        whole.then_some(Frame::Accumulate {
            place,
            op,
            basic,
            from,
            data,
        })
    }

    fn get_accumulate(&mut self) -> Option<Frame<'a>> {
        let (place, (op, basic)) = (self.place()?, self.op()?);
        let (from, len, tag) = (self.word()?, self.word()?, self.reply()?);
        let data = self.bytes()?;
        let whole = len % basic.size() == 0 && from % basic.size() == 0;
        let fits = data.is_empty() || data.len() as u64 == len;
        (whole && fits).then_some(Frame::GetAccumulate {
            place,
            op,
            basic,
            from,
            len,
            tag,
            data,
        })
    }

    fn compare_and_swap(&mut self) -> Option<Frame<'a>> {
        let at = self.word()? as i64;
        let (_, basic) = self.op()?;
        let tag = self.reply()?;
        let len = basic.size() as usize;
        if len > MOST_ELEMENT {
            return None;
        }
        Some(Frame::CompareAndSwap {
            at,
            basic,
            tag,
            compare: self.raw(len)?,
            swap: self.raw(len)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> Vec<Frame<'static>> {
        let row = Place::Row { at: -3, len: 4 };
        let typed = Place::Typed {
            at: 7,
            count: 9,
            id: 70_000,
        };
        let (op, basic, data) = (0x21, Basic::I32, &[1, 2, 3, 4, 5, 6, 7, 8][..]);
        vec![
            Frame::Put { place: row, data },
            Frame::PutLong {
                place: typed,
                tag: 4,
            },
            Frame::Get { place: row, tag: 5 },
            Frame::Accumulate {
                place: typed,
                op,
                basic,
                from: 12,
                data,
            },
            Frame::GetAccumulate {
                place: row,
                op,
                basic,
                from: 0,
                len: 8,
                tag: 7,
                data,
            },
            Frame::CompareAndSwap {
                at: 8,
                basic,
                tag: 9,
                compare: &[1; 4],
                swap: &[2; 4],
            },
            Frame::Type {
                id: 70_000,
                layout: data,
            },
            Frame::ForgetTypes,
            Frame::Lock(LockMode::Shared),
            Frame::Lock(LockMode::Exclusive),
            Frame::Unchecked,
            Frame::Unlock { tag: 3 },
            Frame::Flush { tag: 11 },
            Frame::Fence(u64::MAX),
            Frame::Start,
            Frame::Complete,
            Frame::Post,
            Frame::Wake,
        ]
    }

    #[test]
    fn what_is_written_is_read_and_nothing_shorter() {
        let mut all = Vec::new();
        for frame in frames() {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            all.extend_from_slice(&bytes);
            assert_eq!(Frame::decode(&bytes), Some((frame, &[][..])));
            for end in 0..bytes.len() {
                assert_eq!(Frame::decode(&bytes[..end]), None, "{frame:?} cut at {end}");
            }
        }
        let mut rest = &all[..];
        for frame in frames() {
            let (read, after) = Frame::decode(rest).expect("frames in a row");
            assert_eq!(read, frame);
            rest = after;
        }
    }

    #[test]
    fn elements_in_pieces_and_tags_of_the_other_kind_are_refused() {
        let place = Place::Row { at: 0, len: 8 };
        let refused = [
            Frame::Accumulate {
                place,
                op: 0x21,
                basic: Basic::I32,
                from: 2,
                data: &[0; 4],
            },
            Frame::Accumulate {
                place,
                op: 0x21,
                basic: Basic::I32,
                from: 0,
                data: &[0; 6],
            },
            Frame::GetAccumulate {
                place,
                op: 0x21,
                basic: Basic::I32,
                from: 0,
                len: 8,
                tag: 3,
                data: &[0; 4],
            },
            Frame::Get { place, tag: 4 },
            Frame::PutLong { place, tag: 5 },
            Frame::Flush { tag: 1 },
            Frame::Unlock { tag: -1 },
        ];
        for frame in refused {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            assert_eq!(Frame::decode(&bytes), None, "{frame:?}");
        }
    }

    proptest! {
        #[test]
        fn anything_may_come(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut rest = &bytes[..];
            while let Some((_, after)) = Frame::decode(rest) {
                prop_assert!(after.len() < rest.len());
                rest = after;
            }
        }
    }
}
