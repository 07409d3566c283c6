//! One access to the data of a file: independent or collective, at an offset or at a file pointer,
//! now or by another thread.

use crate::agree::Talk;
use crate::exchange::{self, Access};
use crate::fault::access_failed;
use crate::group::Group;
use crate::open::{Kept, Open, Seen, open_file};
use crate::representation::Data;
use crate::transfer::{self, Done, Trouble};
use kw_base::counters::Counter;
use kw_io_plan::Hints;
use kw_io_plan::collective::{self, Call, Decision, Request};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::{FileH, TypeH};
use kw_objects::state::Mpi;
use kw_sys::buf::{Addr, Buf};
use std::sync::Arc;
use std::time::Instant;

/// Bytes read with gaps from which on their time determines the cost of such a byte.
const SIEVED: u64 = 256 << 10;

/// Pieces that are accessed to measure the cost of a call.
const PROBED: u64 = 32;

/// Start of an access in the view's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessStart {
    /// At an offset in elementary types.
    At(i64),
    /// At the individual file pointer.
    Pointer,
    /// At the shared file pointer.
    Shared,
    /// At the shared file pointer, in the order of ranks.
    Ordered,
}

/// Kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    /// Whether it writes.
    pub writes: bool,
    /// Its start.
    pub place: AccessStart,
    /// Whether all ranks take part.
    pub collective: bool,
}

/// The buffer argument of a call.
#[derive(Clone, Copy, Debug)]
pub struct User {
    /// Its address.
    pub addr: Addr,
    /// Number of elements.
    pub count: i64,
    /// Their datatype.
    pub datatype: TypeH,
}

/// Start of an access, as far as it is known before it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Begin {
    /// At this byte of the view's data.
    Data(u64),
    /// At the shared file pointer.
    Shared,
    /// At the shared file pointer, after the other ranks.
    Ordered,
}

/// An access, ready to run on any thread.
#[derive(Debug)]
pub struct Job {
    mpi: &'static Mpi,
    open: Arc<Open>,
    seen: Arc<Seen>,
    hints: Hints,
    atomic: bool,
    how: How,
    begin: Begin,
    data: Data,
    /// The data in their representation in the file.
    buf: Buf,
}

/// Checks the arguments of an access and moves the individual file pointer. `Err` here is known to
/// this rank alone: a collective access continues without its data ([`Job::refused`]).
pub fn prepare(mpi: &'static Mpi, fh: FileH, how: How, user: User) -> Res<Job> {
    let guard = mpi.lock();
    let open = open_file(&guard.above, fh)?;
    let buf = guard.above.buf(user.addr, user.count, user.datatype)?;
    let of = Kept::of(&guard.above, user.datatype)?;
    drop(guard);
    let data = Data {
        buf,
        addr: user.addr,
        count: user.count as u64,
        handle: user.datatype,
        of,
    };
    open.check_direction(how.writes)?;
    match how.place {
        AccessStart::At(_) => open.check_not_sequential("explicit offsets")?,
        AccessStart::Pointer => open.check_not_sequential("individual file pointers")?,
        AccessStart::Shared | AccessStart::Ordered => {}
    }
    let seen = open.seen();
    let buf = match how.writes {
        true => seen.representation.to_file(&data)?,
        false => seen.representation.read_buffer(&data)?,
    };
    let etype = seen.view.etype();
    if buf.len() % etype != 0 {
        return fail!(Arg:
            "count elements of datatype have {} bytes in the file, which is not a multiple of the {etype} bytes of the view's elementary type", buf.len());
    }
    if how.writes {
        seen.check_shows(buf.len())?;
    }
    let mut cursor = open.cursor();
    let begin = match how.place {
        AccessStart::At(offset) => Begin::Data(offset_in_data(offset, etype)?),
        AccessStart::Pointer => Begin::Data(cursor.pointer),
        AccessStart::Shared => Begin::Shared,
        AccessStart::Ordered => Begin::Ordered,
    };
    if let Begin::Data(at) = begin {
        seen.check_reach(at, buf.len())?;
    }
    if how.place == AccessStart::Pointer {
        cursor.pointer = cursor.pointer.saturating_add(buf.len());
    }
    let (hints, atomic) = (cursor.hints.clone(), cursor.atomic);
    drop(cursor);
    Ok(Job {
        mpi,
        open,
        seen,
        hints,
        atomic,
        how,
        begin,
        data,
        buf,
    })
}

/// Converts an offset in elementary types to bytes of the view's data.
pub fn offset_in_data(offset: i64, etype: u64) -> Res<u64> {
    let at = u64::try_from(offset).map_err(|_| {
        Fault::new(
            Class::Arg,
            format!("offset is {offset}, but must not be negative"),
        )
    })?;
    match at.checked_mul(etype).filter(|&at| at <= i64::MAX as u64) {
        Some(at) => Ok(at),
        None => fail!(Arg: "offset is {offset}, which exceeds the largest file offset"),
    }
}

