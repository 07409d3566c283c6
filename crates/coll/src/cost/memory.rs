//! Costs of steps in memory: a rank's own memory, the shm buffers of others, and the lines that
//! hold their progress.

use super::{Distance, Prices};
use crate::FLAG_LINE_BYTES;

/// Readers that the caches of one core serve at full speed: a built-in value.
pub const PORTS: f64 = 8.0;

/// Cost model of steps in memory at given prices. Times are nanoseconds, `b` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    p: &'a Prices,
    shm_buffer: f64,
}

impl<'a> Memory<'a> {
    /// The model with the prices of a distance.
    pub fn new(at: &'a Distance) -> Memory<'a> {
        Memory {
            p: &at.p,
            shm_buffer: at.shm_buffer,
        }
    }

    /// A byte that one of many ranks reads from the same shm buffer.
    pub fn port(&self) -> f64 {
        self.shm_buffer / PORTS
    }

    /// Copies in private memory.
    pub fn copy(&self, b: f64) -> f64 {
        super::count();
        self.p.step + b * self.p.copy
    }

    /// Combines in private memory.
    pub fn combine(&self, b: f64) -> f64 {
        super::count();
        self.p.step + b * self.p.combine
    }

    /// Copies to this rank's shm buffer.
    pub fn show(&self, b: f64) -> f64 {
        super::count();
        let byte = if in_line(b) {
            self.p.copy
        } else {
            self.p.write
        };
        self.p.step + b * byte
    }

    /// Copies from the shm buffer of another rank.
    pub fn read(&self, b: f64) -> f64 {
        super::count();
        match in_line(b) {
            true => self.copy(b),
            false => self.p.step + self.p.line + b * self.p.read,
        }
    }

    /// Combines with the data that another rank shows.
    pub fn fold(&self, b: f64) -> f64 {
        let read = match in_line(b) {
            true => 0.0,
            false => self.p.line + b * self.shm_buffer,
        };
        self.combine(b) + read
    }

    /// Copies from the shm buffer of another rank to private memory and to this rank's shm buffer,
    /// while `k` ranks read it. While all wait for memory, it serves ranks in turns: what one rank
    /// moves more than the others counts by their number.
    pub fn pass_on(&self, k: f64, b: f64) -> f64 {
        match self.p.read > self.shm_buffer {
            true => self.read(b) * (1.0 + 1.0 / k.max(1.0)),
            false => self.read(b) + self.show(b),
        }
    }

    /// Cost of publishing a part of this many bytes out of `of` bytes.
    pub fn show_part(&self, b: f64, of: f64) -> f64 {
        super::count();
        match in_line(of) {
            true => self.copy(b),
            false => self.p.step + b * self.p.write,
        }
    }

    /// Copies a part that another rank shows among `of` bytes.
    pub fn read_part(&self, b: f64, of: f64) -> f64 {
        super::count();
        match in_line(of) {
            true => self.copy(b),
            false => self.p.step + self.p.line + b * self.p.read,
        }
    }

    /// Combines with a part that another rank shows among `of` bytes.
    pub fn fold_part(&self, b: f64, of: f64) -> f64 {
        match in_line(of) {
            true => self.combine(b),
            false => self.combine(b) + self.p.line + b * self.shm_buffer,
        }
    }

    /// How far the last of `k` ranks is behind the first, if all read the others' lines and shm
    /// buffers in the same order.
    pub fn convoy(&self, k: f64, b: f64) -> f64 {
        super::count();
        let port = if in_line(b) { 0.0 } else { b * self.port() };
        (k - 1.0).max(0.0) * (self.p.reader + port)
    }

    /// Combines private memory with the data in the shm buffer of another rank, there.
    pub fn combine_into(&self, b: f64) -> f64 {
        match in_line(b) {
            true => self.combine(b),
            false => self.fold(b) + b * self.p.write,
        }
    }

    /// Combines the data that two other ranks show, in the shm buffer of one of them.
    pub fn fold_into(&self, b: f64) -> f64 {
        match in_line(b) {
            true => self.combine(b),
            false => self.combine_into(b) + self.p.line + b * self.p.read,
        }
    }

    /// Sees that another rank has raised.
    pub fn look(&self) -> f64 {
        super::count();
        self.p.step + self.p.line
    }

    /// Time of the last of `k` ranks that look at one line at the same time.
    pub fn looks(&self, k: f64) -> f64 {
        self.look() + (k - 1.0).max(0.0) * self.p.reader
    }

    /// Sees that all `n` ranks have raised, while all others look too.
    pub fn look_at_all(&self, n: f64) -> f64 {
        let p = self.p;
        let others = (n - 2.0).max(0.0);
        self.look()
            + others.min(1.0) * p.line
            + (others - 1.0).max(0.0) * p.more
            + others * p.reader
    }

    /// How long `k` ranks are busy that see one rank raise again and again, and read from its shm
    /// buffer each time.
    pub fn keep_reading(&self, k: f64, b: f64) -> f64 {
        let together = k * self.p.reader.max(b * self.port());
        (self.look() + self.read(b)).max(together)
    }

    /// Time of the last of `k` ranks that see at the same time that one has raised, and read its
    /// shm buffer.
    pub fn see(&self, k: f64, b: f64) -> f64 {
        let all = if in_line(b) { 0.0 } else { k * b * self.port() };
        let others = (k - 1.0).max(0.0);
        self.look() + (self.read(b) + others * self.p.reader).max(all + self.p.reader)
    }
}

/// Whether data is in the line of its owner's stage.
fn in_line(b: f64) -> bool {
    b <= FLAG_LINE_BYTES as f64
}
