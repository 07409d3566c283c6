//! A rank's end of PMI-2: what to send, and what the answer means.
//!
//! ```text
//! Fresh --Greet (a line of PMI-1)--> Asked --line--> Greeted --Open--> Asked --frame--> Ready --ask--> Asked --frame--> Ready
//!   Ready --Finalize--> Asked --frame--> Gone
//! ```
//! `Abort` may be sent from `Greeted` on and has no answer.

use super::frame::{self, Frame};
use super::line::{Line, short};
use super::{PmiError, Spawn, text};

/// A request to the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request2 {
    /// Announces PMI-2; answered by a line.
    Greet,
    /// Opens the conversation.
    Open {
        /// The job's name from the environment (may be empty).
        job: String,
        /// This rank.
        rank: u32,
    },
    /// Asks for the job's name.
    Name,
    /// Asks for an attribute of the job.
    Attribute(String),
    /// Stores a word (already safe, see [`text::encode`]) under a key.
    Put {
        /// Key.
        key: String,
        /// Value.
        value: String,
    },
    /// Reads a word.
    Get {
        /// The job's name.
        job: String,
        /// The rank that stored it.
        from: u32,
        /// Key.
        key: String,
    },
    /// Waits for all ranks, and distributes the values that they have stored.
    Fence,
    /// Starts more processes.
    Spawn(Spawn),
    /// Closes the conversation.
    Finalize,
    /// Ends the job; has no answer.
    Abort(String),
}

/// The launcher's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer2 {
    /// It was done.
    Done,
    /// Answer to Spawn: an error with the launcher's reason.
    Refused(String),
    /// Answer to Open.
    Opened {
        /// This rank.
        rank: u32,
        /// Ranks of the job.
        size: u32,
        /// Which program of the start this is, if the launcher gives it.
        appnum: Option<u32>,
    },
    /// Answer to Name, Attribute and Get; `None` if there is no such value.
    Value(Option<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    Greeting,
    Greeted,
    Ready,
    Asked(Expect),
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Open,
    Name,
    Attribute,
    Put,
    Get,
    Fence,
    Spawn,
    Finalize,
}

impl Expect {
    fn cmd(self) -> &'static str {
        match self {
            Expect::Open => "fullinit",
            Expect::Name => "job-getid",
            Expect::Attribute => "info-getjobattr",
            Expect::Put => "kvs-put",
            Expect::Get => "kvs-get",
            Expect::Fence => "kvs-fence",
            Expect::Spawn => "spawn",
            Expect::Finalize => "finalize",
        }
    }
}

/// The state machine.
#[derive(Debug)]
pub struct Client2 {
    state: State,
}

impl Default for Client2 {
    fn default() -> Self {
        Client2 {
            state: State::Fresh,
        }
    }
}

impl Client2 {
    /// Creates the state before the first request.
    pub fn new() -> Client2 {
        Client2::default()
    }

    /// The request to send. Only one request is pending at a time.
    pub fn ask(&mut self, request: &Request2) -> Result<String, PmiError> {
        let next = match (self.state, request) {
            (State::Fresh, Request2::Greet) => State::Greeting,
            (State::Greeted, Request2::Open { .. }) => State::Asked(Expect::Open),
            (State::Fresh | State::Greeting, _) | (_, Request2::Greet | Request2::Open { .. }) => {
                return self.wrong(request);
            }
            (state, Request2::Abort(_)) => state,
            (State::Ready, request) => State::Asked(expected(request)),
            _ => return self.wrong(request),
        };
        self.state = next;
        words_of(request)
    }

    fn wrong<T>(&self, request: &Request2) -> Result<T, PmiError> {
        Err(PmiError::OutOfTurn {
            protocol: "PMI-2",
            request: format!("{request:?}"),
            state: format!("{:?}", self.state),
        })
    }

    /// Takes the line that answers [`Request2::Greet`].
    pub fn handle_greeting(&mut self, text: &str) -> Result<(), PmiError> {
        let line = Line::parse(text)?;
        if self.state != State::Greeting || line.cmd() != "response_to_init" {
            return Err(PmiError::Unasked(short(text)));
        }
        if !line.is_ok() || line.number("pmi_version")? != 2 {
            return Err(PmiError::NoPmi2(short(text)));
        }
        self.state = State::Greeted;
        Ok(())
    }

