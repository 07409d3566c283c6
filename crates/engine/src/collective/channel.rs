//! The memory that the ranks of a node share for one communicator's collectives, as this rank's
//! engine holds it.
//!
//! A *channel* is this rank's side of one communicator's shm region: the shm region's memory and
//! flags, and the rule for their use ([`FlowControl`]), which is pure and tested by itself. The
//! actions of a plan there are in `binding`.

use super::run::Run;
use crate::messages::Messages;
use kw_base::shm_region::SHORT;
use kw_coll::executor::{Capacity, FlowControl, Need, Reservation, STAGE_BITS, Wait};
use kw_coll::{FLAG_LINE_BYTES, SHM_BUFFERS, Schedule, ShmBuffer, ShmSizes, Slice, front};
use kw_path::shm::region::{self, Areas, LINE, LINES, SLOTS, ShmRegion};
use kw_sys::region::Region;
use kw_types::comm::Group;

const _: () = assert!(LINE as u64 == FLAG_LINE_BYTES && STAGE_BITS == region::STAGE_BITS);

/// Names a channel of this rank's engine, and with it the shm region that a communicator has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelId(u32);

/// Condition on a shm region for which a run waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    pub(super) channel: ChannelId,
    pub(super) wait: Wait,
    /// Other ranks wait for answers to messages meanwhile.
    serves: bool,
}

impl Watch {
    pub(super) fn new(channel: ChannelId, wait: Wait) -> Watch {
        Watch {
            channel,
            wait,
            serves: false,
        }
    }

    /// The same condition, with whether others wait for answers to messages of this rank meanwhile.
    pub fn serving(self, serves: bool) -> Watch {
        Watch { serves, ..self }
    }

    /// Whether all paths are polled for it each time, because not only the shm region matters: it
    /// is a turn, which comes when another collective of this rank ends, or this rank serves
    /// others.
    #[inline]
    pub(crate) fn is_turn(self) -> bool {
        self.serves || matches!(self.wait, Wait::Turn(_))
    }
}

/// A plan's use of a shm region, except the positions that its successive runs have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShmRegionUse {
    pub(super) channel: ChannelId,
    pub(super) need: Need,
    pub(super) shm_buffer: ShmBuffer,
    /// Location of its short shm buffers.
    pub(super) areas: Areas,
    /// Bytes of a long shm buffer.
    pub(super) long: u64,
    /// Bytes of a unit.
    pub(super) unit: u64,
}

/// The two parts of a shm buffer, with the bytes from the beginning.
pub(super) enum Part {
    /// The bytes beside the word.
    Line(i64),
    /// The short area, or the part of the ring.
    Area(i64),
}

impl ShmRegionUse {
    /// Location of a slice of a shm buffer.
    #[inline]
    pub(super) fn part(&self, slice: Slice) -> Part {
        let unit = self.unit;
        let (at, front) = (slice.at as u64 * unit, front(unit) * unit);
        if at >= front {
            return Part::Area((at - front) as i64);
        }
        debug_assert!(
            at + slice.len * unit <= FLAG_LINE_BYTES,
            "{slice:?} begins in a line and ends outside"
        );
        Part::Line(at as i64)
    }

