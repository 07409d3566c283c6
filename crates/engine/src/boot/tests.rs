//! The boot code against the server machine, over real descriptors, one thread a rank.

use std::io::{Read, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;

use super::pmi1::Pmi1;
use super::{Job, Launcher, job};
use kw_base::knobs::{Id, Knobs};
use kw_base::sync::{Arc, Mutex, thread};
use kw_core::pmi::{Effect, Server};

/// Serves PMI-1 to `n` ranks with one thread for each, and runs `body` as each rank.
fn with_ranks<T: Send + 'static>(n: u32, body: fn(u32, &mut dyn Launcher) -> T) -> Vec<T> {
    let zeros = vec![0; n as usize];
    let hosts: Vec<u32> = (0..n).map(|r| r / 2).collect();
    let server = Server::new("kw-boot", Some(&[9; 32]), &zeros, &hosts, n as i32);
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..n).map(|_| UnixStream::pair().unwrap()).unzip();
    let ours = Arc::new(ours);
    let server = Arc::new(Mutex::new(server));
    for r in 0..n {
        let (ours, server) = (ours.clone(), server.clone());
        thread::spawn(move || serve(r, &ours, &server));
    }
    let ranks: Vec<_> = (0u32..)
        .zip(theirs)
        .map(|(r, t)| {
            thread::spawn(move || {
                let mut l = Pmi1::open(t.into_raw_fd(), r, n).unwrap();
                body(r, &mut l)
            })
        })
        .collect();
    ranks.into_iter().map(|t| t.join().unwrap()).collect()
}

fn serve(r: u32, ours: &[UnixStream], server: &Mutex<Server>) {
    let mut bytes = [0; 500];
    while let Ok(n @ 1..) = (&ours[r as usize]).read(&mut bytes) {
        let mut out = Vec::new();
        let mut server = server.lock().unwrap();
        server.handle(r, &bytes[..n], &mut out);
        for e in out {
            match e {
                Effect::Send { rank, line } => {
                    (&ours[rank as usize]).write_all(line.as_bytes()).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn four_ranks_learn_the_same_job() {
    let jobs: Vec<Job> = with_ranks(4, |_, l| job(l, &Knobs::defaults()).unwrap());
    for (r, j) in jobs.iter().enumerate() {
        assert_eq!((j.me.idx(), j.size, j.key), (r, 4, [9; 32]));
        assert_eq!(j.hosts, [0, 0, 1, 1]);
        assert_eq!(j.local(), 2);
    }
}

#[test]
fn values_of_any_length_and_content_are_exchanged() {
    let read = with_ranks(3, |r, l| {
        let mine = format!("a b=c\n%{r}").repeat(40_000);
        l.put(&format!("card {r}"), &mine).unwrap();
        l.fence().unwrap();
        let next = (r + 1) % 3;
        let theirs = l.get(&format!("card {next}")).unwrap().unwrap();
        assert_eq!(theirs, format!("a b=c\n%{next}").repeat(40_000));
        assert_eq!(l.get("nothing").unwrap(), None);
        l.fence().unwrap();
        l.finalize().unwrap();
        l.job().to_string()
    });
    assert_eq!(read, ["kw-boot"; 3]);
}

/// A launcher that hides what only ours offers.
struct Foreign<'a>(&'a mut dyn Launcher, bool);

impl Launcher for Foreign<'_> {
    fn rank(&self) -> u32 {
        self.0.rank()
    }
    fn size(&self) -> u32 {
        self.0.size()
    }
    fn name(&self) -> &str {
        "foreign"
    }
    fn job(&self) -> &str {
        self.0.job()
    }
    fn appnum(&self) -> Option<i32> {
        None
    }
    fn universe_size(&self) -> Option<i32> {
        None
    }
    fn put(&mut self, key: &str, value: &str) -> Result<(), super::BootError> {
        self.0.put(key, value)
    }
    fn fence(&mut self) -> Result<(), super::BootError> {
        self.0.fence()
    }
    fn get(&mut self, key: &str) -> Result<Option<String>, super::BootError> {
        self.0.get(key)
    }
    fn hosts(&mut self) -> Option<Vec<u32>> {
        self.1.then(|| self.0.hosts())?
    }
    fn abort(&mut self, status: i32, message: &str) -> Result<(), super::BootError> {
        self.0.abort(status, message)
    }
    fn finalize(&mut self) -> Result<(), super::BootError> {
        self.0.finalize()
    }
}

#[test]
fn under_a_foreign_launcher_rank_0_makes_the_key() {
    let jobs: Vec<Job> = with_ranks(4, |_, l| {
        job(&mut Foreign(l, true), &Knobs::defaults()).unwrap()
    });
    assert!(
        jobs.iter()
            .all(|j| j.key == jobs[0].key && j.hosts == [0, 0, 1, 1])
    );
    assert_ne!(jobs[0].key, [9; 32]);
}

#[test]
fn hosts_are_told_apart_by_the_knob() {
    let jobs: Vec<Job> = with_ranks(3, |r, l| {
        let mut knobs = Knobs::defaults();
        knobs
            .set(Id::Host, ["red", "blue", "red"][r as usize])
            .unwrap();
        job(&mut Foreign(l, true), &knobs).unwrap()
    });
    assert!(jobs.iter().all(|j| j.hosts == [0, 1, 0]));
}

#[test]
fn a_launcher_that_maps_nothing_is_replaced_by_machine_names() {
    let jobs: Vec<Job> = with_ranks(3, |_, l| {
        job(&mut Foreign(l, false), &Knobs::defaults()).unwrap()
    });
    assert!(jobs.iter().all(|j| j.hosts == [0, 0, 0]));
}
