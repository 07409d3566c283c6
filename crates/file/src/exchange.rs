//! Collective access in two phases ([`kw_io_plan::collective`]): the ranks exchange data with
//! aggregators, which access the file for them, window by window.
//!
//! In every round each rank tells each aggregator whose window it touches which bytes of the file
//! it accesses (a *head*, with as many rows of runs as fit; the other rows follow), and the data go
//! in the direction of the access. The next round's heads are in flight while an aggregator
//! accesses the file. An aggregator that cannot access the file continues to exchange, and all are
//! told at the end.

use crate::group::{Group, Way};
use crate::scratch::Scratch;
use crate::storage::Storage;
use crate::transfer::{self, Done, Sieve};
use kw_io_plan::collective::REQUEST_LEN;
use kw_io_plan::runs::{RUN_LEN, Run};
use kw_io_plan::{Cost, Domains, Extent, Request, RunList, View, cover};
use kw_sys::buf::Buf;
use std::ops::Range;
use std::time::Instant;

/// Rows of runs in a head.
const ROWS_IN_HEAD: usize = 15;
/// Bytes of a head: number of rows and of data bytes, and the first rows.
const HEAD: usize = 16 + ROWS_IN_HEAD * RUN_LEN;

/// One collective access, as a rank makes it.
#[derive(Debug)]
pub struct Access<'a> {
    /// The open file.
    pub storage: &'a dyn Storage,
    /// This rank's view.
    pub view: &'a View,
    /// First byte of its data.
    pub data: u64,
    /// Its buffer.
    pub buf: &'a Buf,
    /// Whether it writes.
    pub writes: bool,
    /// How an aggregator reads.
    pub sieve: Sieve,
    /// Memory for data of other ranks.
    pub scratch: &'a Scratch,
}

/// A rank's part of a window.
#[derive(Clone, Debug)]
struct Part {
    /// The rank.
    rank: u32,
    /// Its bytes of the file.
    runs: RunList,
    /// Its data: a writer's until it is written, a reader's after it was read.
    data: Buf,
    /// The memory that contains it, if that is the aggregator's.
    memory: Option<Buf>,
}

/// This rank's part of an aggregator's window.
struct Mine {
    runs: RunList,
    /// First byte in the buffer, and number of bytes.
    from: u64,
    len: u64,
}

fn touches(request: &Request, window: &Range<u64>) -> bool {
    request.bytes != 0 && request.first < window.end && request.end > window.start
}

fn head_of(runs: &RunList) -> (Buf, Option<Buf>) {
    let mut rows = Vec::new();
    runs.encode(&mut rows);
    let (first, rest) = rows.split_at(rows.len().min(ROWS_IN_HEAD * RUN_LEN));
    let mut head = Vec::with_capacity(16 + first.len());
    head.extend_from_slice(&(runs.rows().len() as u64).to_le_bytes());
    head.extend_from_slice(&runs.bytes().to_le_bytes());
    head.extend_from_slice(first);
    (filled(&head), (!rest.is_empty()).then(|| filled(rest)))
}

fn filled(bytes: &[u8]) -> Buf {
    let buf = Buf::alloc(bytes.len());
    buf.write(0, bytes);
    buf
}

fn bytes_of(buf: &Buf, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    buf.read(0, &mut bytes);
    bytes
}

/// The requests of all ranks.
pub fn gather<G: Group>(group: &G, mine: Request) -> Result<Vec<Request>, G::Error> {
    let all = group.allgather(&mine.encode())?;
    let requests = all.chunks_exact(REQUEST_LEN);
    Ok(requests
        .map(|r| Request::decode(r.try_into().expect("a request")))
        .collect())
}

