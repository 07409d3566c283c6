//! Checks the arguments of collective calls, and converts them to the input of a plan.

use super::side::{ApartArgs, ListArgs, Names};
use kw_engine::Memory;
use kw_objects::Comm;
use kw_objects::error::{Fault, Res, fail};
use kw_objects::handle::{CommH, TypeH};
use kw_objects::lists::Lists;
use kw_objects::state::Tables;
use kw_sys::args::Ints;
use kw_sys::buf::{Addr, Buf};
use kw_types::layout::basic;

/// One buffer argument with its count and datatype.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    /// Address, in elements.
    pub memory: Memory,
    /// Number of elements; 0 if they have no data.
    pub count: u64,
    /// Packed bytes.
    pub bytes: u64,
}

impl Data {
    /// No buffer.
    pub const NONE: Data = Data {
        memory: Memory::NONE,
        count: 0,
        bytes: 0,
    };

    /// A buffer that is significant here and may not be MPI_IN_PLACE.
    #[inline]
    pub fn of(tables: &Tables, name: &str, addr: Addr, count: i64, datatype: TypeH) -> Res<Data> {
        let names = || (with(name, "count"), with(name, "type"));
        Data::named(tables, name, names, (addr, count, datatype))
    }

    /// A buffer of a reduction, whose count and datatype arguments are named just so.
    #[inline]
    pub fn combined(
        tables: &Tables,
        name: &str,
        addr: Addr,
        count: i64,
        datatype: TypeH,
    ) -> Res<Data> {
        let names = || ("count".into(), "datatype".into());
        Data::named(tables, name, names, (addr, count, datatype))
    }

    #[inline(always)]
    fn named(
        tables: &Tables,
        name: &str,
        names: impl Fn() -> (String, String),
        (addr, count, datatype): (Addr, i64, TypeH),
    ) -> Res<Data> {
        let units = Units::of(tables, datatype, || count != 0);
        let units = units.map_err(|f| rename(f, &names().1))?;
        let bytes = units.bytes(count).map_err(|f| rename(f, &names().0))?;
        check_addr(name, addr, bytes, datatype)?;
        Ok(Data {
            memory: units.memory(addr),
            count: if bytes == 0 { 0 } else { count as u64 },
            bytes,
        })
    }

    /// A buffer `blocks` times as large; `memory` and `count` in bytes of packed data, `count` and
    /// `bytes` of one block.
    #[inline]
    pub fn packed(
        tables: &Tables,
        name: &str,
        (addr, count, datatype): (Addr, i64, TypeH),
        blocks: u32,
    ) -> Res<Data> {
        let named = |what| move |f| rename(f, &with(name, what));
        let units = Units::of(tables, datatype, || count != 0).map_err(named("type"))?;
        let bytes = units.bytes(count).map_err(named("count"))?;
        let all = count.saturating_mul(blocks as i64);
        units.bytes(all).map_err(named("count"))?;
        check_addr(name, addr, bytes, datatype)?;
        Ok(Data {
            memory: units.packed(addr, all as u64),
            count: bytes,
            bytes,
        })
    }
}

/// A datatype as the unit of a buffer.
struct Units<'a> {
    size: u64,
    layout: Option<&'a std::sync::Arc<kw_types::layout::Layout>>,
}

