//! Hang reports: asks the ranks when it is time to, and prints the conclusions.

use super::Job;
use crate::ask::QUESTION;
use crate::inquiry::{Cause, Do, Stands};
use crate::outside;
use crate::verdict::{Ended, Verdict};
use kw_base::Tick;
use kw_hang::{
    CallSite, Conflict, Finding, Left, Ranges, RankState, Report, State, analyze, name_holders,
    page, times,
};
use kw_start::pmi::{self, Server, Stage};
use kw_sys::peek::Peeker;
use kw_sys::signals;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Exit status when the time limit of the job is exceeded, as that of `timeout`.
const TIMED_OUT: u8 = 124;
/// Exit status of a job that was ended because it was proven to hang.
const HUNG: u8 = 123;
/// A second SIGQUIT within this time is passed on to the ranks.
const TWICE: Duration = Duration::from_secs(3);
/// How long the answers may delay the end of a job that has exceeded its time limit.
const LAST: Duration = Duration::from_secs(5);

/// State of the hang reports of a job.
#[derive(Debug, Default)]
pub(super) struct Hang {
    /// Whether a proven deadlock ends the job.
    end_hung: bool,
    /// Time limit of the job.
    until: Option<Tick>,
    /// The time limit is exceeded: when the job is ended at the latest.
    over: Option<Tick>,
    /// Time of the last SIGQUIT.
    quit: Option<Tick>,
    peeker: Peeker,
    /// Each rank's report at the time of the last printed page.
    printed: Vec<Option<u64>>,
    /// Objects left at MPI_Finalize: how often by which rank.
    left: BTreeMap<String, BTreeMap<u32, u64>>,
    /// Conflicting accesses to windows.
    conflicts: BTreeSet<String>,
}

impl Hang {
    /// `end_hung`: a proven deadlock ends the job; `until`: time limit of the job.
    pub(super) fn new(end_hung: bool, until: Option<Tick>) -> Hang {
        Hang {
            end_hung,
            until,
            ..Hang::default()
        }
    }
}

impl Job {
    /// Handles a rank's report about its wait.
    pub(super) fn on_waits(&mut self, rank: u32, line: &str) {
        match Left::decode(line) {
            Some(Ok(left)) => return self.on_left_over(rank, left),
            Some(Err(e)) => return self.on_garbage(rank, &e),
            None => {}
        }
        match Conflict::decode(line) {
            Some(Ok(conflict)) => return self.on_conflict(conflict),
            Some(Err(e)) => return self.on_garbage(rank, &e),
            None => {}
        }
        match Report::decode(line) {
            Ok(report) => self.inquiry.on_report(rank, report),
            Err(e) => self.on_garbage(rank, &e),
        }
    }

    /// Handles a rank's report about objects left at MPI_Finalize.
    fn on_left_over(&mut self, rank: u32, mut left: Left) {
        if left.call.is_empty() && !left.frames.is_empty() {
            let inside = left.frames.remove(0);
            left.call = self.sites.function(&inside).unwrap_or_default();
        }
        // Several places in a line count as one line.
        let count = std::mem::replace(&mut left.count, 1);
        let sentence = left.sentence(&self.sites.of(&left.frames));
        let of_rank = self.hang.left.entry(sentence).or_default();
        *of_rank.entry(rank).or_insert(0) += count;
    }

    /// Handles a rank's report about conflicting accesses.
    fn on_conflict(&mut self, mut conflict: Conflict) {
        let mut site = |call: &mut CallSite| {
            if call.call.is_empty() && !call.frames.is_empty() {
                let inside = call.frames.remove(0);
                call.call = self.sites.function(&inside).unwrap_or_default();
            }
            self.sites.of(&call.frames)
        };
        let sites = conflict.calls.each_mut().map(&mut site);
        let sentence = conflict.sentence(sites.each_ref().map(String::as_str));
        self.hang.conflicts.insert(sentence);
    }

    /// Prints at the end which accesses to windows conflict.
    pub(super) fn tell_conflicts(&mut self) {
        if self.hang.conflicts.is_empty() {
            return;
        }
        let mut text = "mpiexec: conflicting accesses to windows (KW_CHECK):\n".to_string();
        for sentence in &self.hang.conflicts {
            text += &format!("  {sentence}\n");
        }
        self.printing.say(text);
    }

    /// Prints at the end which objects ranks have left at MPI_Finalize.
    pub(super) fn tell_left(&mut self) {
        if self.hang.left.is_empty() {
            return;
        }
        let mut text = "mpiexec: left at MPI_Finalize (KW_CHECK):\n".to_string();
        for (sentence, of_ranks) in &self.hang.left {
            let mut by_count: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            for (rank, count) in of_ranks {
                by_count.entry(*count).or_default().push(*rank);
            }
            for (count, ranks) in by_count {
                let who = Ranges::new(ranks).named();
                text += &format!("  {who}: {sentence}{}\n", times(count));
            }
        }
        self.printing.say(text);
    }

    /// Whether a signal is a question; a second SIGQUIT shortly after the first is an ordinary
    /// signal.
    pub(super) fn is_question(&mut self, number: i32, now: Tick) -> bool {
        let soon = |at: Tick| now.since(at) < TWICE;
        match number {
            QUESTION => {}
            signals::QUIT if !self.hang.quit.replace(now).is_some_and(soon) => {}
            _ => return false,
        }
        self.ask(Cause::Asked, now);
        self.ask_for_calls(now);
        true
    }

