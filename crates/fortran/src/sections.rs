//! Sections that are not contiguous, and what a call passes to C in their place.
//!
//! If a count and a datatype describe the whole buffer, C gets a datatype that picks the section's
//! elements. Otherwise (blocks of several ranks, reductions, datatypes that do not fit the
//! elements), and if it is cheaper, C gets a contiguous copy; what C writes there is copied back
//! when the operation is complete.

use crate::choice::Choice;
use crate::constants::*;
use crate::convert::fault;
use crate::handle::{Datatype, File, Handles, Request, to_fortran};
use crate::section::{Piece, Section, Span};
use crate::shells::*;
use crate::{pending, split};
use std::ffi::{CStr, c_int, c_void};

/// Bytes up to which a copy is cheaper than a datatype: copying this much takes as long as
/// creating, committing and freeing a datatype, about 0.2 us (measured between two ranks: with a
/// datatype 512 B take 1.6 times as long as with a copy, 4 KB the same time, 16 KB 0.74 times).
const SHORT: i64 = 4 << 10;

const TOO_FEW: &CStr = c"an array section has fewer elements than the count and the datatype say";
const UNFIT: &CStr = c"the array section does not consist of whole elements of the datatype, and a copy would not last until the window's epoch ends: pass a contiguous array, or use the section's element type";
const IRREGULAR: &CStr = c"the partitions of an array section differ in shape, or do not consist of whole elements: use whole rows or columns as partitions";

/// When a call's operation is complete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// When it returns.
    Blocking,
    /// When its request is complete.
    Nonblocking,
    /// When its request is complete, and again after each start.
    Persistent,
    /// When the `_end` function of a split collective access to a file returns.
    Split,
    /// When the epoch of a window ends: no copy lives that long.
    OneSided,
}

/// Direction of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// MPI reads it.
    In,
    /// MPI writes it.
    Out,
    /// Both.
    InOut,
}

/// A contiguous copy of a section.
pub struct Copied {
    base: *mut c_void,
    section: Section,
    memory: Vec<u8>,
    /// Contents before MPI wrote it; `None` if MPI does not.
    before: Option<Vec<u8>>,
}

// SAFETY: the section belongs to the program, which leaves it to MPI until the operation is
// complete.
unsafe impl Send for Copied {}

impl Copied {
    /// Copies from the section.
    pub fn gather(&mut self) {
        let mut to = 0;
        let (base, memory) = (self.base.cast::<u8>(), &mut self.memory);
        self.section.runs(|offset, length| {
            let place = &mut memory[to..to + length as usize];
            // SAFETY: these bytes are the section's.
            unsafe {
                let from = base.offset(offset as isize);
                std::ptr::copy_nonoverlapping(from, place.as_mut_ptr(), place.len());
            }
            to += length as usize;
        });
        if let Some(before) = &mut self.before {
            before.clone_from(&self.memory);
        }
    }

    /// Copies back to the section what MPI has written: other bytes of the section belong to the
    /// program, or to another operation, which may have changed them meanwhile.
    pub fn scatter(&self) {
        let Some(before) = &self.before else { return };
        let mut from = 0;
        self.section.runs(|offset, length| {
            let here = from..from + length as usize;
            from = here.end;
            let (bytes, before) = (&self.memory[here.clone()], &before[here]);
            // SAFETY: these bytes are the section's.
            unsafe {
                let to = self.base.cast::<u8>().offset(offset as isize);
                put_changed(bytes, before, to);
            }
        });
    }
}

/// Bytes of a piece that is compared as a whole.
const PIECE: usize = 64;

/// Writes those of some bytes that have changed.
///
/// # Safety
/// There is room for them at `to`.
unsafe fn put_changed(bytes: &[u8], before: &[u8], to: *mut u8) {
    let pieces = bytes.chunks(PIECE).zip(before.chunks(PIECE)).enumerate();
    for (i, (now, then)) in pieces.filter(|(_, (now, then))| now != then) {
        let changed = now.iter().zip(then).enumerate();
        for (j, (byte, _)) in changed.filter(|(_, (now, then))| now != then) {
            // SAFETY: the caller's promise.
            unsafe { to.add(i * PIECE + j).write(*byte) };
        }
    }
}

/// A count of either width.
pub trait Count: Copy {
    /// Converts it to a number.
    fn number(self) -> i64;
    /// The count one.
    const ONE: Self;
}

impl Count for c_int {
    const ONE: c_int = 1;
    fn number(self) -> i64 {
        i64::from(self)
    }
}

impl Count for i64 {
    const ONE: i64 = 1;
    fn number(self) -> i64 {
        self
    }
}