    /// Bytes of a shm buffer beyond its line.
    pub(super) fn room(&self) -> u64 {
        match self.shm_buffer {
            ShmBuffer::Long => self.long,
            _ => self.areas.len as u64,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(super) shm_region: ShmRegion,
    /// By rank of the communicator: which member of this node it is; `STRANGER` for ranks of other
    /// nodes.
    members: Box<[u32]>,
    /// Place on the host of each member.
    pub(super) places: Box<[u32]>,
    pub(super) flow: FlowControl,
    /// This rank sleeps because of the shm region.
    watching: bool,
    /// The communicator is gone; the shm region goes with its last collective.
    pub(super) leaving: bool,
}

const STRANGER: u32 = u32::MAX;

impl Channel {
    /// Makes a channel. `places`: for every rank of the communicator its place on this host, if it
    /// is on this host.
    pub(crate) fn new(shm_region: ShmRegion, places: impl Iterator<Item = Option<u32>>) -> Channel {
        let mut here = Vec::new();
        let members = places
            .map(|place| {
                place.map_or(STRANGER, |p| {
                    here.push(p);
                    here.len() as u32 - 1
                })
            })
            .collect();
        let own = here.iter().position(|&p| p == shm_region.me());
        let own = own.expect("a rank has a channel only where it is a member");
        let capacity = Capacity {
            lines: LINES,
            slots: SLOTS,
            ring: shm_region.reach(),
            working_set: shm_region.working_set(),
        };
        Channel {
            flow: FlowControl::new(own as u32, here.len() as u32, capacity),
            shm_region,
            members,
            places: here.into(),
            watching: false,
            leaving: false,
        }
    }

    /// A schedule's use of it, if any; `unit`: bytes per unit of the shm buffers.
    fn region_use(
        &self,
        channel: ChannelId,
        schedule: &Schedule,
        unit: u64,
    ) -> Option<ShmRegionUse> {
        Some(ShmRegionUse {
            channel,
            need: schedule.need(unit)?,
            shm_buffer: schedule.shm_buffer,
            areas: self.shm_region.areas(schedule.short * unit),
            long: schedule.long * unit,
            unit,
        })
    }

    /// Member of the node that a rank of the communicator is.
    pub(super) fn member(&self, rank: u32) -> Option<u32> {
        let member = self.members.get(rank as usize).copied();
        member.filter(|&m| m != STRANGER)
    }

    /// The rank of the communicator that a member is.
    pub(super) fn rank_of(&self, member: u32) -> u32 {
        let rank = self.members.iter().position(|&m| m == member);
        rank.unwrap_or_default() as u32
    }

    /// Place of a rank of this node.
    #[inline]
    pub(super) fn place_of(&self, rank: u32) -> u32 {
        self.places[self.members[rank as usize] as usize]
    }

    /// A slice of a shm buffer.
    #[inline]
    fn shm_buffer(
        &self,
        region_use: &ShmRegionUse,
        at_work: &Reservation,
        slice: Slice,
    ) -> Region<'_> {
        let place = self.place_of(slice.buf - SHM_BUFFERS);
        let (region, at) = match (region_use.part(slice), region_use.shm_buffer) {
            (Part::Line(at), _) => (self.shm_region.beside(place, at_work.number), at),
            (Part::Area(at), ShmBuffer::Long) => {
                (self.shm_region.long(place, at_work.at, region_use.long), at)
            }
            (Part::Area(at), _) => (
                self.shm_region
                    .area(region_use.areas, place, at_work.number),
                at,
            ),
        };
        region.part(at as u64, slice.len * region_use.unit)
    }
}

/// All channels of one engine.
#[derive(Debug, Default)]
pub struct Channels {
    channels: Vec<Option<Box<Channel>>>,
    /// Channels for which this rank sleeps.
    watched: Vec<ChannelId>,
    /// Some collective has ended, so the next one's turn has come.
    pub(super) turned: bool,
}

impl Channels {
    /// This rank's side of a shm region that was claimed for a communicator of these processes.
    pub fn open(
        &mut self,
        messages: &mut Messages,
        number: u32,
        members: &Group,
    ) -> Option<ChannelId> {
        let shm_region = messages.shm_regions()?.open(number);
        let places = members.iter().map(|peer| messages.paths.place(peer));
        Some(self.add(Channel::new(shm_region, places)))
    }

    /// Adds a channel.
    fn add(&mut self, channel: Channel) -> ChannelId {
        let free = self.channels.iter().position(|c| c.is_none());
        let at = free.unwrap_or_else(|| {
            self.channels.push(None);
            self.channels.len() - 1
        });
        self.channels[at] = Some(Box::new(channel));
        ChannelId(at as u32)
    }