    /// Takes the frame that answers the last request.
    pub fn handle(&mut self, frame: &Frame) -> Result<Answer2, PmiError> {
        let State::Asked(expect) = self.state else {
            return Err(PmiError::Unasked(frame.short()));
        };
        if frame.cmd().strip_suffix("-response") != Some(expect.cmd()) {
            return Err(PmiError::Answer {
                answer: frame.short(),
                due: format!("{}-response", expect.cmd()),
            });
        }
        self.state = match expect {
            Expect::Finalize => State::Gone,
            _ => State::Ready,
        };
        answer(expect, frame)
    }
}

fn expected(request: &Request2) -> Expect {
    match request {
        Request2::Name => Expect::Name,
        Request2::Attribute(_) => Expect::Attribute,
        Request2::Put { .. } => Expect::Put,
        Request2::Get { .. } => Expect::Get,
        Request2::Fence => Expect::Fence,
        Request2::Spawn(_) => Expect::Spawn,
        Request2::Greet | Request2::Open { .. } | Request2::Finalize | Request2::Abort(_) => {
            Expect::Finalize
        }
    }
}

fn words_of(request: &Request2) -> Result<String, PmiError> {
    match request {
        Request2::Greet => Ok("cmd=init pmi_version=2 pmi_subversion=0\n".into()),
        Request2::Open { job, rank } => frame::write(
            "fullinit",
            &[
                ("pmijobid", job),
                ("pmirank", &rank.to_string()),
                ("threaded", "FALSE"),
            ],
        ),
        Request2::Name => frame::write("job-getid", &[]),
        Request2::Attribute(key) => frame::write("info-getjobattr", &[("key", key)]),
        Request2::Put { key, value } => frame::write("kvs-put", &[("key", key), ("value", value)]),
        Request2::Get { job, from, key } => frame::write(
            "kvs-get",
            &[("jobid", job), ("srcid", &from.to_string()), ("key", key)],
        ),
        Request2::Fence => frame::write("kvs-fence", &[]),
        Request2::Spawn(spawn) => spawn.frame(),
        Request2::Finalize => frame::write("finalize", &[]),
        Request2::Abort(message) => {
            let message = text::encode(message.as_bytes()).replace("%20", " ");
            frame::write("abort", &[("isworld", "TRUE"), ("msg", &message)])
        }
    }
}

