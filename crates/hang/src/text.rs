//! A rank's report as one line of text, and back.
//!
//! ```text
//! cmd=kw_waits round=1 waited=10002 mark=7f quiet=1 threads=0 polls=0 any=0 call=MPI_Recv waits=KIND:PEER:SOURCE:TAG:CONTEXT:BYTES,...
//!     runs=CONTEXT:NUMBER:WAIT;WAIT,... early=FROM:SOURCE:TAG:CONTEXT:BYTES:PARTITIONED,... comms=CONTEXT:CALLS:NAME:SENDERS:MEMBERS,...
//!     locks=CONTEXT:TARGET:COUNT:HOLDERS,... frames=FILE:OFFSET,... for=TEXT others=NUMBER:RANK:JOB,...
//! ```
//! Names are percent-encoded, so that they contain no separator; ranks are ranges; `*` is a
//! wildcard. A line is never longer than [`MOST_BYTES`]: the least important parts are omitted.

use crate::{Comm, Early, Frame, Kind, Lock, Other, Ranges, Rank, Report, Run, Wait};
use std::fmt::Display;
use std::str::FromStr;

/// Prefix of such a line.
pub const MARK: &str = "cmd=kw_waits ";
/// Longest line, including its end: a socket accepts this much at once or nothing.
pub const MOST_BYTES: usize = 12 << 10;
/// Most ranks that one list may name.
const MOST_RANKS: usize = 1 << 20;

/// An invalid line, with the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed(pub String);

impl Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

type Read<T> = Result<T, Malformed>;

fn strange<T>(what: impl Into<String>) -> Read<T> {
    Err(Malformed(what.into()))
}

const KINDS: [(Kind, char); 13] = [
    (Kind::Receive, 'r'),
    (Kind::Probe, 'p'),
    (Kind::Send, 's'),
    (Kind::KeptBack, 'h'),
    (Kind::Collective, 'c'),
    (Kind::PartReceive, 'R'),
    (Kind::PartSend, 'S'),
    (Kind::Ready, 'y'),
    (Kind::Lock, 'l'),
    (Kind::Post, 'P'),
    (Kind::Complete, 'C'),
    (Kind::Fence, 'f'),
    (Kind::Other, 'o'),
];

impl Report {
    /// Writes the report as a line, with its end.
    pub fn encode(&self) -> String {
        let mut shorter = self.clone();
        loop {
            let line = shorter.write();
            if line.len() <= MOST_BYTES || !shorter.shorten() {
                return line;
            }
        }
    }

    /// Omits half of some part; returns whether there was any.
    fn shorten(&mut self) -> bool {
        let half = |n: usize| n / 2;
        let comms = self.comms.len();
        let named = self.comms.iter_mut().filter(|c| !c.members.is_empty());
        let longest = named.max_by_key(|c| c.members.len());
        if self.early.len() > 4 {
            self.early.truncate(half(self.early.len()));
        } else if self.frames.len() > 2 {
            self.frames.truncate(half(self.frames.len()));
        } else if self.locks.len() > 8 {
            // A rank whose lock holders are not named cannot be proven to be stuck.
            self.locks.truncate(half(self.locks.len()));
        } else if comms > 8 {
            self.comms.truncate(half(comms));
        } else if self.runs.len() + self.waits.len() > 8 {
            // Omitted information cannot be used in a proof.
            self.runs.truncate(half(self.runs.len()));
            self.waits.truncate(half(self.waits.len()).max(1));
            self.quiet = false;
        } else if self.others.len() > 4 {
            self.others.truncate(half(self.others.len()));
        } else if let Some(longest) = longest {
            (longest.members, longest.senders) = (Vec::new(), Vec::new());
        } else {
            return false;
        }
        true
    }

    fn write(&self) -> String {
        let yes = |b: bool| u8::from(b);
        format!(
            "{MARK}round={} waited={} mark={:x} quiet={} threads={} polls={} any={} call={} waits={} runs={} early={} comms={} locks={} frames={} for={} others={}\n",
            self.round,
            self.waited,
            self.mark,
            yes(self.quiet),
            yes(self.threads),
            yes(self.polls),
            yes(self.any),
            encoded(&self.call),
            list(&self.waits, ",", wait_text),
            list(&self.runs, ",", run_text),
            list(&self.early, ",", early_text),
            list(&self.comms, ",", comm_text),
            list(&self.locks, ",", lock_text),
            list(&self.frames, ",", frame_text),
            encoded(&self.waits_for),
            list(&self.others, ",", other_text),
        )
    }

