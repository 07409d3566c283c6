//! The origin's side: frames that have not been sent yet, for each target, and when they may be.
//!
//! Frames wait until the caller takes them, so that an epoch of short operations is one message.
//! They wait longer while their target has not posted ([`Frame::Post`]), or when [`AHEAD`] bytes
//! are under way and nothing shows that the target applies them.

use super::by_rank::ByRank;
use super::{Frame, LockMode, Operation, TargetLocation};

/// Bytes that are sent to a target before it is known to apply them.
pub const AHEAD: u64 = 64 << 10;

/// The frame that precedes an epoch's first operation on a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochStart {
    /// A lock.
    Lock(LockMode),
    /// A lock epoch without a lock.
    Unchecked,
    /// A fence epoch.
    Fence(u64),
    /// An epoch that the target posts.
    Start,
}

/// Knowledge about one target.
#[derive(Default, Debug)]
struct TargetState {
    /// Frames that have not been sent.
    out: Vec<u8>,
    /// The epoch, if its first frame has not been written.
    opening: Option<EpochStart>,
    /// The frame that began the last epoch.
    epoch: Option<EpochStart>,
    /// Posts that have come and are not used up.
    posts: u32,
    /// Waits for a post.
    awaits_post: bool,
    /// The target is known to apply its frames.
    known: bool,
    /// Bytes sent since it was last known to.
    ahead: u64,
    /// Operations were issued whose end nothing will report.
    unanswered: bool,
    /// Operations of the fence epoch.
    counted: u64,
}

impl TargetState {
    fn open(&mut self, opening: EpochStart) {
        (self.opening, self.epoch) = (Some(opening), Some(opening));
        (self.known, self.ahead) = (false, 0);
    }

    /// Writes the first frame of an epoch, unless it is written.
    fn begin(&mut self) {
        let Some(opening) = self.opening.take() else {
            return;
        };
        let frame = match opening {
            EpochStart::Lock(mode) => Frame::Lock(mode),
            EpochStart::Unchecked => Frame::Unchecked,
            EpochStart::Fence(number) => Frame::Fence(number),
            EpochStart::Start => Frame::Start,
        };
        frame.encode(&mut self.out);
    }
}

/// See the module.
#[derive(Default, Debug)]
pub struct Origin {
    targets: ByRank<TargetState>,
    /// The frame that begins an epoch on all targets, for targets that were not used in it; and the
    /// number of that epoch.
    all: Option<EpochStart>,
    /// Fences so far.
    fences: u64,
}

impl Origin {
    fn toward(&mut self, rank: u32) -> &mut TargetState {
        let all = self.all;
        self.targets.get_or_make(rank, || TargetState {
            opening: all,
            epoch: all,
            ..TargetState::default()
        })
    }

    /// An epoch on one target begins.
    pub fn open(&mut self, rank: u32, opening: EpochStart) {
        self.toward(rank).open(opening);
    }

    /// An epoch on all targets begins.
    pub fn open_all(&mut self, opening: EpochStart) {
        self.all = Some(opening);
        self.targets.values_mut().for_each(|t| t.open(opening));
    }

    /// The epoch on all targets has ended: targets that it did not use are not told.
    pub fn close_all(&mut self) {
        self.all = None;
        self.targets.values_mut().for_each(|t| t.opening = None);
    }

    /// An epoch on one target has ended; returns whether it had not begun there.
    pub fn close(&mut self, rank: u32) -> bool {
        self.toward(rank).opening.take().is_some()
    }

    /// MPI_Win_start names this target: its frames wait for a post.
    pub fn start(&mut self, rank: u32) {
        let toward = self.toward(rank);
        toward.open(EpochStart::Start);
        match toward.posts.checked_sub(1) {
            Some(left) => toward.posts = left,
            None => toward.awaits_post = true,
        }
    }

    /// A post has come.
    pub fn on_post(&mut self, rank: u32) {
        let toward = self.toward(rank);
        match std::mem::take(&mut toward.awaits_post) {
            true => {}
            false => toward.posts += 1,
        }
    }

    /// The frame that began the last epoch on a target, if it has begun there, and whether the
    /// target is known to apply its frames.
    pub fn epoch(&self, rank: u32) -> Option<(EpochStart, bool)> {
        let toward = self.targets.get(rank)?;
        let epoch = toward.epoch.filter(|_| toward.opening.is_none())?;
        Some((epoch, toward.known))
    }

