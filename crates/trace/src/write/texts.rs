//! Texts of a trace: each has one number in all sequences of packets, and each sequence defines the
//! number once.

use std::collections::HashMap;

use super::encode::{bytes, number};

/// A text that the writer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text(u32);

impl Text {
    /// Its number in packets; 0 would be none.
    #[inline(always)]
    pub(super) fn iid(self) -> u64 {
        u64::from(self.0) + 1
    }
}

macro_rules! fixed {
    ($($id:ident = $text:literal),* $(,)?) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Fixed { $($id),* }
        $(pub(super) const $id: Text = Text(Fixed::$id as u32);)*
        /// Texts that every writer knows, by their numbers.
        const FIXED: &[&str] = &[$($text),*];
    };
}

fixed! {
    MPI = "mpi", MESSAGE = "message", RECEIVED = "received", USER = "user", PCONTROL = "MPI_Pcontrol",
    RECORDER = "recorder", END = "end", LIBRARY = "library", DEST = "dest", SOURCE = "source",
    TAG = "tag", ROOT = "root", COMM = "comm", COMM_ID = "comm_id", BYTES = "bytes", COLL = "coll",
    PLACE = "place", REQUESTS = "requests", MODE = "mode", AT = "at", POSTED = "posted",
    LEVEL = "level", LOST = "lost", CLOCK_ERROR = "clock_error", TOPOLOGY = "topology",
    NEIGHBOR = "neighbour", TARGET = "target", MEMBER = "member",
}

/// All texts.
#[derive(Debug)]
pub(super) struct Texts {
    all: Vec<String>,
    known: HashMap<String, Text>,
}

impl Default for Texts {
    fn default() -> Texts {
        let mut texts = Texts {
            all: Vec::new(),
            known: HashMap::new(),
        };
        for text in FIXED {
            texts.text(text);
        }
        texts
    }
}

impl Texts {
    pub fn text(&mut self, text: &str) -> Text {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let new = Text(self.all.len() as u32);
        self.all.push(text.to_string());
        self.known.insert(text.to_string(), new);
        new
    }

    fn get(&self, text: Text) -> &str {
        self.all.get(text.0 as usize).map_or("", String::as_str)
    }
}

/// Kinds of interned strings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use {
    Category,
    Event,
    Argument,
    Value,
}

/// The fields of interned data, by [`Use`].
const FIELDS: [u32; 4] = [1, 2, 3, 29];

/// Strings that a sequence has defined.
#[derive(Debug, Default)]
pub(super) struct Defined {
    /// A bit for each text.
    defined: [Vec<u64>; 4],
    /// Fields of interned data for the next packet.
    pub new: Vec<u8>,
    pub begun: bool,
}

impl Defined {
    /// The number of a text, which the sequence defines from now on.
    #[inline(always)]
    pub fn number(&mut self, texts: &Texts, used: Use, text: Text) -> u64 {
        let (word, bit) = (text.0 as usize / 64, 1 << (text.0 % 64));
        match self.defined[used as usize].get(word) {
            Some(defined) if defined & bit != 0 => {}
            _ => self.tell(texts, used, text),
        }
        text.iid()
    }

    #[cold]
    fn tell(&mut self, texts: &Texts, used: Use, text: Text) {
        let defined = &mut self.defined[used as usize];
        let word = text.0 as usize / 64;
        if defined.len() <= word {
            defined.resize(word + 1, 0);
        }
        defined[word] |= 1 << (text.0 % 64);
        let mut name = Vec::new();
        number(&mut name, 1, text.iid());
        bytes(&mut name, 2, texts.get(text).as_bytes());
        bytes(&mut self.new, FIELDS[used as usize], &name);
    }
}
