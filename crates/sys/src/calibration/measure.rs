//! Measuring a host: copies, and transfers between two of its CPUs at each distance that exists.
//!
//! Each figure has a share of the time, is measured in short batches, and is the best of them (for
//! sleeps the lower quartile): a disturbance makes a batch longer. If other programs had the CPUs
//! all that time, a figure is implausible, and its built-in value is used.

use super::cpu_pair::{OVER, Shared, between, fetch, fetch_both, short_message, wake};
use crate::buf::Buf;
use crate::reduce::{Kernel, Op};
use crate::{clock, cpus, threads, topology};
use kw_base::calibration::{Calibration, Figure};
use kw_base::sync::Arc;
use kw_base::sync::thread;
use kw_types::layout::Basic;
use std::time::Duration;

/// Time that a figure may take; all of them stay below 200 ms.
pub(super) const SHARE: Duration = Duration::from_millis(8);
/// Stack of the other thread, bytes.
pub(super) const STACK: usize = 256 << 10;
/// Bytes of a copy within the caches of a core.
const NEAR: usize = 64 << 10;
/// Bytes of the memory that long messages are copied to: more than the caches of most cores; if a
/// core reaches more, a message that is kept looks cheaper than it is.
const FAR: usize = 16 << 20;
/// Bytes of one of these messages.
const FAR_STEP: u64 = 1 << 20;
/// Most bytes that all CPUs together copy from and to beyond their caches.
const MOST: u64 = 64 << 20;
/// Pieces of [`NEAR`] that a CPU copies in a batch.
const TOGETHER: u32 = 64;

/// Measures this host. It takes less than 200 ms of a machine that is not overloaded, and up to two
/// CPUs.
pub fn measure() -> Calibration {
    let apart = threads::spawn("kw-calibrate", STACK, measure_here);
    let figures = apart.ok().and_then(|thread| thread.join().ok());
    figures.unwrap_or(Calibration::START)
}

/// Runs on a thread whose CPU may be chosen.
fn measure_here() -> Calibration {
    let tree = topology::Tree::read();
    let shares = |a, b| matches!(topology::bound(&[a, b]), Some((_, Some(_))));
    let allowed = cpus::allowed();
    let pairs = pairs(&allowed, |cpu| tree.place(cpu), shares);
    let first = pairs.iter().flatten().next().map(|(a, _)| *a);
    let cache = first.or_else(|| allowed.first().copied());
    let cache = cache.and_then(|cpu| tree.cache(cpu)).unwrap_or(0);
    if let Some(cpu) = first {
        cpus::stay_on(cpu);
    }
    let (copied, kept, combined) = (copy_near(), keep(), combine_near());
    let between = pairs.map(|pair| {
        pair.and_then(|(_, other)| between(other))
            .unwrap_or_default()
    });
    let near = [2, 1, 3, 0]
        .into_iter()
        .find_map(|i| Some((pairs[i]?.1, between[i].line)));
    let short = near.and_then(|(cpu, line)| short_message(cpu, line));
    let short = short.unwrap_or(0);
    let farthest = pairs.iter().flatten().next_back().map(|(_, other)| *other);
    let wake = farthest.and_then(wake);
    let (call, rate) = fetch(farthest).unwrap_or_default();
    let both = farthest.and_then(|other| fetch_both(other, call));
    let memory = copiers(&tree, &allowed).and_then(|(cpus, each)| memory(&cpus, each));
    let memory = memory.unwrap_or(0);
    Calibration::measured(|figure| match figure {
        Figure::CopyNear => copied,
        Figure::Keep => kept,
        Figure::CombineNear => combined,
        Figure::Memory => memory,
        Figure::Cache => cache >> 10,
        Figure::LineCore => between[0].line,
        Figure::LineCache => between[1].line,
        Figure::LinePackage => between[2].line,
        Figure::LineHost => between[3].line,
        Figure::StreamCore => between[0].stream,
        Figure::StreamCache => between[1].stream,
        Figure::StreamPackage => between[2].stream,
        Figure::StreamHost => between[3].stream,
        Figure::ShortMessage => short,
        Figure::FetchCall => call,
        Figure::FetchRate => rate,
        Figure::FetchBoth => both.unwrap_or(0),
        Figure::Wake => wake.unwrap_or(0),
        // Connections measure the network.
        Figure::NetTrip | Figure::NetByte => 0,
    })
}