/// Objects that a call created for its sections: usually none.
pub struct Sections {
    way: Way,
    made: Option<Box<Made>>,
}

#[derive(Default)]
struct Made {
    copies: Vec<Copied>,
    types: Vec<Datatype>,
    arrays: Vec<Vec<Datatype>>,
}

impl Sections {
    /// Creates an empty set.
    #[inline(always)]
    pub fn new(way: Way) -> Sections {
        Sections { way, made: None }
    }

    fn made(&mut self) -> &mut Made {
        self.made.get_or_insert_default()
    }

    /// Prepares a section of which `count` elements of `datatype` are a message.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    #[cold]
    #[inline(never)]
    pub unsafe fn message<B: Choice, N: Count>(
        &mut self,
        at: *mut B,
        direction: Direction,
        buffer: &mut *mut c_void,
        count: &mut N,
        datatype: &mut Datatype,
    ) -> Result<(), c_int> {
        // SAFETY: the caller's promise.
        let section = unsafe { B::section(at) };
        let n = count.number();
        // C will report any error in these
        if section.is_contiguous() || n <= 0 || to_fortran(*datatype) == MPI_DATATYPE_NULL {
            return Ok(());
        }
        let short = self.way == Way::Blocking && section.bytes() <= SHORT;
        let span = span(*datatype)?;
        match span.per_element(section.element).filter(|_| !short) {
            Some(per) => {
                *datatype = picked(&section, per, n, *datatype)?;
                self.made().types.push(*datatype);
                *count = N::ONE;
            }
            None if !span.lies_in(n, section.bytes()) => {
                return Err(fault(MPI_ERR_COUNT, TOO_FEW));
            }
            None if self.way == Way::OneSided => return Err(fault(MPI_ERR_BUFFER, UNFIT)),
            None => self.copied(section, direction, buffer),
        }
        Ok(())
    }

    /// Prepares a section of `partitions` parts of `count` elements of `datatype`: each of these
    /// becomes one element of another datatype. A copy is not possible, because the parts are
    /// filled and emptied while the operation is in flight.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    #[cold]
    #[inline(never)]
    pub unsafe fn partitions<B: Choice>(
        &mut self,
        at: *mut B,
        partitions: c_int,
        count: &mut i64,
        datatype: &mut Datatype,
    ) -> Result<(), c_int> {
        // SAFETY: the caller's promise.
        let section = unsafe { B::section(at) };
        // C will report any error in these
        if section.is_contiguous()
            || partitions <= 0
            || *count <= 0
            || to_fortran(*datatype) == MPI_DATATYPE_NULL
        {
            return Ok(());
        }
        let irregular = || fault(MPI_ERR_BUFFER, IRREGULAR);
        let per = span(*datatype)?
            .per_element(section.element)
            .filter(|per| *count % per == 0)
            .ok_or_else(irregular)?;
        let (part, step) = section
            .parts(i64::from(partitions), *count / per)
            .ok_or_else(irregular)?;
        let mut inner = nest(&part, per, *datatype)?;
        // SAFETY: the result has a place, `inner` was made here.
        unsafe {
            check(MPI_Type_create_resized(inner, 0, step, &raw mut *datatype))?;
            MPI_Type_free(&raw mut inner);
            check(MPI_Type_commit(&raw mut *datatype))?;
        }
        self.made().types.push(*datatype);
        *count = 1;
        Ok(())
    }

    /// Prepares a section of which C gets a contiguous copy.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    #[cold]
    #[inline(never)]
    pub unsafe fn copy<B: Choice>(
        &mut self,
        at: *mut B,
        direction: Direction,
        buffer: &mut *mut c_void,
    ) -> Result<(), c_int> {
        // SAFETY: the caller's promise.
        let section = unsafe { B::section(at) };
        if !section.is_contiguous() {
            self.copied(section, direction, buffer);
        }
        Ok(())
    }

    fn copied(&mut self, section: Section, direction: Direction, buffer: &mut *mut c_void) {
        let mut copy = Copied {
            base: *buffer,
            memory: vec![0; section.bytes().max(0) as usize],
            section,
            before: (direction != Direction::In).then(Vec::new),
        };
        // a buffer that is only written may be written in part
        copy.gather();
        *buffer = copy.memory.as_mut_ptr().cast();
        self.made().copies.push(copy);
    }

    /// Prepares an array of datatypes that C uses until the operation is complete.
    pub fn keep(&mut self, array: &mut Handles<Datatype>) {
        self.made().arrays.push(array.leave());
    }

