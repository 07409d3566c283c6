//! Windows (MPI 5.0, chapter 12): the object of an MPI_Win. The engine, which has its own name for
//! it, performs its operations.

use crate::Group;
use crate::attributes::Owner;
use crate::error::{Class, Fault, Res, Scope};
use crate::handle::{CommH, ErrhandlerH, WinH};
use crate::info::Info;
use crate::left::Made;
use crate::state::Tables;
use kw_engine::windows::{WinId, WindowError};
use kw_sys::buf::Buf;
use std::sync::Arc;

/// MPI_WIN_BASE, the first predefined keyval of windows.
pub const BASE: i32 = 601;
/// MPI_WIN_MODEL, the last one.
pub const MODEL: i32 = 605;
/// MPI_WIN_UNIFIED
const UNIFIED: i32 = 321;

/// How a window was created: the value of MPI_WIN_CREATE_FLAVOR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Flavor {
    /// MPI_Win_create
    Create = 311,
    /// MPI_Win_allocate
    Allocate = 312,
    /// MPI_Win_create_dynamic
    Dynamic = 313,
    /// MPI_Win_allocate_shared
    Shared = 314,
}

impl Flavor {
    /// The function that creates such a window.
    pub fn maker(self) -> &'static str {
        match self {
            Flavor::Create => "MPI_Win_create",
            Flavor::Allocate => "MPI_Win_allocate",
            Flavor::Dynamic => "MPI_Win_create_dynamic",
            Flavor::Shared => "MPI_Win_allocate_shared",
        }
    }
}

/// Ranks whose memory the ranks of a window access directly, with loads and stores. The value is
/// the same on all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Only its own.
    Own,
    /// Also that of some others.
    Some,
    /// That of all.
    All,
}

/// One window.
#[derive(Debug)]
pub struct Window {
    /// Error handler.
    pub errhandler: ErrhandlerH,
    /// Name given by MPI_Win_set_name.
    pub name: String,
    /// Its own communicator.
    pub comm: CommH,
    /// Its ranks.
    pub group: Arc<Group>,
    /// This process's rank among them.
    pub rank: u32,
    /// The engine's name of it.
    pub id: WinId,
    /// Its hints.
    pub info: Info,
    /// How it was created.
    pub flavor: Flavor,
    /// The ranks that share its memory with this one, each with its part and its unit; empty if no
    /// memory is shared.
    pub shared: Vec<Part>,
    /// Ranks whose memory its ranks access directly.
    pub reach: Reach,
    /// Its predefined attributes.
    pub attributes: Predefined,
}

impl Window {
    /// Its name for people, with this rank.
    fn title(&self) -> String {
        match self.name.as_str() {
            "" => format!(
                "rank {}, window of {} without a name",
                self.rank,
                self.flavor.maker()
            ),
            name => format!("rank {}, window '{name}'", self.rank),
        }
    }

    /// Its name for people.
    pub fn called(&self) -> String {
        match self.name.as_str() {
            "" => format!("a window of {}", self.flavor.maker()),
            name => format!("window '{name}'"),
        }
    }

    /// A fault of a call on this window, which names it, and is for its handler.
    #[cold]
    pub fn fault(&self, handle: WinH, mut fault: Box<Fault>) -> Box<Fault> {
        fault.text = format!("{}: {}", self.title(), fault.text);
        fault.scope = Scope::Win(handle);
        fault
    }
}

/// A rank's part of the shared memory of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its rank in the window.
    pub rank: u32,
    /// Address of the part in this process.
    pub base: usize,
    /// Its bytes.
    pub size: u64,
    /// Its displacement unit.
    pub unit: u64,
}

/// The predefined attributes of a window, in memory whose address callers get.
#[derive(Debug)]
pub struct Predefined {
    base: usize,
    values: Buf,
}

impl Predefined {
    /// Attributes of a window with these properties.
    pub fn new(base: usize, size: u64, unit: u64, flavor: Flavor) -> Predefined {
        let values = Buf::alloc(24);
        values.write(0, &(size as i64).to_ne_bytes());
        values.write(8, &(unit as i32).to_ne_bytes());
        values.write(12, &(flavor as i32).to_ne_bytes());
        values.write(16, &UNIFIED.to_ne_bytes());
        Predefined { base, values }
    }

    /// The value of a predefined keyval; `None` for other keyvals.
    pub fn get(&self, keyval: i32) -> Option<usize> {
        let at = match keyval {
            BASE => return Some(self.base),
            602 => 8,
            603 => 0,
            604 => 12,
            MODEL => 16,
            _ => return None,
        };
        self.values.contiguous().map(|address| address + at)
    }
}

impl Tables {
    /// The window of a handle.
    pub fn window(&self, handle: WinH) -> Res<&Window> {
        let found = handle.key().and_then(|k| self.windows.get(k));
        found.ok_or_else(|| unknown(handle))
    }

    /// The window of a handle, for changes.
    pub fn window_mut(&mut self, handle: WinH) -> Res<&mut Window> {
        let found = handle.key().and_then(|k| self.windows.get_mut(k));
        found.ok_or_else(|| unknown(handle))
    }

    /// A fault of a call on a window, for its handler.
    #[cold]
    pub fn window_fault(&self, handle: WinH, fault: Box<Fault>) -> Box<Fault> {
        match self.window(handle) {
            Ok(window) => window.fault(handle, fault),
            Err(_) => fault,
        }
    }

    /// The fault of an operation that was issued earlier: a target refuses only operations outside
    /// its memory.
    #[cold]
    pub fn operation_fault(&self, handle: WinH, mut fault: Box<Fault>) -> Box<Fault> {
        if fault.code == Class::Other as i32 {
            fault.code = Class::RmaRange as i32;
        }
        self.window_fault(handle, fault)
    }

    /// A predefined attribute of a window.
    pub fn window_attribute(&self, owner: Owner, keyval: i32) -> Option<usize> {
        match owner {
            Owner::Win(win) => self.window(win).ok()?.attributes.get(keyval),
            _ => None,
        }
    }

    /// A handle for a new window.
    pub fn add_window(&mut self, window: Window) -> WinH {
        let handle = WinH::from_key(self.windows.insert(window));
        self.note_made(Made::Win(handle));
        handle
    }

    /// Removes a window from the table.
    pub fn remove_window(&mut self, handle: WinH) -> Res<Window> {
        let removed = handle.key().and_then(|k| self.windows.remove(k));
        let window = removed.ok_or_else(|| unknown(handle))?;
        self.errhandlers.release(window.errhandler);
        Ok(window)
    }
}

impl From<WindowError> for Box<Fault> {
    fn from(error: WindowError) -> Box<Fault> {
        let (class, text) = match error {
            WindowError::Sync(text) => (Class::RmaSync, text),
            WindowError::Range(text) => (Class::RmaRange, text),
            WindowError::Attach(text) => (Class::RmaAttach, text),
            conflict @ WindowError::Conflict => (Class::RmaConflict, conflict.to_string()),
            gone @ WindowError::Gone => (Class::Win, gone.to_string()),
        };
        Fault::new(class, text)
    }
}

#[cold]
fn unknown(handle: WinH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_WIN_NULL".to_string()
    } else {
        format!(
            "{:#x}, which names no window {}",
            handle.0,
            crate::handle::amiss(handle.0, "freed")
        )
    };
    Fault::new(Class::Win, format!("win is {what}"))
}