/// The first of these CPUs, and another one on the same core, in the same last-level cache if its
/// package has several, on the same package (in another such cache, if there is one), on another
/// package. `place`: package and core of a CPU; `shares`: whether two of a package share such a
/// cache.
fn pairs(
    allowed: &[usize],
    place: impl Fn(usize) -> Option<(u32, u32)>,
    shares: impl Fn(usize, usize) -> bool,
) -> [Option<(usize, usize)>; 4] {
    let mut pairs = [None; 4];
    let Some((&first, others)) = allowed.split_first() else {
        return pairs;
    };
    let at = place(first);
    for &other in others {
        let distance = match (at, place(other)) {
            (Some(a), Some(b)) if a == b => 0,
            (Some((a, _)), Some((b, _))) if a != b => 3,
            (Some(_), Some(_)) if shares(first, other) => 1,
            _ => 2,
        };
        pairs[distance] = Some((first, other));
    }
    if pairs[2].is_none() {
        // All share one cache: that distance is the one within the package.
        pairs.swap(1, 2);
    }
    pairs
}

/// Picoseconds per operation of each batch; a batch returns how many it did.
fn each(mut batch: impl FnMut() -> u64) -> Vec<u64> {
    let end = clock::now() + SHARE;
    let mut all = Vec::new();
    loop {
        let begin = clock::now();
        let times = batch();
        let now = clock::now();
        all.push(((now.0 - begin.0) * 1000 / times.max(1)).max(1));
        if now >= end {
            return all;
        }
    }
}

/// The shortest of them.
pub(super) fn best(batch: impl FnMut() -> u64) -> u64 {
    each(batch).into_iter().min().unwrap_or(1)
}

/// Their median, where another state of the machine makes some batches shorter.
pub(super) fn median(batch: impl FnMut() -> u64) -> u64 {
    let mut all = each(batch);
    all.sort_unstable();
    all[all.len() / 2]
}

/// Picoseconds per 1024 bytes, from those for this many.
pub(super) fn per_kb(picos: u64, bytes: u64) -> u64 {
    (picos * 1024 / bytes).max(1)
}

/// Memory that has been touched.
pub(super) fn touched(len: usize) -> Option<Buf> {
    let buf = Buf::try_alloc(len)?;
    touch(&buf);
    Some(buf)
}

pub(super) fn touch(buf: &Buf) {
    let page = [1; 4096];
    for at in (0..buf.len()).step_by(page.len()) {
        buf.write(at, &page);
    }
}

fn copy_near() -> u64 {
    let both = touched(NEAR).zip(touched(NEAR));
    let regions = both.as_ref().and_then(|(a, b)| a.region().zip(b.region()));
    let Some((a, b)) = regions else {
        return 0;
    };
    let picos = best(|| {
        for _ in 0..8 {
            a.copy_to(b);
        }
        8
    });
    per_kb(picos, NEAR as u64)
}

/// Sums of doubles, in place, within the caches of a core.
fn combine_near() -> u64 {
    let both = touched(NEAR).zip(touched(NEAR));
    let regions = both.as_ref().and_then(|(a, b)| a.region().zip(b.region()));
    let Some(((a, b), sum)) = regions.zip(Kernel::find(Op::Sum, Basic::F64)) else {
        return 0;
    };
    let picos = best(|| {
        for _ in 0..8 {
            sum.run(a, b);
        }
        8
    });
    per_kb(picos, NEAR as u64)
}

/// Memory for messages is allocated and freed, and copied to memory whose pieces are in no cache
/// when their turn comes.
fn keep() -> u64 {
    let all = touched(FAR);
    let Some(all) = all.as_ref().and_then(Buf::region) else {
        return 0;
    };
    let mut at = 0;
    let picos = best(|| {
        let kept = Buf::try_alloc(FAR_STEP as usize);
        if let Some(kept) = kept.as_ref().and_then(Buf::region) {
            kept.copy_to(all.part(at, FAR_STEP));
        }
        at = (at + FAR_STEP) % all.len();
        1
    });
    per_kb(picos, FAR_STEP)
}