impl<'a> Units<'a> {
    /// `filled`: whether the buffer has elements. An empty one needs no datatype.
    #[inline]
    fn of(tables: &'a Tables, datatype: TypeH, filled: impl FnOnce() -> bool) -> Res<Units<'a>> {
        if let Some(size) = basic::plain_size(datatype.0) {
            return Ok(Units { size, layout: None });
        }
        if tables.may_be_null(datatype) && !filled() {
            let (size, layout) = (1, None);
            return Ok(Units { size, layout });
        }
        let layout = tables.layout(datatype)?;
        Ok(Units {
            size: layout.size(),
            layout: Some(layout),
        })
    }

    #[inline]
    fn bytes(&self, count: i64) -> Res<u64> {
        match count.checked_mul(self.size as i64) {
            Some(bytes) if count >= 0 => Ok(bytes as u64),
            _ => bad_count(count),
        }
    }

    #[inline]
    fn memory(&self, addr: Addr) -> Memory {
        match self.layout {
            None => Memory::Plain {
                addr,
                size: self.size,
            },
            Some(layout) => Memory::elements(addr, layout),
        }
    }

    /// The packed data of this many elements.
    #[inline]
    fn packed(&self, addr: Addr, count: u64) -> Memory {
        match (self.memory(addr), self.layout) {
            (Memory::Typed { .. }, Some(layout)) => Memory::stream(Buf::typed(addr, count, layout)),
            _ => Memory::Plain { addr, size: 1 },
        }
    }
}

/// Name of the argument in [`bad_count`] until its caller names it; unknown datatypes are called
/// "datatype".
const COUNT: &str = "count";

/// The error, prefixed with the argument's own name.
#[cold]
fn rename(mut fault: Box<Fault>, name: &str) -> Box<Fault> {
    let rest = fault.text.split_once(' ').map_or("", |(_, rest)| rest);
    fault.text = format!("{name} {rest}");
    fault
}

/// The argument that goes with a buffer: "sendcount" with "sendbuf", "count" with "buffer".
#[cold]
fn with(buffer: &str, what: &str) -> String {
    match (buffer.strip_suffix("buf"), what) {
        (Some(side), _) => format!("{side}{what}"),
        (None, "type") => "datatype".into(),
        (None, _) => what.into(),
    }
}

#[cold]
fn bad_count<T>(count: i64) -> Res<T> {
    if count < 0 {
        return fail!(Count: "{COUNT} is {count}, but must not be negative");
    }
    fail!(Count: "{COUNT} is {count}: more bytes than 2^63 - 1")
}

#[inline]
fn check_addr(name: &str, addr: Addr, bytes: u64, datatype: TypeH) -> Res {
    if addr.is_in_place() {
        return fail!(Buffer: "{name} is MPI_IN_PLACE, which is not allowed here");
    }
    if addr == Addr::NULL && bytes > 0 && datatype.is_predefined() {
        return fail!(Buffer: "{name} is a null pointer, but holds {bytes} bytes");
    }
    Ok(())
}

/// Checks that send and receive buffer are not the same memory; MPI_IN_PLACE is for that.
#[inline]
pub(crate) fn refuse_same(send: Addr, recv: Addr, bytes: u64) -> Res {
    if send == recv && bytes > 0 && send != Addr::NULL {
        return fail!(Buffer: "send and receive buffer are the same memory ({:#x}); use MPI_IN_PLACE", send.bits());
    }
    Ok(())
}

/// Reads `n` counts and displacements of a buffer that is significant here and may not be
/// MPI_IN_PLACE.
pub(super) fn read_lists(
    tables: &Tables,
    (name, displs_name): Names,
    (addr, counts, displs, datatype): ListArgs,
    n: u32,
) -> Res<(Memory, Lists)> {
    let filled = || counts.is_null() || (0..n as usize).any(|i| counts.get(i) != 0);
    let units = Units::of(tables, datatype, filled);
    let units = units.map_err(|f| rename(f, &with(name, "type")))?;
    not_null(|| with(name, "counts"), counts.is_null(), n)?;
    not_null(|| displs_name.into(), displs.is_null(), n)?;
    let mut lists = Lists {
        counts: Vec::with_capacity(n as usize),
        at: displs.to_vec(n as usize),
        bytes: 0,
    };
    for i in 0..n as usize {
        let bytes = units
            .bytes(counts.get(i))
            .map_err(|f| rename(f, &format!("{}[{i}]", with(name, "counts"))))?;
        lists.bytes = lists.bytes.saturating_add(bytes);
        let count = if bytes == 0 { 0 } else { counts.get(i) as u64 };
        lists.counts.push(count);
    }
    check_addr(name, addr, lists.bytes, datatype)?;
    Ok((units.memory(addr), lists))
}

/// Reads `n` counts of consecutive blocks (MPI_Reduce_scatter), reusing the memory of earlier
/// lists.
pub(super) fn in_a_row(mut lists: Lists, size: u64, counts: Ints, n: u32) -> Res<Lists> {
    not_null(|| "recvcounts".into(), counts.is_null(), n)?;
    lists.counts.clear();
    counts.add_to(&mut lists.counts, n as usize);
    // As an unsigned number, a negative count is too large as well.
    let most = i64::MAX as u64 / size.max(1);
    if let Some(i) = lists.counts.iter().position(|&c| c > most) {
        let fault = bad_count(counts.get(i));
        return fault.map_err(|f| rename(f, &format!("recvcounts[{i}]")));
    }
    if size == 0 {
        lists.counts.fill(0);
    }
    lists.at.clear();
    let mut end = 0i64;
    lists.at.extend(lists.counts.iter().map(|&count| {
        let at = end;
        end = end.saturating_add(count as i64);
        at
    }));
    lists.bytes = (end as u64).saturating_mul(size);
    Ok(lists)
}

/// Blocks that differ in datatype: adds one buffer each, and returns their counts and the packed bytes
/// of all.
pub(crate) fn apart(
    tables: &Tables,
    name: &str,
    (addr, counts, displs, types): ApartArgs,
    n: u32,
    into: &mut Vec<Memory>,
) -> Res<(Vec<u64>, u64)> {
    not_null(|| with(name, "counts"), counts.is_null(), n)?;
    not_null(|| format!("{}displs", &name[..1]), displs.is_null(), n)?;
    not_null(|| with(name, "types"), types.is_null(), n)?;
    let (mut out, mut all) = (Vec::with_capacity(n as usize), 0u64);
    for i in 0..n as usize {
        let one = |what| format!("{}[{i}]", with(name, what));
        let units = Units::of(tables, types.get(i), || counts.get(i) != 0);
        let units = units.map_err(|f| rename(f, &one("types")))?;
        let bytes = units
            .bytes(counts.get(i))
            .map_err(|f| rename(f, &one("counts")))?;
        // MPI_BOTTOM with an address as displacement is not a null pointer.
        let at = match addr.is_in_place() {
            true => addr,
            false => addr.assume_offset(displs.get(i)),
        };
        check_addr(name, at, bytes, types.get(i))?;
        all = all.saturating_add(bytes);
        into.push(units.memory(at));
        out.push(if bytes == 0 { 0 } else { counts.get(i) as u64 });
    }
    Ok((out, all))
}

#[inline]
fn not_null(name: impl FnOnce() -> String, null: bool, n: u32) -> Res {
    if null && n > 0 {
        return fail!(Arg: "{} is a null pointer", name());
    }
    Ok(())
}

/// The communicator, which must be an intracommunicator.
#[inline]
pub(crate) fn intra(tables: &Tables, comm: CommH) -> Res<&Comm> {
    let c = tables.comms.get(comm)?;
    if c.is_inter() {
        return fail!(Comm: "comm is an intercommunicator, but must be an intracommunicator");
    }
    Ok(c)
}

/// The root, which must be a rank.
#[inline]
pub fn checked_root(root: i32, size: u32) -> Res<u32> {
    if root < 0 || root as u32 >= size {
        return fail!(Root: "root is {root}, but the communicator has ranks 0 to {}", size - 1);
    }
    Ok(root as u32)
}
