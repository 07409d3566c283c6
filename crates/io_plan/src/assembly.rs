//! The aggregator's side of an exchange: which bytes of a window its ranks touch, and how their
//! parts get into and out of the window's buffer.

use crate::runs::RunList;
use std::ops::Range;

/// Contiguous bytes of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Position of the first.
    pub at: u64,
    /// Number.
    pub len: u64,
}

impl Extent {
    /// Position of the first byte after them.
    pub fn end(&self) -> u64 {
        self.at + self.len
    }

    /// Range of these bytes in the buffer of a window that begins at `start`.
    pub fn in_buffer(&self, start: u64) -> Range<usize> {
        let at = (self.at - start) as usize;
        at..at + self.len as usize
    }
}

/// The bytes that the lists name, as extents in ascending order. Extents at most `gap` bytes apart
/// are merged: 0 for a write, which must not touch other bytes; for a read, the number of bytes
/// read in the time of one access.
pub fn cover<'a>(lists: impl IntoIterator<Item = &'a RunList>, gap: u64) -> Vec<Extent> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for list in lists {
        let from = all.len();
        list.for_each(|at, len| match all[from..].last_mut() {
            Some(last) if last.0 + last.1 == at => last.1 += len,
            _ => all.push((at, len)),
        });
    }
    // Each part is in ascending order, so a stable sort merges them.
    all.sort();
    let mut extents: Vec<Extent> = Vec::new();
    for (at, len) in all {
        match extents.last_mut() {
            Some(last) if at <= last.end().saturating_add(gap) => {
                last.len = last.len.max(at + len - last.at);
            }
            _ => extents.push(Extent { at, len }),
        }
    }
    extents
}

/// Puts data into the buffer of a window that begins at `start`: `take` gives each run its bytes of
/// the data, which begin at the given position of it.
pub fn place(runs: &RunList, start: u64, buffer: &mut [u8], mut take: impl FnMut(u64, &mut [u8])) {
    let mut done = 0;
    runs.for_each(|at, len| {
        take(done, &mut buffer[Extent { at, len }.in_buffer(start)]);
        done += len;
    });
}

