//! Collectives in an intracommunicator, each in its three forms, compared with the definition of
//! the standard in one line.

use crate::calls::*;
use crate::job::{Job, Rank};
use kw_base::settings::Id;
use kw_base::sync::atomic::{AtomicI32, Ordering};
use kw_objects::handle::{OpH, TypeH};
use kw_path::sim::{Reach, SimOptions};

/// Contents of memory that must not be written.
const UNTOUCHED: i32 = -77;
/// Lengths: of one cache line, of a message that is sent eagerly, and of one that is sent by
/// rendezvous.
const LENGTHS: [usize; 3] = [1, 37, 700];

/// `len` integers of a rank, different from those of others.
pub fn own(rank: i32, len: usize) -> Vec<i32> {
    (0..len as i32).map(|i| rank * 10_007 + i * 3 + 1).collect()
}

/// Data of all ranks, in order.
fn all(n: i32, len: usize) -> Vec<i32> {
    (0..n).flat_map(|r| own(r, len)).collect()
}

/// Uneven parts, some of them empty, with a gap before each: counts, places, and total length.
fn uneven(n: i32, len: usize, salt: i32) -> (Vec<i32>, Vec<i32>, usize) {
    let counts: Vec<i32> = (0..n)
        .map(|r| (r + salt).rem_euclid(3) * len as i32 / 2)
        .collect();
    let mut at = 0;
    let places = counts.iter().map(|c| {
        at += 1 + c;
        at - c
    });
    let places: Vec<i32> = places.collect();
    (counts, places, at as usize)
}

/// A reduction: its operands, and its operation.
#[derive(Clone, Copy)]
pub struct Reduction {
    op: OpH,
    kind: TypeH,
    /// Integers in one element.
    of: usize,
}

impl Reduction {
    /// Two operations of the standard, and one of the user that does not commute.
    pub fn some(rank: &Rank) -> [Reduction; 3] {
        let standard = |op| Reduction {
            op,
            kind: INT,
            of: 1,
        };
        let user = Reduction {
            op: rank.affine(),
            kind: rank.pair(),
            of: 2,
        };
        [standard(SUM), standard(MAX), user]
    }

    pub fn op(&self) -> OpH {
        self.op
    }

    pub fn data(&self, values: &mut [i32]) -> Data {
        room(values).of(self.kind, self.of)
    }

    /// `len` elements of a rank.
    pub fn own(&self, rank: i32, len: usize) -> Vec<i32> {
        own(rank, len * self.of)
    }

    /// The elements of some ranks combined, in their order.
    pub fn fold(&self, ranks: impl Iterator<Item = i32>, len: usize) -> Vec<i32> {
        let each = ranks.map(|r| self.own(r, len));
        each.reduce(|a, b| self.combine(&a, &b)).unwrap_or_default()
    }

    fn combine(&self, a: &[i32], b: &[i32]) -> Vec<i32> {
        if self.of == 2 {
            let pairs = a.chunks(2).zip(b.chunks(2));
            return pairs
                .flat_map(|(x, y)| compose([x[0], x[1]], [y[0], y[1]]))
                .collect();
        }
        let each = a.iter().zip(b);
        match self.op == SUM {
            true => each.map(|(x, y)| x.wrapping_add(*y)).collect(),
            false => each.map(|(x, y)| *x.max(y)).collect(),
        }
    }
}