    /// Notes that C has begun a split collective access to a file.
    #[inline(always)]
    pub fn begun(self, code: c_int, file: File) {
        let Some(made) = self.made else { return };
        let copies = split_copies(*made);
        if code == 0 {
            split::keep(file, copies);
        }
    }

    /// Notes that C has returned.
    #[inline(always)]
    pub fn done(self, code: c_int, request: Option<Request>) {
        if let Some(made) = self.made {
            settle(*made, self.way, code, request);
        }
    }
}

/// The copies, without the datatypes that only the call needed.
#[cold]
#[inline(never)]
fn split_copies(made: Made) -> Vec<Copied> {
    for mut datatype in made.types {
        // SAFETY: it was made here.
        unsafe { MPI_Type_free(&raw mut datatype) };
    }
    made.copies
}

#[cold]
#[inline(never)]
fn settle(made: Made, way: Way, code: c_int, request: Option<Request>) {
    for mut datatype in made.types {
        // SAFETY: it was made here.
        unsafe { MPI_Type_free(&raw mut datatype) };
    }
    match request {
        Some(_) if code != 0 => {}
        Some(request) => {
            if !made.copies.is_empty() || !made.arrays.is_empty() {
                pending::add(request, made.copies, made.arrays, way == Way::Persistent);
            }
        }
        None => made.copies.iter().for_each(Copied::scatter),
    }
}

/// Layout of a datatype's elements.
fn span(datatype: Datatype) -> Result<Span, c_int> {
    let mut span = Span::default();
    // SAFETY: the results have places.
    unsafe {
        check(MPI_Type_get_extent(
            datatype,
            &raw mut span.lb,
            &raw mut span.extent,
        ))?;
        check(MPI_Type_get_true_extent(
            datatype,
            &raw mut span.true_lb,
            &raw mut span.true_extent,
        ))?;
    }
    Ok(span)
}

/// A datatype of `n` elements of another one, `per` of which are in each element of the section.
fn picked(section: &Section, per: i64, n: i64, of: Datatype) -> Result<Datatype, c_int> {
    let (whole, rest) = (n / per, n % per);
    if whole + i64::from(rest > 0) > section.elements() {
        return Err(fault(MPI_ERR_COUNT, TOO_FEW));
    }
    let mut parts: Vec<(i64, Datatype)> = Vec::new();
    for piece in section.first(whole) {
        parts.push((piece.offset, nest(&piece, per, of)?));
    }
    if rest > 0 {
        parts.push((section.offset(whole), contiguous(rest, of)?));
    }
    let mut made = match parts[..] {
        [(0, one)] => {
            parts.clear();
            one
        }
        _ => structure(&parts)?,
    };
    for (_, part) in &mut parts {
        // SAFETY: it was made here.
        unsafe { MPI_Type_free(part) };
    }
    // SAFETY: it was made here.
    check(unsafe { MPI_Type_commit(&raw mut made) })?;
    Ok(made)
}

fn nest(piece: &Piece, per: i64, of: Datatype) -> Result<Datatype, c_int> {
    let Some((first, outer)) = piece.dims.split_first() else {
        return contiguous(per, of);
    };
    let mut made = Datatype(0);
    // SAFETY: the result has a place.
    check(unsafe { MPI_Type_create_hvector_c(first.count, per, first.stride, of, &raw mut made) })?;
    for dim in outer {
        let mut inner = made;
        // SAFETY: the results have places.
        unsafe {
            check(MPI_Type_create_hvector_c(
                dim.count,
                1,
                dim.stride,
                inner,
                &raw mut made,
            ))?;
            MPI_Type_free(&raw mut inner);
        }
    }
    Ok(made)
}

fn contiguous(n: i64, of: Datatype) -> Result<Datatype, c_int> {
    let mut made = Datatype(0);
    // SAFETY: the result has a place.
    check(unsafe { MPI_Type_contiguous_c(n, of, &raw mut made) })?;
    Ok(made)
}

fn structure(parts: &[(i64, Datatype)]) -> Result<Datatype, c_int> {
    let mut lengths = vec![1i64; parts.len()];
    let mut offsets: Vec<i64> = parts.iter().map(|part| part.0).collect();
    let mut types: Vec<Datatype> = parts.iter().map(|part| part.1).collect();
    let mut made = Datatype(0);
    // SAFETY: arrays with the stated numbers of elements.
    check(unsafe {
        MPI_Type_create_struct_c(
            parts.len() as i64,
            lengths.as_mut_ptr(),
            offsets.as_mut_ptr(),
            types.as_mut_ptr(),
            &raw mut made,
        )
    })?;
    Ok(made)
}

/// The class of C's error.
fn check(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}