/// Takes data out of the buffer of a window that begins at `start`: `put` gets the bytes of each
/// run, and where in the data they begin.
pub fn gather(runs: &RunList, start: u64, buffer: &[u8], mut put: impl FnMut(u64, &[u8])) {
    let mut done = 0;
    runs.for_each(|at, len| {
        put(done, &buffer[Extent { at, len }.in_buffer(start)]);
        done += len;
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Call, Decision, Request, aggregators};
    use crate::cost::{Cost, Prices};
    use crate::hints::Hints;
    use crate::view::View;
    use kw_types::layout::{Layout, basic};
    use proptest::prelude::*;

    #[test]
    fn extents_join_over_gaps_only_where_that_is_allowed() {
        let list = |runs: &[(u64, u64)]| {
            let mut list = RunList::default();
            for &(at, len) in runs {
                list.push(crate::runs::Run::one(at, len));
            }
            list
        };
        let (a, b) = (list(&[(0, 4), (8, 4)]), list(&[(4, 4), (20, 4)]));
        let narrow = cover([&a, &b], 0);
        assert_eq!(
            narrow,
            [Extent { at: 0, len: 12 }, Extent { at: 20, len: 4 }]
        );
        assert_eq!(cover([&a, &b], 8), [Extent { at: 0, len: 24 }]);
    }

    fn byte() -> Layout {
        let named = basic::NAMED.iter().find(|n| n.name == "MPI_BYTE");
        Layout::named(named.expect("a predefined datatype"))
    }

    /// A random ascending view and how much of it a rank accesses.
    fn rank() -> impl Strategy<Value = (View, u64, u64)> {
        let gaps = proptest::collection::vec((0i64..40, 1u64..30), 1..6);
        (0i64..100, gaps, 0i64..40, 0u64..100, 0u64..400).prop_map(
            |(displacement, gaps, tail, from, len)| {
                let mut end = 0;
                let blocks: Vec<(i64, u64)> = gaps
                    .iter()
                    .map(|&(gap, len)| {
                        let at = end + gap;
                        end = at + len as i64;
                        (at, len)
                    })
                    .collect();
                let filetype = byte().hindexed(&blocks);
                let filetype = filetype.and_then(|t| t.resized(0, end + tail));
                let view = View::new(displacement, &byte(), &filetype.expect("a type"));
                (view.expect("a view"), from, from + len)
            },
        )
    }

    /// All data of rank `r`, from 0 on.
    fn data(r: usize, n: u64) -> Vec<u8> {
        (0..n).map(|i| (i * 7 + r as u64 * 31 + 1) as u8).collect()
    }

    fn plan(ranks: &[(View, u64, u64)], hints: &Hints, writes: bool) -> Decision {
        let requests: Vec<Request> = (ranks.iter())
            .map(|(view, from, to)| Request {
                first: view.offset_of(*from),
                end: view.end_of(*to),
                bytes: to - from,
                pieces: view.pieces_of(to - from),
                cost: Cost::default(),
                ascends: view.is_ascending(),
                failed: false,
            })
            .collect();
        let hosts: Vec<u32> = (0..ranks.len() as u32).map(|r| r / 2).collect();
        Call {
            requests: &requests,
            aggregators: &aggregators(&hosts, 1, hints),
            hints,
            prices: &Prices::default(),
            writes,
        }
        .decide()
    }

    /// A rank's (view, from, to) part of a window, and the corresponding part of its data.
    fn part(rank: &(View, u64, u64), window: &Range<u64>) -> (RunList, Range<u64>) {
        let (view, from, to) = rank;
        let low = view.data_before(window.start).clamp(*from, *to);
        let high = view.data_before(window.end).clamp(low, *to);
        (RunList::of(view, low, high), low..high)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn an_exchange_writes_and_reads_what_a_byte_array_would(
            ranks in proptest::collection::vec(rank(), 1..9),
            buffer in 1u64..600, alignment in 1u64..64, nodes in 1u32..9, gap in 0u64..50,
        ) {
            let mut hints = Hints::default();
            (hints.buffer, hints.alignment, hints.aggregators) = (buffer, alignment, Some(nodes));
            hints.set("romio_cb_write", "enable");
            let mut want = vec![0u8; 50_000];
            let mut writer = vec![usize::MAX; 50_000];
            for (r, (view, from, to)) in ranks.iter().enumerate() {
                let bytes = data(r, *to);
                let mut at_data = *from;
                RunList::of(view, *from, *to).for_each(|at, len| {
                    for i in at..at + len {
                        want[i as usize] = bytes[at_data as usize];
                        writer[i as usize] = r;
                        at_data += 1;
                    }
                });
            }
            let mut file = vec![0u8; 50_000];
            let Decision::Exchange(domains) = plan(&ranks, &hints, true) else {
                prop_assert!(ranks.iter().all(|(_, from, to)| from == to));
                return Ok(());
            };
            let mut read: Vec<Vec<u8>> = vec![Vec::new(); ranks.len()];
            for pass in ["write", "read"] {
                for round in 0..domains.rounds() {
                    for index in 0..domains.aggregators().len() {
                        let window = domains.window(index, round);
                        let mut buffer = vec![0; (window.end - window.start) as usize];
                        let parts: Vec<(RunList, Range<u64>)> =
                            ranks.iter().map(|rank| part(rank, &window)).collect();
                        let lists = parts.iter().map(|p| &p.0);
                        if pass == "write" {
                            for (r, (runs, range)) in parts.iter().enumerate() {
                                let all = data(r, range.end);
                                let data = &all[range.start as usize..];
                                place(runs, window.start, &mut buffer, |at, out| {
                                    out.copy_from_slice(&data[at as usize..at as usize + out.len()]);
                                });
                            }
                            for extent in cover(lists, 0) {
                                let bytes = &buffer[extent.in_buffer(window.start)];
                                file[extent.at as usize..extent.end() as usize].copy_from_slice(bytes);
                            }
                        } else {
                            for extent in cover(lists, gap) {
                                prop_assert!(extent.at >= window.start && extent.end() <= window.end);
                                let bytes = &file[extent.at as usize..extent.end() as usize];
                                buffer[extent.in_buffer(window.start)].copy_from_slice(bytes);
                            }
                            for (r, (runs, range)) in parts.iter().enumerate() {
                                let mut out = Vec::new();
                                gather(runs, window.start, &buffer, |_, bytes| {
                                    out.extend_from_slice(bytes);
                                });
                                let at = (range.start - ranks[r].1) as usize;
                                let have = &mut read[r];
                                have.resize(have.len().max(at + out.len()), 0);
                                have[at..at + out.len()].copy_from_slice(&out);
                            }
                        }
                    }
                }
            }
            prop_assert_eq!(&file, &want);
            for (r, (view, from, to)) in ranks.iter().enumerate() {
                let mut expected = Vec::new();
                RunList::of(view, *from, *to).for_each(|at, len| {
                    expected.extend_from_slice(&want[at as usize..(at + len) as usize]);
                });
                prop_assert_eq!(&read[r], &expected);
            }
        }
    }
}