impl Comm<'_> {
    fn empty(&self, len: usize) -> Vec<i32> {
        vec![UNTOUCHED; len]
    }

    fn check_barrier(&self, form: Form, arrived: &AtomicI32, round: i32) {
        arrived.fetch_add(1, Ordering::Relaxed);
        self.barrier(form).unwrap();
        let here = arrived.load(Ordering::Relaxed);
        assert!(here >= self.size * round, "{form:?}: left before all came");
    }

    fn check_bcast(&self, form: Form, len: usize, root: i32) {
        let mut data = match self.me == root {
            true => own(root, len),
            false => self.empty(len),
        };
        self.bcast(form, room(&mut data), root).unwrap();
        assert_eq!(data, own(root, len), "{form:?} from {root}");
    }

    fn check_gather(&self, form: Form, len: usize, root: i32, place: bool) {
        let (n, mine) = (self.size as usize, own(self.me, len));
        let mut all_of_them = self.empty(len * n);
        let at = self.me as usize * len;
        let send = match place && self.me == root {
            true => {
                all_of_them[at..at + len].copy_from_slice(&mine);
                in_place()
            }
            false => ints(&mine),
        };
        let recv = room(&mut all_of_them).counted(len);
        self.gather(form, send, recv, root).unwrap();
        match self.me == root {
            true => assert_eq!(all_of_them, all(self.size, len), "{form:?} to {root}"),
            false => assert_eq!(all_of_them, self.empty(len * n), "{form:?} to {root}"),
        }
    }

    fn check_gatherv(&self, form: Form, len: usize, root: i32) {
        let (counts, at, total) = uneven(self.size, len, root);
        let mine = own(self.me, counts[self.me as usize] as usize);
        let mut came = self.empty(total);
        let recv = room(&mut came);
        self.gatherv(form, ints(&mine), recv, &counts, &at, root)
            .unwrap();
        let mut want = self.empty(total);
        if self.me == root {
            lay(&mut want, &counts, &at, own);
        }
        assert_eq!(came, want, "{form:?} to {root}");
    }

    fn check_scatter(&self, form: Form, len: usize, root: i32, place: bool) {
        let given = all(self.size, len);
        let mut mine = self.empty(len);
        let recv = match place && self.me == root {
            true => in_place(),
            false => room(&mut mine),
        };
        self.scatter(form, ints(&given).counted(len), recv, root)
            .unwrap();
        match place && self.me == root {
            true => assert_eq!(mine, self.empty(len)),
            false => assert_eq!(mine, own(self.me, len), "{form:?} from {root}"),
        }
    }

    fn check_scatterv(&self, form: Form, len: usize, root: i32) {
        let (counts, at, total) = uneven(self.size, len, root);
        let mut given = self.empty(total);
        lay(&mut given, &counts, &at, own);
        let mut mine = self.empty(counts[self.me as usize] as usize);
        let recv = room(&mut mine);
        self.scatterv(form, ints(&given), &counts, &at, recv, root)
            .unwrap();
        assert_eq!(mine, own(self.me, mine.len()), "{form:?} from {root}");
    }

    fn check_allgather(&self, form: Form, len: usize, place: bool) {
        let (mine, at) = (own(self.me, len), self.me as usize * len);
        let mut came = self.empty(len * self.size as usize);
        let send = match place {
            true => {
                came[at..at + len].copy_from_slice(&mine);
                in_place()
            }
            false => ints(&mine),
        };
        self.allgather(form, send, room(&mut came).counted(len))
            .unwrap();
        assert_eq!(came, all(self.size, len), "{form:?}");
    }

    fn check_allgatherv(&self, form: Form, len: usize) {
        let (counts, at, total) = uneven(self.size, len, 1);
        let mine = own(self.me, counts[self.me as usize] as usize);
        let (mut came, mut want) = (self.empty(total), self.empty(total));
        self.allgatherv(form, ints(&mine), room(&mut came), &counts, &at)
            .unwrap();
        lay(&mut want, &counts, &at, own);
        assert_eq!(came, want, "{form:?}");
    }

    fn check_alltoall(&self, form: Form, len: usize, place: bool) {
        let block = |from: i32, to: i32| own(from * self.size + to, len);
        let given: Vec<i32> = (0..self.size).flat_map(|to| block(self.me, to)).collect();
        let mut came = match place {
            true => given.clone(),
            false => self.empty(given.len()),
        };
        let send = match place {
            true => in_place(),
            false => ints(&given).counted(len),
        };
        self.alltoall(form, send, room(&mut came).counted(len))
            .unwrap();
        let want: Vec<i32> = (0..self.size)
            .flat_map(|from| block(from, self.me))
            .collect();
        assert_eq!(came, want, "{form:?}");
    }

    /// By MPI_Alltoallv, or with types that differ by MPI_Alltoallw.
    fn check_uneven_alltoall(&self, form: Form, len: usize, pair: Option<TypeH>) {
        let n = self.size;
        let block = |from: i32, to: i32| (from * 2 + to).rem_euclid(3) * 2 * (len as i32 / 2);
        let lay_out = |count: &dyn Fn(i32) -> i32| -> (Vec<i32>, Vec<i32>, usize) {
            let counts: Vec<i32> = (0..n).map(count).collect();
            let mut end = 0;
            // Downwards, so that no place is where a rank would expect it.
            let mut at: Vec<i32> = vec![0; n as usize];
            for r in (0..n as usize).rev() {
                at[r] = end + 2;
                end = at[r] + counts[r];
            }
            (counts, at, end as usize)
        };
        let (counts, mut at, total) = lay_out(&|to| block(self.me, to));
        let (mut rcounts, mut rat, rtotal) = lay_out(&|from| block(from, self.me));
        let (mut given, mut want) = (self.empty(total), self.empty(rtotal));
        lay(&mut given, &counts, &at, |to, k| own(self.me * n + to, k));
        lay(&mut want, &rcounts, &rat, |from, k| {
            own(from * n + self.me, k)
        });
        let mut came = self.empty(rtotal);
        let (send, recv) = (ints(&given), room(&mut came));
        match pair {
            None => self.alltoallv(form, send, &counts, &at, recv, &rcounts, &rat),
            Some(pair) => {
                let mut kinds = vec![INT; n as usize];
                let mut rkinds = vec![pair; n as usize];
                // Places are bytes; this side receives pairs.
                at.iter_mut().chain(&mut rat).for_each(|at| *at *= 4);
                rcounts.iter_mut().for_each(|c| *c /= 2);
                self.alltoallw(
                    form,
                    send,
                    &counts,
                    &at,
                    &mut kinds,
                    recv,
                    &rcounts,
                    &rat,
                    &mut rkinds,
                )
            }
        }
        .unwrap();
        assert_eq!(came, want, "{form:?}");
    }

    fn check_reduce(&self, form: Form, len: usize, root: i32, red: Reduction, place: bool) {
        let mine = red.own(self.me, len);
        let mut came = match place && self.me == root {
            true => mine.clone(),
            false => self.empty(mine.len()),
        };
        let send = match place && self.me == root {
            true => in_place().addr,
            false => ints(&mine).addr,
        };
        self.reduce(form, send, red.data(&mut came), red.op, root)
            .unwrap();
        let want = match self.me == root {
            true => red.fold(0..self.size, len),
            false => self.empty(mine.len()),
        };
        assert_eq!(came, want, "{form:?} to {root}");
    }

    fn check_allreduce(&self, form: Form, len: usize, red: Reduction, place: bool) {
        let mine = red.own(self.me, len);
        let (mut came, send) = match place {
            true => (mine.clone(), in_place().addr),
            false => (self.empty(mine.len()), ints(&mine).addr),
        };
        self.allreduce(form, send, red.data(&mut came), red.op)
            .unwrap();
        assert_eq!(came, red.fold(0..self.size, len), "{form:?}");
    }

    fn check_reduce_scatter(&self, form: Form, len: usize, red: Reduction) {
        let (counts, _, _) = uneven(self.size, len, 2);
        let total: i32 = counts.iter().sum();
        let mine = red.own(self.me, total as usize);
        let part = counts[self.me as usize] as usize;
        let before: i32 = counts[..self.me as usize].iter().sum();
        let mut came = self.empty(part * red.of);
        let recv = red.data(&mut came);
        self.reduce_scatter(form, ints(&mine).addr, recv, &counts, red.op)
            .unwrap();
        let want = red.fold(0..self.size, total as usize);
        let at = before as usize * red.of;
        assert_eq!(came, want[at..at + part * red.of], "{form:?}");
    }

    fn check_reduce_scatter_block(&self, form: Form, len: usize, red: Reduction) {
        let mine = red.own(self.me, len * self.size as usize);
        let mut came = self.empty(len * red.of);
        self.reduce_scatter_block(form, ints(&mine).addr, red.data(&mut came), red.op)
            .unwrap();
        let want = red.fold(0..self.size, len * self.size as usize);
        let at = self.me as usize * len * red.of;
        assert_eq!(came, want[at..at + len * red.of], "{form:?}");
    }

    fn check_scan(&self, form: Form, len: usize, red: Reduction, inclusive: bool) {
        let mine = red.own(self.me, len);
        let mut came = self.empty(mine.len());
        let (send, recv) = (ints(&mine).addr, red.data(&mut came));
        match inclusive {
            true => self.scan(form, send, recv, red.op),
            false => self.exscan(form, send, recv, red.op),
        }
        .unwrap();
        if inclusive || self.me > 0 {
            let last = self.me + inclusive as i32;
            assert_eq!(came, red.fold(0..last, len), "{form:?}");
        }
    }

    fn check_all_data(&self, form: Form, len: usize, root: i32) {
        let place = root == 0;
        self.check_bcast(form, len, root);
        self.check_gather(form, len, root, place);
        self.check_gatherv(form, len, root);
        self.check_scatter(form, len, root, place);
        self.check_scatterv(form, len, root);
        self.check_allgather(form, len, place);
        self.check_allgatherv(form, len);
        self.check_alltoall(form, len, place);
        self.check_uneven_alltoall(form, len, None);
        self.check_uneven_alltoall(form, len, Some(self.rank.pair()));
    }

    fn check_all_reductions(&self, form: Form, len: usize, root: i32) {
        let place = root == 0;
        for red in Reduction::some(self.rank) {
            self.check_reduce(form, len, root, red, place);
            self.check_allreduce(form, len, red, place);
            self.check_reduce_scatter(form, len, red);
            self.check_reduce_scatter_block(form, len, red);
            self.check_scan(form, len, red, true);
            self.check_scan(form, len, red, false);
        }
    }

    /// Every collective, in this form.
    pub fn check_collectives(&self, form: Form, len: usize, root: i32) {
        self.check_all_data(form, len, root);
        self.check_all_reductions(form, len, root);
    }
}

