//! The boot code against the server machine, over real descriptors, one thread a rank.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use super::detect::Wire;
use super::pmi1::Pmi1;
use super::pmi2::Pmi2;
use super::{BootError, Job, JobInfo, Joined, Launcher, Memory, Spawn};
use kw_base::Peer;
use kw_base::settings::{Id, Settings};
use kw_base::sync::{Arc, Mutex, thread};
use kw_start::pmi::{Effect, Server};

/// Joins; leads its host if it may.
fn join(launcher: &mut dyn Launcher, settings: &Settings) -> Result<Joined, BootError> {
    super::join(launcher, settings, |me, hosts| {
        let first = hosts.iter().position(|h| *h == hosts[me.idx()]);
        Ok((first == Some(me.idx())).then(|| format!("memory of rank {me}")))
    })
}

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
                let mut l = Pmi1::open(wire(&t, r, n)).unwrap();
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
                Effect::Waits { rank, .. } => {
                    let questions = [6, 7].map(kw_start::pmi::ask).concat();
                    let mut rank = &ours[rank as usize];
                    rank.write_all(questions.as_bytes()).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn questions_stand_between_answers() {
    let heard = with_ranks(2, |_, l| {
        assert!(l.listens());
        let before = l.asked();
        assert!(l.tell("cmd=kw_waits round=0\n"));
        // Requests after this are answered later.
        l.put("a", "b").unwrap();
        l.fence().unwrap();
        let heard = (before, l.asked(), l.asked());
        l.finalize().unwrap();
        heard
    });
    assert_eq!(
        heard,
        [(None, Some(7), None); 2],
        "only the last one counts"
    );
}

#[test]
fn four_ranks_learn_the_same_job() {
    let jobs: Vec<Job> = with_ranks(4, |_, l| join(l, &Settings::defaults()).unwrap().job);
    for (r, j) in jobs.iter().enumerate() {
        assert_eq!((j.me.idx(), j.size(), *j.key()), (r, 4, [9; 32]));
        assert_eq!(j.hosts(), [0, 0, 1, 1]);
    }
}

#[test]
fn values_of_any_length_and_content_are_exchanged() {
    let read = with_ranks(3, |r, l| {
        let mine = format!("a b=c\n%{r}").repeat(40_000);
        l.put(&format!("card {r}"), &mine).unwrap();
        l.fence().unwrap();
        let next = (r + 1) % 3;
        let theirs = l.get(next, &format!("card {next}")).unwrap().unwrap();
        assert_eq!(theirs, format!("a b=c\n%{next}").repeat(40_000));
        assert_eq!(l.get(0, "nothing").unwrap(), None);
        l.fence().unwrap();
        l.finalize().unwrap();
        l.job().to_string()
    });
    assert_eq!(read, ["kw-boot"; 3]);
}

fn wire(stream: &UnixStream, rank: u32, size: u32) -> Wire {
    let fd = stream.as_raw_fd();
    Wire { fd, rank, size }
}

#[test]
fn pmi2_keeps_the_contract() {
    let job = super::server2::Job::new(4);
    let ranks: Vec<_> = (0..4)
        .map(|r| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let job = job.clone();
            thread::spawn(move || job.serve(r, ours));
            thread::spawn(move || {
                let mut l = Pmi2::open(wire(&theirs, r, 4), &|_| None, "a test").unwrap();
                assert_eq!((l.job(), l.info().universe_size), ("kw-two", Some(8)));
                assert_eq!(l.hosts(), Some(vec![0, 0, 1, 1]));
                let passed = super::conformance::run(&mut l);
                l.spawn(&nothing()).unwrap();
                l.finalize().unwrap();
                passed
            })
        })
        .collect();
    let cases = super::conformance::CASES.len();
    for rank in ranks {
        assert_eq!(rank.join().unwrap(), Ok(cases));
    }
}

/// Messages of a rank if its launcher sends these answers, piece by piece, and disconnects.
fn failure_of(answers: &[&[u8]], two: bool) -> String {
    let answers: Vec<Vec<u8>> = answers.iter().map(|a| a.to_vec()).collect();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let launcher = thread::spawn(move || {
        let mut bytes = [0; 500];
        if answers.is_empty() {
            // one that ends before the question is told something else
            let _ = ours.read(&mut bytes);
        }
        for answer in answers {
            if !matches!(ours.read(&mut bytes), Ok(1..)) || ours.write_all(&answer).is_err() {
                return;
            }
        }
    });
    let opened = match two {
        true => Pmi2::open(wire(&theirs, 0, 2), &|_| None, "a test").map(|_| ()),
        false => Pmi1::open(wire(&theirs, 0, 2)).map(|_| ()),
    };
    drop(theirs);
    launcher.join().unwrap();
    opened.unwrap_err().to_string()
}

