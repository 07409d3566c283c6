//! `--profile`: collects the calls of the ranks, and prints them at the end or on request.

use super::Common;
use super::hosts::Hosts;
use crate::profile::json::json;
use crate::profile::page::page;
use crate::profile::table::Table;
use kw_base::Tick;
use kw_start::helper::Order;
use kw_start::profile::Calls;
use std::collections::HashSet;
use std::time::Duration;

/// How long other hosts may take to report their ranks' calls so far.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Known calls of the ranks.
#[derive(Debug, Default)]
pub(super) struct Profile {
    wanted: bool,
    /// Calls of the ranks that have ended.
    ended: Table,
    /// Request of a user.
    asked: Option<Asked>,
}

/// A request about running ranks.
#[derive(Debug)]
struct Asked {
    /// All calls known so far.
    table: Table,
    /// Helpers whose answers are incomplete.
    awaited: HashSet<u32>,
    until: Tick,
}

impl Profile {
    pub(super) fn new(wanted: bool) -> Profile {
        Profile {
            wanted,
            ..Profile::default()
        }
    }

    /// When the next action is due without an event.
    pub(super) fn next(&self) -> Tick {
        self.asked.as_ref().map_or(Tick::NEVER, |a| a.until)
    }

    /// Handles the end of a rank of this machine.
    pub(super) fn keep(&mut self, hosts: &Hosts, rank: u32) {
        if let Some(calls) = hosts.here.calls(rank) {
            self.ended.add(rank, &calls);
        }
    }

    /// Handles a helper's report of a rank's calls; `over`: the rank has ended.
    pub(super) fn on_calls(&mut self, rank: u32, over: bool, calls: &[u8]) {
        let Some(calls) = Calls::decode(calls) else {
            return; // a helper of this version sends nothing else
        };
        let asked = self.asked.as_mut();
        let table = match over {
            true => Some(&mut self.ended),
            false => asked.map(|a| &mut a.table),
        };
        if let Some(table) = table {
            table.add(rank, &calls);
        }
    }

    /// Handles the end of a helper's answer about all its living ranks.
    pub(super) fn on_all_calls(&mut self, machine: u32) {
        if let Some(asked) = &mut self.asked {
            asked.awaited.remove(&machine);
        }
    }

    /// Starts a user's request for the calls so far.
    pub(super) fn ask(&mut self, common: &mut Common, now: Tick) {
        if !self.wanted || self.asked.is_some() {
            return;
        }
        let mut table = self.ended.clone();
        for rank in common.hosts.here.living() {
            if let Some(calls) = common.hosts.here.calls(rank) {
                table.add(rank, &calls);
            }
        }
        let ready = common.hosts.away.iter().filter(|r| r.is_ready());
        let awaited = ready.map(|r| r.machine).collect();
        common.hosts.order_all(&Order::Calls);
        self.asked = Some(Asked {
            table,
            awaited,
            until: now + PATIENCE,
        });
    }

    /// Prints the requested page when all have answered, or the time limit has passed.
    pub(super) fn show(&mut self, common: &mut Common, now: Tick) {
        let done = |a: &mut Asked| a.awaited.is_empty() || now >= a.until;
        if let Some(asked) = self.asked.take_if(done) {
            let text = page(&asked.table, common.plan.ranks.len(), &mut common.sites);
            let head = format!("mpiexec: {}the profile so far:", common.identity.title());
            common.say(format!("{head}\n{text}"));
        }
    }

    /// Prints the page and writes the file at the end.
    pub(super) fn tell(&self, common: &mut Common) {
        if !self.wanted {
            return;
        }
        let (table, size) = (&self.ended, common.plan.ranks.len());
        let text = page(table, size, &mut common.sites);
        let title = common.identity.title();
        common.say(format!("mpiexec: {title}the profile:\n{text}"));
        if let Some(file) = &common.plan.profile_json {
            let text = json(table, size, &mut common.sites);
            if let Err(e) = std::fs::write(file, text) {
                let file = file.display();
                let sentence = format!("mpiexec: the profile cannot be written to '{file}': {e}\n");
                common.say(sentence);
            }
        }
    }
}
