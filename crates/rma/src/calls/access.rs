//! Operations on the memory of other ranks (MPI 5.0, 12.3).

use super::quick;
use crate::element::{check_defined, of, operation};
use crate::window::{WindowCall, accessing};
use kw_engine::Started;
use kw_engine::windows::{At, Span};
use kw_objects::error::{Class, Fault, Res, Scope, fail};
use kw_objects::forms::{Blocking, Nonblocking};
use kw_objects::handle::{OpH, RequestH, TypeH, WinH};
use kw_objects::request::{Flight, Kind};
use kw_objects::state::{Mpi, Tables};
use kw_sys::args::Out;
use kw_sys::buf::{Addr, Buf};
use kw_sys::reduce::Op;
use kw_types::layout::{Basic, Layout, basic};
use std::sync::Arc;

/// A form of an operation: how the caller learns that its buffers may be used again.
pub trait Form {
    /// Whether an operation that has ended at once needs nothing more.
    const ENDS: bool;

    /// Starts the operation on a target's memory; nothing if the target is MPI_PROC_NULL.
    fn access(
        self,
        mpi: &Mpi,
        win: WinH,
        target: i32,
        start: impl FnOnce(&mut WindowCall<'_>, u32) -> Res<Span>,
    ) -> Res;
}

impl Form for Blocking<()> {
    const ENDS: bool = true;

    #[inline(always)]
    fn access(
        self,
        mpi: &Mpi,
        win: WinH,
        target: i32,
        start: impl FnOnce(&mut WindowCall<'_>, u32) -> Res<Span>,
    ) -> Res {
        let (guard, ()) = accessing(mpi, win, false, |mut on| {
            if let Some(rank) = on.rank(target)? {
                start(&mut on, rank)?;
            }
            Ok(())
        })?;
        guard.leave();
        Ok(())
    }
}

impl Form for Nonblocking<(Out<RequestH>,)> {
    const ENDS: bool = false;

    fn access(
        self,
        mpi: &Mpi,
        win: WinH,
        target: i32,
        start: impl FnOnce(&mut WindowCall<'_>, u32) -> Res<Span>,
    ) -> Res {
        let (request,) = self.0;
        let (mut guard, flight) = accessing(mpi, win, true, |mut on| {
            let Some(rank) = on.rank(target)? else {
                return Ok(None);
            };
            let span = start(&mut on, rank)?;
            let id = match on.windows.request(on.messages, on.window.id, span) {
                Started::Done => return Ok(None),
                Started::Request(id) => id,
            };
            Ok(Some(Flight {
                id,
                comm: on.window.comm,
                from: Some(on.window.group.peer(rank)),
                receives: false,
            }))
        })?;
        let new = |flight| {
            guard
                .above
                .new_request(Kind::Scoped(flight, Scope::Win(win)))
        };
        request.set(flight.map_or(RequestH::DONE, new));
        Ok(())
    }
}

/// Elements in this process's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalElements {
    name: &'static str,
    pub(super) addr: Addr,
    pub(super) count: i64,
    pub(super) datatype: TypeH,
}

/// Elements in the target's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct TargetElements {
    pub(super) disp: i64,
    pub(super) count: i64,
    pub(super) datatype: TypeH,
}

impl LocalElements {
    #[inline]
    fn buf(&self, tables: &Tables) -> Res<Buf> {
        if self.addr.is_in_place() {
            return Err(named(
                self.name,
                Fault::new(
                    Class::Buffer,
                    "addr is MPI_IN_PLACE, which is not allowed here",
                ),
            ));
        }
        let made = tables.buf(self.addr, self.count, self.datatype);
        made.map_err(|fault| named(self.name, fault))
    }
}

/// The same error, with the name of the argument's side (origin, target or result).
#[cold]
fn named(side: &str, mut fault: Box<Fault>) -> Box<Fault> {
    fault.text = match fault.text.strip_prefix("the buffer") {
        Some(rest) => format!("{side}_addr{rest}"),
        None => format!("{side}_{}", fault.text),
    };
    fault
}

/// The target's part of an operation, checked.
struct TargetPart<'a> {
    disp: i64,
    count: u64,
    layout: &'a Arc<Layout>,
    /// Number of bytes.
    len: u64,
}