fn answer(expect: Expect, frame: &Frame) -> Result<Answer2, PmiError> {
    let refused = || Err(PmiError::Refused(frame.short()));
    match expect {
        // a launcher may say "not found" by an error
        Expect::Attribute | Expect::Get if !frame.is_ok() || !frame.says("found") => {
            Ok(Answer2::Value(None))
        }
        Expect::Attribute | Expect::Get => {
            Ok(Answer2::Value(frame.get("value").map(str::to_string)))
        }
        Expect::Spawn if !frame.is_ok() => Ok(Answer2::Refused(frame.short())),
        _ if !frame.is_ok() => refused(),
        Expect::Open => Ok(Answer2::Opened {
            rank: frame.number("rank")?,
            size: frame.number("size")?,
            appnum: frame.number("appnum").ok(),
        }),
        Expect::Name => Ok(Answer2::Value(frame.get("jobid").map(str::to_string))),
        Expect::Put | Expect::Fence | Expect::Spawn | Expect::Finalize => Ok(Answer2::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmi::Frames;
    use proptest::prelude::*;

    fn frame_of(text: &str) -> Result<Frame, PmiError> {
        let mut frames = Frames::default();
        frames.feed(text.as_bytes());
        frames.poll_frame().unwrap()
    }

    fn opened() -> Client2 {
        let mut c = Client2::new();
        assert_eq!(
            c.ask(&Request2::Greet).unwrap(),
            "cmd=init pmi_version=2 pmi_subversion=0\n"
        );
        c.handle_greeting("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0")
            .unwrap();
        let open = Request2::Open {
            job: "7.0".into(),
            rank: 1,
        };
        assert_eq!(
            c.ask(&open).unwrap(),
            "    51cmd=fullinit;pmijobid=7.0;pmirank=1;threaded=FALSE;"
        );
        let full = frame::write(
            "fullinit-response",
            &[("rank", "1"), ("size", "4"), ("appnum", "0"), ("rc", "0")],
        );
        let answer = c.handle(&frame_of(&full.unwrap()).unwrap()).unwrap();
        assert_eq!(
            answer,
            Answer2::Opened {
                rank: 1,
                size: 4,
                appnum: Some(0)
            }
        );
        c
    }

    #[test]
    fn a_rank_opens_reads_and_closes() {
        let mut c = opened();
        let get = Request2::Get {
            job: "7.0".into(),
            from: 2,
            key: "k".into(),
        };
        for (words, value) in [
            (
                &[("found", "TRUE"), ("value", "a;b"), ("rc", "0")][..],
                Some("a;b".to_string()),
            ),
            (&[("found", "FALSE"), ("rc", "0")], None),
            (&[("rc", "14")], None),
        ] {
            c.ask(&get).unwrap();
            let frame = frame_of(&frame::write("kvs-get-response", words).unwrap()).unwrap();
            assert_eq!(c.handle(&frame).unwrap(), Answer2::Value(value));
        }
        c.ask(&Request2::Fence).unwrap();
        let refused =
            frame_of(&frame::write("kvs-fence-response", &[("rc", "3")]).unwrap()).unwrap();
        assert!(c.handle(&refused).is_err());
        c.ask(&Request2::Finalize).unwrap();
        let done = frame_of(&frame::write("finalize-response", &[("rc", "0")]).unwrap()).unwrap();
        assert_eq!(c.handle(&done).unwrap(), Answer2::Done);
        assert!(
            c.ask(&Request2::Fence).is_err(),
            "nothing can be asked after the end"
        );
    }

    #[test]
    fn answers_out_of_turn_are_refused() {
        let mut c = opened();
        let done = frame_of(&frame::write("kvs-put-response", &[("rc", "0")]).unwrap()).unwrap();
        assert!(matches!(c.handle(&done), Err(PmiError::Unasked(_))));
        c.ask(&Request2::Fence).unwrap();
        assert!(matches!(c.handle(&done), Err(PmiError::Answer { .. })));
        let mut fresh = Client2::new();
        assert!(fresh.ask(&Request2::Fence).is_err());
        fresh.ask(&Request2::Greet).unwrap();
        let one = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
        assert!(matches!(
            fresh.handle_greeting(one),
            Err(PmiError::NoPmi2(_))
        ));
    }

    #[test]
    fn frames_that_are_none_are_refused() {
        for bad in [
            "xxxxxxcmd=a;",
            "    -1cmd=a;",
            "     6nocmd;",
            "     5cmd=a",
        ] {
            let mut frames = Frames::default();
            frames.feed(bad.as_bytes());
            let whole_word = bad.ends_with("cmd=a");
            assert_eq!(
                frames.poll_frame().is_some_and(|f| f.is_err()),
                !whole_word,
                "{bad}"
            );
        }
        assert!(frame_of("     6a=1;b=").is_err());
        assert!(frame_of("     0").is_err());
        assert!(frame::write("kvs-put", &[("value", &"x".repeat(1_000_000))]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn words_come_back_whatever_the_pieces(
            values in proptest::collection::vec("[^\0]{0,30}", 1..5),
            cut in 1usize..40,
        ) {
            // the doubling of semicolons cannot tell "a;" at the end of a word from the end of the
            // word
            let values: Vec<String> = values.iter().map(|v| format!("{}.", v.trim_end_matches(';'))).collect();
            let keys: Vec<String> = (0..values.len()).map(|i| format!("k{i}")).collect();
            let words: Vec<(&str, &str)> = keys.iter().zip(&values).map(|(k, v)| (&k[..], &v[..])).collect();
            let text = frame::write("x", &words).unwrap();
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for piece in text.repeat(2).as_bytes().chunks(cut) {
                frames.feed(piece);
                while let Some(f) = frames.poll_frame() {
                    found.push(f.unwrap());
                }
            }
            prop_assert_eq!(found.len(), 2);
            for (k, v) in words {
                prop_assert_eq!(found[1].get(k), Some(v));
            }
        }

        #[test]
        fn nonsense_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut frames = Frames::default();
            frames.feed(&bytes);
            frames.feed(b"    10cmd=abcd;;");
            let mut c = opened();
            let _ = c.ask(&Request2::Fence);
            for _ in 0..5 {
                if let Some(Ok(f)) = frames.poll_frame() {
                    let _ = c.handle(&f);
                }
            }
            let _ = Client2::new().handle_greeting(&String::from_utf8_lossy(&bytes));
        }
    }
}
