//! A rank's end of PMI-1: what to send, and what the answer means.
//!
//! ```text
//! Fresh --Init--> Asked(Init) --answer--> Ready --ask--> Asked(..) --answer--> Ready --Finalize--> Asked --ack--> Gone
//! ```
//! `Abort` may be sent in any state and has no answer.

use super::line::{Line, short};
use super::{PmiError, Spawn, text};

/// A request to the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Opens the conversation.
    Init,
    /// Asks for the longest name, key and value.
    Maxes,
    /// Asks which program of a multi-program start this is.
    Appnum,
    /// Asks how many processes the system could hold.
    Universe,
    /// Asks for the name of the job's key-value space.
    Name,
    /// Stores a word (already safe, see [`text::encode`]) under a key.
    Put {
        /// Name of the key-value space.
        kvs: String,
        /// Key.
        key: String,
        /// Value.
        value: String,
    },
    /// Reads a word.
    Get {
        /// Name of the key-value space.
        kvs: String,
        /// Key.
        key: String,
    },
    /// Waits for all ranks.
    Fence,
    /// Starts more processes.
    Spawn {
        /// Name of the key-value space.
        kvs: String,
        /// The processes.
        wanted: Spawn,
    },
    /// Closes the conversation.
    Finalize,
    /// Ends the job; has no answer.
    Abort {
        /// Exit status.
        status: i32,
        /// One sentence, any text.
        message: String,
    },
}

/// Limits that the launcher announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maxes {
    /// Longest name of a key-value space.
    pub name: usize,
    /// Longest key.
    pub key: usize,
    /// Longest value.
    pub value: usize,
}

/// The launcher's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Init, Put, Fence, Spawn or Finalize was done.
    Done,
    /// Answer to Spawn: an error with the launcher's reason.
    Refused(String),
    /// Answer to Maxes.
    Maxes(Maxes),
    /// Answer to Appnum and Universe; `None` if the launcher has no value.
    Number(Option<i32>),
    /// Answer to Name.
    Name(String),
    /// Answer to Get; `None` if there is no value under the key.
    Value(Option<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    Ready,
    Asked(Expect),
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Init,
    Maxes,
    Appnum,
    Universe,
    Name,
    Put,
    Get,
    Fence,
    Spawn,
    Finalize,
}

impl Expect {
    fn answer_cmd(self) -> &'static str {
        match self {
            Expect::Init => "response_to_init",
            Expect::Maxes => "maxes",
            Expect::Appnum => "appnum",
            Expect::Universe => "universe_size",
            Expect::Name => "my_kvsname",
            Expect::Put => "put_result",
            Expect::Get => "get_result",
            Expect::Fence => "barrier_out",
            Expect::Spawn => "spawn_result",
            Expect::Finalize => "finalize_ack",
        }
    }
}

/// The state machine.
#[derive(Debug)]
pub struct Client {
    state: State,
}

impl Default for Client {
    fn default() -> Self {
        Client::new()
    }
}

impl Client {
    /// Creates the state before the first request.
    pub fn new() -> Client {
        Client {
            state: State::Fresh,
        }
    }

    /// The line to send, newline included. One request at a time.
    pub fn ask(&mut self, request: &Request) -> Result<String, PmiError> {
        let line = line_of(request)?;
        let Some(expect) = expected(request) else {
            return Ok(line);
        };
        let opens = expect == Expect::Init;
        match self.state {
            State::Fresh if opens => {}
            State::Ready if !opens => {}
            state => {
                return Err(PmiError::OutOfTurn {
                    protocol: "PMI",
                    request: format!("{request:?}"),
                    state: format!("{state:?}"),
                });
            }
        }
        self.state = State::Asked(expect);
        Ok(line)
    }

