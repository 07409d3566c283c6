//! Attributes and keyvals, for communicators, datatypes and windows (MPI 5.0, 7.7).
//!
//! Attributes are kept beside the objects, by handle, since most objects have none and predefined
//! ones may have some. A freed keyval lives on until the last attribute with it is deleted, and
//! until then names it in every call except another free.

use crate::codes::LASTCODE;
use crate::comm::{ANY_SOURCE, PROC_NULL};
use crate::error::{Class, Fault, Res};
use crate::handle::{CommH, TypeH, WinH};
use crate::state::Tables;
use crate::window;
use kw_base::{Key, Slab};
use kw_sys::buf::Buf;
use kw_sys::callback::{AttrCopy, DeleteAttr};
use std::collections::HashMap;

/// MPI_KEYVAL_INVALID
pub const KEYVAL_INVALID: i32 = 0;
/// MPI_TAG_UB, the first predefined keyval of communicators.
pub const TAG_UB: i32 = 501;
/// MPI_UNIVERSE_SIZE, the last one.
pub const UNIVERSE_SIZE: i32 = 507;

/// Kind of object a keyval is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Communicators.
    Comm,
    /// Datatypes.
    Type,
    /// Windows.
    Win,
}

/// An object with attributes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Owner {
    /// A communicator.
    Comm(CommH),
    /// A datatype.
    Type(TypeH),
    /// A window.
    Win(WinH),
}

impl Owner {
    /// The handle's value.
    pub fn bits(self) -> usize {
        match self {
            Owner::Comm(h) => h.0,
            Owner::Type(h) => h.0,
            Owner::Win(h) => h.0,
        }
    }

    /// Kind of the object.
    pub fn kind(self) -> Kind {
        match self {
            Owner::Comm(_) => Kind::Comm,
            Owner::Type(_) => Kind::Type,
            Owner::Win(_) => Kind::Win,
        }
    }
}

/// A keyval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keyval {
    /// Kind of object.
    pub kind: Kind,
    /// Behaviour at duplication.
    pub copy: AttrCopy,
    /// Called at deletion; `None` is MPI_COMM_NULL_DELETE_FN.
    pub delete: Option<DeleteAttr>,
    /// Passed to both functions.
    pub extra: usize,
    references: u32,
    freed: bool,
}

/// One attribute of one object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attribute {
    /// Its keyval.
    pub keyval: i32,
    /// Its value.
    pub value: usize,
}

/// All keyvals and all attributes.
#[derive(Debug, Default)]
pub struct Attributes {
    keyvals: Slab<Keyval>,
    of: HashMap<Owner, Vec<Attribute>>,
    predefined: Option<Predefined>,
}

/// Values of the predefined attributes of communicators, in memory whose address callers get.
#[derive(Debug)]
struct Predefined {
    ints: Buf,
    present: [bool; 7],
}

/// Bits of a generation in the `int` form of a keyval.
const GENERATION: u32 = 0x3f;

/// `int` form of a keyval of the library: bit 30, six bits of generation, 24 bits of index.
fn to_int(key: Key) -> i32 {
    (1 << 30 | (key.generation & GENERATION) << 24 | (key.index & 0x00ff_ffff)) as i32
}

/// Index and generation of a keyval of the library.
fn split(keyval: i32) -> Option<(u32, u32)> {
    let bits = keyval as u32;
    (keyval > 0 && keyval & (1 << 30) != 0).then_some((bits & 0x00ff_ffff, bits >> 24 & GENERATION))
}

impl Attributes {
    /// A new keyval.
    pub fn create(
        &mut self,
        kind: Kind,
        copy: AttrCopy,
        delete: Option<DeleteAttr>,
        extra: usize,
    ) -> i32 {
        to_int(self.keyvals.insert(Keyval {
            kind,
            copy,
            delete,
            extra,
            references: 1,
            freed: false,
        }))
    }

    fn key(&self, keyval: i32) -> Option<Key> {
        let (index, _) = split(keyval)?;
        let key = self.keyvals.key_at(index)?;
        (to_int(key) == keyval).then_some(key)
    }

    /// The keyval, if the user made it for this kind of object; freed or not, as long as an
    /// attribute has it (MPI 5.0, 7.7.2, MPI_COMM_FREE_KEYVAL).
    pub fn keyval(&self, keyval: i32, kind: Kind) -> Res<&Keyval> {
        let found = self.key(keyval).and_then(|k| self.keyvals.get(k));
        match found {
            Some(k) if k.kind == kind => Ok(k),
            _ => Err(unknown_keyval(keyval, kind)),
        }
    }

    /// The keyval of an existing attribute, freed or not.
    fn of_set(&self, keyval: i32) -> Option<&Keyval> {
        self.key(keyval).and_then(|k| self.keyvals.get(k))
    }

