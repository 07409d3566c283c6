//! Cuts a byte stream into lines, and a line into words.
//!
//! Anything may arrive: half a line, garbage, a line without end. A line longer than the limit is
//! an error, so a peer can never make the other end keep more than that.

use super::PmiError;

/// Longest line that is read. Far above every limit that launchers announce for a value.
pub const LINE_MAX: usize = 4 << 20;

/// Cuts a byte stream into lines.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    /// The bytes before this position have been searched and contain no newline.
    seen: usize,
    max: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Lines::new(LINE_MAX)
    }
}

impl Lines {
    /// A cutter that rejects lines longer than `max` bytes.
    pub fn new(max: usize) -> Lines {
        Lines {
            bytes: Vec::new(),
            seen: 0,
            max,
        }
    }

    /// Takes received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line without its newline; `None` until there is one.
    pub fn poll_line(&mut self) -> Option<Result<String, PmiError>> {
        let Some(at) = self.bytes[self.seen..].iter().position(|b| *b == b'\n') else {
            self.seen = self.bytes.len();
            return (self.seen > self.max).then(|| self.too_long());
        };
        let end = self.seen + at;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        self.seen = 0;
        Some(readable(&line[..end]))
    }

    fn too_long(&mut self) -> Result<String, PmiError> {
        let len = self.bytes.len();
        self.bytes.clear();
        self.seen = 0;
        Err(PmiError::LongLine {
            len,
            most: self.max,
        })
    }
}

fn readable(line: &[u8]) -> Result<String, PmiError> {
    match std::str::from_utf8(line) {
        Ok(s) => Ok(s.trim_end_matches('\r').to_string()),
        Err(_) => {
            let begins = String::from_utf8_lossy(&line[..line.len().min(80)]);
            Err(PmiError::NotText(begins.into_owned()))
        }
    }
}

/// The words of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    words: Vec<(String, String)>,
}

impl Line {
    /// Reads a line. The first word must be `cmd=` or `mcmd=`; a word without `=` belongs to the
    /// value before it.
    pub fn parse(text: &str) -> Result<Line, PmiError> {
        let mut words: Vec<(String, String)> = Vec::new();
        for word in text.split(' ').filter(|w| !w.is_empty()) {
            match (word.split_once('='), words.last_mut()) {
                (Some((k, v)), _) => words.push((k.to_string(), v.to_string())),
                (None, Some((_, v))) => {
                    v.push(' ');
                    v.push_str(word);
                }
                (None, None) => return Err(PmiError::LineBegins(short(word))),
            }
        }
        match words.first() {
            Some((k, _)) if k == "cmd" || k == "mcmd" => Ok(Line { words }),
            Some((k, _)) => Err(PmiError::LineBegins(short(k) + "=")),
            None => Err(PmiError::EmptyLine),
        }
    }

    /// The command.
    pub fn cmd(&self) -> &str {
        &self.words[0].1
    }

    /// Whether the command continues over several lines until `endcmd`.
    pub fn is_long(&self) -> bool {
        self.words[0].0 == "mcmd"
    }

    /// The value of a word.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.words[1..]
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    /// The value of a required word.
    pub fn need(&self, key: &str) -> Result<&str, PmiError> {
        match self.get(key) {
            Some(v) => Ok(v),
            None => Err(PmiError::Lacks {
                command: self.cmd().into(),
                key: key.into(),
            }),
        }
    }

    /// A number that must be there.
    pub fn number(&self, key: &str) -> Result<i64, PmiError> {
        let text = self.need(key)?;
        let number = text.parse();
        number.map_err(|_| PmiError::no_number(self.cmd(), key, text))
    }

    /// Whether the answer carries no error (`rc` absent or zero).
    pub fn is_ok(&self) -> bool {
        self.get("rc").is_none_or(|rc| rc == "0")
    }
}

/// The beginning of a received text, for messages.
pub fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}
