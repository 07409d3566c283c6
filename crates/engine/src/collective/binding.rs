//! Memory of plans on a shm region: locations of their slices, and the bytes and flags on which the
//! executor acts.

use super::channel::{Channel, ChannelId, Channels, Part, ShmRegionUse, Watch};
use super::memory::Memory;
use super::run::Run;
use super::signature::Signature;
use super::user::Combining;
use kw_coll::executor::{self, AreaOffset, Flags, Need, Next, Resolver, Wait, bind};
use kw_coll::{SHM_BUFFERS, ShmBuffer, Slice, TEMPS};
use kw_path::shm::region::ShmRegion;
use kw_sys::buf::Addr;
use kw_sys::reduce::Kernel;
use kw_sys::region::Region;

/// Areas 0 and 1 are the caller's buffers.
const BUFFERS: u32 = 2;
/// The lines of all ranks.
const LINE_AREA: u32 = 2;
/// All short shm buffers, or the rings.
const SHM_BUFFER_AREA: u32 = 3;

/// Locations of the slices of one plan.
struct Rows<'a> {
    channel: &'a Channel,
    region_use: &'a ShmRegionUse,
    buffers: &'a [Memory],
    combines: bool,
    long: u64,
}

impl Rows<'_> {
    /// A slice of a shm buffer.
    fn shm_buffer(&self, slice: Slice) -> Option<(AreaOffset, u64)> {
        let (region_use, shm_region) = (self.region_use, &self.channel.shm_region);
        let rank = slice.buf - SHM_BUFFERS;
        self.channel.member(rank)?;
        let (place, bytes) = (self.channel.place_of(rank), slice.len * region_use.unit);
        let (area, by) = match region_use.part(slice) {
            Part::Line(at) => (LINE_AREA, shm_region.to_line(place) + at),
            Part::Area(at) if at as u64 + bytes > region_use.room() => return None,
            Part::Area(at) if region_use.shm_buffer == ShmBuffer::Long => {
                (SHM_BUFFER_AREA, shm_region.to_long(place) + at)
            }
            Part::Area(at) => (SHM_BUFFER_AREA, shm_region.to(region_use.areas, place) + at),
        };
        let by = u32::try_from(by).ok()?;
        Some((AreaOffset { area, by }, bytes))
    }
}

impl Resolver for Rows<'_> {
    fn row(&self, slice: Slice) -> Option<(AreaOffset, u64)> {
        match slice.buf {
            TEMPS.. => None,
            SHM_BUFFERS.. => self.shm_buffer(slice),
            BUFFERS.. => None,
            area => {
                let (_, size) = self.buffers.get(area as usize)?.plain()?;
                let by = u64::try_from(slice.at).ok()?.checked_mul(size)?;
                let by = u32::try_from(by).ok()?;
                Some((AreaOffset { area, by }, slice.len * size))
            }
        }
    }

    fn combines(&self) -> bool {
        self.combines
    }

    fn long(&self) -> u64 {
        self.long
    }

    fn member(&self, rank: u32) -> Option<u32> {
        self.channel.member(rank)
    }
}

/// Resolves a plan's ops. `long`: copies of this length and more are not for the executor.
pub(super) fn bind_on(channels: &mut Channels, run: &mut Run, long: u64) {
    let channel = run
        .region_use
        .as_ref()
        .and_then(|b| channels.get(b.channel));
    let Some(work) = run.work.as_deref() else {
        return;
    };
    let (Some(channel), Some(region_use)) = (channel, &run.region_use) else {
        return;
    };
    let rows = Rows {
        channel,
        region_use,
        buffers: &work.memory.user,
        combines: matches!(run.combining, Some(Combining::Kernel(_))),
        long,
    };
    bind(&work.schedule, &rows, &mut run.ops);
}

/// The flags of a shm region.
struct ShmRegionFlags<'a> {
    shm_region: &'a ShmRegion,
    places: &'a [u32],
}

impl Flags for ShmRegionFlags<'_> {
    #[inline(always)]
    fn word(&mut self, member: u32, number: u64) -> u64 {
        self.shm_region.word(self.places[member as usize], number)
    }

    #[inline(always)]
    fn flag(&mut self, member: u32, number: u64) -> (u64, u64) {
        self.shm_region.flag(self.places[member as usize], number)
    }

    #[inline(always)]
    fn raise(&mut self, number: u64, stage: u32, signature: u64) {
        self.shm_region.raise(number, stage, signature);
    }
}

/// The flags, and the areas that a plan's ops touch.
struct ShmRegionContext<'a> {
    flags: ShmRegionFlags<'a>,
    /// Start addresses of the caller's buffers.
    buffers: &'a [Addr; 2],
    lines: Region<'a>,
    shm_buffers: Region<'a>,
    combining: &'a Option<Combining>,
}

impl<'a> ShmRegionContext<'a> {
    #[inline(always)]
    fn at(&self, offset: AreaOffset, len: u32) -> Region<'a> {
        let (by, len) = (offset.by as u64, len as u64);
        match self.buffers.get(offset.area as usize) {
            Some(buffer) => Region::assume_lent(buffer.assume_offset(by as i64), len),
            None if offset.area == LINE_AREA => self.lines.part(by, len),
            None => self.shm_buffers.part(by, len),
        }
    }
}

