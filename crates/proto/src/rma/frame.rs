//! Frames: the messages between an origin and a target. A message carries one or several, one after
//! the other.
//!
//! All integers are little-endian; a frame is a byte that names its kind, then its fields in the
//! order in which [`Frame`] lists them. Bytes are preceded by their number (u32), except operands
//! of a compare-and-swap, whose number follows from the element.
//!
//! A put or an accumulate that fills all of a short row in the first 4 GB of a window has a short
//! form: the first byte (u32), for an accumulate operation, element and tag of the reply, and the
//! number of bytes (u8), which come last. With the frame that begins the epoch and the one that ends
//! it, 8 bytes of data fit into the cache line that announces them to a rank of the same host.

use kw_base::reader::Reader;
use kw_types::layout::Basic;

/// How a target is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Together with others that lock it in this mode.
    Shared,
    /// Alone.
    Exclusive,
}

/// Location of the data of an operation in the memory of its target, in bytes from the beginning of
/// the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetLocation {
    /// Contiguous bytes.
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

/// An operation on the memory of a target. `P` tells where: on the wire a [`TargetLocation`], at the
/// target a place with its datatype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation<'a, P> {
    /// Writes bytes, no more than the place has room for.
    Put {
        /// Place.
        place: P,
        /// All the bytes.
        data: &'a [u8],
    },
    /// Writes bytes that come in a message of their own, no more than the place has room for.
    PutLong {
        /// Place.
        place: P,
        /// Its tag.
        tag: i32,
    },
    /// Sends bytes back in a message.
    Get {
        /// Place.
        place: P,
        /// Its tag.
        tag: i32,
    },
    /// Combines.
    Accumulate(Accumulate<'a, P>),
    /// Replaces an element that equals `compare`; sends back its old value.
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
}

/// Combines bytes of the packed data with operands; elements are whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accumulate<'a, P> {
    /// Place of all of the data.
    pub place: P,
    /// Handle of the operation.
    pub op: u8,
    /// Element.
    pub basic: Basic,
    /// First byte of the packed data, and how many.
    pub from: u64,
    /// See `from`.
    pub len: u64,
    /// Operands; none for MPI_NO_OP.
    pub data: &'a [u8],
    /// Tag of the message that takes the old bytes, if they are wanted.
    pub reply: Option<i32>,
}

impl<'a, P> Operation<'a, P> {
    /// Whether the target sends something back, from which the origin learns how it ended.
    pub fn has_reply(&self) -> bool {
        match self {
            Operation::Put { .. } | Operation::PutLong { .. } => false,
            Operation::Accumulate(how) => how.reply.is_some(),
            Operation::Get { .. } | Operation::CompareAndSwap { .. } => true,
        }
    }

    /// The same operation with its place in other terms.
    pub fn with_place<Q>(self, place: impl FnOnce(P) -> Option<Q>) -> Option<Operation<'a, Q>> {
        Some(match self {
            Operation::Put { place: at, data } => Operation::Put {
                place: place(at)?,
                data,
            },
            Operation::PutLong { place: at, tag } => Operation::PutLong {
                place: place(at)?,
                tag,
            },
            Operation::Get { place: at, tag } => Operation::Get {
                place: place(at)?,
                tag,
            },
            Operation::Accumulate(how) => Operation::Accumulate(Accumulate {
                place: place(how.place)?,
                op: how.op,
                basic: how.basic,
                from: how.from,
                len: how.len,
                data: how.data,
                reply: how.reply,
            }),
            Operation::CompareAndSwap {
                at,
                basic,
                tag,
                compare,
                swap,
            } => Operation::CompareAndSwap {
                at,
                basic,
                tag,
                compare,
                swap,
            },
        })
    }
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// An operation.
    Op(Operation<'a, TargetLocation>),
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
    /// The frames that follow belong to this fence epoch.
    Fence(u64),
    /// The frames that follow belong to an epoch that the target has posted.
    Start,
    /// That epoch ends.
    Complete,
    /// To an origin: this rank exposes its memory to it.
    Post,
    /// To an origin that waits for a lock in shared memory: check it again.
    Wake,
    /// With KW_CHECK: where the program has called the operation that follows.
    CalledAt {
        /// The access lasts until something ends it that the target is told.
        lasts: bool,
        /// The call, in words of the layers above; empty if the access is not checked.
        site: &'a [u8],
    },
}

