//! Messages between `mpiexec` and its helper on another host, as bytes.
//!
//! The helper's standard input carries [`Order`]s, its standard output [`Report`]s. Output of login
//! scripts is skipped: the first report comes after [`MAGIC`]. After that a message is a length (4
//! bytes, little endian), a kind (1 byte) and a body; numbers have 4 bytes, texts and bytes are
//! preceded by a length.
//!
//! ```text
//! mpiexec                              helper
//!            <-- MAGIC Ready --
//!   -- Start -->
//!            <-- Wire Output Ended Taken Pong Calls Trace Clock --       -- Wire Input Signal Flow Ping Pause Calls Clock -->
//!            <-- Failed --                             (the helper could not start a rank: it has ended the others)
//!   -- End -->                                         (or the end of the connection: the helper kills what is left, and goes)
//! ```
//! PMI-1 passes through both unchanged, and with it the job's key, which therefore is in no
//! argument and in no file.

use thiserror::Error;

/// Preamble of the first report.
pub const MAGIC: &[u8; 16] = b"\n\0kw-helper-1\0\r\n";
/// Version of these messages; both ends must have the same.
pub const VERSION: u32 = 6;
/// Longest message that is read.
const LONGEST: usize = 64 << 20;

/// A message between mpiexec and its helper cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// It is shorter than its contents.
    #[error("a message of the helper ends in the middle")]
    Short,
    /// It is not a message for this side.
    #[error("there is no {what} of kind {kind} between mpiexec and its helper")]
    Kind {
        /// Expected value.
        what: &'static str,
        /// Reported value.
        kind: u8,
    },
    /// It has no bytes, or more than any message has.
    #[error("a message between mpiexec and its helper has {0} bytes")]
    Length(usize),
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Program {
    /// Its name and arguments as given to mpiexec.
    pub words: Vec<Vec<u8>>,
    /// Its environment, without the variables that differ by rank.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Its working directory.
    pub dir: Vec<u8>,
}

/// A rank to start.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Task {
    /// The rank.
    pub rank: u32,
    /// Which of the programs.
    pub program: u32,
    /// Ranks that share its memory, itself included.
    pub local: u32,
    /// How many of them come before it.
    pub before: u32,
    /// Processors to which it is bound, if mpiexec has chosen them: on its own host.
    pub cpus: Vec<u32>,
}

/// Everything that a helper must start.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Start {
    /// Name of the job.
    pub job: String,
    /// Number of this host, and its name as the user wrote it.
    pub number: u32,
    /// Its name as the user wrote it.
    pub host: String,
    /// Ranks in the job.
    pub size: u32,
    /// Binding of the ranks, in the words of the option.
    pub bind: String,
    /// Whether to report which rank runs where.
    pub map: bool,
    /// Whether ranks record their MPI calls.
    pub profile: bool,
    /// Whether they also record them over time.
    pub trace: bool,
    /// Commands under which ranks are started, from the options of mpiexec.
    pub wraps: Vec<String>,
    /// Programs.
    pub programs: Vec<Program>,
    /// Ranks.
    pub tasks: Vec<Task>,
}

/// Messages of mpiexec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start these ranks.
    Start(Start),
    /// Bytes of PMI for a rank.
    Wire(u32, Vec<u8>),
    /// Standard input for rank 0; empty at its end.
    Input(Vec<u8>),
    /// A signal for all ranks.
    Signal(u32),
    /// Whether output is wanted now.
    Flow(bool),
    /// Asks for [`Report::Pong`].
    Ping,
    /// mpiexec is about to be stopped, so it will be silent until its next message.
    Pause,
    /// Asks for the MPI calls of the living ranks.
    Calls,
    /// Asks for [`Report::Clock`]; carries mpiexec's clock (nanoseconds).
    Clock(u64),
    /// End; with `true` also kill all remaining processes.
    End(bool),
}

/// Messages of a helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The helper is there, with this version of these messages, and of the library.
    Ready(u32, String),
    /// Bytes of PMI from a rank.
    Wire(u32, Vec<u8>),
    /// A rank printed this on standard output (0) or error (1).
    Output(u32, u32, Vec<u8>),
    /// A rank ended: by exit (`signal` 0) or by a signal.
    Ended {
        /// The rank.
        rank: u32,
        /// Exit status.
        status: u32,
        /// Number of the signal, or 0.
        signal: u32,
        /// Whether it left a core file.
        core: bool,
    },
    /// The ranks cannot be started: exit status for mpiexec, and one sentence.
    Failed(u32, String),
    /// The last [`Order::Input`] has been passed on.
    Taken,
    /// A line for people, to standard error: which rank runs where, which processes were left
    /// behind.
    Say(String),
    /// Still there.
    Pong,
    /// MPI calls of a rank until now, or (`over`) until it ended
    /// ([`crate::profile::Calls::encode`]).
    Calls {
        /// The rank.
        rank: u32,
        /// Whether it has ended.
        over: bool,
        /// The record.
        calls: Vec<u8>,
    },
    /// End of the answer to [`Order::Calls`].
    AllCalls,
    /// Trace records of a rank ([`crate::trace::Batch::encode`]).
    Trace(u32, Vec<u8>),
    /// The time from [`Order::Clock`], and the offset of the helper's clock (nanoseconds).
    Clock(u64, u64),
}

