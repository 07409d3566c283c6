//! Hang reports: asks the ranks when it is time to, and prints the conclusions.

use super::{Common, children};
use crate::ask::QUESTION;
use crate::inquiry::{Cause, Do, Inquiry, Stands};
use crate::outside;
use crate::sites::Sites;
use crate::verdict::Verdict;
use kw_base::Tick;
use kw_hang::{
    CallSite, Conflict, Finding, Frame, Left, Ranges, RankState, Report, State, analyze,
    name_holders, page, times,
};
use kw_start::pmi::{self, Stage};
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
#[derive(Debug)]
pub(super) struct Hang {
    /// The ranks' wait reports, and the conclusions from them.
    inquiry: Inquiry,
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
    pub(super) fn new(ranks: usize, end_hung: bool, until: Option<Tick>) -> Hang {
        Hang {
            inquiry: Inquiry::new(ranks),
            end_hung,
            until,
            over: None,
            quit: None,
            peeker: Peeker::default(),
            printed: Vec::new(),
            left: BTreeMap::new(),
            conflicts: BTreeSet::new(),
        }
    }

    /// Handles a rank's report about its wait.
    pub(super) fn on_waits(&mut self, common: &mut Common, rank: u32, line: &str) {
        let Common {
            ending,
            plan,
            sites,
            ..
        } = common;
        match Left::decode(line) {
            Some(Ok(left)) => return self.on_left_over(sites, rank, left),
            Some(Err(e)) => return ending.on_garbage(plan, rank, &e),
            None => {}
        }
        match Conflict::decode(line) {
            Some(Ok(conflict)) => return self.on_conflict(sites, conflict),
            Some(Err(e)) => return ending.on_garbage(plan, rank, &e),
            None => {}
        }
        match Report::decode(line) {
            Ok(report) => self.inquiry.on_report(rank, report),
            Err(e) => ending.on_garbage(plan, rank, &e),
        }
    }

    /// Handles a rank's report about objects left at MPI_Finalize.
    fn on_left_over(&mut self, sites: &mut Sites, rank: u32, mut left: Left) {
        name_call(sites, &mut left.call, &mut left.frames);
        // Several places in a line count as one line.
        let count = std::mem::replace(&mut left.count, 1);
        let sentence = left.sentence(&sites.of(&left.frames));
        let of_rank = self.left.entry(sentence).or_default();
        *of_rank.entry(rank).or_insert(0) += count;
    }

    /// Handles a rank's report about conflicting accesses.
    fn on_conflict(&mut self, sites: &mut Sites, mut conflict: Conflict) {
        let mut site = |site: &mut CallSite| {
            name_call(sites, &mut site.call, &mut site.frames);
            sites.of(&site.frames)
        };
        let sites = conflict.calls.each_mut().map(&mut site);
        let sentence = conflict.sentence(sites.each_ref().map(String::as_str));
        self.conflicts.insert(sentence);
    }

    /// Prints at the end which accesses to windows conflict.
    pub(super) fn tell_conflicts(&self, common: &Common) {
        if self.conflicts.is_empty() {
            return;
        }
        let mut text = "mpiexec: conflicting accesses to windows (KW_CHECK):\n".to_string();
        for sentence in &self.conflicts {
            text += &format!("  {sentence}\n");
        }
        common.say(text);
    }

    /// Prints at the end which objects ranks have left at MPI_Finalize.
    pub(super) fn tell_left(&self, common: &Common) {
        if self.left.is_empty() {
            return;
        }
        let mut text = "mpiexec: left at MPI_Finalize (KW_CHECK):\n".to_string();
        for (sentence, of_ranks) in &self.left {
            let mut by_count: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            for (rank, count) in of_ranks {
                by_count.entry(*count).or_default().push(*rank);
            }
            for (count, ranks) in by_count {
                let who = Ranges::new(ranks).named();
                text += &format!("  {who}: {sentence}{}\n", times(count));
            }
        }
        common.say(text);
    }

    /// Whether a signal is a question; a second SIGQUIT shortly after the first is an ordinary
    /// signal.
    pub(super) fn is_question(&mut self, number: i32, now: Tick) -> bool {
        let soon = |at: Tick| now.since(at) < TWICE;
        match number {
            QUESTION => {}
            signals::QUIT if !self.quit.replace(now).is_some_and(soon) => {}
            _ => return false,
        }
        true
    }

