//! Objects left at MPI_Finalize, for `KW_CHECK`: objects that were never freed, messages that were
//! never received. A line of text from the rank to its launcher, and back.
//!
//! ```text
//! cmd=kw_waits left count=2 what=%31 communicators call=MPI_Comm_dup frames=FILE:OFFSET,...
//! ```

use crate::Frame;
use crate::text::{Malformed, decoded, encoded, frame_text, list, number, parse_frame, parse_list};

/// Prefix of such a line, like that of all unsolicited lines of a rank.
const BEGIN: &str = "cmd=kw_waits left ";

/// Objects that one line of the program has created, or one kind of message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Left {
    /// Their number.
    pub count: u64,
    /// Description of one of them; `{}` is replaced by the place of its creation.
    pub what: String,
    /// The MPI function that created it; empty for messages.
    pub call: String,
    /// Where the program called the function, innermost frame first.
    pub frames: Vec<Frame>,
}

impl Left {
    /// Writes it as a line, with its end.
    pub fn encode(&self) -> String {
        format!(
            "{BEGIN}count={} what={} call={} frames={}\n",
            self.count,
            encoded(&self.what),
            encoded(&self.call),
            list(&self.frames, ",", frame_text)
        )
    }

    /// Reads a line, with or without its end; `None` for another line.
    pub fn decode(line: &str) -> Option<Result<Left, Malformed>> {
        let rest = line.trim_end_matches('\n').strip_prefix(BEGIN)?;
        let words: Vec<&str> = rest.split(' ').collect();
        let word = |at: usize, name: &str| {
            let found = words.get(at).and_then(|w| w.strip_prefix(name));
            found.ok_or_else(|| Malformed(format!("it lacks the word '{name}'")))
        };
        let read = || {
            Ok(Left {
                count: number(word(0, "count=")?)?,
                what: decoded(word(1, "what=")?)?,
                call: decoded(word(2, "call=")?)?,
                frames: parse_list(word(3, "frames=")?, ',', parse_frame)?,
            })
        };
        Some(read())
    }

    /// The sentence about it; `site`: file and line, if they are known.
    pub fn sentence(&self, site: &str) -> String {
        let made = match (self.call.is_empty(), site.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!(" made by {}", self.call),
            (false, false) => format!(" made by {} at {site}", self.call),
        };
        self.what.replace("{}", &made) + &times(self.count)
    }
}

/// End of a sentence about one object if there are several.
pub fn times(count: u64) -> String {
    match count {
        1 => String::new(),
        n => format!(" ({n} times)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_left_survives_its_line(count: u64, what in ".*", call in "MPI_[A-Z]{0,4}", file in ".*", offset: u64) {
            let frames = vec![Frame { file, offset }; 2];
            let left = Left { count, what, call, frames };
            let line = left.encode();
            prop_assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
            prop_assert_eq!(Left::decode(&line), Some(Ok(left)));
        }

        #[test]
        fn fuzz_any_text_after_the_beginning(text in ".*") {
            let _ = Left::decode(&format!("{BEGIN}{text}"));
            prop_assert_eq!(Left::decode(&text), None);
        }
    }

    #[test]
    fn a_sentence_says_what_and_where() {
        let left = Left {
            count: 2,
            what: "a communicator{} was never freed".into(),
            call: "MPI_Comm_dup".into(),
            frames: Vec::new(),
        };
        assert_eq!(
            left.sentence("a.c:7"),
            "a communicator made by MPI_Comm_dup at a.c:7 was never freed (2 times)"
        );
    }
}