    /// Takes the line that answers the last request.
    pub fn handle(&mut self, text: &str) -> Result<Answer, PmiError> {
        let State::Asked(expect) = self.state else {
            return Err(PmiError::Unasked(short(text)));
        };
        let line = Line::parse(text)?;
        if line.cmd() != expect.answer_cmd() {
            return Err(PmiError::Answer {
                answer: short(text),
                due: expect.answer_cmd().into(),
            });
        }
        self.state = match expect {
            Expect::Finalize => State::Gone,
            _ => State::Ready,
        };
        answer(expect, &line, text)
    }
}

fn expected(request: &Request) -> Option<Expect> {
    Some(match request {
        Request::Init => Expect::Init,
        Request::Maxes => Expect::Maxes,
        Request::Appnum => Expect::Appnum,
        Request::Universe => Expect::Universe,
        Request::Name => Expect::Name,
        Request::Put { .. } => Expect::Put,
        Request::Get { .. } => Expect::Get,
        Request::Fence => Expect::Fence,
        Request::Spawn { .. } => Expect::Spawn,
        Request::Finalize => Expect::Finalize,
        Request::Abort { .. } => return None,
    })
}

fn line_of(request: &Request) -> Result<String, PmiError> {
    Ok(match request {
        Request::Spawn { kvs, wanted } => wanted.lines(kvs)?,
        Request::Init => "cmd=init pmi_version=1 pmi_subversion=1\n".into(),
        Request::Maxes => "cmd=get_maxes\n".into(),
        Request::Appnum => "cmd=get_appnum\n".into(),
        Request::Universe => "cmd=get_universe_size\n".into(),
        Request::Name => "cmd=get_my_kvsname\n".into(),
        Request::Put { kvs, key, value } => {
            format!("cmd=put kvsname={kvs} key={key} value={value}\n")
        }
        Request::Get { kvs, key } => format!("cmd=get kvsname={kvs} key={key}\n"),
        Request::Fence => "cmd=barrier_in\n".into(),
        Request::Finalize => "cmd=finalize\n".into(),
        Request::Abort { status, message } if message.is_empty() => {
            format!("cmd=abort exitcode={status}\n")
        }
        Request::Abort { status, message } => {
            let msg = text::encode(message.as_bytes());
            format!("cmd=abort exitcode={status} msg={msg}\n")
        }
    })
}

fn answer(expect: Expect, line: &Line, text: &str) -> Result<Answer, PmiError> {
    let refused = || Err(PmiError::Refused(short(text)));
    match expect {
        Expect::Init | Expect::Put | Expect::Fence if !line.is_ok() => refused(),
        Expect::Spawn if !line.is_ok() => {
            let why = text::decode(line.get("msg").unwrap_or("it says no more"))?;
            let why = short(&String::from_utf8_lossy(&why));
            Ok(Answer::Refused(why))
        }
        Expect::Init | Expect::Put | Expect::Fence | Expect::Spawn | Expect::Finalize => {
            Ok(Answer::Done)
        }
        Expect::Maxes => Ok(Answer::Maxes(Maxes {
            name: size(line, "kvsname_max")?,
            key: size(line, "keylen_max")?,
            value: size(line, "vallen_max")?,
        })),
        Expect::Appnum => Ok(Answer::Number(small(line, "appnum"))),
        Expect::Universe => Ok(Answer::Number(small(line, "size").filter(|n| *n > 0))),
        Expect::Name if !line.is_ok() => refused(),
        Expect::Name => Ok(Answer::Name(line.need("kvsname")?.to_string())),
        Expect::Get if !line.is_ok() => Ok(Answer::Value(None)),
        Expect::Get => Ok(Answer::Value(Some(line.need("value")?.to_string()))),
    }
}

fn small(line: &Line, key: &str) -> Option<i32> {
    i32::try_from(line.number(key).ok()?).ok()
}

fn size(line: &Line, key: &str) -> Result<usize, PmiError> {
    match usize::try_from(line.number(key)?) {
        Ok(n) if n >= 32 => Ok(n),
        _ => Err(PmiError::Maximum {
            key: key.into(),
            value: line.need(key)?.into(),
        }),
    }
}