const MOST_ELEMENT: usize = 32;

impl Frame<'_> {
    /// Whether the frame is for the origin role of its receiver, and never waits.
    pub fn is_for_origin(&self) -> bool {
        matches!(self, Frame::Post | Frame::Wake)
    }

    /// Whether bytes begin like a frame for the origin role.
    #[inline]
    pub fn may_be_for_origin(bytes: &[u8]) -> bool {
        matches!(bytes.first(), Some(17 | 18))
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut w = Writer(out);
        match *self {
            Frame::Op(op) => op.encode(&mut w),
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
            Frame::CalledAt { lasts, site } => w.kind(19 + lasts as u8).bytes(site),
        };
    }

    /// Reads the frame at the front of some bytes, and the rest of them; `None` when they are not a
    /// frame.
    pub fn decode(bytes: &[u8]) -> Option<(Frame<'_>, &[u8])> {
        let mut r = Frames(Reader::new(bytes));
        let [kind] = r.0.take()?;
        let frame = match kind {
            1..=6 => Frame::Op(r.operation(kind)?),
            21..=23 => Frame::Op(r.short(kind)?),
            7 => Frame::Type {
                id: r.0.i32()? as u32,
                layout: r.0.counted()?,
            },
            8 => Frame::ForgetTypes,
            9 => Frame::Lock(LockMode::Shared),
            10 => Frame::Lock(LockMode::Exclusive),
            11 => Frame::Unchecked,
            12 => Frame::Unlock { tag: r.reply()? },
            13 => Frame::Flush { tag: r.reply()? },
            14 => Frame::Fence(r.0.u64()?),
            15 => Frame::Start,
            16 => Frame::Complete,
            17 => Frame::Post,
            18 => Frame::Wake,
            19 | 20 => Frame::CalledAt {
                lasts: kind == 20,
                site: r.0.counted()?,
            },
            _ => return None,
        };
        Some((frame, r.0.rest()))
    }
}

impl Operation<'_, TargetLocation> {
    /// The first byte and the data, if there is a short form.
    #[inline]
    fn short(&self) -> Option<(u32, &[u8])> {
        let (place, data) = match self {
            Operation::Put { place, data } => (place, *data),
            Operation::Accumulate(how) if how.from == 0 && how.len == how.data.len() as u64 => {
                (&how.place, how.data)
            }
            _ => return None,
        };
        match *place {
            TargetLocation::Row { at, len }
                if len == data.len() as u64 && len <= u8::MAX as u64 =>
            {
                Some((at.try_into().ok()?, data))
            }
            _ => None,
        }
    }

    fn encode<'w, 'o>(&self, w: &'w mut Writer<'o>) -> &'w mut Writer<'o> {
        if let Some((at, data)) = self.short() {
            let [a, b, c, d] = at.to_le_bytes();
            let len = data.len() as u8;
            return match *self {
                Operation::Accumulate(Accumulate {
                    op, basic, reply, ..
                }) => {
                    let (op, basic) = (op, basic as u8);
                    match reply {
                        None => w.raw(&[22, a, b, c, d, op, basic, len]),
                        Some(tag) => {
                            let [t, u, v, x] = tag.to_le_bytes();
                            w.raw(&[23, a, b, c, d, op, basic, t, u, v, x, len])
                        }
                    }
                }
                _ => w.raw(&[21, a, b, c, d, len]),
            }
            .raw(data);
        }
        match *self {
            Operation::Put { place, data } => w.kind(1).place(place).bytes(data),
            Operation::PutLong { place, tag } => w.kind(2).place(place).tag(tag),
            Operation::Get { place, tag } => w.kind(3).place(place).tag(tag),
            Operation::Accumulate(how) => {
                let kind = if how.reply.is_some() { 5 } else { 4 };
                let w = w.kind(kind).place(how.place).op(how.op, how.basic);
                let w = w.word(how.from);
                let w = match how.reply {
                    Some(tag) => w.word(how.len).tag(tag),
                    None => w,
                };
                w.bytes(how.data)
            }
            Operation::CompareAndSwap {
                at,
                basic,
                tag,
                compare,
                swap,
            } => {
                let w = w.kind(6).word(at as u64).op(0, basic).tag(tag);
                w.raw(compare).raw(swap)
            }
        }
    }
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    #[inline]
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

    fn place(&mut self, place: TargetLocation) -> &mut Self {
        match place {
            TargetLocation::Row { at, len } => self.kind(0).word(at as u64).word(len),
            TargetLocation::Typed { at, count, id } => {
                self.kind(1).word(at as u64).word(count).tag(id as i32)
            }
        }
    }
}

