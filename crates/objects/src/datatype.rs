//! Datatype objects: layout, contents for MPI_Type_get_contents, name, attributes.
//!
//! Predefined datatypes are found by handle without lock or hash; derived ones live in a slab.
//! Operations in flight keep the [`Layout`] itself alive, so MPI_Type_free only removes the handle
//! (MPI 5.0, 5.1.9).

use crate::error::{Class, Fault, Res, fail};
use crate::handle::TypeH;
use crate::state::Tables;
use kw_base::Slab;
use kw_sys::buf::{Addr, Buf};
use kw_types::layout::{Layout, basic};
use std::sync::Arc;

/// How a derived datatype was made: the results of MPI_Type_get_envelope and MPI_Type_get_contents.
#[derive(Debug, Default)]
pub struct Recipe {
    /// MPI_COMBINER_...
    pub combiner: i32,
    /// `array_of_integers`
    pub integers: Vec<i64>,
    /// `array_of_addresses`
    pub addresses: Vec<i64>,
    /// `array_of_large_counts`; used only for large-count constructors.
    pub counts: Vec<i64>,
    /// `array_of_datatypes`
    pub types: Vec<Part>,
}

/// A datatype that another one was made from.
#[derive(Clone, Debug)]
pub enum Part {
    /// A predefined one.
    Named(TypeH),
    /// A derived one; its handle may have been freed long ago.
    Derived(Arc<Layout>, Origin),
}

/// A recipe within another. The last owner of a chain of recipes takes it apart link by link,
/// because a chain may be longer than the stack is deep.
#[derive(Clone, Debug)]
pub struct Origin(Arc<Recipe>);

impl Origin {
    /// Wraps this recipe.
    pub fn new(recipe: Arc<Recipe>) -> Origin {
        Origin(recipe)
    }

    /// The recipe.
    pub fn recipe(&self) -> &Arc<Recipe> {
        &self.0
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let mut links = take_parts(&mut self.0);
        while let Some(part) = links.pop() {
            if let Part::Derived(_, mut origin) = part {
                links.append(&mut take_parts(&mut origin.0));
            }
        }
    }
}

/// Contents of a recipe without another owner.
fn take_parts(recipe: &mut Arc<Recipe>) -> Vec<Part> {
    Arc::get_mut(recipe).map_or(Vec::new(), |r| std::mem::take(&mut r.types))
}

/// One datatype.
#[derive(Debug)]
pub struct Datatype {
    /// Its layout.
    pub layout: Arc<Layout>,
    /// Whether MPI_Type_commit was called.
    pub committed: bool,
    /// How it was made; `None` for predefined ones.
    pub recipe: Option<Arc<Recipe>>,
    /// Name given by MPI_Type_set_name, or the predefined one's.
    pub name: String,
    /// Whether MPI_Type_free is not allowed (predefined, or made by MPI_Type_create_f90_...).
    pub lasting: bool,
    /// Whether memory described by it moves ([`Buf::moving`]). Only messages may use it.
    pub moving: bool,
}

impl Datatype {
    fn predefined(layout: Layout, name: &str) -> Datatype {
        Datatype {
            layout: Arc::new(layout),
            committed: true,
            recipe: None,
            name: name.to_string(),
            lasting: true,
            moving: false,
        }
    }

    /// A new derived datatype.
    pub fn derived(layout: Arc<Layout>, recipe: Arc<Recipe>) -> Datatype {
        Datatype {
            layout,
            committed: false,
            recipe: Some(recipe),
            name: String::new(),
            lasting: false,
            moving: false,
        }
    }
}

/// All datatypes of the process.
#[derive(Debug)]
pub struct Types {
    named: Vec<Datatype>,
    /// MPI_LB and MPI_UB.
    markers: [Datatype; 2],
    /// Derived datatypes.
    pub derived: Slab<Datatype>,
    /// Results of MPI_Type_create_f90_...: combiner and arguments, handle.
    pub f90: Vec<([i32; 3], TypeH)>,
}

impl Default for Types {
    fn default() -> Self {
        let named = basic::NAMED.iter();
        let named = named.map(|row| Datatype::predefined(Layout::named(row), row.name));
        Types {
            named: named.collect(),
            markers: [
                Datatype::predefined(Layout::lower_marker(), "MPI_LB"),
                Datatype::predefined(Layout::upper_marker(), "MPI_UB"),
            ],
            derived: Slab::new(),
            f90: Vec::new(),
        }
    }
}

impl Types {
    /// The datatype of a handle.
    #[inline]
    pub fn get(&self, handle: TypeH) -> Option<&Datatype> {
        match basic::place(handle.0) {
            Some(i) => self.named.get(i),
            None => match handle.key() {
                Some(k) => self.derived.get(k),
                None => self.markers.get(handle.0.wrapping_sub(TypeH::LB.0)),
            },
        }
    }

    /// The datatype of a handle, for changes.
    pub fn get_mut(&mut self, handle: TypeH) -> Option<&mut Datatype> {
        match basic::place(handle.0) {
            Some(i) => self.named.get_mut(i),
            None => match handle.key() {
                Some(k) => self.derived.get_mut(k),
                None => self.markers.get_mut(handle.0.wrapping_sub(TypeH::LB.0)),
            },
        }
    }
}

impl Tables {
    /// The datatype of a handle, committed or not.
    #[inline]
    pub fn datatype(&self, handle: TypeH) -> Res<&Datatype> {
        self.types.get(handle).ok_or_else(|| unknown(handle))
    }

    /// The datatype of a handle, for changes.
    pub fn datatype_mut(&mut self, handle: TypeH) -> Res<&mut Datatype> {
        self.types.get_mut(handle).ok_or_else(|| unknown(handle))
    }

