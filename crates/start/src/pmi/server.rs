//! The launcher's end of PMI-1, for all ranks of one job.
//!
//! Bytes from a rank go in with [`Server::handle`], effects come out. A rank is in one [`Stage`]:
//!
//! ```text
//! Silent --init--> Speaking --barrier_in--> Waiting --all came--> Speaking --finalize--> Finalized --init--> Speaking (next epoch)
//!   any --process ended ([`Server::left`])--> Left
//! ```
//!
//! A rank that finalizes and opens again (two MPI programs one after the other in a script)
//! continues in the next *epoch*, which has its own key-value space; fences are among ranks of one
//! epoch. A fence that can never be complete, because a rank has left or closed, is reported at
//! once ([`Effect::BrokenFence`]).

use std::collections::HashMap;

use super::line::{Line, Lines, short};
use super::{JOB_KEY, MAPPING_KEY, PmiError, WAITS, mapping, text};

/// Longest value that is announced. A rank splits a longer value over several keys.
const VALUE_MAX: usize = 65536;
const KEY_MAX: usize = 256;
const NAME_MAX: usize = 256;

/// State of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has sent nothing yet.
    Silent,
    /// Between init and finalize.
    Speaking,
    /// In a fence.
    Waiting,
    /// It has sent finalize.
    Finalized,
    /// Its process has ended.
    Left {
        /// Whether it ended between init and finalize.
        open: bool,
    },
}

/// Actions of the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send this line (newline included) to a rank.
    Send {
        /// The destination.
        rank: u32,
        /// The contents.
        line: String,
    },
    /// A rank called MPI_Abort.
    Abort {
        /// The rank.
        rank: u32,
        /// Its exit status.
        status: i32,
        /// Its sentence, empty if it gave none.
        message: String,
    },
    /// `waiting` is in a fence that `missing` can never enter.
    BrokenFence {
        /// The waiting rank.
        waiting: u32,
        /// Ranks that have left or finalized.
        missing: u32,
    },
    /// A rank reports in this line what it waits for.
    Waits {
        /// The rank.
        rank: u32,
        /// The line, without its end.
        line: String,
    },
    /// A rank does not speak PMI-1; nothing more will be read from it.
    Garbage {
        /// The rank.
        rank: u32,
        /// The error.
        error: PmiError,
    },
}

#[derive(Debug)]
struct Rank {
    stage: Stage,
    epoch: usize,
    lines: Lines,
    /// Inside `mcmd=` until `endcmd`.
    long: Option<String>,
    deaf: bool,
    /// Whether it has asked for the job's key, so it runs this library.
    ours: bool,
    appnum: i32,
}

/// The state machine.
#[derive(Debug)]
pub struct Server {
    job: String,
    ranks: Vec<Rank>,
    universe: i32,
    /// Prefix of every epoch's key-value space.
    first: HashMap<String, String>,
    spaces: Vec<HashMap<String, String>>,
}

impl Server {
    /// A job of `appnums.len()` ranks. `hosts[r]` is the host number of rank `r`; `universe` is
    /// MPI_UNIVERSE_SIZE. `key` is the job's key, unless the ranks get it by other means.
    pub fn new(
        job: &str,
        key: Option<&[u8; 32]>,
        appnums: &[i32],
        hosts: &[u32],
        universe: i32,
    ) -> Server {
        let rank = |&appnum: &i32| Rank {
            stage: Stage::Silent,
            epoch: 0,
            lines: Lines::default(),
            long: None,
            deaf: false,
            ours: false,
            appnum,
        };
        Server {
            job: job.to_string(),
            ranks: appnums.iter().map(rank).collect(),
            universe,
            first: key
                .map(|k| (JOB_KEY.to_string(), text::hex(k)))
                .into_iter()
                .chain([(MAPPING_KEY.to_string(), mapping::write(hosts))])
                .collect(),
            spaces: Vec::new(),
        }
    }

    /// State of a rank.
    pub fn stage(&self, rank: u32) -> Stage {
        self.ranks[rank as usize].stage
    }

    /// Whether a rank can be asked what it waits for ([`super::ask`]).
    pub fn hears_questions(&self, rank: u32) -> bool {
        self.ranks[rank as usize].ours && matches!(self.stage(rank), Stage::Speaking)
    }