    /// The communicator is gone; its shm region goes with the last collective on it.
    pub fn leave(&mut self, id: ChannelId) {
        let Some(channel) = self.get(id) else { return };
        channel.leaving = true;
        if channel.flow.is_idle() {
            self.drop(id);
        }
    }

    #[cold]
    pub(super) fn drop(&mut self, id: ChannelId) {
        if let Some(channel) = self.channels[id.0 as usize].take() {
            let Channel {
                shm_region,
                places,
                flow,
                ..
            } = *channel;
            shm_region.leave(&places, flow.last());
        }
    }

    #[inline]
    pub(super) fn get(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.channels.get_mut(id.0 as usize)?.as_deref_mut()
    }

    #[inline]
    fn see(&self, id: ChannelId) -> Option<&Channel> {
        self.channels.get(id.0 as usize)?.as_deref()
    }

    /// Properties of a shm region for algorithms. They may use at most this much of the rings, so
    /// that the next collective need not wait.
    #[inline]
    pub(super) fn view(&mut self, id: ChannelId, unit: u64) -> Option<ShmSizes> {
        Some(ShmSizes {
            short: SHORT as u64 + FLAG_LINE_BYTES,
            long: self.get(id)?.flow.most() + FLAG_LINE_BYTES,
            unit,
        })
    }

    /// A schedule's use of a shm region, if any.
    pub(super) fn region_use(
        &self,
        id: ChannelId,
        schedule: &Schedule,
        unit: u64,
    ) -> Option<ShmRegionUse> {
        self.see(id)?.region_use(id, schedule, unit)
    }

    /// A run of a plan begins: it has the next place on the shm region, if it uses one.
    #[inline(always)]
    pub(super) fn enter(&mut self, run: &mut Run) {
        let place = match &run.region_use {
            Some(region_use) => match self.get(region_use.channel) {
                Some(channel) => channel.flow.reserve(region_use.need),
                None => Reservation::NONE,
            },
            None => Reservation::NONE,
        };
        run.begin(place);
    }

    /// The first collective of a shm region, and so far its only one, is not run after all.
    pub(super) fn take_back(&mut self, region_use: &ShmRegionUse, place: &Reservation) {
        if let Some(channel) = self.get(region_use.channel) {
            channel.flow.take_back(place);
        }
    }

    /// A slice of a shm buffer.
    #[inline]
    pub(super) fn shm_buffer(
        &self,
        region_use: &ShmRegionUse,
        at_work: &Reservation,
        slice: Slice,
    ) -> Option<Region<'_>> {
        Some(
            self.see(region_use.channel)?
                .shm_buffer(region_use, at_work, slice),
        )
    }

    /// Whether what a run waits for has come.
    #[inline]
    pub fn reached(&self, watch: Watch) -> bool {
        self.see(watch.channel)
            .is_none_or(|c| c.has_come(watch.wait))
    }

    /// Place on the host of the rank that a run waits for.
    #[cold]
    pub(crate) fn place_of(&self, watch: Watch) -> Option<u32> {
        let Wait::Flag { member, .. } = watch.wait else {
            return None;
        };
        self.see(watch.channel)?
            .places
            .get(member as usize)
            .copied()
    }

    /// This rank is about to sleep until then, among other things.
    pub(crate) fn sleep_for(&mut self, watch: Watch) {
        let Wait::Flag { member, .. } = watch.wait else {
            return;
        };
        if let Some(channel) = self.get(watch.channel)
            && !channel.watching
        {
            channel.watching = true;
            channel.shm_region.watch(channel.places[member as usize]);
            self.watched.push(watch.channel);
        }
    }

    /// This rank is awake.
    pub(crate) fn awake(&mut self) {
        while let Some(id) = self.watched.pop() {
            if let Some(channel) = self.get(id)
                && std::mem::take(&mut channel.watching)
            {
                channel.shm_region.watch_nobody();
            }
        }
    }
}
