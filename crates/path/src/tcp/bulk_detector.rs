//! Whether short frames share a connection with long payloads, and so how much of a payload may be
//! between two wake-ups.
//!
//! Every wake-up of the progress thread costs the computation 20 us and more, so a long payload
//! should be handed to the kernel, and taken from it, in large parts. But a short frame, an answer
//! that a rank waits for, cannot overtake data in the kernel, and is not seen by a receiver that
//! sleeps until a large part has arrived: 1 MB takes 8 ms at 1 Gb/s. So the parts are large only
//! after [`BulkDetector::ALONE`] consecutive long payloads for which no short frame had to wait;
//! from then on a single one makes them small again. Each side judges each direction by its own
//! view, and the parts are not part of the wire protocol.

use super::Tuning;

/// Recent traffic of one direction of a connection.
#[derive(Clone, Copy, Debug)]
pub struct BulkDetector {
    /// Long payloads that are still to go alone.
    wanted: u32,
}

impl Default for BulkDetector {
    fn default() -> BulkDetector {
        BulkDetector {
            wanted: BulkDetector::ALONE,
        }
    }
}

impl BulkDetector {
    /// Consecutive long payloads that must go alone. An answer has to wait for a large part at most
    /// once in this many payloads.
    pub const ALONE: u32 = 4;

    /// A payload of several segments begins.
    pub fn payload(&mut self) {
        self.wanted = self.wanted.saturating_sub(1);
    }

    /// A short frame passes such a payload, or waits for one.
    pub fn short_frame(&mut self) {
        self.wanted = BulkDetector::ALONE;
    }

    /// Whether payloads go alone.
    pub fn is_bulk(&self) -> bool {
        self.wanted == 0
    }

    /// Bytes of a payload between two wake-ups.
    pub fn part(&self, tuning: &Tuning) -> u32 {
        match self.is_bulk() {
            true => tuning.part_alone,
            false => tuning.part,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_large_only_where_payloads_go_alone() {
        let tuning = Tuning::default();
        let mut detector = BulkDetector::default();
        for _ in 0..BulkDetector::ALONE {
            assert_eq!(detector.part(&tuning), tuning.part, "nothing is known yet");
            detector.payload();
        }
        assert_eq!(detector.part(&tuning), tuning.part_alone);
        detector.payload();
        assert_eq!(detector.part(&tuning), tuning.part_alone);
        detector.short_frame();
        for _ in 1..BulkDetector::ALONE {
            detector.payload();
        }
        assert_eq!(detector.part(&tuning), tuning.part, "one had to wait");
        detector.payload();
        assert_eq!(detector.part(&tuning), tuning.part_alone);
    }
}