    /// Ranks that wait in a fence of the first epoch, and those that have sent nothing yet.
    pub fn late(&self) -> (Vec<u32>, Vec<u32>) {
        let those = |stage| {
            let ranks = self.ranks.iter().zip(0..);
            let found = ranks.filter(move |(r, _)| r.epoch == 0 && r.stage == stage);
            found.map(|(_, rank)| rank).collect()
        };
        (those(Stage::Waiting), those(Stage::Silent))
    }

    /// Values that ranks of the last epoch have stored under a key.
    pub fn value(&self, key: &str) -> Option<String> {
        let space = self.spaces.last()?;
        let key = text::encode(key.as_bytes());
        let bytes = match text::stored(space.get(&key)?).ok()? {
            text::Stored::Whole(bytes) => bytes,
            text::Stored::Pieces(n) => {
                let piece = |at| space.get(&format!("{key}.{at}")).map(String::as_str);
                let all: Option<Vec<&str>> = (0..n).map(piece).collect();
                text::decode(&all?.concat()).ok()?
            }
        };
        String::from_utf8(bytes).ok()
    }

    /// Takes bytes from a rank.
    pub fn handle(&mut self, rank: u32, bytes: &[u8], out: &mut Vec<Effect>) {
        if self.ranks[rank as usize].deaf {
            return;
        }
        self.ranks[rank as usize].lines.feed(bytes);
        while let Some(line) = self.ranks[rank as usize].lines.poll_line() {
            let done = line.and_then(|l| self.line(rank, &l, out));
            if let Err(error) = done {
                self.ranks[rank as usize].deaf = true;
                out.push(Effect::Garbage { rank, error });
                return;
            }
        }
    }

    /// Handles the end of a rank's process.
    pub fn left(&mut self, rank: u32, out: &mut Vec<Effect>) {
        let r = &mut self.ranks[rank as usize];
        let open = matches!(r.stage, Stage::Speaking | Stage::Waiting);
        r.stage = Stage::Left { open };
        r.deaf = true;
        for epoch in 0..self.spaces.len() {
            self.fence(epoch, out);
        }
    }

    fn line(&mut self, rank: u32, text: &str, out: &mut Vec<Effect>) -> Result<(), PmiError> {
        if let Some(cmd) = self.ranks[rank as usize].long.take() {
            return self.long_line(rank, cmd, text, out);
        }
        if text.starts_with(WAITS) {
            let line = text.to_string();
            out.push(Effect::Waits { rank, line });
            return Ok(());
        }
        let line = Line::parse(text)?;
        if line.is_long() {
            self.ranks[rank as usize].long = Some(line.cmd().to_string());
            return Ok(());
        }
        let opened = matches!(self.stage(rank), Stage::Speaking);
        match line.cmd() {
            "init" => self.init(rank, &line, out),
            "abort" => self.abort(rank, &line, out),
            _ if !opened => Err(PmiError::Stage {
                command: short(line.cmd()),
                stage: self.stage(rank),
            }),
            "barrier_in" => self.barrier(rank, out),
            "finalize" => self.finalize(rank, out),
            _ => self.answer(rank, &line, out),
        }
    }

    fn long_line(
        &mut self,
        rank: u32,
        cmd: String,
        text: &str,
        out: &mut Vec<Effect>,
    ) -> Result<(), PmiError> {
        if text.trim() == "endcmd" {
            let msg = text::encode(b"not offered by this launcher");
            reply(rank, format!("cmd={cmd}_result rc=-1 msg={msg}"), out);
        } else {
            self.ranks[rank as usize].long = Some(cmd);
        }
        Ok(())
    }

    fn init(&mut self, rank: u32, line: &Line, out: &mut Vec<Effect>) -> Result<(), PmiError> {
        let version = line.number("pmi_version")?;
        let r = &mut self.ranks[rank as usize];
        match r.stage {
            Stage::Silent => {}
            Stage::Finalized => r.epoch += 1,
            stage => {
                let command = "init".into();
                return Err(PmiError::Stage { command, stage });
            }
        }
        r.stage = Stage::Speaking;
        let epoch = r.epoch;
        while self.spaces.len() <= epoch {
            self.spaces.push(self.first.clone());
        }
        let rc = if version == 1 { 0 } else { -1 };
        reply(
            rank,
            format!("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={rc}"),
            out,
        );
        Ok(())
    }

    fn abort(&mut self, rank: u32, line: &Line, out: &mut Vec<Effect>) -> Result<(), PmiError> {
        let status = line.number("exitcode").unwrap_or(1);
        let message = text::decode(line.get("msg").unwrap_or(""))?;
        out.push(Effect::Abort {
            rank,
            status: status as i32,
            message: String::from_utf8_lossy(&message).into_owned(),
        });
        Ok(())
    }