impl<'a> executor::ExecContext for ShmRegionContext<'a> {
    type Flags = ShmRegionFlags<'a>;

    #[inline(always)]
    fn flags(&mut self) -> &mut ShmRegionFlags<'a> {
        &mut self.flags
    }

    #[inline(always)]
    fn copy(&mut self, from: AreaOffset, to: AreaOffset, len: u32) {
        self.at(from, len).copy_to(self.at(to, len));
    }

    #[inline(always)]
    fn reduce(&mut self, left: AreaOffset, right: AreaOffset, len: u32) {
        if let Some(Combining::Kernel(kernel)) = self.combining {
            kernel.run(self.at(left, len), self.at(right, len));
        }
    }

    #[inline(always)]
    fn combine(&mut self, left: AreaOffset, right: AreaOffset, into: AreaOffset, len: u32) {
        if let Some(Combining::Kernel(kernel)) = self.combining {
            kernel.run_into(self.at(left, len), self.at(right, len), self.at(into, len));
        }
    }
}

impl Channels {
    /// Continues a run as far as the executor can.
    #[inline(always)]
    pub(super) fn go_on(&mut self, run: &mut Run) -> Next {
        let channel = run.region_use.as_ref().and_then(|b| self.get(b.channel));
        let Some(channel) = channel else {
            return run.progress.next_step(run.steps().len() as u32);
        };
        channel.go_on(run)
    }

    /// Runs a run whose ops are all the executor's, to its end if it can; otherwise returns the
    /// condition for which it waits.
    #[inline(always)]
    pub(super) fn run(&mut self, run: &mut Run) -> Option<Watch> {
        let id = run.region_use.as_ref()?.channel;
        let channel = self.get(id)?;
        if let Next::Wait(wait) = channel.go_on(run) {
            return Some(Watch::new(id, wait));
        }
        let ended = (channel.end(run), channel.leaving);
        self.ended(id, ended);
        None
    }

    /// A run has ended, with or without success; the next one's turn has come.
    pub(super) fn end(&mut self, run: &mut Run) {
        let Some(id) = run.region_use.as_ref().map(|b| b.channel) else {
            return;
        };
        let Some(channel) = self.get(id) else { return };
        let ended = (channel.end(run), channel.leaving);
        self.ended(id, ended);
    }

    /// A run has ended. `more`: another one waits for its turn. `leaving`: its communicator is
    /// gone.
    #[inline(always)]
    fn ended(&mut self, id: ChannelId, (more, leaving): (bool, bool)) {
        self.turned |= more;
        if leaving && !more {
            self.drop(id);
        }
    }
}

impl Channel {
    /// Another rank of the shm region is in another call than this one.
    #[cold]
    fn contradicted(&self, run: &mut Run) {
        let me = run.comm_view.as_ref().map_or(0, |c| c.rank);
        if let Some((member, theirs)) = run.progress.odd.take() {
            let mine = Signature(run.progress.signature);
            run.fail(mine.failure(me, self.rank_of(member), Signature(theirs)));
        }
    }

    #[inline(always)]
    fn go_on(&mut self, run: &mut Run) -> Next {
        let Some(region_use) = &run.region_use else {
            return Next::End;
        };
        let (shm_region, at_work) = (&self.shm_region, &run.progress.place);
        let shm_buffers = match region_use.shm_buffer {
            ShmBuffer::Long => shm_region.all_long(at_work.at, region_use.long),
            _ if region_use.need == Need::Lines => Region::EMPTY,
            _ => shm_region.all(region_use.areas, at_work.number),
        };
        let flags = ShmRegionFlags {
            shm_region,
            places: &self.places,
        };
        let mut context = ShmRegionContext {
            flags,
            buffers: &run.bases,
            lines: shm_region.all_lines(at_work.number),
            shm_buffers,
            combining: &run.combining,
        };
        let (ops, flow) = (&run.ops, &mut self.flow);
        let only_here = run.work.as_ref().is_none_or(|w| w.schedule.slots == 0);
        let next = run.progress.go_on(ops, only_here, flow, &mut context);
        if run.progress.odd.is_some() {
            self.contradicted(run);
        }
        next
    }

    /// Whether what a run waits for has come.
    #[inline]
    pub(super) fn has_come(&self, wait: Wait) -> bool {
        let mut flags = ShmRegionFlags {
            shm_region: &self.shm_region,
            places: &self.places,
        };
        self.flow.has_come(wait, &mut flags)
    }

    /// Returns whether another run waits for its turn.
    #[inline(always)]
    fn end(&mut self, run: &mut Run) -> bool {
        let mut flags = ShmRegionFlags {
            shm_region: &self.shm_region,
            places: &self.places,
        };
        run.progress.end(&mut self.flow, &mut flags)
    }
}

impl Run {
    /// The library's loop that combines its elements.
    #[inline]
    pub(super) fn kernel(&self) -> Option<Kernel> {
        match self.combining {
            Some(Combining::Kernel(kernel)) => Some(kernel),
            _ => None,
        }
    }
}
