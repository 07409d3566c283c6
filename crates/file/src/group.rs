//! The ranks that have a file open together, as collective access needs them. Messages between two
//! ranks arrive in the order in which they were sent.

use kw_sys::buf::Buf;

/// Direction of a message: two messages between the same ranks in different directions do not
/// match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// To an aggregator.
    ToAggregator,
    /// From an aggregator.
    FromAggregator,
}

/// Communication among the ranks of one file.
pub trait Group {
    /// Reason why communication failed.
    type Error;
    /// A pending send or receive.
    type Pending;

    /// This process's rank.
    fn rank(&self) -> u32;
    /// Number of ranks.
    fn size(&self) -> u32;
    /// The bytes of all ranks in their order. All give the same number of bytes.
    fn allgather(&self, mine: &[u8]) -> Result<Vec<u8>, Self::Error>;
    /// Starts a send to another rank; the buffer must not change before it has ended.
    fn send(&self, to: u32, way: Way, buf: &Buf) -> Result<Self::Pending, Self::Error>;
    /// Starts a receive from another rank.
    fn recv(&self, from: u32, way: Way, buf: &Buf) -> Result<Self::Pending, Self::Error>;
    /// Waits until it has ended; returns the number of bytes that a receive got.
    fn wait(&self, pending: Self::Pending) -> Result<u64, Self::Error>;
}

#[cfg(test)]
pub(crate) mod threads {
    //! Ranks that are threads of a test.

    use super::*;
    use kw_base::sync::Mutex;
    use std::sync::Arc;
    use std::sync::Barrier;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// One rank.
    pub(crate) struct Rank {
        rank: u32,
        to: Vec<Sender<Vec<u8>>>,
        from: Vec<Receiver<Vec<u8>>>,
        all: Arc<(Mutex<Vec<Vec<u8>>>, Barrier)>,
    }

    impl Group for Rank {
        type Error = std::convert::Infallible;
        type Pending = Option<(usize, Buf)>;

        fn rank(&self) -> u32 {
            self.rank
        }

        fn size(&self) -> u32 {
            self.to.len() as u32 / 2
        }

        fn allgather(&self, mine: &[u8]) -> Result<Vec<u8>, Self::Error> {
            let (parts, barrier) = &*self.all;
            parts.lock().expect("parts")[self.rank as usize] = mine.to_vec();
            barrier.wait();
            let all = parts.lock().expect("parts").concat();
            barrier.wait();
            Ok(all)
        }

        fn send(&self, to: u32, way: Way, buf: &Buf) -> Result<Self::Pending, Self::Error> {
            let mut bytes = vec![0; buf.len() as usize];
            buf.read(0, &mut bytes);
            self.to[to as usize * 2 + way as usize]
                .send(bytes)
                .expect("a rank that lives");
            Ok(None)
        }

        fn recv(&self, from: u32, way: Way, buf: &Buf) -> Result<Self::Pending, Self::Error> {
            Ok(Some((from as usize * 2 + way as usize, buf.clone())))
        }

        fn wait(&self, pending: Self::Pending) -> Result<u64, Self::Error> {
            let Some((from, buf)) = pending else {
                return Ok(0);
            };
            let bytes = self.from[from].recv().expect("a rank that lives");
            assert!(bytes.len() as u64 <= buf.len(), "a receive is truncated");
            buf.write(0, &bytes);
            Ok(bytes.len() as u64)
        }
    }

    /// Runs a function on every rank; returns the results.
    pub(crate) fn run<T: Send>(size: u32, rank: impl Fn(&Rank) -> T + Sync) -> Vec<T> {
        let all = Arc::new((
            Mutex::new(vec![Vec::new(); size as usize]),
            Barrier::new(size as usize),
        ));
        let mut to: Vec<Vec<_>> = (0..size).map(|_| Vec::new()).collect();
        let mut from: Vec<Vec<_>> = (0..size).map(|_| Vec::new()).collect();
        for sender in 0..size as usize {
            for receiver in 0..size as usize {
                for _ in [Way::ToAggregator, Way::FromAggregator] {
                    let (tx, rx) = channel();
                    to[sender].push(tx);
                    from[receiver].push(rx);
                }
            }
        }
        let ranks: Vec<Rank> = (to.into_iter().zip(from).enumerate())
            .map(|(r, (to, from))| Rank {
                rank: r as u32,
                to,
                from,
                all: all.clone(),
            })
            .collect();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (ranks.into_iter())
                .map(|r| {
                    let rank = &rank;
                    scope.spawn(move || rank(&r))
                })
                .collect();
            threads
                .into_iter()
                .map(|t| t.join().expect("a rank"))
                .collect()
        })
    }
}
