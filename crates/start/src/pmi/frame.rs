//! Frames of PMI-2: six characters with the length of the rest, then `key=value;` words, the first
//! of which is `cmd=`. A semicolon in a value is doubled.

use super::PmiError;
use super::line::short;

/// Characters that hold the length.
const HEAD: usize = 6;
/// Longest frame that this length can announce.
const FRAME_MAX: usize = 999_999;

/// A frame with these words.
pub fn write(cmd: &str, words: &[(&str, &str)]) -> Result<String, PmiError> {
    let mut body = format!("cmd={cmd};");
    for (key, value) in words {
        body += &format!("{key}={};", value.replace(';', ";;"));
    }
    match body.len() {
        len if len > FRAME_MAX => Err(PmiError::LongFrame {
            len,
            most: FRAME_MAX,
        }),
        n => Ok(format!("{n:6}{body}")),
    }
}

/// Cuts a byte stream into frames.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Takes received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame; `None` until there is one. Nothing follows an error.
    pub fn poll_frame(&mut self) -> Option<Result<Frame, PmiError>> {
        let head = self.bytes.get(..HEAD)?;
        let Some(length) = length(head) else {
            let head = short(&String::from_utf8_lossy(head));
            return Some(Err(PmiError::NoLength(head)));
        };
        self.bytes.get(HEAD..HEAD + length)?;
        let frame: Vec<u8> = self.bytes.drain(..HEAD + length).skip(HEAD).collect();
        Some(Frame::parse(&frame))
    }
}

fn length(head: &[u8]) -> Option<usize> {
    std::str::from_utf8(head).ok()?.trim().parse().ok()
}

/// The words of one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    words: Vec<(String, String)>,
}

impl Frame {
    fn parse(bytes: &[u8]) -> Result<Frame, PmiError> {
        let text = String::from_utf8_lossy(bytes);
        let mut words = Vec::new();
        for word in split(&text) {
            match word.split_once('=') {
                Some((k, v)) => words.push((k.trim().to_string(), v.replace(";;", ";"))),
                None => return Err(PmiError::Word(short(word))),
            }
        }
        match words.first() {
            Some((k, _)) if k == "cmd" => Ok(Frame { words }),
            _ => Err(PmiError::FrameBegins(short(&text))),
        }
    }

    /// The command.
    pub fn cmd(&self) -> &str {
        &self.words[0].1
    }

    /// The value of a word.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut rest = self.words[1..].iter();
        rest.find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// A required number.
    pub fn number(&self, key: &str) -> Result<u32, PmiError> {
        let text = self.get(key).unwrap_or("");
        let number = text.trim().parse();
        number.map_err(|_| PmiError::no_number(self.cmd(), key, text))
    }

    /// Whether the answer carries no error (`rc` absent or zero).
    pub fn is_ok(&self) -> bool {
        self.get("rc").is_none_or(|rc| rc.trim() == "0")
    }

    /// Whether a word's value means yes.
    pub fn says(&self, key: &str) -> bool {
        self.get(key)
            .is_some_and(|v| v.eq_ignore_ascii_case("true"))
    }

    /// The frame as text, for messages.
    pub fn short(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|(k, v)| format!("{k}={v}")).collect();
        short(&words.join(";"))
    }
}

/// Splits at single semicolons.
fn split(text: &str) -> Vec<&str> {
    let (mut words, mut from, mut at) = (Vec::new(), 0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b';', Some(b';')) => at += 2,
            (b';', _) => {
                words.push(&text[from..at]);
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    words.push(&text[from..]);
    words.retain(|w| !w.trim_matches(['\0', '\n', ' ']).is_empty());
    words
}