/// Puts the part of each rank where it belongs.
fn lay(into: &mut [i32], counts: &[i32], at: &[i32], part: impl Fn(i32, usize) -> Vec<i32>) {
    for (r, (&count, &at)) in counts.iter().zip(at).enumerate() {
        let (at, count) = (at as usize, count as usize);
        into[at..at + count].copy_from_slice(&part(r as i32, count));
    }
}

fn every_collective(job: Job) {
    let arrived = AtomicI32::new(0);
    job.run(|rank| {
        let world = rank.world();
        let mut round = 0;
        for form in FORMS {
            for (i, len) in LENGTHS.into_iter().enumerate() {
                let roots = [0, rank.size - 1, rank.size / 2];
                world.check_collectives(form, len, roots[i]);
                round += 1;
                world.check_barrier(form, &arrived, round);
            }
        }
    });
}

#[test]
fn every_collective_gives_what_the_standard_says() {
    for (n, seed) in [(1, 1), (2, 2), (3, 3), (5, 5), (8, 8)] {
        every_collective(Job::new(n, seed));
    }
}

#[test]
fn collectives_of_ranks_on_several_hosts() {
    for (n, hosts, seed) in [(4, 2, 21), (7, 3, 22), (6, 6, 23)] {
        every_collective(Job::new(n, seed).hosts(hosts));
    }
}

