//! Two accesses of a program that contradict each other, for `KW_CHECK`, as a line of text from the
//! rank to its launcher, which knows files and lines, and back.
//!
//! ```text
//! cmd=kw_waits conflict what=... first=CALL;FILE:OFFSET,... second=CALL;FILE:OFFSET,...
//! ```

use crate::Frame;
use crate::text::{Malformed, decoded, encoded, frame_text, list, parse_frame, parse_list};

/// Prefix of such a line, like that of all unsolicited lines of a rank.
const BEGIN: &str = "cmd=kw_waits conflict ";

/// A call of the program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallSite {
    /// The MPI function; empty if only its frame is known, which comes first then.
    pub call: String,
    /// Where the program called it, innermost first.
    pub frames: Vec<Frame>,
}

impl CallSite {
    /// Writes it as a word.
    pub fn encode(&self) -> String {
        let frames = list(&self.frames, ",", frame_text);
        format!("{};{frames}", encoded(&self.call))
    }

    /// Reads such a word.
    pub fn decode(word: &str) -> Result<CallSite, Malformed> {
        let (call, frames) = word.split_once(';').unwrap_or((word, ""));
        Ok(CallSite {
            call: decoded(call)?,
            frames: parse_list(frames, ',', parse_frame)?,
        })
    }
}

/// A conflict.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Conflict {
    /// The conflict as a sentence, with `{}` for each of the two calls.
    pub what: String,
    /// The calls.
    pub calls: [CallSite; 2],
}

impl Conflict {
    /// Writes it as a line, with its end.
    pub fn encode(&self) -> String {
        let [first, second] = &self.calls;
        format!(
            "{BEGIN}what={} first={} second={}\n",
            encoded(&self.what),
            first.encode(),
            second.encode()
        )
    }

    /// Reads a line, with or without its end; `None` for another line.
    pub fn decode(line: &str) -> Option<Result<Conflict, Malformed>> {
        let rest = line.trim_end_matches('\n').strip_prefix(BEGIN)?;
        let words: Vec<&str> = rest.split(' ').collect();
        let word = |at: usize, name: &str| {
            let found = words.get(at).and_then(|w| w.strip_prefix(name));
            found.ok_or_else(|| Malformed(format!("it lacks the word '{name}'")))
        };
        let read = || {
            Ok(Conflict {
                what: decoded(word(0, "what=")?)?,
                calls: [
                    CallSite::decode(word(1, "first=")?)?,
                    CallSite::decode(word(2, "second=")?)?,
                ],
            })
        };
        Some(read())
    }

    /// The sentence about it; `sites`: file and line of each call, if they are known.
    pub fn sentence(&self, sites: [&str; 2]) -> String {
        let mut text = self.what.clone();
        for (CallSite { call, .. }, site) in self.calls.iter().zip(sites) {
            let call = match &call[..] {
                "" => "a call of MPI",
                call => call,
            };
            let at = match site {
                "" => String::new(),
                site => format!(" at {site}"),
            };
            text = text.replacen("{}", &format!("{call}{at}"), 1);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_conflict_survives_its_line(what in ".*", call in "(MPI_[A-Z]{0,4})?", file in ".*", offset: u64) {
            let frames = vec![Frame { file, offset }; 2];
            let site = CallSite { call, frames };
            let conflict = Conflict { what, calls: [site, CallSite::default()] };
            let line = conflict.encode();
            prop_assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
            prop_assert_eq!(Conflict::decode(&line), Some(Ok(conflict)));
        }

        #[test]
        fn fuzz_any_text_after_the_beginning(text in ".*") {
            let _ = Conflict::decode(&format!("{BEGIN}{text}"));
            prop_assert_eq!(Conflict::decode(&text), None);
        }
    }

    #[test]
    fn a_sentence_names_both_calls() {
        let site = |call: &str| CallSite {
            call: call.into(),
            frames: Vec::new(),
        };
        let conflict = Conflict {
            what: "rank 0's {} and rank 1's {} write".into(),
            calls: [site("MPI_Put"), site("")],
        };
        assert_eq!(
            conflict.sentence(["a.c:7", ""]),
            "rank 0's MPI_Put at a.c:7 and rank 1's a call of MPI write"
        );
    }
}
