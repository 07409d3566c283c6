//! Packing and unpacking (MPI 5.0, 5.2 and 5.3). The native form is the bare packed stream;
//! external32 converts each basic element.

use kw_objects::datatype::checked_count;
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::{CommH, TypeH};
use kw_objects::state::{Mpi, Tables};
use kw_sys::args::{OutInt, Text};
use kw_sys::buf::{Addr, Buf};
use kw_types::layout::external::{OutOfRange, decode, encode};
use kw_types::layout::{Element, Layout};
use std::sync::Arc;

/// Elements converted and bytes moved at a time.
const PIECE: u64 = 4096;

/// `len` bytes of a contiguous buffer of `size` bytes, from the position on.
fn room(name: &str, addr: Addr, size: i64, position: OutInt, len: i64) -> Res<Buf> {
    let at = position.get();
    if size < 0 || at < 0 {
        return fail!(Arg: "{name} has {size} bytes and position is {at}; neither may be negative");
    }
    if at.checked_add(len).is_none_or(|end| end > size) {
        return fail!(Truncate: "{name} has {size} bytes, but {len} are needed from position {at} on");
    }
    if addr == Addr::NULL && len > 0 {
        return fail!(Buffer: "{name} is a null pointer");
    }
    Ok(Buf::bytes(addr.assume_offset(at), len as u64))
}

fn moved(position: OutInt, len: u64) -> Res {
    let end = position.get() + len as i64;
    if position.set(end) {
        return Ok(());
    }
    fail!(ValueTooLarge: "position would be {end}, more than an int; use the large-count function")
}

/// MPI_Pack
pub fn pack(
    mpi: &Mpi,
    inbuf: Addr,
    incount: i64,
    datatype: TypeH,
    outbuf: Addr,
    outsize: i64,
    position: OutInt,
    comm: CommH,
) -> Res {
    let guard = mpi.lock();
    guard.above.comms.get(comm)?;
    let data = guard.above.buf(inbuf, incount, datatype)?;
    drop(guard);
    let packed = room("outbuf", outbuf, outsize, position, data.len() as i64)?;
    data.copy_to(0, &packed, 0, data.len());
    moved(position, data.len())
}

/// MPI_Unpack
pub fn unpack(
    mpi: &Mpi,
    inbuf: Addr,
    insize: i64,
    position: OutInt,
    outbuf: Addr,
    outcount: i64,
    datatype: TypeH,
    comm: CommH,
) -> Res {
    let guard = mpi.lock();
    guard.above.comms.get(comm)?;
    let data = guard.above.buf(outbuf, outcount, datatype)?;
    drop(guard);
    let packed = room("inbuf", inbuf, insize, position, data.len() as i64)?;
    packed.copy_to(0, &data, 0, data.len());
    moved(position, data.len())
}

fn total(count: i64, each: u64) -> Res<i64> {
    let n = checked_count("incount", count)?;
    n.checked_mul(each)
        .and_then(|t| i64::try_from(t).ok())
        .ok_or_else(|| {
            Fault::new(
                Class::Count,
                format!("incount is {count}: more bytes than 2^63 - 1"),
            )
        })
}

/// MPI_Pack_size
pub fn pack_size(mpi: &Mpi, incount: i64, datatype: TypeH, comm: CommH, size: OutInt) -> Res {
    let guard = mpi.lock();
    guard.above.comms.get(comm)?;
    size.set(total(incount, guard.above.layout(datatype)?.size())?);
    Ok(())
}

fn external32(datarep: Text) -> Res {
    match datarep.bytes() {
        Some(b"external32") => Ok(()),
        other => fail!(Arg: "datarep is {:?}, but only \"external32\" is supported",
            other.map(String::from_utf8_lossy).unwrap_or_default()),
    }
}

/// The packed stream of a buffer, read in order.
struct Source<'a> {
    buf: &'a Buf,
    at: u64,
    held: Vec<u8>,
    used: usize,
}

