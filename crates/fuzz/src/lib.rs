//! Common parts of the fuzz targets: inputs that are nearly valid, and the number of them that are
//! tried.
//!
//! A target is a test whose name begins with `fuzz_`, beside the code that it tests. It takes good
//! inputs (its seeds, which it makes itself), damages them, and checks the properties that must
//! hold for any input. `cargo test` tries [`SMOKE`] inputs of each; `make fuzz` sets
//! `PROPTEST_CASES` and tries more. A failing input is made smaller, printed, and its seed added to
//! a file `*.proptest-regressions` beside the target, which is committed and tried first from then
//! on.
#![forbid(unsafe_code)]

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::FileFailurePersistence;

/// Inputs that each target tries in `cargo test`.
pub const SMOKE: u32 = 2000;

/// `PROPTEST_CASES` inputs if that is set, otherwise [`SMOKE`].
pub fn config() -> ProptestConfig {
    let beside = FileFailurePersistence::WithSource("proptest-regressions");
    let mut config = ProptestConfig {
        failure_persistence: Some(Box::new(beside)),
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = SMOKE;
    }
    config
}

/// One kind of damage to bytes.
#[derive(Clone, Debug)]
enum Edit {
    Flip(Index, u8),
    Set(Index, u8),
    Number(Index, u64, usize),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    CutOff(Index),
    Append(Index),
}

/// Numbers near which arithmetic goes wrong.
const EDGES: [u64; 10] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    i32::MAX as u64,
    u32::MAX as u64,
    i64::MAX as u64,
    u64::MAX,
];

fn edit() -> impl Strategy<Value = Edit> {
    let number = (any::<Index>(), prop::sample::select(&EDGES[..]), -2i64..3);
    let width = prop::sample::select(&[1usize, 2, 4, 8][..]);
    prop_oneof![
        (any::<Index>(), 0u8..8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        any::<(Index, u8)>().prop_map(|(at, byte)| Edit::Set(at, byte)),
        (number, width).prop_map(|((at, edge, by), width)| {
            Edit::Number(at, edge.wrapping_add_signed(by), width)
        }),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
        (any::<Index>(), 1usize..40).prop_map(|(at, n)| Edit::Remove(at, n)),
        (any::<Index>(), 1usize..40).prop_map(|(at, n)| Edit::Repeat(at, n)),
        any::<Index>().prop_map(Edit::CutOff),
        any::<Index>().prop_map(Edit::Append),
    ]
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let len = bytes.len();
        let at = |index: &Index| index.index(len + 1);
        let end = |from: usize, n: usize| (from + n).min(len);
        match self {
            Edit::Flip(i, bit) => change(bytes, at(i), |b| b ^ 1 << bit),
            Edit::Set(i, byte) => change(bytes, at(i), |_| *byte),
            Edit::Number(i, number, width) => {
                let (from, to) = (at(i), end(at(i), *width));
                bytes[from..to].copy_from_slice(&number.to_le_bytes()[..to - from]);
            }
            Edit::Insert(i, new) => {
                let from = at(i);
                bytes.splice(from..from, new.iter().copied());
            }
            Edit::Remove(i, n) => {
                let (from, to) = (at(i), end(at(i), *n));
                bytes.drain(from..to);
            }
            Edit::Repeat(i, n) => {
                let (from, to) = (at(i), end(at(i), *n));
                let again = bytes[from..to].to_vec();
                bytes.splice(to..to, again);
            }
            Edit::CutOff(i) => bytes.truncate(at(i)),
            Edit::Append(i) => bytes.extend_from_slice(&seeds[i.index(seeds.len())]),
        }
    }
}

fn change(bytes: &mut [u8], at: usize, to: impl FnOnce(u8) -> u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = to(*byte);
    }
}

/// One of the seeds, with up to six damages; sometimes with none.
pub fn damaged(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec(edit(), 0..7);
    (any::<Index>(), edits).prop_map(move |(which, edits)| {
        let mut bytes = which.get(&seeds).clone();
        edits.iter().for_each(|e| e.apply(&mut bytes, &seeds));
        bytes
    })
}

/// The input as text: invalid UTF-8 is replaced.
pub fn damaged_text(seeds: &[&str]) -> impl Strategy<Value = String> {
    let seeds = seeds.iter().map(|s| s.as_bytes().to_vec()).collect();
    damaged(seeds).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Bytes in pieces that are cut at these places.
pub fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut all: Vec<&[u8]> = Vec::new();
    for to in places.into_iter().chain([bytes.len()]) {
        all.push(&bytes[from..to]);
        from = to;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest! {
        #[test]
        fn pieces_are_the_whole(bytes: Vec<u8>, cuts in prop::collection::vec(any::<Index>(), 0..9)) {
            prop_assert_eq!(pieces(&bytes, &cuts).concat(), bytes);
        }

        #[test]
        fn damage_is_done_to_empty_seeds_too(bytes in damaged(vec![Vec::new()])) {
            prop_assert!(bytes.len() < 600);
        }
    }
}