    /// Reads a line, with or without its end.
    pub fn decode(line: &str) -> Read<Report> {
        let Some(rest) = line.trim_end_matches('\n').strip_prefix(MARK) else {
            return strange("the start of a line that describes what a rank waits for is wrong");
        };
        let mut words = Words(rest.split(' ').filter(|w| !w.is_empty()));
        Ok(Report {
            round: number(words.next("round")?)?,
            waited: number(words.next("waited")?)?,
            mark: hex(words.next("mark")?)?,
            quiet: flag(words.next("quiet")?)?,
            threads: flag(words.next("threads")?)?,
            polls: flag(words.next("polls")?)?,
            any: flag(words.next("any")?)?,
            call: decoded(words.next("call")?)?,
            waits: parse_list(words.next("waits")?, ',', parse_wait)?,
            runs: parse_list(words.next("runs")?, ',', parse_run)?,
            early: parse_list(words.next("early")?, ',', parse_early)?,
            comms: parse_list(words.next("comms")?, ',', parse_comm)?,
            locks: parse_list(words.next("locks")?, ',', parse_lock)?,
            frames: parse_list(words.next("frames")?, ',', parse_frame)?,
            waits_for: decoded(words.next("for")?)?,
            others: parse_list(words.next("others")?, ',', parse_other)?,
        })
    }
}

struct Words<'a, I: Iterator<Item = &'a str>>(I);

impl<'a, I: Iterator<Item = &'a str>> Words<'a, I> {
    /// The value of the next word, which has this name.
    fn next(&mut self, name: &str) -> Read<&'a str> {
        let word = self.0.next().and_then(|w| w.split_once('='));
        match word {
            Some((found, value)) if found == name => Ok(value),
            _ => strange(format!("it lacks the word '{name}='")),
        }
    }
}

pub(crate) fn list<T>(all: &[T], between: &str, text: impl Fn(&T) -> String) -> String {
    let each: Vec<String> = all.iter().map(text).collect();
    each.join(between)
}

fn wild<T: Display>(value: Option<T>) -> String {
    value.map_or("*".into(), |v| v.to_string())
}

fn wait_text(w: &Wait) -> String {
    let kind = KINDS.iter().find(|k| k.0 == w.kind).map_or('o', |k| k.1);
    let (peer, source, tag) = (wild(w.peer), wild(w.source), wild(w.tag));
    format!("{kind}:{peer}:{source}:{tag}:{}:{}", w.context, w.bytes)
}

fn run_text(r: &Run) -> String {
    format!(
        "{}/{}/{}",
        r.context,
        r.number,
        list(&r.waits, ";", wait_text)
    )
}

fn early_text(e: &Early) -> String {
    format!(
        "{}:{}:{}:{}:{}:{}",
        e.from,
        e.source,
        e.tag,
        e.context,
        e.bytes,
        u8::from(e.partitioned)
    )
}

pub(crate) fn frame_text(f: &Frame) -> String {
    format!("{}:{:x}", encoded(&f.file), f.offset)
}

fn comm_text(c: &Comm) -> String {
    let set = |ranks: &[Rank]| Ranges::new(ranks.iter().copied()).in_full();
    let (senders, members) = (set(&c.senders), set(&c.members));
    format!(
        "{}:{}:{}:{senders}:{members}",
        c.context,
        c.calls,
        encoded(&c.name)
    )
}

fn lock_text(l: &Lock) -> String {
    let holders = Ranges::new(l.holders.iter().copied()).in_full();
    let count = wild(l.count);
    format!("{}:{}:{count}:{holders}", l.context, l.target)
}

fn other_text(o: &Other) -> String {
    format!("{}:{}:{}", o.number, o.rank, encoded(&o.job))
}

pub(crate) fn parse_list<T>(
    text: &str,
    between: char,
    one: impl Fn(&str) -> Read<T>,
) -> Read<Vec<T>> {
    text.split(between)
        .filter(|t| !t.is_empty())
        .map(one)
        .collect()
}