    /// MPI_*_free_keyval. As with MPICH, a keyval may have been freed before, for instance by a
    /// callback; not if `strict`.
    pub fn free(&mut self, keyval: i32, kind: Kind, strict: bool) -> Res {
        if !strict && self.was_freed(keyval) {
            return Ok(());
        }
        if self.keyval(keyval, kind)?.freed {
            return Err(unknown_keyval(keyval, kind));
        }
        if let Some(k) = self.key(keyval).and_then(|k| self.keyvals.get_mut(k)) {
            k.freed = true;
        }
        self.drop_keyval(keyval);
        Ok(())
    }

    /// Whether this is the number of a keyval that has been freed.
    fn was_freed(&self, keyval: i32) -> bool {
        if let Some(k) = self.of_set(keyval) {
            return k.freed;
        }
        let Some((index, generation)) = split(keyval) else {
            return false;
        };
        // A vacant entry has the generation of its next keyval.
        let now = self.keyvals.generation_at(index);
        now.is_some_and(|now| now & GENERATION != generation)
    }

    fn drop_keyval(&mut self, keyval: i32) {
        let Some(key) = self.key(keyval) else { return };
        if let Some(k) = self.keyvals.get_mut(key) {
            k.references -= 1;
            if k.references == 0 {
                self.keyvals.remove(key);
            }
        }
    }

    /// The value of an attribute.
    pub fn get(&self, owner: Owner, keyval: i32) -> Option<usize> {
        let list = self.of.get(&owner)?;
        list.iter().find(|a| a.keyval == keyval).map(|a| a.value)
    }

    /// Sets an attribute. Any earlier value must have been deleted before.
    pub fn set(&mut self, owner: Owner, keyval: i32, value: usize) {
        let list = self.of.entry(owner).or_default();
        match list.iter_mut().find(|a| a.keyval == keyval) {
            Some(a) => a.value = value,
            None => {
                list.push(Attribute { keyval, value });
                if let Some(k) = self.key(keyval).and_then(|k| self.keyvals.get_mut(k)) {
                    k.references += 1;
                }
            }
        }
    }

    /// Removes an attribute without calling its delete function.
    pub fn remove(&mut self, owner: Owner, keyval: i32) {
        let Some(list) = self.of.get_mut(&owner) else {
            return;
        };
        let before = list.len();
        list.retain(|a| a.keyval != keyval);
        let removed = list.len() < before;
        if list.is_empty() {
            self.of.remove(&owner);
        }
        if removed {
            self.drop_keyval(keyval);
        }
    }

    /// The attributes of an object in the order in which they were set, with their keyvals.
    pub fn all(&self, owner: Owner) -> Vec<(Attribute, Keyval)> {
        let list = self.of.get(&owner).map(Vec::as_slice).unwrap_or_default();
        list.iter()
            .filter_map(|a| Some((*a, self.of_set(a.keyval)?.clone())))
            .collect()
    }

    /// Sets the predefined attributes of communicators, from MPI_TAG_UB to MPI_UNIVERSE_SIZE;
    /// `None` is not set.
    pub fn predefine(&mut self, values: [Option<i32>; 7]) {
        // The addresses that callers have remain the same when MPI starts again.
        let before = self.predefined.take().map(|p| p.ints);
        let ints = before.unwrap_or_else(|| Buf::alloc(4 * values.len()));
        let mut present = [false; 7];
        for (i, value) in values.iter().enumerate() {
            present[i] = value.is_some();
            ints.write(4 * i as u64, &value.unwrap_or(0).to_ne_bytes());
        }
        self.predefined = Some(Predefined { ints, present });
    }

    /// Changes MPI_LASTUSEDCODE.
    pub fn set_last_used_code(&mut self, code: i32) {
        if let Some(p) = &self.predefined {
            p.ints.write(4 * (506 - TAG_UB) as u64, &code.to_ne_bytes());
        }
    }

    /// The address of a predefined attribute of communicators: `None` when the keyval is not one,
    /// `Some(None)` when it is not set. Communicators of sessions have MPI_TAG_UB only (MPI 5.0,
    /// 9.1.2).
    pub fn predefined(&self, keyval: i32, of_session: bool) -> Option<Option<usize>> {
        if !(TAG_UB..=UNIVERSE_SIZE).contains(&keyval) {
            return None;
        }
        if of_session && keyval != TAG_UB {
            return Some(None);
        }
        let at = (keyval - TAG_UB) as usize;
        let Some(p) = &self.predefined else {
            return Some(None);
        };
        Some(
            p.ints
                .contiguous()
                .filter(|_| p.present[at])
                .map(|ints| ints + 4 * at),
        )
    }
}

