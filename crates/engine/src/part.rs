//! The engine's parts: each continues one matter by itself, beside the messages that it sends and
//! receives.
//!
//! A new part is one file that implements [`Part`] and one line in the list below.

use crate::collective::Collectives;
use crate::messages::Messages;
use crate::partitioned::Partitioned;
use crate::shared_counter::SharedCounters;
use crate::windows::Windows;
use kw_boot::Job;

/// A part of the engine that progresses by itself with arrived data. The owner of the lock calls
/// all functions.
pub trait Part {
    /// The part of a rank of this job.
    fn new(job: &Job) -> Self
    where
        Self: Sized;

    /// Whether anything is active. While nothing is, the part is not asked to continue.
    fn is_busy(&self) -> bool;

    /// Continues with the data that has arrived, or has left, since the last call.
    fn advance(&mut self, messages: &mut Messages);

    /// Checks for data that comes another way than by messages; returns whether there was any.
    #[inline(always)]
    fn look(&mut self, messages: &mut Messages) -> bool {
        let _ = messages;
        false
    }

    /// Whether other ranks may wait for what this part does: then the progress thread continues it
    /// while the program computes.
    #[inline(always)]
    fn may_hold_up_others(&self) -> bool {
        false
    }

    /// Whether the next step may wait for the end of a send.
    #[inline(always)]
    fn is_held_by_send(&self) -> bool {
        false
    }

    /// The program waits, or has tested without success.
    #[inline(always)]
    fn asked_in_vain(&mut self, messages: &mut Messages) {
        let _ = messages;
    }

    /// A thread is about to sleep: everything that this part waits for wakes it from now on.
    #[inline(always)]
    fn make_ready_to_sleep(&mut self) {}

    /// The thread is awake, or does not sleep after all.
    #[inline(always)]
    fn awake(&mut self) {}
}

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident: $part:ty;)*) => {
        /// The parts of an engine.
        #[derive(Debug)]
        pub struct Parts {
            $($(#[$doc])* pub $name: $part,)*
        }

        impl Parts {
            pub(crate) fn new(job: &Job) -> Parts {
                Parts { $($name: Part::new(job),)* }
            }

            /// Whether anything is active in any part.
            #[inline(always)]
            pub(crate) fn are_busy(&self) -> bool {
                false $(|| Part::is_busy(&self.$name))*
            }

            #[inline]
            pub(crate) fn advance(&mut self, messages: &mut Messages) {
                $(if Part::is_busy(&self.$name) {
                    Part::advance(&mut self.$name, messages);
                })*
            }

            #[inline]
            pub(crate) fn look(&mut self, messages: &mut Messages) -> bool {
                let mut moved = false;
                $(if Part::is_busy(&self.$name) {
                    moved |= Part::look(&mut self.$name, messages);
                })*
                moved
            }

            #[inline(always)]
            pub(crate) fn may_hold_up_others(&self) -> bool {
                false $(|| Part::may_hold_up_others(&self.$name))*
            }

            pub(crate) fn is_held_by_send(&self) -> bool {
                false $(|| Part::is_held_by_send(&self.$name))*
            }

            #[inline(always)]
            pub(crate) fn asked_in_vain(&mut self, messages: &mut Messages) {
                $(Part::asked_in_vain(&mut self.$name, messages);)*
            }

            pub(crate) fn make_ready_to_sleep(&mut self) {
                $(Part::make_ready_to_sleep(&mut self.$name);)*
            }

            #[inline(always)]
            pub(crate) fn awake(&mut self) {
                $(Part::awake(&mut self.$name);)*
            }
        }
    };
}

parts! {
    /// Transfers in pieces.
    partitioned: Partitioned;
    /// Schedules that run, plans that are kept, shm regions.
    collectives: Collectives;
    /// Numbers that this rank keeps for others.
    shared_counters: SharedCounters;
    /// Memory that others access.
    windows: Windows;
}