impl Seen {
    /// Refuses to write data if a file type without data has no places for them.
    fn check_shows(&self, len: u64) -> Res {
        if len == 0 || !self.view.is_empty() {
            return Ok(());
        }
        fail!(Arg: "{len} B have no place in the file: the view's file type has no data")
    }

    /// Refuses data that end beyond the largest size of a file.
    pub fn check_reach(&self, at: u64, len: u64) -> Res {
        let end = at.checked_add(len).filter(|&end| end <= i64::MAX as u64);
        if end.is_some_and(|end| len == 0 || self.view.fits(end)) {
            return Ok(());
        }
        fail!(Arg: "{len} B from byte {at} of the view's data on exceed the largest file size")
    }
}

impl Job {
    /// Whether all ranks take part.
    pub fn is_collective(&self) -> bool {
        self.how.collective
    }

    /// The open file.
    pub fn open(&self) -> &Arc<Open> {
        &self.open
    }

    /// Accesses the file. Returns the bytes of data in memory that were moved.
    pub fn run(&self) -> Res<u64> {
        match self.how.collective {
            false => self.run_alone(),
            true => self.run_together(),
        }
    }

    /// Bytes of data in memory that correspond to `moved` bytes in the file, and are converted
    /// after a read.
    fn in_memory(&self, moved: u64) -> Res<u64> {
        match self.how.writes {
            true if self.seen.representation.is_native() => Ok(moved),
            true => Ok(match moved == self.buf.len() {
                true => self.data.buf.len(),
                false => moved.min(self.data.buf.len()),
            }),
            false => self
                .seen
                .representation
                .from_file(&self.buf, moved, &self.data),
        }
    }

    fn run_alone(&self) -> Res<u64> {
        let at = match self.begin {
            Begin::Data(at) => at,
            Begin::Shared | Begin::Ordered => self.at_shared()?,
        };
        let done = self.atomically(|| self.visibly(at, || Ok(self.move_data(at))))?;
        self.count(&done, false);
        self.finish(done)
    }

    /// Moves the shared file pointer by this access. Returns its old value. The pointer stays
    /// unchanged if the data would end beyond the largest size of a file.
    fn at_shared(&self) -> Res<u64> {
        let (len, mpi) = (self.buf.len(), self.mpi);
        let at = match self.seen.capacity().checked_sub(len) {
            Some(highest) => self.open.shared.fetch_add(mpi, len, highest)?,
            None => self.open.shared.get(mpi)?,
        };
        self.seen.check_reach(at, len)?;
        Ok(at)
    }

    /// Runs an access that no other rank's atomic access overlaps in time, in atomic mode.
    fn atomically(&self, access: impl FnOnce() -> Res<Done>) -> Res<Done> {
        if !self.atomic {
            return access();
        }
        self.open.shared.lock(self.mpi)?;
        let done = access();
        self.open.shared.unlock(self.mpi)?;
        done
    }

    /// Runs an access in atomic mode that sees what other ranks have written, and whose data they
    /// see.
    fn visibly(&self, at: u64, access: impl FnOnce() -> Res<Done>) -> Res<Done> {
        if !self.atomic || !self.open.host_caches {
            return access();
        }
        let (storage, writes) = (&self.open.storage, self.how.writes);
        let before = if writes { Ok(()) } else { storage.refresh() };
        let mut done = access()?;
        let after = if writes { storage.sync() } else { Ok(()) };
        if let (None, Err(error)) = (&done.trouble, before.and(after)) {
            let (at, len) = (self.seen.view.offset_of(at), self.buf.len());
            done.trouble = Some(Trouble {
                writes,
                at,
                len,
                error,
            });
        }
        Ok(done)
    }

    fn move_data(&self, at: u64) -> Done {
        let (storage, view) = (&*self.open.storage, &self.seen.view);
        let begun = Instant::now();
        let mut done = match self.how.writes {
            true => transfer::write(storage, view, at, &self.buf),
            false => {
                let sieve = self.open.sieve(&self.hints);
                transfer::read(storage, view, at, &self.buf, sieve, &self.open.scratch)
            }
        };
        done.took = begun.elapsed().as_nanos() as u64;
        let costs = self.open.costs(self.how.writes);
        match done.passed > done.bytes && done.passed >= SIEVED {
            true => costs.learn_sieved(done.passed, done.took),
            false => costs.learn(done.calls, done.passed, done.took),
        }
        done
    }

