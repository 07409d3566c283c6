//! Error codes that the user added (MPI 5.0, 9.5): classes, codes of classes, and their texts.
//!
//! MPI_Error_string returns the text of a class, followed by the sentence of the last error if it
//! was of that class. Codes above MPI_ERR_LASTCODE are the user's. A class is a code, too. The
//! value of MPI_LASTUSEDCODE never decreases.

use crate::error::{CLASSES, Class, Res, TOOL_CLASSES, fail};
use std::collections::BTreeMap;

/// MPI_ERR_LASTCODE
pub const LASTCODE: i32 = 0x3fff;

#[derive(Clone, Debug)]
struct Entry {
    class: i32,
    text: Option<String>,
}

/// The user's codes.
#[derive(Clone, Debug)]
pub struct Codes {
    last: i32,
    added: BTreeMap<i32, Entry>,
    /// The last error of this process that a call returned, and its sentence.
    sentence: Option<(i32, String)>,
}

impl Default for Codes {
    fn default() -> Self {
        Codes {
            last: LASTCODE,
            added: BTreeMap::new(),
            sentence: None,
        }
    }
}

impl Codes {
    /// The value of MPI_LASTUSEDCODE.
    pub fn last(&self) -> i32 {
        self.last
    }

    /// Adds a class.
    pub fn add_class(&mut self) -> i32 {
        self.add(self.last + 1)
    }

    /// Adds a code of a class, which may be a class of the standard.
    pub fn add_code(&mut self, class: i32) -> Res<i32> {
        if self.class(class) != Some(class) {
            return fail!(Arg: "errorclass is {class}, which is not an error class");
        }
        Ok(self.add(class))
    }

    fn add(&mut self, class: i32) -> i32 {
        self.last += 1;
        self.added.insert(self.last, Entry { class, text: None });
        self.last
    }

    /// Sets the text of a code; the empty text removes it.
    pub fn set_text(&mut self, code: i32, text: &str) -> Res {
        let entry = self.mine(code)?;
        entry.text = (!text.is_empty()).then(|| text.to_string());
        Ok(())
    }

    /// Removes the text of a code.
    pub fn remove_text(&mut self, code: i32) -> Res {
        let entry = self.mine(code)?;
        if entry.text.take().is_none() {
            return fail!(Arg: "errorcode is {code}, which has no text");
        }
        Ok(())
    }

    /// Removes a class that has no codes of its own left.
    pub fn remove_class(&mut self, class: i32) -> Res {
        if self.mine(class)?.class != class {
            return fail!(Arg: "errorclass is {class}, which is a code and no class");
        }
        if let Some((code, _)) = self
            .added
            .iter()
            .find(|(c, e)| e.class == class && **c != class)
        {
            return fail!(Arg: "errorclass is {class}, which still has the code {code}");
        }
        self.remove(class, "errorclass")
    }

    /// Removes a code.
    pub fn remove_code(&mut self, code: i32) -> Res {
        if self.mine(code)?.class == code {
            return fail!(Arg: "errorcode is {code}, which is a class and no code");
        }
        self.remove(code, "errorcode")
    }

    /// Checks that it has no text any more: only then it may be removed (MPI 5.0, 9.5).
    fn remove(&mut self, code: i32, name: &str) -> Res {
        if self.mine(code)?.text.is_some() {
            return fail!(Arg: "{name} is {code}, which still has a text; remove that first");
        }
        self.added.remove(&code);
        Ok(())
    }

    /// The class of a code; `None` for an unknown code.
    pub fn class(&self, code: i32) -> Option<i32> {
        match code {
            0..=LASTCODE => standard(code).map(|_| code),
            _ => self.added.get(&code).map(|e| e.class),
        }
    }

    /// The text of a code; `None` for an unknown code.
    pub fn text(&self, code: i32) -> Option<String> {
        match code {
            0..=LASTCODE => Some(standard(code)? + &self.sentence_of(code)),
            _ => {
                let entry = self.added.get(&code)?;
                Some(entry.text.clone().unwrap_or_default())
            }
        }
    }

    /// Keeps the sentence of an error, for MPI_Error_string.
    pub fn note(&mut self, code: i32, sentence: &str) {
        self.sentence = Some((code, sentence.into()));
    }

    fn sentence_of(&self, code: i32) -> String {
        match &self.sentence {
            Some((last, sentence)) if *last == code && code != 0 => format!("; last: {sentence}"),
            _ => String::new(),
        }
    }

    fn mine(&mut self, code: i32) -> Res<&mut Entry> {
        let text = match code {
            0..=LASTCODE => format!("errorcode is {code}, which is the standard's own"),
            _ => format!("errorcode is {code}, which was not added"),
        };
        match self.added.get_mut(&code) {
            Some(entry) => Ok(entry),
            None => fail(Class::Arg, text),
        }
    }
}

/// The text of a class of the standard.
fn standard(code: i32) -> Option<String> {
    if code == LASTCODE {
        return Some("MPI_ERR_LASTCODE: last error code".to_string());
    }
    let found = CLASSES.iter().find(|c| c.0 == code);
    if let Some((_, name, text)) = found {
        return Some(format!("{name}: {text}"));
    }
    let tool = TOOL_CLASSES.iter().find(|c| c.0 == code);
    tool.map(|(_, name, text)| format!("{name}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_codes_come_and_go() {
        let mut c = Codes::default();
        let class = c.add_class();
        assert_eq!(class, LASTCODE + 1);
        let code = c.add_code(class).unwrap();
        let other = c.add_code(Class::Comm as i32).unwrap();
        assert_eq!(c.class(code), Some(class));
        assert_eq!(c.class(other), Some(5));
        assert!(c.add_code(code).is_err());
        c.set_text(code, "out of cheese").unwrap();
        assert_eq!(c.text(code).unwrap(), "out of cheese");
        assert!(c.remove_class(class).is_err());
        assert!(c.remove_code(code).is_err());
        c.remove_text(code).unwrap();
        c.remove_code(code).unwrap();
        c.remove_class(class).unwrap();
        assert_eq!(c.class(class), None);
        assert_eq!(c.last(), other);
    }

    #[test]
    fn the_standard_s_own_cannot_be_touched() {
        let mut c = Codes::default();
        assert!(c.set_text(3, "x").is_err());
        assert!(c.remove_class(3).is_err());
        assert!(c.text(1010).unwrap().contains("INVALID_HANDLE"));
        assert_eq!(c.class(77), None);
        assert_eq!(c.class(-1), None);
    }
}
