//! A measuring rank: what `mpiexec` starts to verify a calibration. Rank 0 prints a line for each
//! cell, `NAME:BYTES NANOSECONDS`, the median of some batches.
//!
//! Memory is used as programs use it: the sender has written the data itself, on its own core, so
//! the receiver does not find it in its caches.

use std::path::Path;
use std::time::Instant;

use kw_coll::Coll;
use kw_sys::standard_mpi::Rank;

use super::cells::{Cell, What};

/// Bytes that are moved before the first batch, and most repetitions of that: shared buffers grow
/// while they are used (`kw_base::working_set`), and the first use of a page takes longer than all
/// else. In a program they soon have their final lengths.
const UNTIMED: u64 = 40 << 20;
const MOST_UNTIMED: u64 = 4096;
/// Batches.
const BATCHES: usize = 5;
/// Bytes that a batch moves, within the limits of the number of repetitions.
const MOVED: u64 = 256 << 10;
/// Repetitions of a batch, at least and at most.
const REPETITIONS: (u64, u64) = (2, 64);

/// Times these cells with the other ranks of the job; returns the text that rank 0 prints.
pub fn measure(words: &str, library: &Path) -> Result<String, String> {
    let cells = words.split(',').map(str::parse);
    let cells: Vec<Cell> = cells.collect::<Result<_, _>>()?;
    let rank =
        Rank::init(library).map_err(|why| format!("cannot use {}: {why}", library.display()))?;
    let mut text = String::new();
    for cell in cells {
        let nanos = time(&rank, cell);
        if rank.rank == 0 {
            text += &format!("{cell} {nanos:.1}\n");
        }
    }
    rank.finalize();
    Ok(text)
}

/// Reads the lines of [`measure`]; other lines are ignored.
pub fn parse(text: &str) -> Vec<(Cell, f64)> {
    let line = |line: &str| {
        let (cell, nanos) = line.split_once(' ')?;
        let nanos: f64 = nanos.parse().ok()?;
        let sensible = nanos.is_finite() && nanos > 0.0;
        Some((cell.parse().ok()?, nanos)).filter(|_| sensible)
    };
    text.lines().filter_map(line).collect()
}

/// Nanoseconds of one cell on this rank.
fn time(rank: &Rank, cell: Cell) -> f64 {
    let (least, most) = REPETITIONS;
    let repetitions = (MOVED / cell.bytes.max(1)).clamp(least, most);
    let mut one = Repeated::new(rank, cell);
    let mut batch = |repetitions: u64| {
        rank.barrier();
        let begin = Instant::now();
        for turn in 0..repetitions {
            one.run(rank, turn as u8);
        }
        one.end(rank);
        begin.elapsed().as_nanos() as f64 / (repetitions * one.ways()) as f64
    };
    batch((UNTIMED / cell.bytes.max(1)).clamp(repetitions, MOST_UNTIMED));
    let mut times: Vec<f64> = (0..BATCHES).map(|_| batch(repetitions)).collect();
    times.sort_by(f64::total_cmp);
    times[BATCHES / 2]
}

/// The repeated operation, with its memory.
struct Repeated {
    what: What,
    given: Vec<u8>,
    got: Vec<u8>,
    numbers: Vec<f64>,
    sums: Vec<f64>,
}

impl Repeated {
    fn new(rank: &Rank, cell: Cell) -> Repeated {
        let bytes = cell.bytes as usize;
        let (plain, numbers) = match cell.what {
            What::Collective(Coll::Reduce | Coll::Allreduce) => (0, bytes / size_of::<f64>()),
            What::Collective(Coll::Alltoall) => (bytes * rank.size, 0),
            _ => (bytes, 0),
        };
        Repeated {
            what: cell.what,
            given: vec![1; plain],
            got: vec![2; plain],
            numbers: vec![1.0; numbers],
            sums: vec![2.0; numbers],
        }
    }

    /// Messages of one repetition that follow one another.
    fn ways(&self) -> u64 {
        match self.what {
            What::Message => 2,
            What::Collective(_) => 1,
        }
    }

    fn run(&mut self, rank: &Rank, turn: u8) {
        match self.what {
            What::Message => self.there_and_back(rank, turn),
            What::Collective(Coll::Bcast) => {
                if rank.rank == 0 {
                    self.given.fill(turn);
                }
                rank.bcast(&mut self.given);
            }
            What::Collective(Coll::Alltoall) => {
                self.given.fill(turn);
                rank.alltoall(&self.given, &mut self.got);
            }
            What::Collective(coll) => {
                self.numbers.fill(f64::from(turn));
                match coll {
                    Coll::Reduce => rank.reduce(&self.numbers, &mut self.sums),
                    _ => rank.allreduce(&self.numbers, &mut self.sums),
                }
            }
        }
    }

    /// Between ranks 0 and 1.
    fn there_and_back(&mut self, rank: &Rank, turn: u8) {
        match rank.rank {
            0 => {
                self.given.fill(turn);
                rank.send(&self.given, 1);
                rank.receive(&mut self.got, 1);
            }
            1 => {
                rank.receive(&mut self.got, 0);
                self.given.fill(turn);
                rank.send(&self.given, 0);
            }
            _ => {}
        }
    }

    /// A root finishes before the others: all wait for the last rank.
    fn end(&self, rank: &Rank) {
        if let What::Collective(_) = self.what {
            rank.barrier();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rank_prints_is_read_and_other_lines_are_not() {
        let text = "message:1024 512.5\nnoise\nbcast:64 nan\nbcast:64 -1\nx:1 2\nallreduce:64 7\n";
        let found = parse(text);
        let shown: Vec<String> = found.iter().map(|(c, t)| format!("{c} {t}")).collect();
        assert_eq!(shown, ["message:1024 512.5", "allreduce:64 7"]);
    }
}