fn fields<const N: usize>(text: &str, between: char) -> Read<[&str; N]> {
    let all: Vec<&str> = text.split(between).collect();
    match all.try_into() {
        Ok(fields) => Ok(fields),
        Err(all) => strange(format!("it has {} fields where {N} belong", all.len())),
    }
}

pub(crate) fn number<T: FromStr>(text: &str) -> Read<T> {
    let wrong = |_| Malformed(format!("'{}' is not a number in range", short(text)));
    text.parse().map_err(wrong)
}

fn hex(text: &str) -> Read<u64> {
    let wrong = |_| Malformed(format!("'{}' is not a hexadecimal number", short(text)));
    u64::from_str_radix(text, 16).map_err(wrong)
}

fn flag(text: &str) -> Read<bool> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        other => strange(format!("'{}' is not 0 or 1", short(other))),
    }
}

fn maybe<T: FromStr>(text: &str) -> Read<Option<T>> {
    match text {
        "*" => Ok(None),
        text => number(text).map(Some),
    }
}

fn parse_wait(text: &str) -> Read<Wait> {
    let [kind, peer, source, tag, context, bytes] = fields(text, ':')?;
    let Some(known) = KINDS.iter().find(|k| kind == k.1.to_string()) else {
        return strange(format!("'{}' is not a kind of wait", short(kind)));
    };
    Ok(Wait {
        kind: known.0,
        peer: maybe(peer)?,
        source: maybe(source)?,
        tag: maybe(tag)?,
        context: number(context)?,
        bytes: number(bytes)?,
    })
}

fn parse_run(text: &str) -> Read<Run> {
    let [context, number_of, waits] = fields(text, '/')?;
    Ok(Run {
        context: number(context)?,
        number: number(number_of)?,
        waits: parse_list(waits, ';', parse_wait)?,
    })
}

fn parse_early(text: &str) -> Read<Early> {
    let [from, source, tag, context, bytes, partitioned] = fields(text, ':')?;
    Ok(Early {
        from: number(from)?,
        source: number(source)?,
        tag: number(tag)?,
        context: number(context)?,
        bytes: number(bytes)?,
        partitioned: flag(partitioned)?,
    })
}

fn parse_comm(text: &str) -> Read<Comm> {
    let [context, calls, name, senders, members] = fields(text, ':')?;
    Ok(Comm {
        context: number(context)?,
        calls: number(calls)?,
        name: decoded(name)?,
        senders: parse_ranks(senders)?,
        members: parse_ranks(members)?,
    })
}

fn parse_lock(text: &str) -> Read<Lock> {
    let [context, target, count, holders] = fields(text, ':')?;
    Ok(Lock {
        context: number(context)?,
        target: number(target)?,
        count: maybe(count)?,
        holders: parse_ranks(holders)?,
    })
}

fn parse_ranks(text: &str) -> Read<Vec<Rank>> {
    let mut ranks = Vec::new();
    for range in text.split('+').filter(|r| !r.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (Rank, Rank) = (number(first)?, number(last)?);
        if first > last || (last - first) as usize >= MOST_RANKS - ranks.len().min(MOST_RANKS) {
            return strange(format!("'{}' is not a range of ranks", short(range)));
        }
        ranks.extend(first..=last);
    }
    Ok(ranks)
}

fn parse_other(text: &str) -> Read<Other> {
    let [of, rank, job] = fields(text, ':')?;
    Ok(Other {
        number: number(of)?,
        rank: number(rank)?,
        job: decoded(job)?,
    })
}

pub(crate) fn parse_frame(text: &str) -> Read<Frame> {
    let [file, offset] = fields(text, ':')?;
    Ok(Frame {
        file: decoded(file)?,
        offset: hex(offset)?,
    })
}

/// Letters, digits and a few signs unchanged, other bytes as `%xx`.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' => out.push(byte as char),
            other => out += &format!("%{other:02x}"),
        }
    }
    out
}

