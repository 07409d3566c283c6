//! Where ranks share CPUs, the others that had this rank's CPU may be ranks of the same host, whose
//! computation it must not take for that of another program. What all of them together have used of
//! the CPUs since an earlier reading bounds what they had during the stretch.

use std::time::Duration;

/// See the module.
#[derive(Debug, Default)]
pub struct HostRanks {
    /// What they had used at the last reading.
    used: Option<Duration>,
}

impl HostRanks {
    /// Others had this rank's CPU for so long, and now the ranks of its host have used `ours`. Returns
    /// whether most of that time certainly went to other programs: not after the first stretch, nor
    /// when the last reading is so old that the ranks may have had it.
    pub fn left_to_others(&mut self, lasted: Duration, ours: Option<Duration>) -> bool {
        let before = std::mem::replace(&mut self.used, ours);
        let since = before
            .zip(ours)
            .and_then(|(before, now)| now.checked_sub(before));
        since.is_some_and(|since| since < lasted / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn computation_of_ranks_is_never_taken_for_that_of_others() {
        let mut ranks = HostRanks::default();
        for used in 1..100 {
            assert!(!ranks.left_to_others(2 * MS, Some(used * MS)));
        }
    }

    #[test]
    fn two_stretches_in_a_row_in_which_the_ranks_wait_belong_to_others() {
        let mut ranks = HostRanks::default();
        assert!(!ranks.left_to_others(3 * MS, Some(100 * MS)));
        assert!(ranks.left_to_others(3 * MS, Some(101 * MS)));
        // The ranks have computed since.
        assert!(!ranks.left_to_others(3 * MS, Some(150 * MS)));
        assert!(ranks.left_to_others(3 * MS, Some(150 * MS)));
    }

    #[test]
    fn what_is_not_known_proves_nothing() {
        let mut ranks = HostRanks::default();
        for ours in [None, Some(MS), None, Some(2 * MS), Some(MS)] {
            assert!(!ranks.left_to_others(3 * MS, ours));
        }
    }
}