impl Source<'_> {
    fn take(&mut self, n: usize) -> &[u8] {
        if self.held.len() - self.used < n {
            self.held.drain(..self.used);
            self.used = 0;
            let old = self.held.len();
            self.held.resize(n + 8 * PIECE as usize, 0);
            let new = self.buf.read(self.at, &mut self.held[old..]);
            self.at += new as u64;
            self.held.truncate(old + new);
        }
        let end = (self.used + n).min(self.held.len());
        let piece = &self.held[self.used..end];
        self.used = end;
        piece
    }
}

/// One direction of conversion: bytes of an element in the converted form, and the conversion
/// itself.
struct Way {
    size: fn(Element) -> u64,
    convert: fn(Element, &[u8], &mut Vec<u8>) -> Result<(), OutOfRange>,
}

/// Reads `count` elements of a layout from one buffer, converts them and writes them to the other.
fn convert(layout: &Layout, count: u64, from: &Buf, to: &Buf, way: Way) -> Res {
    let mut source = Source {
        buf: from,
        at: 0,
        held: Vec::new(),
        used: 0,
    };
    let (mut out, mut at) = (Vec::new(), 0);
    let count = if layout.size() == 0 { 0 } else { count };
    for _ in 0..count {
        let stretch = &mut |e: Element, n: u64| {
            let mut left = n;
            while left > 0 {
                let some = left.min(PIECE);
                (way.convert)(e, source.take((some * (way.size)(e)) as usize), &mut out)?;
                left -= some;
                if out.len() as u64 >= 8 * PIECE {
                    at += to.write(at, &out) as u64;
                    out.clear();
                }
            }
            Ok(())
        };
        layout
            .signature()
            .for_each(stretch)
            .map_err(|e: OutOfRange| Fault::new(Class::Conversion, e.to_string()))?;
    }
    to.write(at, &out);
    Ok(())
}

/// Converts `count` elements of a layout to external32.
pub fn to_external(layout: &Layout, count: u64, data: &Buf, packed: &Buf) -> Res {
    let way = Way {
        size: |e| e.basic.size(),
        convert: encode,
    };
    convert(layout, count, data, packed, way)
}

/// Converts at most `count` elements of a layout, as many as there are, from external32.
pub fn from_external(layout: &Layout, count: u64, packed: &Buf, data: &Buf) -> Res {
    let way = Way {
        size: |e| e.external as u64,
        convert: decode,
    };
    convert(layout, count, packed, data, way)
}

/// The typed buffer, its layout and the length of its external form.
fn typed(tables: &Tables, addr: Addr, count: i64, datatype: TypeH) -> Res<(Buf, Arc<Layout>, i64)> {
    let data = tables.buf(addr, count, datatype)?;
    let layout = tables.layout(datatype)?.clone();
    let len = total(count, layout.signature().external)?;
    Ok((data, layout, len))
}

/// MPI_Pack_external
pub fn pack_external(
    mpi: &Mpi,
    datarep: Text,
    inbuf: Addr,
    incount: i64,
    datatype: TypeH,
    outbuf: Addr,
    outsize: i64,
    position: OutInt,
) -> Res {
    external32(datarep)?;
    let (data, layout, len) = typed(&mpi.lock().above, inbuf, incount, datatype)?;
    let packed = room("outbuf", outbuf, outsize, position, len)?;
    to_external(&layout, incount as u64, &data, &packed)?;
    moved(position, len as u64)
}

/// MPI_Unpack_external
pub fn unpack_external(
    mpi: &Mpi,
    datarep: Text,
    inbuf: Addr,
    insize: i64,
    position: OutInt,
    outbuf: Addr,
    outcount: i64,
    datatype: TypeH,
) -> Res {
    external32(datarep)?;
    let (data, layout, len) = typed(&mpi.lock().above, outbuf, outcount, datatype)?;
    let packed = room("inbuf", inbuf, insize, position, len)?;
    from_external(&layout, outcount as u64, &packed, &data)?;
    moved(position, len as u64)
}

/// MPI_Pack_external_size
pub fn pack_external_size(
    mpi: &Mpi,
    datarep: Text,
    incount: i64,
    datatype: TypeH,
    size: OutInt,
) -> Res {
    external32(datarep)?;
    let guard = mpi.lock();
    let each = guard.above.layout(datatype)?.signature().external;
    size.set(total(incount, each)?);
    Ok(())
}