/// CPUs that copy at the same time, one per core, all of which share the last-level cache of the
/// first, and the number of bytes that each copies from and to. `None`: the host does not have
/// memory to spare for that.
fn copiers(tree: &topology::Tree, allowed: &[usize]) -> Option<(Vec<usize>, u64)> {
    let (cache, sharing) = topology::last_cache(*allowed.first()?)?;
    let all = (2 * cache).min(MOST);
    let free = rustix::system::sysinfo();
    let free = free.freeram as u64 * u64::from(free.mem_unit);
    if all < cache + cache / 2 || all > free / 8 {
        return None;
    }
    let mut cores = Vec::new();
    let mut own_core = |cpu: &usize| {
        let core = tree.place(*cpu);
        let new = core.is_none() || !cores.contains(&core);
        cores.push(core);
        new
    };
    let mut cpus: Vec<usize> = allowed.to_vec();
    cpus.retain(|cpu| sharing.contains(cpu) && own_core(cpu));
    // Each also copies more than its core's own cache holds.
    let own = 4 * cpus::own_cache().unwrap_or(1 << 20) as u64;
    cpus.truncate((all / own).max(1) as usize);
    let each = all / 2 / cpus.len() as u64;
    Some((cpus, each / NEAR as u64 * NEAR as u64))
}

/// Memory that is copied from and to, piece by piece.
struct Far {
    from: Buf,
    to: Buf,
}

impl Far {
    fn new(each: u64) -> Option<Far> {
        let far = || {
            let buf = Buf::try_alloc(each as usize)?;
            buf.region()?.want_large_pages();
            touch(&buf);
            Some(buf)
        };
        Some(Far {
            from: far()?,
            to: far()?,
        })
    }

    fn copy(&self, number: u32) -> Option<()> {
        let (from, to) = self.from.region().zip(self.to.region())?;
        let at = u64::from(number) * NEAR as u64 % from.len();
        from.part(at, NEAR as u64).copy_to(to.part(at, NEAR as u64));
        Some(())
    }
}

/// Memory bandwidth while this many CPUs copy data that exceeds the caches; this thread is on the
/// first.
fn memory(cpus: &[usize], each: u64) -> Option<u64> {
    let one = |&cpu: &usize| {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let copies = move || {
            cpus::stay_on(cpu);
            let far = Far::new(each);
            let mut steps = (1..OVER).take_while(|_| theirs.mine.get() != OVER);
            far.and_then(|far| {
                steps.try_for_each(|step| {
                    far.copy(step)?;
                    theirs.theirs.set(step);
                    Some(())
                })
            });
        };
        Some((shared, threads::spawn("kw-calibrate", STACK, copies).ok()?))
    };
    let others: Vec<_> = cpus[1..].iter().filter_map(one).collect();
    let picos = Far::new(each).and_then(|far| {
        let begun = clock::now() + 2 * SHARE;
        let waits = || others.iter().any(|(shared, _)| shared.theirs.get() == 0);
        while waits() && clock::now() < begun {
            thread::yield_now();
        }
        let sum = || -> u64 { others.iter().map(|(s, _)| u64::from(s.theirs.get())).sum() };
        let mut step = 0;
        (!waits()).then(|| {
            best(|| {
                let before = sum();
                for _ in 0..TOGETHER {
                    far.copy(step);
                    step += 1;
                }
                sum() - before + u64::from(TOGETHER)
            })
        })
    });
    for (shared, _) in &others {
        shared.mine.set(OVER);
    }
    for (_, thread) in others {
        let _ = thread.join();
    }
    picos.map(|picos| per_kb(picos, NEAR as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_measured_at_every_distance_that_there_is() {
        // Two packages of two caches of two cores of two hardware threads.
        let place = |cpu: usize| Some((cpu as u32 / 8, cpu as u32 / 2));
        let shares = |a: usize, b: usize| a / 4 == b / 4;
        let of = |cpus: &[usize]| pairs(cpus, place, shares).map(|p| p.map(|(_, other)| other));
        let all: Vec<usize> = (0..16).collect();
        assert_eq!(of(&all), [Some(1), Some(3), Some(7), Some(15)]);
        assert_eq!(of(&all[..4]), [Some(1), None, Some(3), None]);
        assert_eq!(of(&[0, 4, 9]), [None, None, Some(4), Some(9)]);
        assert_eq!(of(&[5]), [None; 4]);
        let unknown = pairs(&[0, 1], |_| None, |_, _| false);
        assert_eq!(unknown, [None, None, Some((0, 1)), None]);
    }

    #[test]
    fn a_measured_host_has_figures_that_are_believed() {
        let figures = measure();
        assert!(figures.is_measured());
        assert_eq!(Calibration::from_word(&figures.word()), Some(figures));
        for there in [Figure::CopyNear, Figure::Keep, Figure::CombineNear] {
            assert!(figures.value(there) > 0, "{there:?}");
        }
    }
}