    /// Adds to this rank's counters.
    fn count(&self, done: &Done, exchanged: bool) {
        let mut guard = self.mpi.lock();
        let Some(engine) = &mut guard.engine else {
            return;
        };
        let data = match self.how.writes {
            true => Counter::FileWriteBytes,
            false => Counter::FileReadBytes,
        };
        let pieces = self.seen.view.pieces_of(self.buf.len());
        for (counter, more) in [
            (data, done.bytes),
            (Counter::FileCalls, done.calls),
            (Counter::FilePieces, pieces),
            (Counter::FileTime, done.took),
            (Counter::FileForOthers, done.for_others),
            (Counter::FileExchanges, u64::from(exchanged)),
        ] {
            engine.messages.count(counter, more);
        }
    }

    fn finish(&self, done: Done) -> Res<u64> {
        match done.trouble {
            None => self.in_memory(done.bytes),
            Some(trouble) => Err(access_failed(
                self.open.ranks.rank,
                &self.open.path,
                &trouble,
            )),
        }
    }

    fn run_together(&self) -> Res<u64> {
        let begun = Instant::now();
        let talk = self.open.ranks.with(self.mpi);
        let (at, mut end) = match self.begin {
            Begin::Data(at) => (at, Ok(())),
            Begin::Shared | Begin::Ordered => {
                let turn = Turn {
                    len: self.buf.len(),
                    capacity: self.seen.capacity(),
                };
                let at = in_order(self.mpi, &self.open, &talk, turn)?;
                (at, self.seen.check_reach(at, self.buf.len()))
            }
        };
        let access = Access {
            storage: &*self.open.storage,
            view: &self.seen.view,
            data: at,
            buf: &self.buf,
            writes: self.how.writes,
            sieve: self
                .open
                .sieve(&self.hints)
                .unwrap_or(transfer::Sieve { buffer: 0, gap: 0 }),
            scratch: &self.open.scratch,
        };
        let mine = match end {
            Ok(()) => access.request(self.open.costs(self.how.writes).now()),
            Err(_) => Request::failed(),
        };
        let mut all = exchange::gather(&talk, mine)?;
        let who = collective::aggregators(&self.open.hosts, self.open.each, &self.hints);
        if !self.atomic && self.call(&all, &who).wants_probe() {
            if mine.bytes != 0 {
                self.probe(at);
            }
            let cost = self.open.costs(self.how.writes).now();
            all = exchange::gather(&talk, Request { cost, ..mine })?;
        }
        let call = self.call(&all, &who);
        let decision = call.decide();
        let exchanged = matches!(decision, Decision::Exchange(_));
        let done = match decision {
            Decision::Nothing => Done::default(),
            Decision::Independent => {
                let costs = self.open.costs(self.how.writes);
                costs.doubt_exchange(call.usual_exchange());
                self.atomically(|| self.visibly(at, || Ok(self.move_data(at))))
                    .unwrap_or_else(|fault| {
                        end = Err(fault);
                        Done::default()
                    })
            }
            Decision::Exchange(domains) => {
                let begun = Instant::now();
                let done =
                    self.visibly(at, || exchange::exchange(&talk, &access, &all, &domains))?;
                let costs = self.open.costs(self.how.writes);
                costs.doubt_own();
                if let Some(measured) = call.measured_exchange(begun.elapsed().as_nanos() as u64) {
                    costs.learn_exchange(measured, call.usual_exchange());
                }
                done
            }
        };
        self.count(&done, exchanged);
        let accessed = done.took;
        // Every rank gets the error of one that failed.
        let heard = talk.all_or_none(end.and_then(|()| self.finish(done)));
        let all = begun.elapsed().as_nanos() as u64;
        if let Some(engine) = &mut self.mpi.lock().engine {
            let rest = all.saturating_sub(accessed);
            engine.messages.count(Counter::FileExchangeTime, rest);
        }
        heard
    }

    /// This access as all ranks see it.
    fn call<'a>(&'a self, requests: &'a [Request], aggregators: &'a [u32]) -> Call<'a> {
        Call {
            requests,
            aggregators,
            hints: &self.hints,
            prices: &self.open.prices,
            writes: self.how.writes,
        }
    }

    /// Accesses the first pieces, at the same time as the other ranks, to measure the cost of a
    /// call. The access itself follows, and reports any errors of the file.
    fn probe(&self, at: u64) {
        let (storage, view) = (&*self.open.storage, &self.seen.view);
        let each = (self.buf.len() / view.pieces_of(self.buf.len()).max(1)).max(1);
        let count = PROBED
            .min(SIEVED / each)
            .clamp(1, self.buf.len().div_ceil(each));
        let one = |i: u64| {
            let len = each.min(self.buf.len() - i * each);
            let (at, part) = (at + i * each, self.buf.slice(i * each, len));
            let begun = Instant::now();
            let done = match self.how.writes {
                true => transfer::write(storage, view, at, &part),
                false => transfer::read(storage, view, at, &part, None, &self.open.scratch),
            };
            begun.elapsed().as_nanos() as u64 / done.calls.max(1)
        };
        // A rank that had to wait for its processor took much longer for one of them.
        let mut took: Vec<u64> = (0..count).map(one).collect();
        took.sort_unstable();
        let costs = self.open.costs(self.how.writes);
        costs.learn_typical(each, took[took.len() / 2]);
    }
}