    fn barrier(&mut self, rank: u32, out: &mut Vec<Effect>) -> Result<(), PmiError> {
        self.ranks[rank as usize].stage = Stage::Waiting;
        self.fence(self.ranks[rank as usize].epoch, out);
        Ok(())
    }

    fn finalize(&mut self, rank: u32, out: &mut Vec<Effect>) -> Result<(), PmiError> {
        self.ranks[rank as usize].stage = Stage::Finalized;
        reply(rank, "cmd=finalize_ack".into(), out);
        self.fence(self.ranks[rank as usize].epoch, out);
        Ok(())
    }

    /// Completes a fence that all have entered, or reports one that can never be complete.
    fn fence(&mut self, epoch: usize, out: &mut Vec<Effect>) {
        let in_it = |r: &Rank| r.epoch == epoch && r.stage == Stage::Waiting;
        let Some(waiting) = self.ranks.iter().position(in_it) else {
            return;
        };
        let lost = |r: &Rank| match r.stage {
            Stage::Left { .. } => true,
            Stage::Finalized => r.epoch == epoch,
            _ => r.epoch > epoch,
        };
        if let Some(missing) = self.ranks.iter().position(lost) {
            out.push(Effect::BrokenFence {
                waiting: waiting as u32,
                missing: missing as u32,
            });
        } else if self.ranks.iter().all(in_it) {
            for (rank, r) in self.ranks.iter_mut().enumerate() {
                r.stage = Stage::Speaking;
                reply(rank as u32, "cmd=barrier_out rc=0".into(), out);
            }
        }
    }

    fn answer(&mut self, rank: u32, line: &Line, out: &mut Vec<Effect>) -> Result<(), PmiError> {
        let r = &self.ranks[rank as usize];
        let text = match line.cmd() {
            "get_maxes" => format!(
                "cmd=maxes kvsname_max={NAME_MAX} keylen_max={KEY_MAX} vallen_max={VALUE_MAX} rc=0"
            ),
            "get_appnum" => format!("cmd=appnum appnum={} rc=0", r.appnum),
            "get_universe_size" => format!("cmd=universe_size size={} rc=0", self.universe),
            "get_my_kvsname" => format!("cmd=my_kvsname kvsname={} rc=0", self.space_name(r.epoch)),
            "put" => self.put(rank, line)?,
            "get" => {
                self.ranks[rank as usize].ours |= line.get("key") == Some(JOB_KEY);
                self.get(rank, line)?
            }
            other => {
                let msg = text::encode(b"not offered by this launcher");
                format!(
                    "cmd={}_result rc=-1 msg={msg}",
                    text::encode(other.as_bytes())
                )
            }
        };
        reply(rank, text, out);
        Ok(())
    }

    fn space_name(&self, epoch: usize) -> String {
        match epoch {
            0 => self.job.clone(),
            n => format!("{}-{n}", self.job),
        }
    }

    fn put(&mut self, rank: u32, line: &Line) -> Result<String, PmiError> {
        let (key, value) = (line.need("key")?, line.need("value")?);
        let epoch = self.ranks[rank as usize].epoch;
        let refusal = if line.need("kvsname")? != self.space_name(epoch) {
            Some("unknown_kvsname")
        } else if key.len() > KEY_MAX || value.len() > VALUE_MAX {
            Some("too_long")
        } else if self.first.contains_key(key) {
            Some("reserved_key")
        } else {
            None
        };
        if let Some(msg) = refusal {
            return Ok(format!("cmd=put_result rc=-1 msg={msg}"));
        }
        self.spaces[epoch].insert(key.to_string(), value.to_string());
        Ok("cmd=put_result rc=0 msg=success".into())
    }

    fn get(&self, rank: u32, line: &Line) -> Result<String, PmiError> {
        let key = line.need("key")?;
        let epoch = self.ranks[rank as usize].epoch;
        if line.need("kvsname")? != self.space_name(epoch) {
            return Ok("cmd=get_result rc=-1 msg=unknown_kvsname value=unknown".into());
        }
        Ok(match self.spaces[epoch].get(key) {
            Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
            None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".into(),
        })
    }
}

fn reply(rank: u32, mut line: String, out: &mut Vec<Effect>) {
    line.push('\n');
    out.push(Effect::Send { rank, line });
}
