//! Texts of a trace, each kept once.

use std::collections::HashMap;

/// A text of a trace. The first one is empty, for unknown texts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Name(pub u32);

/// The texts of a trace.
#[derive(Debug)]
pub struct Names {
    texts: Vec<String>,
    known: HashMap<String, Name>,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Names {
            texts: Vec::new(),
            known: HashMap::new(),
        };
        names.name("");
        names
    }
}

impl Names {
    /// Adds a text, and returns its name.
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(name) = self.known.get(text) {
            return *name;
        }
        // a file with 2^32 different texts does not fit into memory
        let name = Name(self.texts.len() as u32);
        self.texts.push(text.to_string());
        self.known.insert(text.to_string(), name);
        name
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }

    /// All of them, in the order of their numbers.
    pub fn all(&self) -> &[String] {
        &self.texts
    }
}