/// Part of one rank in an ordered access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Turn {
    /// Its bytes.
    len: u64,
    /// Bytes of the view's data that a file can hold; [`REFUSED`] for a rank that accesses nothing
    /// because its arguments are wrong.
    capacity: u64,
}

/// More than any view holds.
const REFUSED: u64 = u64::MAX;
/// Bytes of an encoded [`Turn`].
const TURN_LEN: usize = 16;

impl Turn {
    fn encode(self) -> [u8; TURN_LEN] {
        let both = u128::from(self.len) | u128::from(self.capacity) << 64;
        both.to_le_bytes()
    }

    fn decode(bytes: &[u8]) -> Turn {
        let both = u128::from_le_bytes(bytes.try_into().expect("a turn"));
        Turn {
            len: both as u64,
            capacity: (both >> 64) as u64,
        }
    }
}

/// Bytes of all ranks in an ordered access, and the highest position of the shared file pointer at
/// which they fit; `None` if a rank was refused or they fit nowhere.
fn sum_of(turns: impl Iterator<Item = Turn>) -> Option<(u64, u64)> {
    let (mut total, mut highest) = (0u64, u64::MAX);
    for Turn { len, capacity } in turns {
        total = total.checked_add(len)?;
        match (len, capacity) {
            (_, REFUSED) => return None,
            (0, _) => {}
            _ => highest = highest.min(capacity.checked_sub(total)?),
        }
    }
    Some((total, highest))
}

/// Moves the shared file pointer by the bytes of all ranks. Returns where those of this rank begin:
/// after those of lower ranks. The pointer stays unchanged if a rank was refused or the data would
/// end beyond the largest size of a file: then the access fails on all ranks.
fn in_order(mpi: &Mpi, open: &Open, talk: &Talk<'_>, mine: Turn) -> Res<u64> {
    let turns = |all: &[u8]| -> Vec<Turn> {
        let turns = all.chunks_exact(TURN_LEN);
        turns.map(Turn::decode).collect()
    };
    let (all, first) = talk.members().allgather_and(&mine.encode(), |all| {
        let first = match sum_of(turns(all).into_iter()) {
            Some((total, highest)) => open.shared.fetch_add(mpi, total, highest),
            None => open.shared.get(mpi),
        };
        first.map(u64::to_le_bytes)
    })?;
    let first = u64::from_le_bytes(first);
    let before = &turns(&all)[..talk.rank() as usize];
    let before = before.iter().map(|turn| turn.len);
    Ok(before.fold(first, u64::saturating_add))
}

/// Makes a rank with wrong arguments take part in a collective access without data, so that no
/// other rank waits for it; all get the fault. The caller has waited for the earlier collective
/// accesses.
pub fn refuse(mpi: &'static Mpi, open: &Open, how: How, fault: Box<Fault>) -> Box<Fault> {
    let talk = open.ranks.with(mpi);
    let took_part = || -> Res<u64> {
        if how.place == AccessStart::Ordered {
            let turn = Turn {
                len: 0,
                capacity: REFUSED,
            };
            in_order(mpi, open, &talk, turn)?;
        }
        exchange::gather(&talk, Request::failed())?;
        talk.all_or_none(Err(fault))
    };
    match took_part() {
        Err(fault) => fault,
        Ok(_) => Fault::new(Class::Intern, "a refused access went on"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(turns: &[(u64, u64)]) -> Option<(u64, u64)> {
        let turns = turns.iter().map(|&(len, capacity)| Turn { len, capacity });
        sum_of(turns.map(|turn| Turn::decode(&turn.encode())))
    }

    #[test]
    fn an_ordered_access_that_a_rank_refuses_or_that_fits_nowhere_moves_no_pointer() {
        assert_eq!(sum(&[(3, 10), (0, 10), (4, 10)]), Some((7, 3)));
        assert_eq!(
            sum(&[(3, 10), (4, 8)]),
            Some((7, 1)),
            "each rank's own view"
        );
        assert_eq!(
            sum(&[(3, 10), (0, 1)]),
            Some((3, 7)),
            "no data fit anywhere"
        );
        assert_eq!(sum(&[(3, 10), (8, 10)]), None);
        assert_eq!(sum(&[(3, 10), (0, REFUSED)]), None);
        assert_eq!(sum(&[(u64::MAX, 10), (1, 10)]), None);
    }
}