#[test]
fn collectives_where_memory_of_peers_can_be_read_or_is_refused() {
    for (get, seed) in [(Reach::Works, 31), (Reach::Denied, 32)] {
        let options = SimOptions {
            get,
            ..SimOptions::default()
        };
        every_collective(Job::new(4, seed).net(options));
    }
}

#[test]
fn collectives_whose_calls_are_compared() {
    every_collective(Job::new(4, 41).setting(Id::Check, "yes"));
}

/// MPI 5.0, 6.12: all members start them in the same order, and may complete them in any.
#[test]
fn many_collectives_under_way_end_in_any_order() {
    const MANY: usize = 12;
    for seed in 50..53 {
        Job::new(5, seed).run(|rank| {
            let (world, other) = (rank.world(), rank.world().dup());
            let mine: Vec<Vec<i32>> = (0..MANY).map(|i| own(rank.me + i as i32, 50 * i)).collect();
            let mut came: Vec<Vec<i32>> = mine.iter().map(|m| world.empty(m.len())).collect();
            let mut requests = Vec::new();
            for (i, (mine, came)) in mine.iter().zip(&mut came).enumerate() {
                let comm = if i % 3 == 0 { &other } else { &world };
                requests.push(comm.iallreduce(ints(mine).addr, room(came), SUM));
            }
            let mut dice = rank.dice(seed);
            while !requests.is_empty() {
                let at = dice.between(0, requests.len() as u64 - 1) as usize;
                rank.wait(&mut requests.swap_remove(at)).unwrap();
            }
            for (i, came) in came.iter().enumerate() {
                let each = (0..rank.size).map(|r| own(r + i as i32, 50 * i));
                let add = |a: Vec<i32>, b: Vec<i32>| a.iter().zip(b).map(|(x, y)| x + y).collect();
                assert_eq!(*came, each.reduce(add).unwrap(), "the one of number {i}");
            }
            other.free();
        });
    }
}

