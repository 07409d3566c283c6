//! Objects left at MPI_Finalize, for `KW_CHECK`: the call that created each object that a program
//! must free, to report those that it has not.
//!
//! A note is made when an object is created, at the index of its handle in its table. A later
//! object there replaces the note, so there are never more notes than objects that existed at the
//! same time.

use crate::handle::{CommH, GroupH, OpH, RequestH, TypeH, WinH};
use crate::state::{State, Tables};
use kw_base::Key;
use kw_hang::{Early, Frame, Left};
use kw_sys::callers;
use kw_types::comm::BOOTSTRAP;
use std::collections::HashMap;

/// Most return addresses that are kept of a call.
const ADDRESSES: usize = 32;
/// Most kinds of objects that a rank reports.
const MOST: usize = 32;

/// An object that must be freed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Made {
    /// A communicator.
    Comm(CommH),
    /// A group.
    Group(GroupH),
    /// A datatype.
    Type(TypeH),
    /// A reduction operation.
    Op(OpH),
    /// A request.
    Request(RequestH),
    /// A window.
    Win(WinH),
}

impl Made {
    fn key(self) -> Option<Key> {
        match self {
            Made::Comm(h) => h.key(),
            Made::Group(h) => h.key(),
            Made::Type(h) => h.key(),
            Made::Op(h) => h.key(),
            Made::Request(h) => h.key(),
            Made::Win(h) => h.key(),
        }
    }

    fn what(self) -> &'static str {
        match self {
            Made::Comm(_) => "a communicator{} was never freed (MPI_Comm_free)",
            Made::Group(_) => "a group{} was never freed (MPI_Group_free)",
            Made::Type(_) => "a datatype{} was never freed (MPI_Type_free)",
            Made::Op(_) => "an operation{} was never freed (MPI_Op_free)",
            Made::Request(_) => "a request{} was never completed or freed",
            Made::Win(_) => "a window{} was never freed (MPI_Win_free)",
        }
    }
}

/// Creators of objects.
#[derive(Debug, Default)]
pub struct Makers {
    all: HashMap<(std::mem::Discriminant<Made>, u32), (Made, Box<[usize]>)>,
}

impl Tables {
    /// Notes that the current call has created an object.
    #[inline]
    pub fn note_made(&mut self, made: Made) {
        if self.checking {
            self.makers.note(made);
        }
    }

    fn lives(&self, made: Made) -> bool {
        let Some(key) = made.key() else {
            return false;
        };
        match made {
            // A window's own communicator is freed with it.
            Made::Comm(h) => {
                let of_window = self.windows.iter().any(|(_, window)| window.comm == h);
                let found = self.comms.made.get(key).filter(|_| !of_window);
                found.is_some_and(|c| c.session.is_none())
            }
            Made::Group(_) => self
                .groups
                .made
                .get(key)
                .is_some_and(|g| g.session.is_none()),
            Made::Type(_) => self.types.derived.get(key).is_some_and(|t| !t.lasting),
            Made::Op(_) => self.ops.made.get(key).is_some(),
            Made::Request(h) => self.requests.get(h).is_some(),
            Made::Win(_) => self.windows.get(key).is_some(),
        }
    }

    /// The objects that the program has not freed, by their creators.
    pub fn never_freed(&self) -> Vec<Left> {
        let all = self.makers.all.values();
        let mut left: Vec<(Made, &[usize], u64)> = Vec::new();
        for (made, by) in all.filter(|(made, _)| self.lives(*made)) {
            let alike =
                |l: &&mut (Made, &[usize], u64)| l.0.what() == made.what() && l.1 == &by[..];
            match left.iter_mut().find(alike) {
                Some(alike) => alike.2 += 1,
                None => left.push((*made, by, 1)),
            }
        }
        let mut reported: Vec<Left> = Vec::new();
        for one in left.into_iter().map(left_of) {
            // Calls from one line may take different paths inside the library.
            let alike = |l: &&mut Left| {
                (&l.what, &l.call, &l.frames) == (&one.what, &one.call, &one.frames)
            };
            match reported.iter_mut().find(alike) {
                Some(alike) => alike.count += one.count,
                None => reported.push(one),
            }
        }
        reported.sort_by(|a, b| (&a.what, &a.call).cmp(&(&b.what, &b.call)));
        reported.truncate(MOST);
        reported
    }
}

impl Makers {
    #[cold]
    fn note(&mut self, made: Made) {
        if let Some(key) = made.key() {
            let place = (std::mem::discriminant(&made), key.index);
            self.all
                .insert(place, (made, callers::addresses(ADDRESSES)));
        }
    }
}

fn left_of((made, by, count): (Made, &[usize], u64)) -> Left {
    let (call, frames) = crate::hang::program(callers::named(by));
    Left {
        count,
        what: made.what().into(),
        call,
        frames,
    }
}

/// Messages that were not received, equal ones combined.
pub fn never_received(state: &State) -> Vec<Left> {
    let Some(engine) = &state.engine else {
        return Vec::new();
    };
    let mut left: Vec<Left> = Vec::new();
    for early in kw_engine::unreceived(engine) {
        let what = message(&early, &state.above);
        match left.iter_mut().find(|l| l.what == what) {
            Some(alike) => alike.count += 1,
            None => left.push(Left {
                count: 1,
                what,
                call: String::new(),
                frames: Vec::<Frame>::new(),
            }),
        }
    }
    left.truncate(MOST);
    left
}

fn message(early: &Early, tables: &Tables) -> String {
    if early.context == BOOTSTRAP.0 {
        return format!(
            "rank {} called MPI_Comm_create_from_group or MPI_Intercomm_create_from_groups with a group \
             that has this rank, which did not call it",
            early.from
        );
    }
    let kind = match early.partitioned {
        true => "a partitioned send",
        false => "a message",
    };
    let comm = crate::hang::comm_name(tables, early.context);
    format!(
        "{kind} of rank {}, tag {}, on {comm}, {} bytes, was never received",
        early.from, early.tag, early.bytes
    )
}