/// Exchanges and accesses. Returns the bytes of this rank's data that were moved, and the error of
/// this rank as an aggregator.
pub fn exchange<G: Group>(
    group: &G,
    access: &Access<'_>,
    requests: &[Request],
    domains: &Domains,
) -> Result<Done, G::Error> {
    let me = group.rank();
    let index = domains.aggregators().iter().position(|&a| a == me);
    let mut done = Done::default();
    for round in 0..domains.rounds() {
        let mut sent = Vec::new();
        let mut wanted = Vec::new();
        let mut used = Vec::new();
        let mut own = None;
        for (k, &to) in domains.aggregators().iter().enumerate() {
            let window = domains.window(k, round);
            if window.is_empty() || !touches(&requests[me as usize], &window) {
                continue;
            }
            let mine = access.part_in(&window);
            if to == me {
                own = Some(mine);
                continue;
            }
            let (head, rest) = head_of(&mine.runs);
            sent.push(group.send(to, Way::ToAggregator, &head)?);
            if let Some(rest) = rest {
                sent.push(group.send(to, Way::ToAggregator, &rest)?);
            }
            if mine.len > 0 {
                let data = access.buf.slice(mine.from, mine.len);
                match access.writes {
                    true => {
                        sent.push(group.send(to, Way::ToAggregator, &data)?);
                        done.bytes += mine.len;
                    }
                    false => wanted.push(group.recv(to, Way::FromAggregator, &data)?),
                }
            }
        }
        if let Some(k) = index {
            let window = domains.window(k, round);
            if !window.is_empty() {
                let lists = (&mut sent, &mut used);
                serve(group, access, requests, window, own, lists, &mut done)?;
            }
        }
        for pending in wanted {
            done.bytes += group.wait(pending)?;
        }
        for pending in sent {
            group.wait(pending)?;
        }
        used.into_iter()
            .for_each(|memory| access.scratch.give(memory));
    }
    Ok(done)
}

/// The aggregator's side of one round.
fn serve<G: Group>(
    group: &G,
    access: &Access<'_>,
    requests: &[Request],
    window: Range<u64>,
    own: Option<Mine>,
    (sent, used): (&mut Vec<G::Pending>, &mut Vec<Buf>),
    done: &mut Done,
) -> Result<(), G::Error> {
    let me = group.rank();
    let mut parts = Vec::new();
    let mut heads = Vec::new();
    for rank in (0..group.size()).filter(|&r| r != me && touches(&requests[r as usize], &window)) {
        let head = Buf::alloc(HEAD);
        heads.push((rank, group.recv(rank, Way::ToAggregator, &head)?, head));
    }
    let mut data = Vec::new();
    for (rank, pending, head) in heads {
        let came = group.wait(pending)?;
        let runs = rest_of(group, rank, &bytes_of(&head, came), &window)?;
        if runs.bytes() == 0 {
            continue;
        }
        let memory = access.scratch.take(runs.bytes());
        let buf = memory.slice(0, runs.bytes());
        if access.writes {
            data.push(group.recv(rank, Way::ToAggregator, &buf)?);
        }
        parts.push(Part {
            rank,
            runs,
            data: buf,
            memory: Some(memory),
        });
    }
    for pending in data {
        group.wait(pending)?;
    }
    if let Some(mine) = own.filter(|m| m.len > 0) {
        parts.push(Part {
            rank: me,
            data: access.buf.slice(mine.from, mine.len),
            memory: None,
            runs: mine.runs,
        });
    }
    // If several ranks write the same byte, the value of the highest rank remains, as in a program
    // that writes in the order of ranks.
    parts.sort_by_key(|p| p.rank);
    let others = parts.iter().filter(|p| p.rank != me);
    done.for_others += others.map(|p| p.runs.bytes()).sum::<u64>();
    let begun = Instant::now();
    if access.writes {
        put(access, &window, &parts, done);
        done.took += begun.elapsed().as_nanos() as u64;
        let own = parts.iter().filter(|p| p.rank == me);
        done.bytes += own.map(|p| p.data.len()).sum::<u64>();
    } else {
        let got = get(access, &window, &parts, done);
        done.took += begun.elapsed().as_nanos() as u64;
        for (rank, data) in got {
            match rank == me {
                true => done.bytes += data.len(),
                false => sent.push(group.send(rank, Way::FromAggregator, &data)?),
            }
        }
    }
    let memory = parts.into_iter().filter_map(|p| p.memory);
    used.extend(memory);
    Ok(())
}

