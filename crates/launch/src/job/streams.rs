//! Standard output and error of the ranks, standard input for one of them, and mpiexec's own
//! messages.

use std::os::fd::OwnedFd;

use super::hosts::Hosts;
use super::printing::Printing;
use crate::ranks::Heard;
use crate::stdin::Relay;
use crate::verdict::Verdict;
use kw_base::Tick;
use kw_base::sync::Arc;
use kw_sys::clock;

/// The three streams.
pub(super) struct Streams {
    pub(super) printing: Printing,
    /// Signals that a closed output is written out.
    pub(super) written: Arc<OwnedFd>,
    pub(super) relay: Relay,
}

impl Streams {
    /// Passes on what is due; returns the failures of mpiexec's own output.
    pub(super) fn on_time(&mut self, hosts: &mut Hosts, now: Tick) -> Vec<Verdict> {
        self.printing.on_time(now);
        self.relay.push();
        self.note_output(hosts);
        self.printing.failures().collect()
    }

    /// Passes standard input on, to another host if its rank is there.
    pub(super) fn on_input(&mut self, hosts: &mut Hosts, machine: u32) {
        if let Some(piece) = self.relay.on_input() {
            hosts.pass_input(machine, piece);
        }
    }

    /// Handles output of a rank here; returns whether there may be more of it.
    pub(super) fn on_output(&mut self, hosts: &mut Hosts, rank: u32, which: usize) -> bool {
        match hosts.here.hear_output(rank, which) {
            Heard::Bytes(bytes) => self.on_printed(hosts, rank, which, &bytes),
            Heard::Nothing => {}
            Heard::End => {
                self.printing.flush(rank, which);
                return false;
            }
        }
        true
    }

    /// Handles this output of a rank.
    pub(super) fn on_printed(&mut self, hosts: &mut Hosts, rank: u32, which: usize, bytes: &[u8]) {
        self.printing.feed(rank, which, bytes, clock::now());
        self.note_output(hosts);
    }

    /// Pauses the output of ranks while the reader of our output is blocked.
    fn note_output(&mut self, hosts: &mut Hosts) {
        if let Some(wanted) = self.printing.changed() {
            hosts.want_output(wanted);
        }
    }

    /// Prints what the command that reaches a host has printed on standard error.
    pub(super) fn on_complaint(&mut self, hosts: &mut Hosts, machine: u32) {
        if let Some(text) = hosts.hear_complaint(machine) {
            self.printing.say(text);
        }
    }

    /// Reads the remaining contents of ended ranks' pipes.
    pub(super) fn drain(&mut self, hosts: &mut Hosts, ranks: Vec<usize>) {
        for rank in ranks {
            for which in 0..2 {
                let rank = rank as u32;
                while hosts.here.has_output(rank, which) && self.on_output(hosts, rank, which) {}
            }
        }
        self.printing.flush_all();
    }
}
