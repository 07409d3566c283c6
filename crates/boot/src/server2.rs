//! A PMI-2 server for tests: one thread a rank, one store.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use kw_base::sync::{Arc, Condvar, Mutex};
use kw_start::pmi::{Frame, Frames, frame};

/// State shared by the ranks of one job.
pub(super) struct Job {
    size: usize,
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    /// Stored since the last fence; not visible yet.
    fresh: HashMap<String, String>,
    seen: HashMap<String, String>,
    waiting: usize,
    fences: usize,
}

impl Job {
    pub(super) fn new(size: usize) -> Arc<Job> {
        Arc::new(Job {
            size,
            state: Mutex::new(State::default()),
            opened: Condvar::new(),
        })
    }

    /// Serves one rank until it hangs up.
    pub(super) fn serve(&self, rank: u32, mut stream: UnixStream) {
        let mut line = [0; 100];
        let n = stream.read(&mut line).unwrap();
        assert_eq!(&line[..n], b"cmd=init pmi_version=2 pmi_subversion=0\n");
        stream
            .write_all(b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n")
            .unwrap();
        let (mut frames, mut some) = (Frames::default(), [0; 700]);
        while let Ok(n @ 1..) = stream.read(&mut some) {
            frames.feed(&some[..n]);
            while let Some(frame) = frames.poll_frame() {
                let answer = self.answer(rank, &frame.unwrap());
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    }

    fn answer(&self, rank: u32, asked: &Frame) -> String {
        let (rank, size) = (rank.to_string(), self.size.to_string());
        let key = asked.get("key").unwrap_or("").to_string();
        let found: Vec<(&str, String)> = match asked.cmd() {
            "fullinit" => vec![("rank", rank), ("size", size), ("appnum", "0".into())],
            "job-getid" => vec![("jobid", "kw-two".into())],
            "info-getjobattr" if key == "universeSize" => value(Some("8")),
            "info-getjobattr" => value(Some("(vector,(0,2,2))")),
            "kvs-put" => self.put(key, asked.get("value").unwrap_or("").to_string()),
            "kvs-get" => value(
                self.state
                    .lock()
                    .unwrap()
                    .seen
                    .get(&key)
                    .map(String::as_str),
            ),
            "kvs-fence" => self.fence(),
            "spawn" => {
                assert_eq!(asked.get("subcmd"), Some("/bin/true"));
                vec![("jobid", "kw-three".into()), ("nerrs", "0".into())]
            }
            "finalize" => vec![],
            other => panic!("{other}"),
        };
        let words: Vec<(&str, &str)> = found
            .iter()
            .map(|(k, v)| (*k, &v[..]))
            .chain([("rc", "0")])
            .collect();
        frame::write(&format!("{}-response", asked.cmd()), &words).unwrap()
    }

    fn put(&self, key: String, value: String) -> Vec<(&'static str, String)> {
        assert!(
            key.len() < 64 && value.len() < 1024,
            "{key}: {} bytes",
            value.len()
        );
        self.state.lock().unwrap().fresh.insert(key, value);
        vec![]
    }

    fn fence(&self) -> Vec<(&'static str, String)> {
        let mut state = self.state.lock().unwrap();
        let mine = state.fences;
        state.waiting += 1;
        if state.waiting == self.size {
            state.waiting = 0;
            state.fences += 1;
            let fresh = std::mem::take(&mut state.fresh);
            state.seen.extend(fresh);
            self.opened.notify_all();
        }
        while state.fences == mine {
            state = self.opened.wait(state).unwrap();
        }
        vec![]
    }
}

fn value(found: Option<&str>) -> Vec<(&'static str, String)> {
    match found {
        Some(v) => vec![("found", "TRUE".into()), ("value", v.into())],
        None => vec![("found", "FALSE".into())],
    }
}
