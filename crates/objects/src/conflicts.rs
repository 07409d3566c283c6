//! Conflicting accesses to windows, for `KW_CHECK`: the call behind each access, and the report of
//! two that conflict.

use crate::error::{Class, Fault};
use kw_engine::Engine;
use kw_engine::windows::{FoundConflict, Site};
use kw_hang::{CallSite, Conflict};
use kw_sys::callers;
use std::collections::HashMap;

/// Most return addresses that are examined.
const ADDRESSES: usize = 32;

/// Calls that were looked up, by their return addresses.
#[derive(Debug, Default)]
pub struct CallSites {
    known: HashMap<Box<[usize]>, Site>,
}

impl CallSites {
    /// The current call of the program.
    #[cold]
    pub fn here(&mut self) -> Site {
        let addresses = callers::addresses(ADDRESSES);
        if let Some(site) = self.known.get(&addresses) {
            return site.clone();
        }
        let site: Site = here(&addresses).encode().into_bytes().into();
        self.known.insert(addresses, site.clone());
        site
    }
}

fn here(addresses: &[usize]) -> CallSite {
    let (call, frames) = crate::hang::program(callers::named(addresses));
    CallSite { call, frames }
}

/// Reports conflicts to the launcher, which knows files and lines; returns the fault of the first.
/// `title`: the window, or nothing.
#[cold]
pub fn report(engine: &mut Engine, title: &str, found: &[FoundConflict]) -> Box<Fault> {
    let conflicts: Vec<Conflict> = found.iter().map(|f| conflict(title, f)).collect();
    let mut heard = false;
    for conflict in &conflicts {
        heard |= engine.launcher().tell(&conflict.encode());
    }
    // The fault of a window names it anyway.
    let first = found.first().map(|f| conflict("", f));
    let mut text = first.map_or(String::new(), |c| c.sentence(["", ""]));
    if heard {
        text += "; mpiexec names both lines at the end";
    }
    Fault::new(Class::RmaConflict, text)
}

fn conflict(title: &str, found: &FoundConflict) -> Conflict {
    let call = |bytes: &[u8]| match bytes {
        // The current call.
        [] => here(&callers::addresses(ADDRESSES)),
        _ => CallSite::decode(&String::from_utf8_lossy(bytes)).unwrap_or_default(),
    };
    let what = match title {
        "" => found.what.clone(),
        title => format!("{title}: {}", found.what),
    };
    Conflict {
        what,
        calls: [call(&found.calls[0]), call(&found.calls[1])],
    }
}