/// The runs listed in a head and its continuation. An invalid list counts as empty.
fn rest_of<G: Group>(
    group: &G,
    rank: u32,
    head: &[u8],
    window: &Range<u64>,
) -> Result<RunList, G::Error> {
    let Some((fixed, first)) = head.split_at_checked(16) else {
        return Ok(RunList::default());
    };
    let word = |i: usize| {
        let word: [u8; 8] = fixed[8 * i..8 * i + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(word)
    };
    let mut rows = first.to_vec();
    // A window has no more runs than bytes.
    let more = (word(0).min(window.end - window.start) as usize * RUN_LEN)
        .saturating_sub(ROWS_IN_HEAD * RUN_LEN);
    if more > 0 {
        let rest = Buf::alloc(more);
        let pending = group.recv(rank, Way::ToAggregator, &rest)?;
        let came = group.wait(pending)?;
        rows.extend(bytes_of(&rest, came));
    }
    Ok(RunList::decode(&rows, window).unwrap_or_default())
}

/// Writes the parts of a window.
fn put(access: &Access<'_>, window: &Range<u64>, parts: &[Part], done: &mut Done) {
    if let [part] = parts {
        let mut from = 0;
        part.runs.for_each(|at, len| {
            if done.trouble.is_none() {
                let wrote = transfer::write_all(access.storage, at, &part.data, from, len);
                done.calls += wrote.calls;
                done.trouble = wrote.trouble;
            }
            from += len;
        });
        return;
    }
    let extents = cover(parts.iter().map(|p| &p.runs), 0);
    let buf = access.scratch.take(window.end - window.start);
    for part in parts {
        let mut from = 0;
        for row in part.runs.rows() {
            let place = transfer::in_memory(row, window.start);
            buf.copy_row_from(place, &part.data, from);
            from += row.bytes();
        }
    }
    for extent in extents {
        let from = extent.at - window.start;
        let wrote = transfer::write_all(access.storage, extent.at, &buf, from, extent.len);
        done.calls += wrote.calls;
        if done.trouble.is_none() {
            done.trouble = wrote.trouble;
        }
    }
    access.scratch.give(buf);
}

/// Reads the parts of a window: for each rank its data, which is less than it requested at the end
/// of the file.
fn get(
    access: &Access<'_>,
    window: &Range<u64>,
    parts: &[Part],
    done: &mut Done,
) -> Vec<(u32, Buf)> {
    let extents = cover(parts.iter().map(|p| &p.runs), access.sieve.gap);
    let buf = access.scratch.take(window.end - window.start);
    // Position up to which all requested data has been read.
    let mut valid = window.end;
    for Extent { at, len } in extents {
        let read = transfer::read_all(access.storage, at, &buf, at - window.start, len);
        done.calls += read.calls;
        if read.bytes < len {
            valid = valid.min(at + read.bytes);
        }
        if done.trouble.is_none() {
            done.trouble = read.trouble;
        }
    }
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        // Bytes beyond the end of the file are not data.
        let mut there = 0;
        for row in part.runs.rows() {
            let n = transfer::whole_before(row, valid);
            let whole = Run { n, ..*row };
            buf.copy_row_to(transfer::in_memory(&whole, window.start), &part.data, there);
            there += whole.bytes();
            if n < row.n {
                let at = row.place(n);
                let has = valid.saturating_sub(at);
                buf.copy_to(at - window.start, &part.data, there, has);
                there += has;
                break;
            }
        }
        all.push((part.rank, part.data.slice(0, there)));
    }
    access.scratch.give(buf);
    all
}

