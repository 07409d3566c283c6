//! The locks of one target: granted in the order of requests.

use super::LockMode;
use std::collections::VecDeque;

/// The holders of the lock of a target, and the ranks that wait for it. A shared request waits
/// behind an earlier exclusive one, so that no request waits forever.
#[derive(Clone, Default, Debug)]
pub struct LockQueue {
    exclusive: Option<u32>,
    shared: Vec<u32>,
    waiting: VecDeque<(u32, LockMode)>,
}

impl LockQueue {
    /// Asks for the lock; returns whether it is granted at once. Otherwise [`LockQueue::release`]
    /// will name this origin.
    pub fn request(&mut self, who: u32, mode: LockMode) -> bool {
        if self.may_have(mode) {
            self.grant(who, mode);
            return true;
        }
        self.waiting.push_back((who, mode));
        false
    }

    /// Whether a request would be granted at once.
    pub fn may_have(&self, mode: LockMode) -> bool {
        self.waiting.is_empty() && self.is_free_for(mode)
    }

    /// Gives the lock back; returns the ranks that have it from now on.
    pub fn release(&mut self, who: u32) -> Vec<u32> {
        if self.exclusive == Some(who) {
            self.exclusive = None;
        } else if let Some(i) = self.shared.iter().position(|&s| s == who) {
            self.shared.swap_remove(i);
        }
        let mut granted = Vec::new();
        while let Some(&(next, mode)) = self.waiting.front() {
            if !self.is_free_for(mode) {
                break;
            }
            self.waiting.pop_front();
            self.grant(next, mode);
            granted.push(next);
        }
        granted
    }

    #[cfg(test)]
    /// Whether this origin holds the lock.
    fn holds(&self, who: u32) -> bool {
        self.exclusive == Some(who) || self.shared.contains(&who)
    }

    /// Whether a rank waits for the lock.
    pub fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The holders of the lock.
    pub fn holders(&self) -> impl Iterator<Item = u32> {
        self.exclusive.iter().chain(&self.shared).copied()
    }

    #[cfg(test)]
    /// Whether no rank holds the lock or waits for it.
    fn is_free(&self) -> bool {
        self.exclusive.is_none() && self.shared.is_empty() && self.waiting.is_empty()
    }

    fn is_free_for(&self, mode: LockMode) -> bool {
        self.exclusive.is_none() && (mode == LockMode::Shared || self.shared.is_empty())
    }

    fn grant(&mut self, who: u32, mode: LockMode) {
        match mode {
            LockMode::Exclusive => self.exclusive = Some(who),
            LockMode::Shared => self.shared.push(who),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode::{Exclusive, Shared};
    use super::*;

    #[test]
    fn locks_are_granted_in_the_order_of_requests() {
        let mut queue = LockQueue::default();
        assert!(queue.request(0, Shared) && queue.request(1, Shared));
        assert!(!queue.request(2, Exclusive));
        assert!(!queue.request(3, Shared), "behind an exclusive request");
        assert!(!queue.request(4, Shared) && !queue.request(5, Exclusive));
        assert_eq!(queue.release(1), []);
        assert_eq!(queue.release(0), [2]);
        assert_eq!(queue.holders().collect::<Vec<_>>(), [2]);
        assert_eq!(queue.release(2), [3, 4]);
        assert_eq!(queue.release(9), [], "no rank's");
        assert_eq!(queue.release(3), []);
        assert_eq!(queue.release(4), [5]);
        assert!(queue.holds(5) && !queue.is_free());
        assert_eq!(queue.release(5), []);
        assert!(queue.is_free());
    }
}