pub(crate) fn decoded(text: &str) -> Read<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|d| std::str::from_utf8(d).ok());
        let byte = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
        bytes.push(byte.ok_or_else(|| Malformed(format!("'{}' is cut off", short(text))))?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).or_else(|_| strange("a name is not text"))
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waits() -> impl Strategy<Value = Wait> {
        let kind = (0..KINDS.len()).prop_map(|i| KINDS[i].0);
        let awaited = (
            any::<Option<u32>>(),
            any::<Option<u32>>(),
            any::<Option<i32>>(),
        );
        (kind, awaited, any::<u32>(), any::<u64>()).prop_map(|(kind, awaited, context, bytes)| {
            Wait {
                kind,
                peer: awaited.0,
                source: awaited.1,
                tag: awaited.2,
                context,
                bytes,
            }
        })
    }

    fn reports() -> impl Strategy<Value = Report> {
        let comm =
            (any::<u32>(), any::<i32>(), ".*", 0..90u32).prop_map(|(context, calls, name, n)| {
                Comm {
                    context,
                    calls,
                    name,
                    senders: (0..n).collect(),
                    members: (0..n).filter(|r| r % 3 != 1).collect(),
                }
            });
        let run = (
            any::<u32>(),
            any::<i32>(),
            prop::collection::vec(waits(), 0..3),
        );
        let run = run.prop_map(|(context, number, waits)| Run {
            context,
            number,
            waits,
        });
        let frame = (".*", any::<u64>()).prop_map(|(file, offset)| Frame { file, offset });
        let lock = (any::<(u32, u32, Option<u32>)>(), 0..9u32).prop_map(|(of, n)| Lock {
            context: of.0,
            target: of.1,
            count: of.2,
            holders: (0..n).filter(|r| r % 3 != 1).collect(),
        });
        let other = (any::<u32>(), any::<u32>(), ".*");
        let other = other.prop_map(|(number, rank, job)| Other { number, rank, job });
        let flags = prop::array::uniform4(any::<bool>());
        let lists = (
            prop::collection::vec(waits(), 0..4),
            prop::collection::vec(run, 0..3),
            prop::collection::vec(comm, 0..4),
            prop::collection::vec(lock, 0..3),
            prop::collection::vec(frame, 0..3),
            (".*", prop::collection::vec(other, 0..3)),
        );
        (any::<(u32, u64, u64)>(), flags, "MPI_[a-z]{1,9}", lists).prop_map(
            |(n, f, call, lists)| Report {
                round: n.0,
                waited: n.1,
                mark: n.2,
                quiet: f[0],
                threads: f[1],
                polls: f[2],
                any: f[3],
                call,
                waits: lists.0,
                runs: lists.1,
                early: vec![Early {
                    from: 1,
                    source: 0,
                    tag: -3,
                    context: 4,
                    bytes: 8,
                    partitioned: f[3],
                }],
                comms: lists.2,
                locks: lists.3,
                frames: lists.4,
                waits_for: lists.5.0,
                others: lists.5.1,
            },
        )
    }

    proptest! {
        #[test]
        fn a_report_survives_its_line(report in reports()) {
            let line = report.encode();
            prop_assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
            prop_assert_eq!(Report::decode(&line), Ok(report));
        }

        #[test]
        fn fuzz_damaged_lines(report in reports(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = report.encode().into_bytes();
            let at = at.index(bytes.len());
            let cut = String::from_utf8_lossy(&bytes[..at]).into_owned();
            let _ = Report::decode(&cut);
            bytes[at] = byte;
            let _ = Report::decode(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn fuzz_any_text(text in ".*") {
            let _ = Report::decode(&text);
            let _ = Report::decode(&format!("{MARK}{text}"));
        }
    }

    #[test]
    fn a_line_is_never_too_long() {
        let many = 2000;
        let comm = Comm {
            name: "row".repeat(20),
            members: (0..many).map(|r| r * 2).collect(),
            ..Comm::default()
        };
        let report = Report {
            quiet: true,
            waits: vec![Wait::OTHER; many as usize],
            comms: vec![comm; 100],
            ..Report::default()
        };
        let line = report.encode();
        assert!(line.len() <= MOST_BYTES, "{}", line.len());
        let decoded = Report::decode(&line).unwrap();
        assert!(!decoded.quiet, "what is not said cannot be proven");
    }

    #[test]
    fn a_range_of_all_numbers_is_no_list_of_ranks() {
        assert!(parse_ranks("0-4294967295").is_err());
        assert!(parse_ranks("5-3").is_err());
        assert_eq!(parse_ranks("0-2+9"), Ok(vec![0, 1, 2, 9]));
    }
}
