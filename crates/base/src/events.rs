//! Declared events, for which tools can register callbacks through MPI_T.
//!
//! The thread that owns the lock records an event only if a tool has registered for its kind, and
//! only on rare or slow code paths. The tool is called after the lock has been released.

use crate::components::Component;

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
    /// Size and alignment in bytes.
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
    /// Description that ends with the elements, in order.
    pub help: &'static str,
    /// Types of the elements.
    pub elements: &'static [Element],
    /// Group in which it is listed.
    pub component: Component,
}

impl Row {
    /// Offset of each element in a C struct.
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
    ($($id:ident = $name:literal, $component:ident, [$($element:ident),*], $help:literal;)*) => {
        /// Names a kind of event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Event { $($id),* }
        /// Every kind of event, by position.
        pub const ALL: &[Row] = &[$(Row {
            name: $name,
            help: $help,
            elements: &[$(Element::$element),*],
            component: Component::$component,
        }),*];
        const IDS: &[Event] = &[$(Event::$id),*];
    };
}

events! {
    UnexpectedMessage = "unexpected_message", Matching, [Int, Int, Int, Count],
        "A message arrived before its receive was posted. Elements: source rank in MPI_COMM_WORLD, context id, tag, bytes.";
    RendezvousBegun = "rendezvous_begun", Protocols, [Int, Int, Int, Count],
        "This rank started a rendezvous (sent an RTS). Elements: destination rank in MPI_COMM_WORLD, context id, tag, bytes.";
    RendezvousWaits = "rendezvous_waits", Protocols, [Int, Int, Int, Count],
        "A rendezvous request (RTS) arrived before its receive was posted. Elements: source rank in MPI_COMM_WORLD, context id, tag, bytes.";
    EventTakeover = "event_takeover", Progress, [Int],
        "The progress thread took over because communication is pending and no thread is inside MPI. Elements: incomplete requests.";
    PeerLost = "peer_lost", Paths, [Int],
        "A rank disconnected without a shutdown message. Elements: its rank in MPI_COMM_WORLD.";
}

impl Event {
    /// The kind at a position of [`ALL`].
    pub fn at(position: usize) -> Option<Event> {
        IDS.get(position).copied()
    }
}

/// A recorded event; unused elements are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// Kind of event.
    pub event: Event,
    /// Its elements.
    pub data: [i64; MOST_ELEMENTS],
}

/// Set of event kinds for which a tool has registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted(u32);

impl Wanted {
    /// Adds a kind.
    pub fn add(&mut self, event: Event) {
        self.0 |= 1 << event as u32;
    }

    /// Whether the set contains the kind.
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