impl Access<'_> {
    /// This rank's part of a window.
    fn part_in(&self, window: &Range<u64>) -> Mine {
        let end = self.data + self.buf.len();
        let place = |at| self.view.data_before(at).clamp(self.data, end);
        let (from, to) = (place(window.start), place(window.end));
        Mine {
            runs: RunList::of(self.view, from, to),
            from: from - self.data,
            len: to - from,
        }
    }

    /// Request of this rank.
    pub fn request(&self, cost: Cost) -> Request {
        let len = self.buf.len();
        Request {
            first: self.view.offset_of(self.data),
            end: self.view.end_of(self.data + len),
            bytes: if self.view.is_empty() { 0 } else { len },
            pieces: self.view.pieces_of(len),
            cost,
            ascends: self.view.is_ascending(),
            failed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::threads;
    use crate::storage::simulated::Simulated;
    use kw_io_plan::collective::{Call, Decision, aggregators};
    use kw_io_plan::{Hints, Prices};
    use kw_types::layout::{Layout, basic};
    use proptest::prelude::*;

    fn byte() -> Layout {
        let named = basic::NAMED.iter().find(|n| n.name == "MPI_BYTE");
        Layout::named(named.expect("a predefined datatype"))
    }

    /// A random ascending view, first byte of data, and bytes.
    fn rank() -> impl Strategy<Value = (View, u64, u64)> {
        let gaps = proptest::collection::vec((0i64..40, 1u64..30), 1..40);
        (0i64..100, gaps, 0i64..40, 0u64..100, 0u64..1500).prop_map(
            |(displacement, gaps, tail, data, len)| {
                let mut end = 0;
                let blocks: Vec<(i64, u64)> = (gaps.iter())
                    .map(|&(gap, len)| {
                        let at = end + gap;
                        end = at + len as i64;
                        (at, len)
                    })
                    .collect();
                let filetype = byte().hindexed(&blocks);
                let filetype = filetype.and_then(|t| t.resized(0, end + tail));
                let view = View::new(displacement, &byte(), &filetype.expect("a type"));
                (view.expect("a view"), data, len)
            },
        )
    }

    /// Usually few ranks, sometimes up to 64.
    fn ranks() -> impl Strategy<Value = Vec<(View, u64, u64)>> {
        let of = |size| proptest::collection::vec(rank(), size);
        prop_oneof![19 => of(1..6), 1 => of(6..65)]
    }

    /// `PROPTEST_CASES` cases if that is set, otherwise a few.
    fn cases() -> ProptestConfig {
        match std::env::var_os("PROPTEST_CASES") {
            Some(_) => ProptestConfig::default(),
            None => ProptestConfig::with_cases(200),
        }
    }

    fn content(rank: usize, len: u64) -> Vec<u8> {
        (0..len)
            .map(|i| (i * 7 + rank as u64 * 31 + 1) as u8)
            .collect()
    }

    fn decide(requests: &[Request], aggregators: &[u32], hints: &Hints, writes: bool) -> Decision {
        Call {
            requests,
            aggregators,
            hints,
            prices: &Prices::default(),
            writes,
        }
        .decide()
    }

    /// Result of each rank in a collective access that exchanges data or has nothing to do.
    fn together(
        storage: &Simulated,
        ranks: &[(View, u64, u64)],
        (bufs, writes): (&[Buf], bool),
        (hints, gap): (&Hints, u64),
    ) -> Vec<Done> {
        let who = aggregators(&vec![0; ranks.len()], 1, hints);
        let sieve = Sieve { buffer: 1000, gap };
        threads::run(ranks.len() as u32, |group| {
            let me = group.rank() as usize;
            let (view, data, _) = &ranks[me];
            let access = Access {
                storage,
                view,
                data: *data,
                buf: &bufs[me],
                writes,
                sieve,
                scratch: &Scratch::default(),
            };
            let Ok(requests) = gather(group, access.request(Cost::default()));
            match decide(&requests, &who, hints, writes) {
                Decision::Exchange(domains) => {
                    let Ok(done) = exchange(group, &access, &requests, &domains);
                    done
                }
                Decision::Nothing => Done::default(),
                Decision::Independent => unreachable!("the exchange was asked for"),
            }
        })
    }

    /// The bytes of a file of 100 that these ranks have written.
    fn written(ranks: &[(View, u64, u64)]) -> Vec<u8> {
        let mut expected = vec![0xee; 100];
        for (r, (view, data, len)) in ranks.iter().enumerate() {
            for (i, b) in content(r, *len).into_iter().enumerate() {
                let at = view.offset_of(data + i as u64) as usize;
                if expected.len() <= at {
                    expected.resize(at + 1, 0);
                }
                expected[at] = b;
            }
        }
        expected
    }

    fn contents(ranks: &[(View, u64, u64)]) -> Vec<Buf> {
        let lens = ranks.iter().map(|(_, _, len)| *len);
        lens.enumerate()
            .map(|(r, len)| filled(&content(r, len)))
            .collect()
    }

    fn exchanging(buffer: u64, alignment: u64, nodes: u32) -> Hints {
        let mut hints = Hints {
            buffer,
            alignment,
            aggregators: Some(nodes),
            ..Hints::default()
        };
        hints.set("collective_buffering", "enable");
        hints
    }

    proptest! {
        #![proptest_config(cases())]
        #[test]
        fn a_device_with_a_fault_keeps_what_lies_before_it_and_no_rank_waits(
            ranks in ranks(), nodes in 1u32..4, buffer in 1u64..2000, alignment in 1u64..100,
            fault in 100u64..3000,
        ) {
            let hints = exchanging(buffer, alignment, nodes);
            let storage = Simulated { broken: Some(fault), ..Simulated::new(vec![0xee; 100]) };
            let done = together(&storage, &ranks, (&contents(&ranks), true), (&hints, 0));
            let expected = written(&ranks);
            let troubles: Vec<_> = done.into_iter().filter_map(|d| d.trouble).collect();
            prop_assert_eq!(troubles.is_empty(), expected.len() as u64 <= fault);
            prop_assert!(troubles.iter().all(|t| t.at >= fault && t.writes));
            let whole = expected.len().min(fault as usize);
            let bytes = storage.bytes.lock().expect("bytes");
            // After the last byte that was written before the fault there are none.
            let there = bytes.len().min(whole);
            prop_assert_eq!(&bytes[..there], &expected[..there]);
            prop_assert!(expected[there..whole].iter().all(|&b| b == 0));
        }

        #[test]
        fn all_ranks_write_and_read_what_a_byte_array_holds(
            ranks in ranks(),
            nodes in 1u32..4, buffer in 1u64..2000, alignment in 1u64..100, cut in 0u64..500,
            gap in 0u64..50,
        ) {
            let hints = exchanging(buffer, alignment, nodes);
            let storage = Simulated::new(vec![0xee; 100]);
            let go = |writes: bool, bufs: &[Buf]| {
                let done = together(&storage, &ranks, (bufs, writes), (&hints, gap));
                assert!(done.iter().all(|d| d.trouble.is_none()));
                done.iter().map(|d| d.bytes).collect::<Vec<u64>>()
            };
            let wrote = go(true, &contents(&ranks));
            let lens: Vec<u64> = ranks.iter().map(|r| r.2).collect();
            prop_assert_eq!(wrote, lens);
            let expected = written(&ranks);
            prop_assert_eq!(&*storage.bytes.lock().expect("bytes"), &expected);
            let end = (expected.len() as u64).saturating_sub(cut);
            storage.set_size(end).expect("a size");
            let into: Vec<Buf> = ranks.iter().map(|(_, _, len)| filled(&vec![0x77; *len as usize])).collect();
            let came = go(false, &into);
            for (r, (view, data, len)) in ranks.iter().enumerate() {
                let there: Vec<u8> = (0..*len).map(|i| view.offset_of(data + i))
                    .take_while(|&at| at < end).map(|at| expected[at as usize]).collect();
                prop_assert_eq!(came[r], there.len() as u64, "rank {}", r);
                let mut all = there;
                all.resize(*len as usize, 0x77);
                prop_assert_eq!(bytes_of(&into[r], *len), all);
            }
        }
    }

    #[test]
    fn a_full_device_is_reported_and_nobody_waits_for_ever() {
        let storage = Simulated {
            capacity: Some(64),
            ..Simulated::default()
        };
        let mut hints = Hints {
            buffer: 32,
            alignment: 1,
            ..Hints::default()
        };
        hints.set("romio_cb_write", "enable");
        let sieve = Sieve { buffer: 1, gap: 0 };
        let troubles = threads::run(3, |group| {
            let me = i64::from(group.rank());
            let filetype = byte()
                .hindexed(&[(me * 4, 4)])
                .and_then(|t| t.resized(0, 12));
            let view = View::new(0, &byte(), &filetype.expect("a type")).expect("a view");
            let buf = filled(&[me as u8; 64]);
            let access = Access {
                storage: &storage,
                view: &view,
                data: 0,
                buf: &buf,
                writes: true,
                sieve,
                scratch: &Scratch::default(),
            };
            let Ok(requests) = gather(group, access.request(Cost::default()));
            let Decision::Exchange(domains) = decide(&requests, &[1], &hints, true) else {
                unreachable!("the exchange was asked for")
            };
            let Ok(done) = exchange(group, &access, &requests, &domains);
            done.trouble.map(|t| t.at)
        });
        assert_eq!(troubles, [None, Some(64), None]);
    }
}
