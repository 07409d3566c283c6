//! The system's view of a process that does not wait in MPI, and its location in the program.

use kw_hang::Frame;
use kw_sys::peek::{Peeker, ThreadPosition};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Clock ticks of /proc/PID/stat per second, on every Linux.
const TICKS: u64 = 100;
/// Bytes of a stack that are searched for callers, and the most callers that are kept.
const STACK: usize = 64 << 10;
const MOST_FRAMES: usize = 16;

/// State of the process, and its call stack, innermost first; `pid`: a process of this machine.
/// Callers are found by looking for return addresses on the stack, so all but the first may be
/// those of calls that have returned.
pub fn of(peeker: &mut Peeker, pid: Option<u32>) -> (String, Vec<Frame>) {
    let Some(pid) = pid else {
        return (String::new(), Vec::new());
    };
    let read = |name| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let (what, waits) = (
        describe(&read("stat"), read("wchan").trim()),
        "waits for the system",
    );
    let frames = match what.is_empty() || what == waits {
        // It did not stop.
        true => None,
        false => peeker.look(pid, |place| callers(pid, place)),
    };
    (what, frames.unwrap_or_default())
}

fn describe(stat: &str, wchan: &str) -> String {
    // The second word is the name, in parentheses, and may contain any character.
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return String::new();
    };
    let words: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| words.get(at).and_then(|w| w.parse().ok()).unwrap_or(0u64);
    let used = (ticks(11) + ticks(12)) / TICKS;
    match words.first() {
        Some(&"R") => format!("runs, {used} s of CPU time so far"),
        Some(&("T" | "t")) => "is stopped".into(),
        Some(&"D") => "waits for the system".into(),
        Some(_) if wchan.is_empty() || wchan == "0" => "sleeps".into(),
        Some(_) => format!("sleeps in {wchan}"),
        None => String::new(),
    }
}

/// Code of a program or a library in memory.
struct Code {
    range: std::ops::Range<u64>,
    /// Address of the first part of its file.
    base: u64,
    file: String,
}

fn callers(pid: u32, place: ThreadPosition) -> Vec<Frame> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else {
        return Vec::new();
    };
    let code = code(&maps);
    let mut stack = vec![0u8; STACK];
    let len = memory.read_at(&mut stack, place.stack).unwrap_or(0);
    let words = stack[..len].chunks_exact(8);
    let words = words.filter_map(|w| Some(u64::from_ne_bytes(w.try_into().ok()?)));
    let returns = words.filter(|&w| follows_call(&memory, &code, w));
    let all = std::iter::once(place.instruction).chain(returns.map(|w| w - 1));
    let frames = all.filter_map(|address| frame(&code, address));
    frames.take(MOST_FRAMES).collect()
}

fn code(maps: &str) -> Vec<Code> {
    let (mut all, mut last): (Vec<Code>, (String, u64)) = (Vec::new(), Default::default());
    for line in maps.lines() {
        let (Some(at), Some((range, rest))) = (line.find('/'), line.split_once(' ')) else {
            continue;
        };
        let number = |text| u64::from_str_radix(text, 16).ok();
        let ends = range.split_once('-').map(|(a, b)| (number(a), number(b)));
        let Some((Some(start), Some(end))) = ends else {
            continue;
        };
        let file = &line[at..];
        if last.0 != file {
            last = (file.to_string(), start);
        }
        if rest.as_bytes().get(2) == Some(&b'x') {
            all.push(Code {
                range: start..end,
                base: last.1,
                file: last.0.clone(),
            });
        }
    }
    all
}

fn frame(code: &[Code], address: u64) -> Option<Frame> {
    let found = code.iter().find(|c| c.range.contains(&address))?;
    let library = ["/libmpi_abi", "/libmpifort"]
        .iter()
        .any(|l| found.file.contains(l));
    (!library).then(|| Frame {
        file: found.file.clone(),
        offset: address - found.base,
    })
}

/// Whether the instruction before this address is a call (x86: direct, or by a register or memory).
fn follows_call(memory: &File, code: &[Code], address: u64) -> bool {
    let mut before = [0u8; 7];
    let there = code.iter().any(|c| c.range.contains(&address));
    if !there || memory.read_exact_at(&mut before, address - 7).is_err() {
        return false;
    }
    let by_register = |at: usize| before[at] == 0xff && before[at + 1] >> 3 & 7 == 2;
    before[2] == 0xe8 || [1, 4, 5].into_iter().any(by_register)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_says_what_it_does() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 100 0 0 0 4000 30 0 0 20 0 1 0 5 0 0";
        assert_eq!(describe(stat, ""), "runs, 40 s of CPU time so far");
        let stat = stat.replace(") R", ") S");
        assert_eq!(
            describe(&stat, "hrtimer_nanosleep"),
            "sleeps in hrtimer_nanosleep"
        );
        assert_eq!(describe("", ""), "");
    }

    #[test]
    fn code_is_found_by_address() {
        let maps = "1000-2000 r--p 00000000 08:01 7 /bin/a b\n\
                    2000-3000 r-xp 00001000 08:01 7 /bin/a b\n\
                    5000-6000 rw-p 00000000 00:00 0 \n\
                    8000-9000 r-xp 00000000 08:01 8 /lib/libmpi_abi.so.1\n";
        let code = code(maps);
        let found = frame(&code, 0x2010).unwrap();
        assert_eq!((&found.file[..], found.offset), ("/bin/a b", 0x1010));
        assert_eq!(frame(&code, 0x1010), None, "no code");
        assert_eq!(frame(&code, 0x8010), None, "the library itself");
    }
}
