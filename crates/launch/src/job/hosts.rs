//! The hosts of the ranks of a job: this machine, and others through their helpers.

use std::os::fd::OwnedFd;

use crate::ranks::Ranks;
use crate::remote::{HelperFailure, Remote};
use kw_base::Tick;
use kw_start::helper::Order;
use kw_sys::process::Guard;
use kw_sys::signals;

use super::phases::Action;

/// All hosts, and the poller that watches their descriptors.
pub(super) struct Hosts {
    pub(super) epoll: OwnedFd,
    /// The ranks on this machine.
    pub(super) here: Ranks,
    /// The other machines.
    pub(super) away: Vec<Remote>,
    /// `MPIEXEC_MARK=...`, which every process of the job on this machine carries in its
    /// environment.
    tag: String,
}

impl Hosts {
    pub(super) fn new(epoll: OwnedFd, tag: String) -> Hosts {
        Hosts {
            epoll,
            here: Ranks::new(),
            away: Vec::new(),
            tag,
        }
    }

    /// The place of a machine's helper among [`Hosts::away`].
    pub(super) fn helper(&self, machine: u32) -> Option<usize> {
        self.away.iter().position(|r| r.machine == machine)
    }

    /// The helper with this process.
    pub(super) fn helper_of(&self, pid: u32) -> Option<usize> {
        self.away.iter().position(|r| r.pid == pid)
    }

    pub(super) fn order_all(&mut self, order: &Order) {
        for remote in &mut self.away {
            remote.say(&self.epoll, order);
        }
    }

    /// Ends all living ranks, or sends them a signal.
    pub(super) fn carry_out(&mut self, action: Action) {
        match action {
            Action::Signal(number) => self.signal_all(number),
            Action::End => {
                self.signal_all(signals::TERM);
                self.signal_all(signals::CONT);
            }
            Action::Kill => {
                self.signal_all(signals::KILL);
                self.sweep();
            }
        }
    }

    /// Sends a signal to all living ranks.
    pub(super) fn signal_all(&mut self, number: i32) {
        self.here.signal_all(number);
        self.order_all(&Order::Signal(number as u32));
    }

    /// Stops all ranks, then this process; all continue when this process does.
    pub(super) fn pause(&mut self) {
        self.signal_all(signals::STOP);
        self.order_all(&Order::Pause);
        signals::stop_self();
        self.signal_all(signals::CONT);
    }

    /// Kills processes that ranks have left on this machine.
    pub(super) fn sweep(&self) {
        kw_sys::process::sweep(&self.tag);
    }

    /// Processes that ranks have left on this machine, once no rank remains there.
    pub(super) fn left_behind(&self, guard: &Guard) -> Vec<i32> {
        kw_sys::process::left_behind(&self.tag, Some(guard.pid()))
    }

    /// Sets whether output of the ranks is read now.
    pub(super) fn want_output(&mut self, on: bool) {
        self.here.want_output(&self.epoll, on);
        self.order_all(&Order::Flow(on));
    }

    /// Sends PMI bytes to a rank of this machine.
    pub(super) fn tell(&mut self, machine: u32, rank: u32, bytes: Vec<u8>) {
        match self.helper(machine) {
            Some(at) => self.away[at].say(&self.epoll, &Order::Wire(rank, bytes)),
            None => self.here.say(&self.epoll, rank, &bytes),
        }
    }

    /// Sends a piece of standard input to rank 0 on another host.
    pub(super) fn pass_input(&mut self, machine: u32, piece: Vec<u8>) {
        if let Some(at) = self.helper(machine) {
            self.away[at].say(&self.epoll, &Order::Input(piece));
        }
    }

    /// Handles room for more data to a helper.
    pub(super) fn push(&mut self, machine: u32) {
        if let Some(at) = self.helper(machine) {
            self.away[at].push(&self.epoll);
        }
    }

    /// Reads what the command that reaches a host has printed on standard error.
    pub(super) fn hear_complaint(&mut self, machine: u32) -> Option<Vec<u8>> {
        let at = self.helper(machine)?;
        Some(self.away[at].hear_complaint())
    }

    /// Asks helpers that were silent for long whether they are there; returns those that have not
    /// answered, and why they are given up.
    pub(super) fn ask(&mut self, now: Tick) -> Vec<(usize, HelperFailure)> {
        let (away, epoll) = (self.away.iter_mut().enumerate(), &self.epoll);
        let asked = away.filter_map(|(at, r)| Some((at, r.on_time(now, epoll).err()?)));
        asked.collect()
    }

    /// Tells helpers to end (with `kill` also all remaining processes of the job on their hosts).
    pub(super) fn part(&mut self, kill: bool) {
        for remote in &mut self.away {
            remote.part(kill, &self.epoll);
        }
    }

    /// Whether all helpers are gone.
    pub(super) fn have_parted(&self) -> bool {
        self.away.iter().all(Remote::is_gone)
    }
}