impl TargetElements {
    #[inline]
    fn place<'a>(&self, tables: &'a Tables) -> Res<TargetPart<'a>> {
        // The count and the datatype are checked like those of a buffer.
        let checked = self.checked(tables);
        let (layout, len) = checked.map_err(|f| named("target", f))?;
        Ok(TargetPart {
            disp: self.disp,
            count: self.count as u64,
            layout,
            len,
        })
    }

    #[inline]
    fn checked<'a>(&self, tables: &'a Tables) -> Res<(&'a Arc<Layout>, u64)> {
        if self.disp < 0 {
            return fail!(Disp: "disp is {}, but must not be negative", self.disp);
        }
        let layout = tables.layout(self.datatype)?;
        let size = layout.size();
        match (self.count, self.count.checked_mul(size as i64)) {
            (0.., Some(len)) => Ok((layout, len as u64)),
            (..0, _) => fail!(Count: "count is {}, but must not be negative", self.count),
            (count, None) => {
                fail!(Count: "count is {count}, which with {size} bytes each is more than 2^63 - 1")
            }
        }
    }
}

impl<'a> TargetPart<'a> {
    fn at(&self, rank: u32) -> At<'a> {
        At {
            rank,
            disp: self.disp,
            count: self.count,
            layout: self.layout,
        }
    }
}

/// Checks that data of `from` bytes fit into the `room` bytes that the target describes.
#[inline]
fn check_fits(from: (&str, u64), room: (&str, u64)) -> Res {
    if from.1 > room.1 {
        return Err(too_long(from, room));
    }
    Ok(())
}

#[cold]
fn too_long(from: (&str, u64), room: (&str, u64)) -> Box<Fault> {
    Fault::new(
        Class::Truncate,
        format!(
            "{0}_count elements of {0}_datatype have {1} bytes, but {2}_count elements of {2}_datatype have room for only {3}",
            from.0, from.1, room.0, room.1
        ),
    )
}

/// MPI_Put
#[inline]
pub fn put<F: Form>(
    mpi: &Mpi,
    origin_addr: Addr,
    origin_count: i64,
    origin_datatype: TypeH,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: TypeH,
    win: WinH,
    form: F,
) -> Res {
    let from = side("origin", origin_addr, origin_count, origin_datatype);
    let there = there(target_disp, target_count, target_datatype);
    if F::ENDS && quick::put(mpi, win, &from, target_rank, &there).is_some() {
        return Ok(());
    }
    form.access(mpi, win, target_rank, |on, rank| {
        let origin = from.buf(on.tables)?;
        let place = there.place(on.tables)?;
        check_fits(("origin", origin.len()), ("target", place.len))?;
        let id = on.id();
        Ok(on.windows.put(on.messages, id, &origin, place.at(rank))?)
    })
}

/// MPI_Get
#[inline]
pub fn get<F: Form>(
    mpi: &Mpi,
    origin_addr: Addr,
    origin_count: i64,
    origin_datatype: TypeH,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: TypeH,
    win: WinH,
    form: F,
) -> Res {
    let into = side("origin", origin_addr, origin_count, origin_datatype);
    let there = there(target_disp, target_count, target_datatype);
    if F::ENDS && quick::get(mpi, win, &into, target_rank, &there).is_some() {
        return Ok(());
    }
    form.access(mpi, win, target_rank, |on, rank| {
        let mut origin = into.buf(on.tables)?;
        let place = there.place(on.tables)?;
        check_fits(("target", place.len), ("origin", origin.len()))?;
        if origin.len() > place.len {
            origin = origin.slice(0, place.len);
        }
        let id = on.id();
        Ok(on.windows.get(on.messages, id, &origin, place.at(rank))?)
    })
}

fn side(name: &'static str, addr: Addr, count: i64, datatype: TypeH) -> LocalElements {
    LocalElements {
        name,
        addr,
        count,
        datatype,
    }
}

fn there(disp: i64, count: i64, datatype: TypeH) -> TargetElements {
    TargetElements {
        disp,
        count,
        datatype,
    }
}

/// The operation and the element of an accumulate on a target's datatype. `None`: there are no
/// elements. Then the operation need not be defined, except with KW_CHECK.
fn combining(tables: &Tables, op: OpH, target: TypeH, len: u64) -> Res<(Op, Option<Basic>)> {
    let op = operation(tables, op)?;
    let basic = of(tables, "target", target)?;
    if let Some(basic) = basic.filter(|_| len > 0 || tables.ops.strict) {
        check_defined(tables, op, basic, target)?;
    }
    Ok((op, basic.filter(|_| len > 0)))
}