/// Frames that have not been read yet.
struct Frames<'a>(Reader<'a>);

impl<'a> Frames<'a> {
    /// The tag of a reply.
    fn reply(&mut self) -> Option<i32> {
        self.0.i32().filter(|&t| super::is_reply(t))
    }

    fn place(&mut self) -> Option<TargetLocation> {
        let [kind] = self.0.take()?;
        let at = self.0.u64()? as i64;
        let n = self.0.u64()?;
        match kind {
            0 => Some(TargetLocation::Row { at, len: n }),
            1 => Some(TargetLocation::Typed {
                at,
                count: n,
                id: self.0.i32()? as u32,
            }),
            _ => None,
        }
    }

    fn op(&mut self) -> Option<(u8, Basic)> {
        let [op, basic] = self.0.take()?;
        Some((op, *Basic::ALL.get(basic as usize)?))
    }

    fn operation(&mut self, kind: u8) -> Option<Operation<'a, TargetLocation>> {
        Some(match kind {
            1 => Operation::Put {
                place: self.place()?,
                data: self.0.counted()?,
            },
            2 => Operation::PutLong {
                place: self.place()?,
                tag: self.0.i32().filter(|&t| super::is_data(t))?,
            },
            3 => Operation::Get {
                place: self.place()?,
                tag: self.reply()?,
            },
            4 | 5 => Operation::Accumulate(self.accumulate(kind == 5)?),
            _ => self.compare_and_swap()?,
        })
    }

    /// An operation in its short form.
    fn short(&mut self, kind: u8) -> Option<Operation<'a, TargetLocation>> {
        let at = i64::from(self.0.u32()?);
        let combines = match kind {
            21 => None,
            22 => Some((self.op()?, None)),
            _ => Some((self.op()?, Some(self.reply()?))),
        };
        let [len] = self.0.take()?;
        let data = self.0.bytes(len as usize)?;
        let len = u64::from(len);
        let place = TargetLocation::Row { at, len };
        let Some(((op, basic), reply)) = combines else {
            return Some(Operation::Put { place, data });
        };
        (len % basic.size() == 0).then_some(Operation::Accumulate(Accumulate {
            place,
            op,
            basic,
            from: 0,
            len,
            data,
            reply,
        }))
    }

    fn accumulate(&mut self, replies: bool) -> Option<Accumulate<'a, TargetLocation>> {
        let (place, (op, basic)) = (self.place()?, self.op()?);
        let from = self.0.u64()?;
        let (reply, given_len) = match replies {
            true => {
                let len = self.0.u64()?;
                (Some(self.reply()?), Some(len))
            }
            false => (None, None),
        };
        let data = self.0.counted()?;
        let len = given_len.unwrap_or(data.len() as u64);
        let whole = len % basic.size() == 0 && from % basic.size() == 0;
        let fits = replies && data.is_empty() || data.len() as u64 == len;
        (whole && fits).then_some(Accumulate {
            place,
            op,
            basic,
            from,
            len,
            data,
            reply,
        })
    }

    fn compare_and_swap(&mut self) -> Option<Operation<'a, TargetLocation>> {
        let at = self.0.u64()? as i64;
        let (_, basic) = self.op()?;
        let tag = self.reply()?;
        let len = basic.size() as usize;
        if len > MOST_ELEMENT {
            return None;
        }
        Some(Operation::CompareAndSwap {
            at,
            basic,
            tag,
            compare: self.0.bytes(len)?,
            swap: self.0.bytes(len)?,
        })
    }
}

#[cfg(test)]
mod tests;
