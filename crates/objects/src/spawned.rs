//! Jobs that this process has spawned: their connections with this one, and the consequences if one
//! of them fails.
//!
//! ```text
//! Starting --it was met--> Connected --no communicator has processes of both--> Apart
//! ```
//! Any thread may call these functions.

use kw_base::Peer;
use kw_base::spawned::{DISCONNECTED, GIVEN_UP, SENTENCE};
use kw_base::sync::{Arc, Mutex, MutexGuard};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::sync::PoisonError;

/// State of the connection between such a job and this one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Stand {
    /// Its processes have not connected yet.
    #[default]
    Starting,
    /// They have connected; the name of the job.
    Connected(String),
    /// Nothing connects them any more, or it was given up.
    Apart,
}

/// State shared by the thread that waits for the job's mpiexec and those that call MPI.
#[derive(Debug)]
pub struct Spawned {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stand: Stand,
    /// The pipe to its mpiexec, while something connects the jobs.
    line: Option<UnixStream>,
    /// Exit status of its mpiexec.
    ended: Option<ExitStatus>,
    /// Reason, in the words of its mpiexec.
    why: Option<String>,
}

impl Spawned {
    /// A job that was just started.
    pub fn new(line: UnixStream) -> Spawned {
        let state = State {
            stand: Stand::Starting,
            line: Some(line),
            ended: None,
            why: None,
        };
        Spawned {
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exit status of its mpiexec, if it has ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.state().ended
    }

    /// Reason for the end of its mpiexec, if it has given one.
    pub fn why(&self) -> Option<String> {
        self.state().why.clone()
    }

    /// Notes the end of its mpiexec; returns the state of the connection then.
    pub fn on_ended(&self, status: ExitStatus) -> Stand {
        let mut state = self.state();
        state.ended = Some(status);
        if let Some(line) = state.line.take() {
            let mut text = vec![0; SENTENCE];
            let len = kw_sys::fd::recv_now(&line, &mut text);
            text.truncate(len);
            state.why = Some(String::from_utf8_lossy(&text).into_owned()).filter(|w| !w.is_empty());
        }
        state.stand.clone()
    }

    /// Notes that its processes have connected.
    pub fn on_met(&self, name: &str) {
        self.state().stand = Stand::Connected(name.into());
    }

    /// Notes that nothing connects the jobs any more: neither ends with the other.
    pub fn part(&self) {
        self.say(DISCONNECTED);
    }

    /// Ends the job.
    pub fn give_up(&self) {
        self.say(GIVEN_UP);
    }

    fn say(&self, word: u8) {
        let mut state = self.state();
        state.stand = Stand::Apart;
        if let Some(line) = state.line.take() {
            // An mpiexec that has ended needs no message, and a write must not end this process by
            // SIGPIPE.
            let _ = kw_sys::fd::send_now(&line, &[word]);
        }
    }
}

/// The connected jobs, each with the numbers of its processes.
#[derive(Debug, Default)]
pub struct SpawnedJobs(Vec<(Range<u32>, Arc<Spawned>)>);

impl SpawnedJobs {
    /// Adds a job that has connected.
    pub fn add(&mut self, peers: Range<u32>, job: Arc<Spawned>) {
        // Those that have ended need no message any more.
        self.0.retain(|(_, job)| job.ended().is_none());
        self.0.push((peers, job));
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Releases those of whose processes none is in use.
    pub fn part_unless(&mut self, in_use: impl Fn(Peer) -> bool) {
        self.0.retain(|(peers, job)| {
            let stays = peers.clone().any(|p| in_use(Peer(p)));
            if !stays {
                job.part();
            }
            stays
        });
    }

    /// Releases all of them at the end of MPI.
    pub fn part_all(&mut self) {
        self.part_unless(|_| false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn the_reason_of_an_mpiexec_that_has_ended_is_known() {
        let (line, theirs) = UnixStream::pair().unwrap();
        let job = Spawned::new(line);
        let mut child = Command::new("sh")
            .args(["-c", "printf 'there is no program' >&0; exit 3"])
            .stdin(std::os::fd::OwnedFd::from(theirs))
            .spawn()
            .unwrap();
        assert_eq!(job.why(), None);
        assert_eq!(job.on_ended(child.wait().unwrap()), Stand::Starting);
        assert_eq!(job.why().as_deref(), Some("there is no program"));
    }

    /// A process that prints its input.
    fn echo() -> (std::process::Child, Arc<Spawned>) {
        let (line, theirs) = UnixStream::pair().unwrap();
        let child = Command::new("cat")
            .stdin(std::os::fd::OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        (child, Arc::new(Spawned::new(line)))
    }

    #[test]
    fn a_job_is_let_go_when_none_of_its_processes_is_in_use() {
        let (mut child, job) = echo();
        let mut jobs = SpawnedJobs::default();
        job.on_met("one");
        jobs.add(3..5, job.clone());
        jobs.part_unless(|p| p == Peer(4));
        assert!(!jobs.is_empty());
        jobs.part_unless(|p| p == Peer(5));
        assert!(jobs.is_empty());
        let mut text = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
        assert_eq!(text, [DISCONNECTED]);
        let status = child.wait().unwrap();
        assert_eq!(job.on_ended(status), Stand::Apart);
        assert_eq!(job.ended(), Some(status));
    }

    #[test]
    fn a_job_that_ends_while_it_is_connected_is_known_to_be() {
        let (mut child, job) = echo();
        job.on_met("one");
        let ended = |child: &mut std::process::Child| child.wait().unwrap();
        child.kill().unwrap();
        let status = ended(&mut child);
        assert!(!status.success());
        assert_eq!(job.on_ended(status), Stand::Connected("one".into()));
    }
}
