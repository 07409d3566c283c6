//! Slots for functions of the program that MPI calls without an argument of the library: operators,
//! error handlers.
//!
//! Such a C function cannot tell which function of the program is meant. So there are as many C
//! functions as there may be functions of the program, each with a slot that holds its address. A
//! function that is given again keeps its slot.

use crate::sync::atomic::{AtomicUsize, Ordering};

/// How many functions of each kind there may be.
pub const SLOTS: usize = 128;

/// The functions of one kind.
#[derive(Debug)]
pub struct Slots([AtomicUsize; SLOTS]);

impl Default for Slots {
    fn default() -> Self {
        Slots::new()
    }
}

impl Slots {
    /// All free.
    #[cfg(not(loom))]
    pub const fn new() -> Slots {
        Slots([const { AtomicUsize::new(0) }; SLOTS])
    }

    /// All free.
    #[cfg(loom)]
    pub fn new() -> Slots {
        Slots(std::array::from_fn(|_| AtomicUsize::new(0)))
    }

    /// The slot of a function; `None` if all slots are taken by others.
    pub fn slot(&self, function: usize) -> Option<usize> {
        self.0.iter().position(|slot| {
            let taken = slot.compare_exchange(0, function, Ordering::AcqRel, Ordering::Acquire);
            taken.map_or_else(|by| by == function, |_| true)
        })
    }

    /// The function of a slot.
    #[inline]
    pub fn function(&self, slot: usize) -> usize {
        self.0[slot].load(Ordering::Acquire)
    }
}

/// An array of a function for each slot: `each_slot!(name, A, B)` has `name::<A, B, SLOT>`.
#[macro_export]
macro_rules! each_slot {
    ($name:ident $(, $generic:tt)*) => {
        $crate::each_slot!(@ $name, [$($generic),*],
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
            64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95
            96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127
        )
    };
    (@ $name:ident, $generics:tt, $($slot:literal)*) => {
        [$($crate::each_slot!(@@ $name, $generics, $slot)),*]
    };
    (@@ $name:ident, [$($generic:tt),*], $slot:literal) => {
        $name::<$($generic,)* $slot>
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twice<const SLOT: usize>() -> usize {
        2 * SLOT
    }

    #[test]
    fn a_function_keeps_its_slot_and_no_slot_is_given_twice() {
        let slots = Slots::new();
        for i in 0..SLOTS {
            assert_eq!(slots.slot(1000 + i), Some(i));
        }
        assert_eq!(slots.slot(1005), Some(5));
        assert_eq!(slots.slot(7), None);
        assert_eq!(slots.function(5), 1005);
    }

    #[test]
    fn there_is_a_function_for_each_slot() {
        let all: [fn() -> usize; SLOTS] = each_slot!(twice);
        assert_eq!((all[0](), all[127]()), (0, 254));
    }
}
