//! Colours of a timeline, for the page and for pictures: Okabe and Ito's colours, and some more that
//! are as distinct for people who cannot see red or green.

use crate::analysis::waits::{Class, Wait};

/// Categories of the time of a row: outside MPI, in MPI without a known wait, and the classes of
/// waits in their order. Names, and colours on a light background; [`MARK`] is the colour of
/// strokes on any background.
pub const KINDS: [(&str, &str); 15] = [
    ("outside MPI: computes", "#e9ebee"),
    ("in MPI, no wait known", "#56b4e9"),
    ("late sender", "#d55e00"),
    ("late sender, wrong order", "#cc79a7"),
    ("late receiver", "#f0e442"),
    ("early reduce", "#0072b2"),
    ("early scan", "#6644ee"),
    ("late broadcast", "#009e73"),
    ("wait at n-to-n", "#e69f00"),
    ("late neighbour", "#885500"),
    ("wait at barrier", MARK),
    ("wait for lock", "#882255"),
    ("late fence", "#44aa99"),
    ("late post", "#999933"),
    ("late complete", "#aa4466"),
];
/// Lines, arrows, and everything that is black on a light background and white on a dark one.
pub const MARK: &str = "mark";
/// Category of time in MPI that is not a wait.
pub const INSIDE: usize = 1;

/// The index of a class in [`KINDS`].
pub fn place(class: Class) -> usize {
    (class as usize + INSIDE).min(KINDS.len() - 1)
}

/// The time of a call by kind: (from, to, index in [`KINDS`]), first its wait, then the rest.
pub fn parts(begin: u64, end: u64, wait: Option<&Wait>) -> [(u64, u64, usize); 2] {
    let middle = wait.map_or(begin, |w| w.end.clamp(begin, end));
    let kind = wait.map_or(INSIDE, |w| place(w.class));
    [(begin, middle, kind), (middle, end, INSIDE)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::waits::CLASSES;

    #[test]
    fn every_class_has_its_colour() {
        assert_eq!(KINDS.len(), 1 + INSIDE + CLASSES.len());
        for class in CLASSES {
            let first = class.name().split(", ").next();
            assert_eq!(KINDS[place(class)].0.split(", ").next(), first);
        }
    }
}