    /// Whether this target has not posted.
    pub fn awaits_post(&self, rank: u32) -> bool {
        self.targets.get(rank).is_some_and(|t| t.awaits_post)
    }

    /// An operation whose end a reply reports.
    pub fn push_answered(&mut self, rank: u32, op: Operation<'_, TargetLocation>) {
        let toward = self.toward(rank);
        toward.begin();
        toward.counted += 1;
        Frame::Op(op).encode(&mut toward.out);
    }

    /// An operation whose end only a flush or the like can report.
    pub fn push(&mut self, rank: u32, op: Operation<'_, TargetLocation>) {
        self.push_answered(rank, op);
        self.toward(rank).unanswered = true;
    }

    /// A frame that is not an operation.
    pub fn push_control(&mut self, rank: u32, frame: Frame<'_>) {
        let toward = self.toward(rank);
        toward.begin();
        frame.encode(&mut toward.out);
    }

    /// Operations were issued whose end nothing reports; a flush does from now on.
    pub fn take_unanswered(&mut self, rank: u32) -> bool {
        let toward = self.targets.get_mut(rank);
        toward.is_some_and(|t| std::mem::take(&mut t.unanswered))
    }

    /// A fence: returns the operations on each of `size` targets since the last one. The next epoch
    /// begins if the fence `succeeds`.
    pub fn fence(&mut self, size: u32, succeeds: bool) -> Vec<u64> {
        self.fences += 1;
        let mut counts = vec![0; size as usize];
        for (rank, toward) in self.targets.iter_mut() {
            let counted = std::mem::take(&mut toward.counted);
            if let Some(count) = counts.get_mut(rank as usize) {
                *count = counted;
            }
            toward.unanswered = false;
        }
        match succeeds {
            true => self.open_all(EpochStart::Fence(self.fences)),
            false => self.close_all(),
        }
        counts
    }

    /// Operations before now belong to no fence epoch.
    pub fn forget_counts(&mut self) {
        self.targets.values_mut().for_each(|t| t.counted = 0);
    }

    /// Targets on which an epoch has begun.
    pub fn begun(&self) -> Vec<u32> {
        let begun = self.targets.iter().filter(|(_, t)| t.opening.is_none());
        begun.map(|(rank, _)| rank).collect()
    }

    /// Whether frames wait for this target, and enough with those that it is not known to have
    /// applied that it should be asked.
    #[inline]
    pub fn should_ask(&self, rank: u32) -> bool {
        let toward = self.targets.get(rank).filter(|t| !t.out.is_empty());
        toward.is_some_and(|t| {
            let ahead = if t.known { 0 } else { t.ahead };
            ahead + t.out.len() as u64 >= AHEAD / 4
        })
    }

    /// Bytes that wait for this target.
    #[inline]
    pub fn waiting(&self, rank: u32) -> usize {
        self.targets.get(rank).map_or(0, |t| t.out.len())
    }

    /// Targets for which frames wait.
    pub fn targets_waiting(&self) -> Vec<u32> {
        let waiting = self.targets.iter().filter(|(_, t)| !t.out.is_empty());
        waiting.map(|(rank, _)| rank).collect()
    }

    /// Whether the frames of this target must wait until it has answered something.
    pub fn is_far_ahead(&self, rank: u32) -> bool {
        let toward = self.targets.get(rank);
        toward.is_some_and(|t| !t.known && t.ahead != 0 && t.ahead + t.out.len() as u64 > AHEAD)
    }

    /// Takes the frames of a target that may be sent now.
    pub fn take(&mut self, rank: u32) -> Option<Vec<u8>> {
        let far = self.is_far_ahead(rank);
        let toward = self.targets.get_mut(rank)?;
        if toward.out.is_empty() || toward.awaits_post || far {
            return None;
        }
        if !toward.known {
            toward.ahead += toward.out.len() as u64;
        }
        Some(std::mem::take(&mut toward.out))
    }

    /// The memory of frames that were sent, for the next.
    pub fn reuse(&mut self, rank: u32, mut sent: Vec<u8>) {
        let short = sent.capacity() <= 16 << 10;
        let toward = self.targets.get_mut(rank);
        if let Some(toward) = toward.filter(|t| short && t.out.is_empty()) {
            sent.clear();
            toward.out = sent;
        }
    }

    /// The target has answered: the frames sent to it are applied.
    pub fn on_answer(&mut self, rank: u32) {
        let toward = self.toward(rank);
        (toward.known, toward.ahead) = (true, 0);
    }
}