#[test]
fn a_launcher_that_dies_or_talks_nonsense_gets_a_sentence() {
    let greeted = b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";
    for (answers, two, sentence) in [
        (&[][..], false, "is gone"),
        (&[&b"cmd=response_to_i"[..]], false, "is gone"),
        (&[b"\xff\xfe\n"], false, "not text"),
        (&[b"hello\n"], false, "begins with 'hello'"),
        (&[b"cmd=barrier_out rc=0\n"], false, "instead of"),
        (
            &[b"cmd=response_to_init pmi_version=1 rc=-1\n"],
            false,
            "refused",
        ),
        (
            &[
                b"cmd=response_to_init pmi_version=1 rc=0\n",
                b"cmd=maxes kvsname_max=256 keylen_max=x vallen_max=1\n",
            ],
            false,
            "'x'",
        ),
        (&[], true, "is gone"),
        (
            &[b"cmd=response_to_init pmi_version=1 rc=0\n"],
            true,
            "does not speak PMI-2",
        ),
        (&[greeted, b"    99cmd=fullinit-resp"], true, "is gone"),
        (&[greeted, b"HTTP/1.0 400\n"], true, "not with its length"),
        (&[greeted, b"    10cmd=hello;"], true, "instead of"),
        (
            &[
                greeted,
                b"    43cmd=fullinit-response;rank=1;size=2;rc=0;  ",
            ],
            true,
            "rank 1 of 2",
        ),
    ] {
        let text = failure_of(answers, two);
        assert!(text.contains(sentence) && !text.contains('\n'), "{text}");
    }
}

fn nothing() -> Spawn {
    Spawn {
        program: "/bin/true".into(),
        args: Vec::new(),
        count: 1,
    }
}

#[test]
fn a_launcher_that_starts_no_more_processes_says_so_and_the_rank_goes_on() {
    let sentences = with_ranks(2, |_, l| {
        let why = l.spawn(&nothing()).unwrap_err().to_string();
        l.fence().unwrap();
        why
    });
    let sentence = "Kittiwake's mpiexec cannot start more processes ('/bin/true'): not offered by this launcher";
    assert_eq!(sentences, [sentence; 2]);
    let mut alone = super::singleton::Singleton::new().unwrap();
    let why = alone.spawn(&nothing()).unwrap_err().to_string();
    assert!(why.contains("it was started without a launcher"), "{why}");
}

#[test]
fn pmi1_keeps_the_contract() {
    let cases = super::conformance::CASES.len();
    assert_eq!(
        with_ranks(3, |_, l| super::conformance::run(l)),
        vec![Ok(cases); 3]
    );
}

#[test]
fn the_singleton_keeps_the_contract() {
    let mut alone = super::singleton::Singleton::new().unwrap();
    assert!(super::conformance::run(&mut alone).is_ok());
}

/// A launcher that hides what only our launcher offers.
struct Foreign<'a>(&'a mut dyn Launcher, bool);

impl Launcher for Foreign<'_> {
    fn info(&self) -> &JobInfo {
        self.0.info()
    }

    fn name(&self) -> &str {
        "foreign"
    }
    fn put(&mut self, key: &str, value: &str) -> Result<(), super::BootError> {
        self.0.put(key, value)
    }
    fn fence(&mut self) -> Result<(), super::BootError> {
        self.0.fence()
    }
    fn get(&mut self, from: u32, key: &str) -> Result<Option<String>, super::BootError> {
        self.0.get(from, key)
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
        let joined = join(&mut Foreign(l, true), &Settings::defaults()).unwrap();
        assert_eq!(joined.memory, Memory::Published { here: false });
        joined.job
    });
    assert!(
        jobs.iter()
            .all(|j| j.key() == jobs[0].key() && j.hosts() == [0, 0, 1, 1])
    );
    assert_ne!(*jobs[0].key(), [9; 32]);
}

#[test]
fn all_ranks_refuse_settings_that_differ() {
    let sentences = with_ranks(3, |r, l| {
        let mut settings = Settings::defaults();
        settings
            .set(Id::Check, ["no", "1", "off"][r as usize])
            .unwrap();
        join(l, &settings).unwrap_err().to_string()
    });
    let sentence = "KW_CHECK must be the same on all ranks, but it is 'no' (the default) on ranks 0, 2, 'yes' on rank 1; set it \
                    for the whole job";
    assert_eq!(sentences, [sentence; 3]);
}

#[test]
fn hosts_may_have_other_limits_and_only_theirs_are_oversubscribed() {
    let jobs: Vec<Job> = with_ranks(4, |r, l| {
        let mut settings = Settings::defaults();
        settings
            .set(Id::Cpus, ["2000", "1"][r as usize / 2])
            .unwrap();
        join(&mut Foreign(l, true), &settings).unwrap().job
    });
    let ranks = || (0..4).map(Peer);
    for j in &jobs {
        assert!(ranks().skip(2).all(|r| j.agreed().is_oversubscribed(r)));
        assert_eq!(j.oversubscribed(), j.agreed().is_oversubscribed(j.me));
        let same = |r| j.agreed().is_oversubscribed(r) == jobs[0].agreed().is_oversubscribed(r);
        assert!(ranks().all(same) && !j.agreed().site().shared);
    }
}

#[test]
fn hosts_are_distinguished_by_the_setting() {
    let jobs: Vec<Job> = with_ranks(3, |r, l| {
        let mut settings = Settings::defaults();
        settings
            .set(Id::Host, ["red", "blue", "red"][r as usize])
            .unwrap();
        let Joined { job, memory } = join(&mut Foreign(l, true), &settings).unwrap();
        assert_eq!(memory, Memory::Unpublished);
        job
    });
    assert!(jobs.iter().all(|j| j.hosts() == [0, 1, 0]));
}

#[test]
fn a_launcher_that_maps_nothing_is_replaced_by_machine_names() {
    let jobs: Vec<Job> = with_ranks(3, |_, l| {
        join(&mut Foreign(l, false), &Settings::defaults())
            .unwrap()
            .job
    });
    assert!(jobs.iter().all(|j| j.hosts() == [0, 0, 0]));
}
