//! Jobs that this process has spawned: what connects each with this one, and what follows when one
//! of them fails.
//!
//! ```text
//! Starting --it was met--> Connected --no communicator has processes of both--> Apart
//! ```
//! Any thread may call these.

use kw_base::Peer;
use kw_base::spawned::{DISCONNECTED, GIVEN_UP, SENTENCE};
use kw_base::sync::{Arc, Mutex, MutexGuard};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::sync::PoisonError;

/// How such a job and this one stand to each other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Stand {
    /// Its processes have not been met yet.
    #[default]
    Starting,
    /// They have; the name of the job.
    Connected(String),
    /// Nothing connects them any more, or it was given up.
    Apart,
}

/// What the thread that waits for the job's mpiexec shares with those that call MPI.
#[derive(Debug)]
pub struct Spawned {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stand: Stand,
    /// What its mpiexec hears this process by, while something connects the jobs.
    line: Option<UnixStream>,
    /// How its mpiexec has ended.
    ended: Option<ExitStatus>,
    /// Why, in the words of its mpiexec.
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

    /// How its mpiexec has ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.state().ended
    }

    /// Why its mpiexec has ended, if it has said so.
    pub fn why(&self) -> Option<String> {
        self.state().why.clone()
    }

    /// Its mpiexec has ended; how the jobs stood then.
    pub fn on_ended(&self, status: ExitStatus) -> Stand {
        let mut state = self.state();
        state.ended = Some(status);
        if let Some(line) = state.line.take() {
            let mut said = vec![0; SENTENCE];
            let len = kw_sys::fd::recv_now(&line, &mut said);
            said.truncate(len);
            state.why = Some(String::from_utf8_lossy(&said).into_owned()).filter(|w| !w.is_empty());
        }
        state.stand.clone()
    }

    /// Its processes have been met.
    pub fn on_met(&self, name: &str) {
        self.state().stand = Stand::Connected(name.into());
    }

    /// Nothing connects the jobs any more: neither ends with the other.
    pub fn part(&self) {
        self.say(DISCONNECTED);
    }

    /// The job shall end.
    pub fn give_up(&self) {
        self.say(GIVEN_UP);
    }

    fn say(&self, word: u8) {
        let mut state = self.state();
        state.stand = Stand::Apart;
        if let Some(line) = state.line.take() {
            // An mpiexec that has ended needs no word, and must not end this process by SIGPIPE.
            let _ = kw_sys::fd::send_now(&line, &[word]);
        }
    }
}

/// Those that something connects with this one, each with the numbers of its processes.
#[derive(Debug, Default)]
pub struct SpawnedJobs(Vec<(Range<u32>, Arc<Spawned>)>);

impl SpawnedJobs {
    /// A job was met.
    pub fn add(&mut self, peers: Range<u32>, job: Arc<Spawned>) {
        // Those that have ended need no word any more.
        self.0.retain(|(_, job)| job.ended().is_none());
        self.0.push((peers, job));
    }

    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lets those go of whose processes none is in use.
    pub fn part_unless(&mut self, in_use: impl Fn(Peer) -> bool) {
        self.0.retain(|(peers, job)| {
            let stays = peers.clone().any(|p| in_use(Peer(p)));
            if !stays {
                job.part();
            }
            stays
        });
    }

    /// MPI is over here: lets all of them go.
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

    /// A process that says what it is told.
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
        let mut said = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
        assert_eq!(said, [DISCONNECTED]);
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