    /// Asks the ranks, and the jobs that they have spawned.
    pub(super) fn ask(&mut self, common: &mut Common, cause: Cause, now: Tick) {
        children::ask(common);
        let wanted = self.inquiry.ask(cause, now, |r| stands(common, r));
        self.carry_out(common, wanted, now);
    }

    /// Continues an inquiry in progress; starts one when every rank has waited for long, or when
    /// the time limit is reached.
    pub(super) fn inquire(&mut self, common: &mut Common, now: Tick) {
        self.peeker.let_go();
        if common.ending.phases.has_failed() {
            return;
        }
        if self.over.is_none() && self.until.is_some_and(|until| now >= until) {
            self.over = Some(now + LAST);
            self.ask(common, Cause::TimeOut, now);
        }
        if self.over.is_some_and(|over| now >= over) {
            self.end_late(common, now);
        }
        while let Some(wanted) = self.inquiry.poll(now, |r| stands(common, r)) {
            self.carry_out(common, wanted, now);
        }
    }

    /// When the next action is due.
    pub(super) fn next(&self, common: &Common) -> Tick {
        if common.ending.phases.has_failed() {
            return Tick::NEVER;
        }
        let until = self.over.or(self.until).unwrap_or(Tick::NEVER);
        self.inquiry.next().min(until)
    }

    fn carry_out(&mut self, common: &mut Common, wanted: Do, now: Tick) {
        match wanted {
            Do::Ask(round, ranks) => {
                for rank in ranks {
                    common.tell(rank, pmi::ask(round).into_bytes());
                }
            }
            Do::Conclude(cause, states) => self.conclude(common, cause, states, now),
        }
    }

    fn conclude(&mut self, common: &mut Common, cause: Cause, states: Vec<State>, now: Tick) {
        let rank_states = (0..)
            .zip(states)
            .map(|(r, s)| self.rank_state(common, r, s));
        let mut rank_states: Vec<RankState> = rank_states.collect();
        name_holders(&mut rank_states);
        let finding = analyze(&rank_states);
        let marks = rank_states
            .iter()
            .map(|t| t.report().map(|r| r.mark))
            .collect();
        let proven = matches!(finding, Finding::Deadlock { .. });
        if cause == Cause::Waited && (self.printed == marks || !is_news(&rank_states, proven)) {
            return self.inquiry.again_later(now);
        }
        self.printed = marks;
        self.inquiry.was_printed(now);
        let why = match cause {
            Cause::Waited => "all ranks have waited inside MPI for a long time",
            Cause::Asked => "where every rank is",
            Cause::TimeOut => "the time limit (--timeout) is reached; where every rank is",
        };
        let text = page(&rank_states, &finding);
        let (title, children) = (common.identity.title(), children::list(common));
        let page = format!("mpiexec: {title}{why}:\n{text}{children}");
        common.say(page);
        if cause == Cause::TimeOut {
            self.end_late(common, now);
        } else if proven && self.end_hung {
            let sentence = "the job was ended because it is deadlocked (--end-hung)";
            common.fail(Verdict::new(HUNG, sentence), now);
        }
    }

    fn end_late(&mut self, common: &mut Common, now: Tick) {
        self.over = Some(Tick::NEVER);
        let sentence = "the job was ended because its time limit was reached (--timeout)";
        common.fail(Verdict::new(TIMED_OUT, sentence), now);
    }

    fn rank_state(&mut self, common: &mut Common, rank: u32, state: State) -> RankState {
        match state {
            State::Waits(mut report) => {
                name_call(&mut common.sites, &mut report.call, &mut report.frames);
                if report.call.is_empty() {
                    report.call = "a call of MPI".into();
                }
                RankState {
                    site: common.sites.of(&report.frames),
                    state: State::Waits(report),
                }
            }
            State::NotWaiting(_) => {
                let (what, frames) = outside::of(&mut self.peeker, common.hosts.here.pid(rank));
                RankState {
                    site: common.sites.of(&frames),
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

/// Names a call, which the rank could not name, by the first of its frames.
fn name_call(sites: &mut Sites, call: &mut String, frames: &mut Vec<Frame>) {
    if call.is_empty() && !frames.is_empty() {
        let inside = frames.remove(0);
        *call = sites.function(&inside).unwrap_or_default();
    }
}

/// State of a rank from our point of view.
fn stands(common: &Common, rank: u32) -> Stands {
    match common.server.stage(rank) {
        _ if common.ending.has_ended(rank) => Stands::Finished,
        Stage::Finalized | Stage::Left { .. } => Stands::Finished,
        _ if common.server.hears_questions(rank) => Stands::Hears,
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