/// Checks that the elements of a side are those of the target, and have the same number.
fn check_alike(
    tables: &Tables,
    side: &LocalElements,
    len: u64,
    place: &TargetPart<'_>,
    basic: Option<Basic>,
) -> Res {
    let name = side.name;
    let own = of(tables, name, side.datatype)?;
    if own.is_some() && basic.is_some() && own != basic {
        return Err(of_other_elements(name));
    }
    match len == place.len {
        true => Ok(()),
        false => Err(of_other_length((name, len), place.len)),
    }
}

#[cold]
fn of_other_elements(name: &str) -> Box<Fault> {
    Fault::new(
        Class::Type,
        format!(
            "{name}_datatype and target_datatype have different elements, but those of an accumulate must be of one predefined datatype"
        ),
    )
}

#[cold]
fn of_other_length((name, len): (&str, u64), target: u64) -> Box<Fault> {
    let class = if len > target {
        Class::Truncate
    } else {
        Class::Count
    };
    Fault::new(
        class,
        format!(
            "{name}_count elements of {name}_datatype have {len} bytes, but target_count elements of target_datatype have {target}, and an accumulate combines element by element"
        ),
    )
}

/// MPI_Accumulate
pub fn accumulate<F: Form>(
    mpi: &Mpi,
    origin_addr: Addr,
    origin_count: i64,
    origin_datatype: TypeH,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: TypeH,
    op: OpH,
    win: WinH,
    form: F,
) -> Res {
    let from = side("origin", origin_addr, origin_count, origin_datatype);
    let there = there(target_disp, target_count, target_datatype);
    let alone = (&from, None);
    if F::ENDS && quick::accumulate(mpi, win, alone, target_rank, &there, op).is_some() {
        return Ok(());
    }
    form.access(mpi, win, target_rank, |on, rank| {
        let origin = from.buf(on.tables)?;
        let place = there.place(on.tables)?;
        let (op, basic) = combining(on.tables, op, target_datatype, place.len)?;
        if op == Op::NoOp {
            return fail!(Op:
                "op is MPI_NO_OP, which only MPI_Get_accumulate, MPI_Rget_accumulate and MPI_Fetch_and_op take");
        }
        check_alike(on.tables, &from, origin.len(), &place, basic)?;
        let (id, at) = (on.id(), place.at(rank));
        Ok(match basic {
            Some(basic) => on
                .windows
                .accumulate(on.messages, id, &origin, at, op, basic)?,
            None => on.windows.put(on.messages, id, &origin, at)?,
        })
    })
}

/// MPI_Get_accumulate
pub fn get_accumulate<F: Form>(
    mpi: &Mpi,
    origin_addr: Addr,
    origin_count: i64,
    origin_datatype: TypeH,
    result_addr: Addr,
    result_count: i64,
    result_datatype: TypeH,
    target_rank: i32,
    target_disp: i64,
    target_count: i64,
    target_datatype: TypeH,
    op: OpH,
    win: WinH,
    form: F,
) -> Res {
    let from = side("origin", origin_addr, origin_count, origin_datatype);
    let into = side("result", result_addr, result_count, result_datatype);
    let there = there(target_disp, target_count, target_datatype);
    let both = (&from, Some(&into));
    if F::ENDS && quick::accumulate(mpi, win, both, target_rank, &there, op).is_some() {
        return Ok(());
    }
    form.access(mpi, win, target_rank, |on, rank| {
        let result = into.buf(on.tables)?;
        let place = there.place(on.tables)?;
        let (op, basic) = combining(on.tables, op, target_datatype, place.len)?;
        check_alike(on.tables, &into, result.len(), &place, basic)?;
        let origin = match op {
            Op::NoOp => Buf::EMPTY,
            _ => from.buf(on.tables)?,
        };
        if op != Op::NoOp {
            check_alike(on.tables, &from, origin.len(), &place, basic)?;
            check_apart(("origin", origin_addr), ("result", result_addr), place.len)?;
        }
        let (id, at) = (on.id(), place.at(rank));
        Ok(match basic {
            Some(basic) => {
                on.windows
                    .get_accumulate(on.messages, id, (&origin, &result), at, op, basic)?
            }
            None => on.windows.put(on.messages, id, &result, at)?,
        })
    })
}

