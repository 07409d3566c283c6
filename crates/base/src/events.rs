//! Declared events: what a tool can be called back for through MPI_T.
//!
//! An event is noticed by whoever owns the lock, only when somebody has asked for its kind, and
//! only in places that are rare or slow already; it is handed to the tool after the lock was let
//! go.

use crate::rooms::Room;

/// The largest number of elements of an event.
pub const MOST_ELEMENTS: usize = 4;

/// The C type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `int`.
    Int,
    /// `MPI_Count`.
    Count,
}

impl Element {
    /// Bytes that it takes, which is also its alignment.
    pub fn size(self) -> usize {
        match self {
            Element::Int => 4,
            Element::Count => 8,
        }
    }
}

/// One declared kind of event.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// One sentence that ends with what the elements are, in their order.
    pub help: &'static str,
    /// Types of the elements.
    pub elements: &'static [Element],
    /// What it belongs to.
    pub room: Room,
}

impl Row {
    /// Where each element begins when they lie in memory as in a C struct.
    pub fn displacements(&self) -> Vec<usize> {
        let mut end = 0usize;
        let place = |e: &Element| {
            let at = end.next_multiple_of(e.size());
            end = at + e.size();
            at
        };
        self.elements.iter().map(place).collect()
    }
}

macro_rules! events {
    ($($id:ident = $name:literal, $room:ident, [$($element:ident),*], $help:literal;)*) => {
        /// Names a kind of event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Event { $($id),* }
        /// Every kind of event, by position.
        pub const ALL: &[Row] = &[$(Row {
            name: $name,
            help: $help,
            elements: &[$(Element::$element),*],
            room: Room::$room,
        }),*];
        const IDS: &[Event] = &[$(Event::$id),*];
    };
}

events! {
    UnexpectedMessage = "unexpected_message", Matching, [Int, Int, Int, Count],
        "A message came before its receive. Elements: rank in MPI_COMM_WORLD that sent it, context id, tag, bytes.";
    RendezvousBegun = "rendezvous_begun", Protocols, [Int, Int, Int, Count],
        "This rank offered a message that is too long to be sent at once. Elements: rank in MPI_COMM_WORLD it goes to, context id, tag, bytes.";
    RendezvousWaits = "rendezvous_waits", Protocols, [Int, Int, Int, Count],
        "A message that is too long to be sent at once was offered to this rank before its receive. Elements: rank in MPI_COMM_WORLD that offers it, context id, tag, bytes.";
    EventTakeover = "event_takeover", Progress, [Int],
        "The event thread took over, because something goes on and no thread is inside MPI. Elements: requests that have not ended.";
    PeerLost = "peer_lost", Paths, [Int],
        "A rank went away without saying goodbye. Elements: its rank in MPI_COMM_WORLD.";
}

impl Event {
    /// The kind at a position of [`ALL`].
    pub fn at(position: usize) -> Option<Event> {
        IDS.get(position).copied()
    }
}

/// An event that was noticed; elements that its kind does not have are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// What happened.
    pub event: Event,
    /// Its elements.
    pub data: [i64; MOST_ELEMENTS],
}

/// Kinds of events somebody wants to hear of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted(u32);

impl Wanted {
    /// One kind more.
    pub fn add(&mut self, event: Event) {
        self.0 |= 1 << event as u32;
    }

    /// Whether it is wanted.
    #[inline]
    pub fn has(self, event: Event) -> bool {
        self.0 & 1 << event as u32 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_as_in_a_c_struct_and_are_not_too_many() {
        assert_eq!(
            ALL[Event::UnexpectedMessage as usize].displacements(),
            [0, 4, 8, 16]
        );
        for row in ALL {
            assert!(
                (1..=MOST_ELEMENTS).contains(&row.elements.len()),
                "{}",
                row.name
            );
        }
    }
}
