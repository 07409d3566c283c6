//! Intercommunicators: collectives between two groups, and merging (MPI 5.0, 6.2.2 and 7.6).

use crate::calls::*;
use crate::collectives::{Reduction, own};
use crate::job::{Job, Rank};

const UNTOUCHED: i32 = -77;

/// The two sides of a job: this rank's group, and the communicator between it and the other.
struct Sides<'a> {
    inter: Comm<'a>,
    /// Rank in the job of the first of this side and of the other.
    first: [i32; 2],
    low: bool,
}

impl<'a> Sides<'a> {
    /// The first `low` ranks, and the others.
    fn of(rank: &'a Rank, low: i32) -> Sides<'a> {
        let world = rank.world();
        let is_low = rank.me < low;
        let side = world.split(is_low as i32, rank.me).unwrap();
        let first = if is_low { [0, low] } else { [low, 0] };
        let inter = side.intercomm(&world, first[1], 9);
        side.free();
        Sides {
            inter,
            first,
            low: is_low,
        }
    }

    fn remote(&self) -> std::ops::Range<i32> {
        self.first[1]..self.first[1] + self.inter.remote_size()
    }

    /// The root argument of this rank, if the root is rank `at` of its side.
    fn root(&self, at: i32, in_low: bool) -> i32 {
        match self.low == in_low {
            true if self.inter.me == at => ROOT,
            true => PROC_NULL,
            false => at,
        }
    }

    fn check_rooted(&self, form: Form, len: usize, at: i32, in_low: bool) {
        let root = self.root(at, in_low);
        let me = self.first[0] + self.inter.me;
        let theirs = self.first[1] + at;
        let n = self.inter.remote_size() as usize;
        let receives = root >= 0;
        let mut data = match root {
            ROOT => own(me, len),
            _ => vec![UNTOUCHED; len],
        };
        self.inter.bcast(form, room(&mut data), root).unwrap();
        let want = match root {
            ROOT => own(me, len),
            PROC_NULL => vec![UNTOUCHED; len],
            _ => own(theirs, len),
        };
        assert_eq!(data, want, "bcast");

        let (mine, mut came) = (own(me, len), vec![UNTOUCHED; len * n]);
        let recv = room(&mut came).counted(len);
        self.inter.gather(form, ints(&mine), recv, root).unwrap();
        if root == ROOT {
            let want: Vec<i32> = self.remote().flat_map(|r| own(r, len)).collect();
            assert_eq!(came, want, "gather");
        }

        let given: Vec<i32> = self.remote().flat_map(|r| own(r, len)).collect();
        let mut came = vec![UNTOUCHED; len];
        let send = ints(&given).counted(len);
        self.inter
            .scatter(form, send, room(&mut came), root)
            .unwrap();
        let want = if receives {
            own(me, len)
        } else {
            vec![UNTOUCHED; len]
        };
        assert_eq!(came, want, "scatter");

        for red in Reduction::some(self.inter.rank) {
            let mine = red.own(me, len);
            let mut came = vec![UNTOUCHED; mine.len()];
            let recv = red.data(&mut came);
            self.inter
                .reduce(form, ints(&mine).addr, recv, red.op(), root)
                .unwrap();
            if root == ROOT {
                assert_eq!(came, red.fold(self.remote(), len), "reduce");
            }
        }
    }

    fn check_both_ways(&self, form: Form, len: usize) {
        let (inter, n) = (&self.inter, self.inter.remote_size() as usize);
        let me = self.first[0] + inter.me;
        let mine = own(me, len);
        let mut came = vec![UNTOUCHED; len * n];
        inter
            .allgather(form, ints(&mine), room(&mut came).counted(len))
            .unwrap();
        let want: Vec<i32> = self.remote().flat_map(|r| own(r, len)).collect();
        assert_eq!(came, want, "allgather");

        let given: Vec<i32> = self
            .remote()
            .flat_map(|to| own(me * 100 + to, len))
            .collect();
        let mut came = vec![UNTOUCHED; len * n];
        let (send, recv) = (ints(&given).counted(len), room(&mut came).counted(len));
        inter.alltoall(form, send, recv).unwrap();
        let want: Vec<i32> = self
            .remote()
            .flat_map(|from| own(from * 100 + me, len))
            .collect();
        assert_eq!(came, want, "alltoall");

        for red in Reduction::some(inter.rank) {
            let mine = red.own(me, len);
            let mut came = vec![UNTOUCHED; mine.len()];
            inter
                .allreduce(form, ints(&mine).addr, red.data(&mut came), red.op())
                .unwrap();
            assert_eq!(came, red.fold(self.remote(), len), "allreduce");
        }
        inter.barrier(form).unwrap();
    }
}

#[test]
fn collectives_between_two_groups() {
    for (n, low, seed) in [(2, 1, 81), (5, 2, 82), (6, 5, 83)] {
        Job::new(n, seed).run(|rank| {
            let sides = Sides::of(rank, low);
            for form in FORMS {
                for len in [1, 300] {
                    sides.check_rooted(form, len, 0, true);
                    sides.check_rooted(form, len, n as i32 - low - 1, false);
                    sides.check_both_ways(form, len);
                }
            }
            sides.inter.free();
        });
    }
}

#[test]
fn a_merged_intercommunicator_has_the_low_group_first() {
    for (low_first, seed) in [(true, 91), (false, 92)] {
        Job::new(5, seed).run(|rank| {
            let sides = Sides::of(rank, 2);
            let merged = sides.inter.merge(sides.low != low_first);
            let place = match low_first {
                true => rank.me,
                false => (rank.me + 3) % 5,
            };
            assert_eq!((merged.me, merged.size), (place, 5));
            for form in FORMS {
                merged.check_collectives(form, 40, 3);
            }
            merged.free();
            sides.inter.free();
        });
    }
}
