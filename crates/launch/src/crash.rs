//! Crash report of a rank ([`kw_sys::crash`]), and its text with the names of functions.

use std::path::PathBuf;
use std::time::Duration;

use kw_base::sync::thread;
use kw_sys::signals;

use crate::sites::Sites;

/// First words of a crash report among the rank's messages to the PMI server.
const MARK: &[u8] = b"cmd=crashed ";
/// Time limit for the lookup of names: large programs have much to read.
const NAMES_WITHIN: Duration = Duration::from_secs(5);

/// The last report of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    signal: i32,
    code: i32,
    address: u64,
    frames: Vec<CodeAddress>,
}

/// A place in a program or a library; without a file it is an address.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CodeAddress {
    file: PathBuf,
    offset: u64,
}

impl std::fmt::Display for CodeAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.file.as_os_str().is_empty() {
            true => write!(f, "{:#x}", self.offset),
            false => write!(f, "{}+{:#x}", self.file.display(), self.offset),
        }
    }
}

/// Takes a rank's crash report out of its messages to the PMI server.
pub fn take(bytes: &mut Vec<u8>) -> Option<Crash> {
    let begins = |at: &usize| *at == 0 || bytes[*at - 1] == b'\n';
    let found = bytes.windows(MARK.len()).enumerate();
    let mut starts = found.filter(|(_, w)| *w == MARK).map(|(at, _)| at);
    let start = starts.find(begins)?;
    let rest = &bytes[start..];
    let end = rest.iter().position(|b| *b == b'\n')?;
    let line = String::from_utf8(rest[..end].to_vec()).ok();
    bytes.drain(start..=start + end);
    parse(&line?)
}

fn parse(line: &str) -> Option<Crash> {
    let word = |name: &str| {
        let mut words = line.split(' ').filter_map(|w| w.split_once('='));
        words.find(|(n, _)| *n == name).map(|(_, value)| value)
    };
    Some(Crash {
        signal: word("signal")?.parse().ok()?,
        code: word("code")?.parse().ok()?,
        address: u64::from_str_radix(word("address")?, 16).ok()?,
        // the last report may have been cut off
        frames: word("frames")?.split(',').map_while(place).collect(),
    })
}

fn place(text: &str) -> Option<CodeAddress> {
    use std::os::unix::ffi::OsStringExt;
    let (path, offset) = text.split_once('+')?;
    let digits = path.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> = digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    Some(CodeAddress {
        file: std::ffi::OsString::from_vec(bytes?).into(),
        offset: u64::from_str_radix(offset, 16).ok()?,
    })
}

impl Crash {
    /// The report as lines for people. Files are looked up on this machine.
    pub fn text(&self, rank: u32) -> String {
        let frames = self.frames.clone();
        let (to, from) = std::sync::mpsc::channel();
        thread::spawn(move || to.send(named(&frames)));
        let plain = || self.frames.iter().map(CodeAddress::to_string).collect();
        let lines = from.recv_timeout(NAMES_WITHIN).unwrap_or_else(|_| plain());
        let mut text = format!("rank {rank}: {}\n", self.what());
        for (number, line) in lines.iter().enumerate() {
            text += &format!("rank {rank}:   #{number} {line}\n");
        }
        text
    }

    fn what(&self) -> String {
        let name = signals::name(self.signal);
        match self.fault() {
            Some(why) => format!("{name} at address {:#x}{why}, in", self.address),
            None => format!("{name}, in"),
        }
    }

    /// Error of the address, if the kernel reports one (the codes are those of siginfo).
    fn fault(&self) -> Option<&'static str> {
        match (self.signal, self.code) {
            (signals::SEGV, 1) => Some(", which is not mapped"),
            (signals::SEGV, 2) => Some(", whose memory may not be used so"),
            (signals::BUS, 2) => Some(", whose memory has no file or page behind it"),
            (signals::SEGV | signals::BUS, 1..) => Some(""),
            _ => None,
        }
    }
}

/// The functions and lines of places, inlined functions among them.
fn named(frames: &[CodeAddress]) -> Vec<String> {
    let mut sites = Sites::default();
    let mut lines = Vec::new();
    for frame in frames {
        let found = sites.functions(&frame.file, frame.offset);
        match found.is_empty() {
            true => lines.push(frame.to_string()),
            false => lines.extend(found),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_taken_out_of_what_a_rank_says() {
        let mut bytes =
            b"cmd=get_maxes\ncmd=crashed signal=11 code=1 address=10 frames=2f61+1f,+ff,2f6"
                .to_vec();
        assert_eq!(take(&mut bytes), None, "the line has no end yet");
        bytes.extend(b"\n");
        let crash = take(&mut bytes).unwrap();
        assert_eq!(bytes, b"cmd=get_maxes\n");
        assert_eq!(
            crash.what(),
            "SIGSEGV at address 0x10, which is not mapped, in"
        );
        let places: Vec<_> = crash.frames.iter().map(CodeAddress::to_string).collect();
        assert_eq!(places, ["/a+0x1f", "0xff"]);
        let mut other = b"cmd=put value=cmd=crashed \n".to_vec();
        assert_eq!(take(&mut other), None);
    }

    #[test]
    fn a_place_that_is_not_known_is_reported_as_it_is() {
        let nowhere = CodeAddress {
            file: PathBuf::from("/no/such/file"),
            offset: 1,
        };
        assert_eq!(named(&[nowhere]), ["/no/such/file+0x1"]);
    }
}