/// Checks that buffers which are read and written at the same time are different memory.
fn check_apart(a: (&str, Addr), b: (&str, Addr), len: u64) -> Res {
    if len > 0 && a.1 == b.1 && a.1 != Addr::NULL {
        return fail!(Buffer: "{}_addr and {}_addr are the same memory, but must not overlap", a.0, b.0);
    }
    Ok(())
}

/// The element of a datatype that must be predefined.
fn predefined(tables: &Tables, datatype: TypeH) -> Res<Basic> {
    tables.layout(datatype)?;
    match basic::by_handle(datatype.0) {
        Some(named) => Ok(named.basic),
        None => fail!(Type: "datatype is a derived datatype, but must be a predefined one"),
    }
}

/// MPI_Fetch_and_op
pub fn fetch_and_op(
    mpi: &Mpi,
    origin_addr: Addr,
    result_addr: Addr,
    datatype: TypeH,
    target_rank: i32,
    target_disp: i64,
    op: OpH,
    win: WinH,
) -> Res {
    let from = side("origin", origin_addr, 1, datatype);
    let into = side("result", result_addr, 1, datatype);
    let there = there(target_disp, 1, datatype);
    let both = (&from, Some(&into));
    if quick::accumulate(mpi, win, both, target_rank, &there, op).is_some() {
        return Ok(());
    }
    Blocking(()).access(mpi, win, target_rank, |on, rank| {
        let basic = predefined(on.tables, datatype)?;
        let op = operation(on.tables, op)?;
        check_defined(on.tables, op, basic, datatype)?;
        let place = there.place(on.tables)?;
        let result = into.buf(on.tables)?;
        let mut origin = Buf::EMPTY;
        if op != Op::NoOp {
            origin = from.buf(on.tables)?;
            check_apart(("origin", origin_addr), ("result", result_addr), 1)?;
        }
        let (id, at) = (on.id(), place.at(rank));
        Ok(on
            .windows
            .get_accumulate(on.messages, id, (&origin, &result), at, op, basic)?)
    })
}

/// The longest element that can be compared.
const LONGEST: usize = 16;

/// MPI_Compare_and_swap
pub fn compare_and_swap(
    mpi: &Mpi,
    origin_addr: Addr,
    compare_addr: Addr,
    result_addr: Addr,
    datatype: TypeH,
    target_rank: i32,
    target_disp: i64,
    win: WinH,
) -> Res {
    let from = side("origin", origin_addr, 1, datatype);
    let with = side("compare", compare_addr, 1, datatype);
    let into = side("result", result_addr, 1, datatype);
    let there = there(target_disp, 1, datatype);
    let all = (&from, &with, &into);
    if quick::compare_and_swap(mpi, win, all, target_rank, target_disp).is_some() {
        return Ok(());
    }
    Blocking(()).access(mpi, win, target_rank, |on, rank| {
        let basic = predefined(on.tables, datatype)?;
        check_comparable(basic, datatype)?;
        let place = there.place(on.tables)?;
        let result = into.buf(on.tables)?;
        check_apart(("origin", origin_addr), ("result", result_addr), 1)?;
        check_apart(("compare", compare_addr), ("result", result_addr), 1)?;
        let (mut new, mut old) = ([0; LONGEST], [0; LONGEST]);
        let size = basic.size() as usize;
        from.buf(on.tables)?.read(0, &mut new[..size]);
        with.buf(on.tables)?.read(0, &mut old[..size]);
        let (id, at) = (on.id(), place.at(rank));
        let (old, new) = (&old[..size], &new[..size]);
        Ok(on
            .windows
            .compare_and_swap(on.messages, id, (old, new), &result, at, basic)?)
    })
}

/// Whether elements can be compared: integers, logicals and bytes can (MPI 5.0, 12.3.4).
pub(super) fn compares(basic: Basic) -> bool {
    use kw_types::layout::basic::Class as Kind;
    matches!(
        basic.class(),
        Kind::Signed | Kind::Unsigned | Kind::Logical | Kind::Byte
    )
}

fn check_comparable(basic: Basic, datatype: TypeH) -> Res {
    match compares(basic) {
        true => Ok(()),
        false => fail!(Type: "datatype is {}, but only integers, logicals and bytes are compared",
            basic::by_handle(datatype.0).map_or("a datatype", |named| named.name)),
    }
}
