//! The tool information interface (MPI 5.0, 15.3): the objects behind its handles. It lives beside
//! the engine and works without one: the variables declared in the tables of `kw_base` always
//! exist, their values come and go with the engine.
//!
//! [`cvar`]: settings as control variables. [`pvar`]: counters as performance variables.
//! [`category`]: the tree of both. [`event`]: registrations for events, and their delivery.

pub mod category;
pub mod cvar;
pub mod event;
pub mod pvar;

use crate::error::{Fault, Res, ToolClass};
use crate::handle::{EnumH, TypeH};
use kw_base::Key;
use kw_base::counters::{self, Class};
use kw_base::settings::{self, Audience, Kind};

/// Types of the values that tools see.
pub const MPI_INT: TypeH = TypeH(0x209);
/// See [`MPI_INT`].
pub const MPI_COUNT: TypeH = TypeH(0x202);
/// See [`MPI_INT`].
pub const MPI_UNSIGNED_LONG_LONG: TypeH = TypeH(0x20f);
/// See [`MPI_INT`].
pub const MPI_CHAR: TypeH = TypeH(0x243);
/// MPI_T_BIND_NO_OBJECT
pub const NO_OBJECT: i32 = 1;

/// State of the tool information interface.
#[derive(Debug, Default)]
pub struct Tool {
    /// Number of calls of MPI_T_init_thread without a matching MPI_T_finalize.
    pub users: u32,
    /// Control variables.
    pub cvars: cvar::Cvars,
    /// Performance variables.
    pub pvars: pvar::Pvars,
    /// Events.
    pub events: event::Events,
}

impl Tool {
    /// Removes every handle: MPI_T_finalize was called as often as MPI_T_init_thread.
    pub fn forget(&mut self) {
        self.cvars.forget();
        self.pvars.forget();
        self.events.forget();
    }
}

/// `Err(Fault::tool(class, text))`.
pub fn refuse<T>(class: ToolClass, text: impl Into<String>) -> Res<T> {
    Err(Fault::tool(class, text))
}

/// Whether an index names a row of a table with `len` rows.
pub fn row(index: i32, len: usize) -> Res<usize> {
    match usize::try_from(index) {
        Ok(i) if i < len => Ok(i),
        _ => refuse(
            ToolClass::InvalidIndex,
            format!("index is {index}, but there are {len}"),
        ),
    }
}

/// MPI_T_VERBOSITY_*_BASIC.
pub fn verbosity(audience: Audience) -> i32 {
    match audience {
        Audience::User => 0x09,
        Audience::Tuner => 0x11,
        Audience::Developer => 0x21,
    }
}

/// An enumeration: its name, and its items, whose values are their positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enumeration {
    /// Its name.
    pub name: &'static str,
    /// Names of the items.
    pub items: &'static [&'static str],
}

/// Values of a [`Kind::Bool`] setting.
const SWITCH: Enumeration = Enumeration {
    name: "switch",
    items: &["no", "yes"],
};

/// The enumeration of a setting.
pub fn of_setting(setting: &'static settings::Setting) -> Option<Enumeration> {
    match setting.kind {
        Kind::Bool => Some(SWITCH),
        Kind::Choice(items) => Some(Enumeration {
            name: setting.name,
            items,
        }),
        _ => None,
    }
}

/// The enumeration of a counter.
pub fn of_counter(row: &'static counters::Row) -> Option<Enumeration> {
    match row.class {
        Class::State(items) => Some(Enumeration {
            name: row.name,
            items,
        }),
        _ => None,
    }
}

/// All enumerations; a handle contains the position here.
fn enumerations() -> Vec<Enumeration> {
    let settings = settings::ALL.iter().filter_map(of_setting);
    let counters = counters::ALL.iter().filter_map(of_counter);
    let mut all = Vec::new();
    for e in settings.chain(counters) {
        if !all.contains(&e) {
            all.push(e);
        }
    }
    all
}

/// The handle of an enumeration; MPI_T_ENUM_NULL for none.
pub fn enum_handle(of: Option<Enumeration>) -> EnumH {
    let position = of.and_then(|e| enumerations().iter().position(|other| *other == e));
    position.map_or(EnumH::NULL, |i| {
        EnumH::from_key(Key {
            index: i as u32,
            generation: 0,
        })
    })
}

/// The enumeration of a handle.
pub fn enumeration(handle: EnumH) -> Res<Enumeration> {
    let key = handle.key().filter(|k| k.generation == 0);
    let found = key.and_then(|k| enumerations().get(k.index as usize).copied());
    found.ok_or_else(|| unknown(EnumH::WHAT, handle.0))
}

/// The fault of a handle that names nothing.
#[cold]
pub fn unknown(what: &str, bits: usize) -> Box<Fault> {
    Fault::tool(
        ToolClass::InvalidHandle,
        format!("{bits:#x} names no {what} (freed?)"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_and_counter_of_words_has_an_enumeration_that_its_handle_finds() {
        let log = settings::ALL.iter().find(|k| k.name == "KW_LOG").unwrap();
        let handle = enum_handle(of_setting(log));
        assert_eq!(enumeration(handle).unwrap().items, settings::LOG_LEVELS);
        assert_eq!(enumerations().iter().filter(|e| **e == SWITCH).count(), 1);
        assert!(enumeration(EnumH::NULL).is_err());
        assert!(enumeration(EnumH(handle.0 + 100)).is_err());
        assert!(enumeration(EnumH(handle.0 | 1 << 32)).is_err());
    }
}
