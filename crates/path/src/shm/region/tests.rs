//! Tests of shm regions.

use super::*;
use crate::shm::segment::SHM_REGIONS;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// The shm regions of two ranks, and the file between them.
fn with_file() -> (ShmRegions, ShmRegions, OwnedFd) {
    let (mine, fd) = Segment::create(2).unwrap();
    let other = Segment::open(fd.as_fd(), 2).unwrap();
    let shm_regions = |s, me| ShmRegions::new(Arc::new(s), me, Arc::new(Ringer::new()));
    (shm_regions(mine, 0), shm_regions(other, 1), fd)
}

fn two() -> (ShmRegions, ShmRegions) {
    let (a, b, _) = with_file();
    (a, b)
}

#[test]
fn shm_regions_are_claimed_until_there_are_none_and_come_back_wiped() {
    let (a, b) = two();
    let all = a.segment.claims().len() as u32 * 64;
    assert_eq!(
        all as usize, SHM_REGIONS,
        "two ranks have the most shm regions"
    );
    for number in 0..all {
        let half = number == all / 2;
        assert_eq!(half.then(|| a.claim_spare()), half.then_some(None));
        assert_eq!(a.claim(), Some(number));
    }
    assert_eq!((b.claim(), b.claim_spare()), (None, None), "all are taken");
    for number in [7, all - 1] {
        let (mine, theirs) = (a.open(number), b.open(number));
        mine.raise(3, 2, 0);
        assert_eq!(theirs.word(0, 3), 3 << STAGE_BITS | 2);
        mine.leave(&[0, 1], 3);
        assert_eq!(b.claim(), None, "one of two has left");
        theirs.leave(&[0, 1], 3);
        assert_eq!(b.claim_spare(), None, "less than half are free");
        assert_eq!(b.claim(), Some(number));
        assert_eq!(a.open(number).word(0, 3), 0);
    }
}

#[test]
fn all_ranks_change_one_tally_and_the_next_owner_finds_none() {
    let (a, b) = two();
    let number = a.claim().unwrap();
    let (mine, theirs) = (a.open(number), b.open(number));
    assert_eq!(mine.tally().fetch_add(5, Ordering::AcqRel), 0);
    assert_eq!(theirs.tally().swap(1 << 40, Ordering::AcqRel), 5);
    assert_eq!(mine.tally().load(Ordering::Acquire), 1 << 40);
    mine.leave(&[0, 1], 0);
    theirs.leave(&[0, 1], 0);
    assert_eq!(a.claim(), Some(number));
    assert_eq!(b.open(number).tally().load(Ordering::Acquire), 0);
}

#[test]
fn the_first_free_shm_region_is_claimed_in_whichever_word_it_is() {
    let (a, b) = two();
    let numbers: Vec<u32> = (0..300).map(|_| a.claim().unwrap()).collect();
    assert_eq!(numbers, (0..300).collect::<Vec<_>>());
    for number in [63, 64, 200, 127, 128] {
        b.unclaim(number);
    }
    let again: Vec<u32> = (0..7).map(|_| b.claim_spare().unwrap()).collect();
    assert_eq!(again, [63, 64, 127, 128, 200, 300, 301]);
}

#[test]
fn nobody_has_a_shm_region_that_another_has() {
    let (a, b) = two();
    let held: Vec<AtomicU32> = (0..SHM_REGIONS).map(|_| AtomicU32::new(0)).collect();
    let claim_and_unclaim = &|shm_regions: ShmRegions| {
        for round in 0..200 {
            let mine: Vec<u32> = (0..50).map(|_| shm_regions.claim().unwrap()).collect();
            for &number in &mine {
                let before = held[number as usize].fetch_add(1, Ordering::Relaxed);
                assert_eq!(before, 0, "shm region {number} has two in round {round}");
            }
            for &number in &mine {
                held[number as usize].fetch_sub(1, Ordering::Relaxed);
                shm_regions.unclaim(number);
            }
        }
    };
    std::thread::scope(|s| {
        for shm_regions in [a.clone(), b.clone(), a.clone(), b] {
            s.spawn(move || claim_and_unclaim(shm_regions));
        }
    });
    assert_eq!(a.claim(), Some(0), "all have come back");
}

#[test]
fn the_first_shm_regions_keep_their_memory_and_the_others_give_it_back() {
    let (a, b, fd) = with_file();
    let (file, data) = (File::from(fd), vec![1; ring(2)]);
    let held = || file.metadata().unwrap().blocks() * 512;
    let mut before = held();
    for (number, keeps) in [(KEPT - 1, true), (KEPT, false), (4095, false)] {
        let (mine, theirs) = (a.open(number), b.open(number));
        mine.long(0, 0, ring(2) as u64).write(&data);
        theirs.long(1, 0, ring(2) as u64).write(&data);
        assert!(held() >= before + 2 * ring(2) as u64);
        mine.leave(&[0, 1], 1);
        theirs.leave(&[0, 1], 1);
        assert_eq!(held() > before, keeps, "shm region {number}");
        before = held();
    }
}

#[test]
fn working_sets_of_all_shm_regions_take_little_more_than_those_of_the_first() {
    let (a, _) = two();
    let working_sets = |shm_regions: std::ops::Range<u32>| {
        shm_regions.map(|k| a.open(k).working_set()).sum::<u64>()
    };
    let all = WORKING_SETS * a.segment.working_set();
    assert_eq!(a.open(KEPT).working_set(), all as u64 / 2);
    assert!(working_sets(0..SHM_REGIONS as u32) < 6 * working_sets(0..KEPT));
}

#[test]
fn areas_are_aligned_and_apart() {
    let (a, _) = two();
    let (shm_region, next) = (a.open(0), a.open(1));
    let mut areas = vec![(next.base as usize, 1)];
    for place in 0..2 {
        areas.extend((0..LINES).map(|k| (shm_region.beside(place, k).bits() - 8, 64)));
        for of in [
            shm_region.areas(SMALL as u64),
            shm_region.areas(SHORT as u64),
        ] {
            areas.extend((0..SLOTS).map(|k| (shm_region.area(of, place, k).bits(), of.len)));
        }
        areas.push((shm_region.long(place, 0, 1).bits(), ring(2)));
    }
    areas.sort();
    assert!(areas.iter().all(|a| a.0 % 64 == 0));
    assert!(areas.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0));
    assert_eq!(areas.last(), Some(&(next.base as usize, 1)));
}
