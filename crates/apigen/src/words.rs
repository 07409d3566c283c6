//! Contents of the manual pages, and the reader of its tables and texts (format: `api/README.md`).

use crate::api::table;
use crate::{Error, Param};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Participants of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// Only the caller; it waits for no other rank.
    Local,
    /// All processes of the object that the call is about.
    Collective,
    /// The ranks named by the arguments.
    Named,
}

/// Description of a function.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Its purpose: starts with a verb in the third person, without a full stop.
    pub text: String,
    /// The paragraph of MPI 5.0.
    pub paragraph: String,
    /// Participants.
    pub who: Who,
    /// Error classes in addition to those that follow from its parameters.
    pub errors: Vec<String>,
    /// Related functions; the first of a deprecated function is its successor.
    pub see: Vec<String>,
}

/// Meaning of a kind of parameter.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Unit and allowed values.
    pub meaning: String,
    /// The error class of a bad value.
    pub error: Option<String>,
}

/// A longer text (`api/man/NAME.md`).
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// Paragraphs of the description.
    pub details: Vec<String>,
    /// Most frequent mistakes of users.
    pub mistakes: Vec<String>,
    /// A whole program in C.
    pub example: String,
}

/// Additional information for the pages.
#[derive(Clone, Debug)]
pub struct Words {
    /// By function.
    pub summaries: HashMap<String, Summary>,
    /// By error class.
    pub errors: HashMap<String, String>,
    /// By function, in the order of the names.
    pub texts: BTreeMap<String, Text>,
    kinds: HashMap<String, Kind>,
}

impl Words {
    /// Reads the tables and texts of a folder.
    pub fn read(dir: &Path) -> Result<Words, Error> {
        let mut summaries = HashMap::new();
        for row in table::<6>(dir, "summaries.tsv")? {
            let (name, summary) = summary(row)?;
            summaries.insert(name, summary);
        }
        let kinds = table::<3>(dir, "kinds.tsv")?.into_iter();
        let errors = table::<2>(dir, "errors.tsv")?.into_iter();
        Ok(Words {
            summaries,
            errors: errors.map(|[error, meaning]| (error, meaning)).collect(),
            texts: texts(&dir.join("man"))?,
            kinds: kinds.map(kind).collect(),
        })
    }

    /// Meaning of a parameter: the row of its kind and name, or that of its kind.
    pub fn kind(&self, p: &Param) -> Result<&Kind, Error> {
        let own = self.kinds.get(&format!("{}/{}", p.kind, p.name));
        own.or_else(|| self.kinds.get(&p.kind))
            .ok_or_else(|| Error(format!("kinds.tsv has no row for {}", p.kind)))
    }
}

fn kind([kind, meaning, error]: [String; 3]) -> (String, Kind) {
    let error = (error != "-").then_some(error);
    (kind, Kind { meaning, error })
}

fn summary(row: [String; 6]) -> Result<(String, Summary), Error> {
    let [name, text, paragraph, who, errors, see] = row;
    let who = match who.as_str() {
        "local" => Who::Local,
        "collective" => Who::Collective,
        "-" => Who::Named,
        other => return Err(Error(format!("summaries.tsv: {name}: who is '{other}'"))),
    };
    let summary = Summary {
        text,
        paragraph,
        who,
        errors: words(&errors),
        see: words(&see),
    };
    Ok((name, summary))
}

fn words(cell: &str) -> Vec<String> {
    let words = cell.split(' ').filter(|w| *w != "-" && !w.is_empty());
    words.map(str::to_string).collect()
}

fn texts(dir: &Path) -> Result<BTreeMap<String, Text>, Error> {
    let bad = |e: std::io::Error| Error(format!("cannot read {}: {e}", dir.display()));
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(bad)? {
        let path = entry.map_err(bad)?.path();
        let Some(name) = path.file_stem().filter(|_| ends_md(&path)) else {
            continue;
        };
        let text = std::fs::read_to_string(&path).map_err(bad)?;
        found.insert(name.to_string_lossy().into_owned(), parse(&text));
    }
    Ok(found)
}

fn ends_md(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "md")
}

/// Paragraphs, then `# Mistakes` with items, then `# Example` with a block of C.
fn parse(text: &str) -> Text {
    let (text, example) = text.split_once("```c\n").unwrap_or((text, ""));
    let (example, _) = example.split_once("```").unwrap_or((example, ""));
    let (details, mistakes) = text.split_once("# Mistakes\n").unwrap_or((text, ""));
    let mistakes = mistakes.replace("# Example", "");
    let mistakes = mistakes.trim().strip_prefix("- ").unwrap_or_default();
    Text {
        details: pieces(details, "\n\n"),
        mistakes: pieces(mistakes, "\n- "),
        example: example.to_string(),
    }
}

/// The pieces between separators, each on one line.
fn pieces(text: &str, separator: &str) -> Vec<String> {
    let pieces = text
        .split(separator)
        .map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    pieces
        .filter(|p| !p.is_empty() && !p.starts_with('#'))
        .collect()
}