/// Writes one message.
struct Writer(Vec<u8>);

impl Writer {
    fn new(kind: u8) -> Writer {
        Writer(vec![0, 0, 0, 0, kind])
    }

    fn number(mut self, n: u32) -> Writer {
        self.0.extend_from_slice(&n.to_le_bytes());
        self
    }

    fn long(self, n: u64) -> Writer {
        self.number(n as u32).number((n >> 32) as u32)
    }

    fn bytes(mut self, bytes: &[u8]) -> Writer {
        self = self.number(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
        self
    }

    fn list<T>(self, items: &[T], mut each: impl FnMut(Writer, &T) -> Writer) -> Writer {
        let counted = self.number(items.len() as u32);
        items.iter().fold(counted, &mut each)
    }

    fn end(mut self) -> Vec<u8> {
        let body = (self.0.len() - 4) as u32;
        self.0[..4].copy_from_slice(&body.to_le_bytes());
        self.0
    }
}

/// Reads one message.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, n: usize) -> Result<&[u8], Malformed> {
        let Some((head, rest)) = self.0.split_at_checked(n) else {
            return Err(Malformed::Short);
        };
        self.0 = rest;
        Ok(head)
    }

    fn number(&mut self) -> Result<u32, Malformed> {
        let b = self.take(4)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    fn long(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from(self.number()?) | u64::from(self.number()?) << 32)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        Ok(self.number()? != 0)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Malformed> {
        let n = self.number()? as usize;
        self.take(n).map(<[u8]>::to_vec)
    }

    fn text(&mut self) -> Result<String, Malformed> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }

    fn list<T>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let n = self.number()?;
        (0..n).map(|_| each(self)).collect()
    }
}

fn write_start(s: &Start) -> Vec<u8> {
    let program = |w: Writer, p: &Program| {
        w.list(&p.words, |w, word| w.bytes(word))
            .list(&p.env, |w, (k, v)| w.bytes(k).bytes(v))
            .bytes(&p.dir)
    };
    let task = |w: Writer, s: &Task| {
        w.number(s.rank)
            .number(s.program)
            .number(s.local)
            .number(s.before)
            .list(&s.cpus, |w, cpu| w.number(*cpu))
    };
    Writer::new(0)
        .bytes(s.job.as_bytes())
        .number(s.number)
        .bytes(s.host.as_bytes())
        .number(s.size)
        .bytes(s.bind.as_bytes())
        .number(s.map.into())
        .number(s.profile.into())
        .number(s.trace.into())
        .list(&s.wraps, |w, wrap| w.bytes(wrap.as_bytes()))
        .list(&s.programs, program)
        .list(&s.tasks, task)
        .end()
}

fn read_start(r: &mut Reader) -> Result<Start, Malformed> {
    Ok(Start {
        job: r.text()?,
        number: r.number()?,
        host: r.text()?,
        size: r.number()?,
        bind: r.text()?,
        map: r.flag()?,
        profile: r.flag()?,
        trace: r.flag()?,
        wraps: r.list(Reader::text)?,
        programs: r.list(|r| {
            Ok(Program {
                words: r.list(Reader::bytes)?,
                env: r.list(|r| Ok((r.bytes()?, r.bytes()?)))?,
                dir: r.bytes()?,
            })
        })?,
        tasks: r.list(|r| {
            Ok(Task {
                rank: r.number()?,
                program: r.number()?,
                local: r.number()?,
                before: r.number()?,
                cpus: r.list(Reader::number)?,
            })
        })?,
    })
}

/// Messages of one direction.
pub trait Message: Sized {
    /// Encodes a message, length included.
    fn encode(&self) -> Vec<u8>;
    /// Decodes a message from its kind and body.
    fn decode(kind: u8, body: &[u8]) -> Result<Self, Malformed>;
}