/// The predefined attributes of communicators in a job, from MPI_TAG_UB to MPI_UNIVERSE_SIZE. The
/// clock of one machine is the same for all its processes.
pub fn of_job(hosts: &[u32], appnum: Option<i32>, universe: Option<i32>) -> [Option<i32>; 7] {
    let one_clock = hosts.windows(2).all(|w| w[0] == w[1]);
    [
        Some(i32::MAX),
        Some(ANY_SOURCE),
        Some(PROC_NULL),
        Some(one_clock as i32),
        appnum,
        Some(LASTCODE),
        universe,
    ]
}

impl Tables {
    /// Checks that the object of an owner exists.
    pub fn check_owner(&self, owner: Owner) -> Res {
        match owner {
            Owner::Comm(h) => self.comms.get(h).map(|_| ()),
            Owner::Type(h) => self.datatype(h).map(|_| ()),
            Owner::Win(h) => self.window(h).map(|_| ()),
        }
    }
}

#[cold]
fn unknown_keyval(keyval: i32, kind: Kind) -> Box<Fault> {
    let what = match keyval {
        KEYVAL_INVALID => "MPI_KEYVAL_INVALID".to_string(),
        TAG_UB..=UNIVERSE_SIZE | window::BASE..=window::MODEL => {
            format!("{keyval}, a predefined attribute, which cannot be changed")
        }
        _ => {
            let what = match kind {
                Kind::Comm => "communicators",
                Kind::Type => "datatypes",
                Kind::Win => "windows",
            };
            format!("{keyval}, which is not a keyval for {what} (freed?)")
        }
    };
    Fault::new(Class::Keyval, format!("keyval is {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Owner = Owner::Comm(CommH::WORLD);

    #[test]
    fn a_freed_keyval_lives_as_long_as_its_attributes() {
        let mut t = Attributes::default();
        let k = t.create(Kind::Comm, AttrCopy::Same, None, 7);
        t.set(A, k, 42);
        t.free(k, Kind::Comm, true).unwrap();
        assert!(t.keyval(k, Kind::Comm).is_ok());
        assert!(t.free(k, Kind::Comm, true).is_err());
        assert_eq!(t.all(A).len(), 1);
        t.remove(A, k);
        assert!(t.keyval(k, Kind::Comm).is_err());
        assert!(t.keyvals.is_empty());
        let again = t.create(Kind::Comm, AttrCopy::Never, None, 0);
        assert_ne!(again, k);
    }

    #[test]
    fn a_keyval_may_be_freed_again_unless_strict() {
        let mut t = Attributes::default();
        let k = t.create(Kind::Comm, AttrCopy::Never, None, 0);
        t.set(A, k, 42);
        t.free(k, Kind::Comm, false).unwrap();
        t.free(k, Kind::Comm, false).unwrap();
        assert_eq!(t.get(A, k), Some(42));
        t.remove(A, k);
        let next = t.keyvals.next_key();
        assert!(t.free(k, Kind::Comm, true).is_err());
        assert!(t.free(to_int(next), Kind::Comm, false).is_err());
        for taken in [false, true] {
            t.free(k, Kind::Comm, false).unwrap();
            if !taken {
                assert_eq!(t.create(Kind::Comm, AttrCopy::Never, None, 0), to_int(next));
            }
        }
        assert!(t.keyval(to_int(next), Kind::Comm).is_ok());
        for never in [0, -1, 501, i32::MIN, i32::MAX, to_int(next) + 1] {
            assert!(t.free(never, Kind::Comm, false).is_err(), "{never}");
        }
    }

    #[test]
    fn garbage_is_no_keyval() {
        let mut t = Attributes::default();
        let k = t.create(Kind::Type, AttrCopy::Never, None, 0);
        for bad in [0, -1, 501, 601, i32::MIN, i32::MAX, k + 1] {
            assert_eq!(
                t.keyval(bad, Kind::Type).unwrap_err().code,
                Class::Keyval as i32
            );
        }
        assert!(t.keyval(k, Kind::Comm).is_err());
    }

    #[test]
    fn predefined_values_have_an_address_that_stays() {
        let mut t = Attributes::default();
        assert_eq!(t.predefined(501, false), Some(None));
        t.predefine([Some(i32::MAX), None, Some(-3), Some(1), None, Some(5), None]);
        let at = t.predefined(506, false).unwrap().unwrap();
        t.set_last_used_code(9);
        assert_eq!(t.predefined(506, false).unwrap().unwrap(), at);
        assert_eq!(t.predefined(507, false), Some(None));
        assert_eq!(t.predefined(500, false), None);
    }

    #[test]
    fn a_communicator_of_a_session_has_tag_ub_only() {
        let mut t = Attributes::default();
        t.predefine([
            Some(1),
            Some(2),
            Some(3),
            Some(4),
            Some(5),
            Some(6),
            Some(7),
        ]);
        assert!(t.predefined(TAG_UB, true).unwrap().is_some());
        for keyval in TAG_UB + 1..=UNIVERSE_SIZE {
            assert_eq!(t.predefined(keyval, true), Some(None));
        }
    }
}