    /// The layout of a committed datatype.
    #[inline]
    pub fn layout(&self, datatype: TypeH) -> Res<&Arc<Layout>> {
        let found = self.datatype(datatype)?;
        if !found.committed {
            return Err(uncommitted(datatype));
        }
        if found.moving {
            return Err(moves(datatype));
        }
        Ok(&found.layout)
    }

    /// A datatype for messages of elements of another one whose memory moves ([`Buf::moving`]):
    /// their address is that of two functions. It is never freed. `None` if the elements are not
    /// contiguous, or if types are checked.
    pub fn moving_twin(&mut self, of: TypeH) -> Res<Option<TypeH>> {
        let layout = self.layout(of)?.clone();
        if self.checking || layout.contiguous(2) != Some(0) {
            return Ok(None);
        }
        let mut twin = Datatype::derived(layout, Arc::new(Recipe::default()));
        (twin.committed, twin.lasting, twin.moving) = (true, true, true);
        Ok(Some(TypeH::from_key(self.types.derived.insert(twin))))
    }

    /// Whether this is MPI_DATATYPE_NULL, which is accepted for a buffer of no elements, as with
    /// MPICH, unless KW_CHECK is set.
    pub fn may_be_null(&self, datatype: TypeH) -> bool {
        datatype.is_null() && !self.checking
    }

    /// The message buffer that `(addr, count, datatype)` describes; checks count, datatype,
    /// commitment and null buffers.
    #[inline]
    pub fn buf(&self, addr: Addr, count: i64, datatype: TypeH) -> Res<Buf> {
        self.plain_buf(addr, count, datatype)
            .unwrap_or_else(|| self.typed_buf(addr, count, datatype))
    }

    /// Like [`Tables::buf`], for a message, whose memory may move.
    #[inline]
    pub fn message_buf(&self, addr: Addr, count: i64, datatype: TypeH) -> Res<Buf> {
        self.plain_buf(addr, count, datatype)
            .unwrap_or_else(|| self.derived_message_buf(addr, count, datatype))
    }

    /// The buffer, if the datatype is a predefined one that needs no layout.
    #[inline]
    fn plain_buf(&self, addr: Addr, count: i64, datatype: TypeH) -> Option<Res<Buf>> {
        let size = basic::plain_size(datatype.0)?;
        let len = count.checked_mul(size as i64).unwrap_or(-1);
        if len < 0 || (addr == Addr::NULL && len > 0) {
            return Some(Err(bad_buffer(count, size, datatype)));
        }
        (!self.checking).then(|| Ok(Buf::bytes(addr, len as u64)))
    }

    fn derived_message_buf(&self, addr: Addr, count: i64, datatype: TypeH) -> Res<Buf> {
        match self.types.get(datatype) {
            Some(found) if found.moving => {
                let size = found.layout.size();
                let len = count.checked_mul(size as i64).unwrap_or(-1);
                if len < 0 || addr == Addr::NULL {
                    return Err(bad_buffer(count, size, datatype));
                }
                Ok(Buf::moving(addr, len as u64))
            }
            _ => self.typed_buf(addr, count, datatype),
        }
    }

    fn typed_buf(&self, addr: Addr, count: i64, datatype: TypeH) -> Res<Buf> {
        if count == 0 && self.may_be_null(datatype) {
            return Ok(Buf::EMPTY);
        }
        let layout = self.layout(datatype)?;
        let len = count.checked_mul(layout.size() as i64).unwrap_or(-1);
        let null = addr == Addr::NULL && datatype.is_predefined();
        if count < 0 || len < 0 || (null && len > 0) {
            return Err(bad_buffer(count, layout.size(), datatype));
        }
        let make = if self.checking {
            Buf::with_types
        } else {
            Buf::typed
        };
        Ok(make(addr, count as u64, layout))
    }
}

#[cold]
fn bad_buffer(count: i64, size: u64, datatype: TypeH) -> Box<Fault> {
    if count < 0 {
        return Fault::new(
            Class::Count,
            format!("count is {count}, but must not be negative"),
        );
    }
    if count.checked_mul(size as i64).is_none() {
        return Fault::new(
            Class::Count,
            format!("count is {count}, which with {size} bytes each is more than 2^63 - 1"),
        );
    }
    Fault::new(
        Class::Buffer,
        format!(
            "the buffer is a null pointer, but holds {count} elements of {}",
            basic::by_handle(datatype.0).map_or("a datatype", |n| n.name)
        ),
    )
}

#[cold]
fn unknown(handle: TypeH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_DATATYPE_NULL".to_string()
    } else {
        format!(
            "{:#x}, which names no datatype {}",
            handle.0,
            crate::handle::amiss(handle.0, "freed")
        )
    };
    Fault::new(Class::Type, format!("datatype is {what}"))
}

#[cold]
fn moves(handle: TypeH) -> Box<Fault> {
    Fault::new(
        Class::Type,
        format!(
            "datatype {:#x} is for messages in memory that moves, which this call cannot use",
            handle.0
        ),
    )
}

#[cold]
fn uncommitted(handle: TypeH) -> Box<Fault> {
    Fault::new(
        Class::Type,
        format!(
            "datatype {:#x} is not committed; call MPI_Type_commit before using it in communication",
            handle.0
        ),
    )
}

/// Checks a count argument of this name.
pub fn checked_count(name: &str, count: i64) -> Res<u64> {
    if count < 0 {
        return fail!(Count: "{name} is {count}, but must not be negative");
    }
    Ok(count as u64)
}