    fn ask(&mut self, cause: Cause, now: Tick) {
        self.ask_children();
        let (server, ended) = (&self.server, &self.ended);
        let wanted = self.inquiry.ask(cause, now, |r| stands(server, ended, r));
        self.carry_out_inquiry(wanted, now);
    }

    /// Continues an inquiry in progress; starts one when every rank has waited for long, or when
    /// the time limit is reached.
    pub(super) fn inquire(&mut self, now: Tick) {
        self.hang.peeker.let_go();
        if self.phases.has_failed() {
            return;
        }
        if self.hang.over.is_none() && self.hang.until.is_some_and(|until| now >= until) {
            self.hang.over = Some(now + LAST);
            self.ask(Cause::TimeOut, now);
        }
        if self.hang.over.is_some_and(|over| now >= over) {
            self.end_late(now);
        }
        while let Some(wanted) = self.poll_inquiry(now) {
            self.carry_out_inquiry(wanted, now);
        }
    }

    fn poll_inquiry(&mut self, now: Tick) -> Option<Do> {
        let (server, ended) = (&self.server, &self.ended);
        self.inquiry.poll(now, |r| stands(server, ended, r))
    }

    /// When the next action is due.
    pub(super) fn next_inquiry(&self) -> Tick {
        if self.phases.has_failed() {
            return Tick::NEVER;
        }
        let until = self.hang.over.or(self.hang.until).unwrap_or(Tick::NEVER);
        self.inquiry.next().min(until)
    }

    fn carry_out_inquiry(&mut self, wanted: Do, now: Tick) {
        match wanted {
            Do::Ask(round, ranks) => {
                for rank in ranks {
                    let machine = self.machine(rank);
                    let line = pmi::ask(round).into_bytes();
                    self.hosts.tell(machine, rank, line);
                }
            }
            Do::Conclude(cause, states) => self.conclude(cause, states, now),
        }
    }

    fn conclude(&mut self, cause: Cause, states: Vec<State>, now: Tick) {
        let rank_states = (0..).zip(states).map(|(r, s)| self.rank_state(r, s));
        let mut rank_states: Vec<RankState> = rank_states.collect();
        name_holders(&mut rank_states);
        let finding = analyze(&rank_states);
        let marks = rank_states
            .iter()
            .map(|t| t.report().map(|r| r.mark))
            .collect();
        let proven = matches!(finding, Finding::Deadlock { .. });
        if cause == Cause::Waited && (self.hang.printed == marks || !is_news(&rank_states, proven))
        {
            return self.inquiry.again_later(now);
        }
        self.hang.printed = marks;
        self.inquiry.was_printed(now);
        let why = match cause {
            Cause::Waited => "all ranks have waited inside MPI for a long time",
            Cause::Asked => "where every rank is",
            Cause::TimeOut => "the time limit (--timeout) is reached; where every rank is",
        };
        let text = page(&rank_states, &finding);
        let (title, children) = (self.title(), self.list_children());
        let page = format!("mpiexec: {title}{why}:\n{text}{children}");
        self.printing.say(page);
        if cause == Cause::TimeOut {
            self.end_late(now);
        } else if proven && self.hang.end_hung {
            let sentence = "the job was ended because it is deadlocked (--end-hung)";
            self.phases.fail(Verdict::new(HUNG, sentence), now);
        }
    }

    /// Names a call, which the rank could not name, by the first of its frames.
    fn name_call(&mut self, report: &mut Report) {
        if report.call.is_empty() && !report.frames.is_empty() {
            let inside = report.frames.remove(0);
            report.call = self.sites.function(&inside).unwrap_or_default();
        }
        if report.call.is_empty() {
            report.call = "a call of MPI".into();
        }
    }

    fn end_late(&mut self, now: Tick) {
        self.hang.over = Some(Tick::NEVER);
        let sentence = "the job was ended because its time limit was reached (--timeout)";
        self.phases.fail(Verdict::new(TIMED_OUT, sentence), now);
    }

    fn rank_state(&mut self, rank: u32, state: State) -> RankState {
        match state {
            State::Waits(mut report) => {
                self.name_call(&mut report);
                RankState {
                    site: self.sites.of(&report.frames),
                    state: State::Waits(report),
                }
            }
            State::NotWaiting(_) => {
                let (what, frames) = outside::of(&mut self.hang.peeker, self.hosts.here.pid(rank));
                RankState {
                    site: self.sites.of(&frames),
                    state: State::NotWaiting(what),
                }
            }
            state => RankState {
                state,
                site: String::new(),
            },
        }
    }
}

/// State of a rank from our point of view.
fn stands(server: &Server, ended: &[Option<Ended>], rank: u32) -> Stands {
    match server.stage(rank) {
        _ if ended[rank as usize].is_some() => Stands::Finished,
        Stage::Finalized | Stage::Left { .. } => Stands::Finished,
        _ if server.hears_questions(rank) => Stands::Hears,
        _ => Stands::Silent,
    }
}

/// Whether an unrequested finding is worth a page: not while messages are in flight, or while ranks
/// do something else at the same time.
fn is_news(rank_states: &[RankState], proven: bool) -> bool {
    let waits = |t: &RankState| {
        t.report()
            .is_some_and(|r| r.quiet && !r.threads && !r.polls)
    };
    let rests = |t: &RankState| t.state == State::Finished || waits(t);
    proven || rank_states.iter().any(waits) && rank_states.iter().all(rests)
}