#[test]
fn a_persistent_collective_is_started_again_with_other_data() {
    Job::new(4, 61).run(|rank| {
        let world = rank.world();
        let (mut mine, mut came) = (vec![0; 300], vec![0; 300]);
        let data = room(&mut mine);
        let mut request = world.allreduce_init(data.addr, room(&mut came), SUM);
        for round in 0..5 {
            mine.copy_from_slice(&own(rank.me + round, 300));
            came.fill(UNTOUCHED);
            rank.start(&mut request).unwrap();
            rank.wait(&mut request).unwrap();
            let red = Reduction::some(rank)[0];
            let want = red.fold(round..rank.size + round, 300);
            assert_eq!(came, want, "round {round}");
        }
        rank.release(&mut request);
    });
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let run = |seed| {
        let frames = kw_base::sync::Mutex::new(Vec::new());
        Job::new(5, seed).run(|rank| {
            let world = rank.world();
            world.check_collectives(Form::Nonblocking, 300, 2);
            let seen = (rank.me, rank.net.now(), rank.net.frames());
            frames.lock().unwrap().push(seen);
        });
        frames.into_inner().unwrap()
    };
    assert_eq!(run(71), run(71));
    assert_ne!(run(71), run(72));
}

/// On a ring of ranks, in which a single rank is its own neighbour (MPI 5.0, 8.6): the left
/// neighbour, then the right one.
#[test]
fn neighbourhood_collectives_reach_both_sides_of_a_ring() {
    const LEN: usize = 200;
    for (n, seed) in [(1, 75), (2, 76), (5, 77)] {
        Job::new(n, seed).run(|rank| {
            let ring = rank.world().ring();
            let sides = [
                (rank.me + rank.size - 1) % rank.size,
                (rank.me + 1) % rank.size,
            ];
            let (mine, to_both) = (own(rank.me, LEN), own(rank.me + 50, 2 * LEN));
            let gathered: Vec<i32> = sides.iter().flat_map(|&r| own(r, LEN)).collect();
            // The left neighbour has sent its right half here, the right one its left half.
            let halves = sides.map(|r| own(r + 50, 2 * LEN));
            let exchanged = [&halves[0][LEN..], &halves[1][..LEN]].concat();
            let (counts, at) = ([LEN as i32; 2], [LEN as i32, 0]);
            let (near, far) = gathered.split_at(LEN);
            let swapped = [far, near].concat();
            for form in FORMS {
                let mut came = vec![UNTOUCHED; 2 * LEN];
                let recv = room(&mut came);
                ring.neighbor_allgather(form, ints(&mine), recv.counted(LEN))
                    .unwrap();
                assert_eq!(came, gathered, "{form:?}");
                ring.neighbor_allgatherv(form, ints(&mine), recv, &counts, &at)
                    .unwrap();
                assert_eq!(came, swapped, "{form:?}");
                let send = ints(&to_both).counted(LEN);
                ring.neighbor_alltoall(form, send, recv.counted(LEN))
                    .unwrap();
                assert_eq!(came, exchanged, "{form:?}");
                // Only to the left, so only from the right.
                let (to, from, places) = ([LEN as i32, 0], [0, LEN as i32], [0, LEN as i32]);
                came.fill(UNTOUCHED);
                ring.neighbor_alltoallv(form, send, &to, &places, recv, &from, &places)
                    .unwrap();
                let want = [&[UNTOUCHED; LEN][..], &exchanged[LEN..]].concat();
                assert_eq!(came, want, "{form:?}");
            }
            ring.free();
        });
    }
}