impl Message for Order {
    fn encode(&self) -> Vec<u8> {
        match self {
            Order::Start(s) => write_start(s),
            Order::Wire(rank, bytes) => Writer::new(1).number(*rank).bytes(bytes).end(),
            Order::Input(bytes) => Writer::new(2).bytes(bytes).end(),
            Order::Signal(n) => Writer::new(3).number(*n).end(),
            Order::Flow(on) => Writer::new(4).number((*on).into()).end(),
            Order::Ping => Writer::new(5).end(),
            Order::Pause => Writer::new(6).end(),
            Order::End(kill) => Writer::new(7).number((*kill).into()).end(),
            Order::Calls => Writer::new(8).end(),
            Order::Clock(now) => Writer::new(9).long(*now).end(),
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Result<Order, Malformed> {
        let mut r = Reader(body);
        Ok(match kind {
            0 => Order::Start(read_start(&mut r)?),
            1 => Order::Wire(r.number()?, r.bytes()?),
            2 => Order::Input(r.bytes()?),
            3 => Order::Signal(r.number()?),
            4 => Order::Flow(r.flag()?),
            5 => Order::Ping,
            6 => Order::Pause,
            7 => Order::End(r.flag()?),
            8 => Order::Calls,
            9 => Order::Clock(r.long()?),
            kind => {
                return Err(Malformed::Kind {
                    what: "order",
                    kind,
                });
            }
        })
    }
}

impl Message for Report {
    fn encode(&self) -> Vec<u8> {
        match self {
            Report::Ready(version, library) => Writer::new(0)
                .number(*version)
                .bytes(library.as_bytes())
                .end(),
            Report::Wire(rank, bytes) => Writer::new(1).number(*rank).bytes(bytes).end(),
            Report::Output(rank, which, bytes) => Writer::new(2)
                .number(*rank)
                .number(*which)
                .bytes(bytes)
                .end(),
            Report::Ended {
                rank,
                status,
                signal,
                core,
            } => Writer::new(3)
                .number(*rank)
                .number(*status)
                .number(*signal)
                .number((*core).into())
                .end(),
            Report::Failed(status, text) => {
                Writer::new(4).number(*status).bytes(text.as_bytes()).end()
            }
            Report::Taken => Writer::new(5).end(),
            Report::Say(text) => Writer::new(6).bytes(text.as_bytes()).end(),
            Report::Pong => Writer::new(7).end(),
            Report::Calls { rank, over, calls } => Writer::new(8)
                .number(*rank)
                .number((*over).into())
                .bytes(calls)
                .end(),
            Report::AllCalls => Writer::new(9).end(),
            Report::Trace(rank, batch) => Writer::new(10).number(*rank).bytes(batch).end(),
            Report::Clock(asked, now) => Writer::new(11).long(*asked).long(*now).end(),
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Result<Report, Malformed> {
        let mut r = Reader(body);
        Ok(match kind {
            0 => Report::Ready(r.number()?, r.text()?),
            1 => Report::Wire(r.number()?, r.bytes()?),
            2 => Report::Output(r.number()?, r.number()?, r.bytes()?),
            3 => Report::Ended {
                rank: r.number()?,
                status: r.number()?,
                signal: r.number()?,
                core: r.flag()?,
            },
            4 => Report::Failed(r.number()?, r.text()?),
            5 => Report::Taken,
            6 => Report::Say(r.text()?),
            7 => Report::Pong,
            8 => Report::Calls {
                rank: r.number()?,
                over: r.flag()?,
                calls: r.bytes()?,
            },
            9 => Report::AllCalls,
            10 => Report::Trace(r.number()?, r.bytes()?),
            11 => Report::Clock(r.long()?, r.long()?),
            kind => {
                return Err(Malformed::Kind {
                    what: "report",
                    kind,
                });
            }
        })
    }
}

/// Cuts a byte stream into messages.
#[derive(Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
    /// Whether the magic is still expected; number of bytes skipped so far.
    magic: bool,
}

impl Messages {
    /// A cutter for a stream that carries nothing else.
    pub fn new() -> Messages {
        Messages::default()
    }

    /// A cutter for a stream with other text before [`MAGIC`].
    pub fn after_magic() -> Messages {
        Messages {
            bytes: Vec::new(),
            magic: true,
        }
    }

    /// Takes received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if !self.magic {
            return;
        }
        let at = self.bytes.windows(MAGIC.len()).position(|w| w == MAGIC);
        match at {
            Some(at) => {
                self.bytes.drain(..at + MAGIC.len());
                self.magic = false;
            }
            // a part of the magic may have arrived
            None => {
                let keep = self.bytes.len().min(MAGIC.len() - 1);
                self.bytes.drain(..self.bytes.len() - keep);
            }
        }
    }

    /// The next whole message; `None` until there is one.
    pub fn poll<M: Message>(&mut self) -> Option<Result<M, Malformed>> {
        let head = self.bytes.first_chunk::<4>()?;
        if self.magic {
            return None;
        }
        let body = u32::from_le_bytes(*head) as usize;
        if body == 0 || body > LONGEST {
            return Some(Err(Malformed::Length(body)));
        }
        if self.bytes.len() < 4 + body {
            return None;
        }
        let message: Vec<u8> = self.bytes.drain(..4 + body).collect();
        Some(M::decode(message[4], &message[5..]))
    }
}

#[cfg(test)]
mod tests;
