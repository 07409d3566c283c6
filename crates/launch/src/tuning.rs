//! Settings, counters and events as rows of text: for the output of `kwinfo` and the page
//! `docs/tuning.md`.
//!
//! The page is `tuning.md` beside this file with the tables filled in; a test compares the two.

use crate::listing::Listing;
use kw_base::counters::{self, Class};
use kw_base::events::{self, Element};
use kw_base::settings::{self, Kind, Reach, When};

/// The page, with a line `{settings}`, `{counters}` or `{events}` in place of a table.
const PAGE: &str = include_str!("tuning.md");

/// All settings.
pub fn settings() -> Listing {
    let row = |k: &settings::Setting| {
        let name = k.name.to_string();
        let when = match k.when {
            When::Never => "never",
            When::BeforeInit => "before MPI_Init",
            When::Anytime => "at any time",
        };
        vec![name, k.default.to_string(), when.into(), meaning(k)]
    };
    Listing {
        head: vec!["Variable", "Default", "Set by MPI_T", "Meaning"],
        rows: settings::ALL.iter().map(row).collect(),
    }
}

/// The help of a setting, with the further properties of its row.
fn meaning(k: &settings::Setting) -> String {
    let mut text = k.help.to_string();
    match k.kind {
        Kind::Choice(words) => text += &format!(" One of {}.", words.join(", ")),
        Kind::Micros => text += " Microseconds.",
        Kind::Seconds => text += " Seconds.",
        Kind::Bytes => text += " Bytes.",
        _ => {}
    }
    match k.reach {
        Reach::Alike if !text.contains("same on all ranks") => text += " The same on all ranks.",
        Reach::Host => text += " The same on all ranks of a host.",
        _ => {}
    }
    if k.memory != "none" {
        text += &format!(" Memory: {}.", k.memory);
    }
    text
}

/// All counters.
pub fn counters() -> Listing {
    let row = |c: &counters::Row| {
        let kind = match c.class {
            Class::Count => "counter",
            Class::Sum => "aggregate",
            Class::Level => "level",
            Class::Peak(_) => "highwatermark",
            Class::State(_) => "state",
        };
        let help = match c.class {
            Class::State(words) => format!("{} One of {}.", c.help, words.join(", ")),
            _ => c.help.to_string(),
        };
        let words = [c.name, c.component.name(), kind, c.unit].map(str::to_string);
        words.into_iter().chain([help]).collect()
    };
    Listing {
        head: vec!["Counter", "Category", "Class", "Unit", "Meaning"],
        rows: counters::ALL.iter().map(row).collect(),
    }
}

/// All kinds of events.
pub fn events() -> Listing {
    let row = |e: &events::Row| {
        let types = e.elements.iter().map(|t| match t {
            Element::Int => "int",
            Element::Count => "MPI_Count",
        });
        let types = types.collect::<Vec<_>>().join(", ");
        vec![
            e.name.into(),
            e.component.name().into(),
            types,
            e.help.into(),
        ]
    };
    Listing {
        head: vec!["Event", "Category", "Elements", "Meaning"],
        rows: events::ALL.iter().map(row).collect(),
    }
}

impl Listing {
    /// A table of Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let head: Vec<String> = self.head.iter().map(|h| h.to_string()).collect();
        let rule = vec!["---".to_string(); head.len()];
        let mut out = line(&head) + &line(&rule);
        for row in &self.rows {
            let mut row = row.clone();
            row[0] = format!("`{}`", row[0]);
            out += &line(&row);
        }
        out
    }
}

/// The page `docs/tuning.md`.
pub fn page() -> String {
    let lines = PAGE.lines().map(|line| match line {
        "{settings}" => settings().markdown(),
        "{counters}" => counters().markdown(),
        "{events}" => events().markdown(),
        text => format!("{text}\n"),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_the_one_that_the_tables_make() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tuning.md");
        let there = std::fs::read_to_string(docs).unwrap_or_default();
        assert!(
            there == page(),
            "docs/tuning.md is made of the tables and crates/launch/src/tuning.md: cargo run -q -p kw-commands -- --as kwinfo --tuning > docs/tuning.md"
        );
    }

    #[test]
    fn every_number_in_the_source_is_where_the_page_says() {
        let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let (_, listed) = PAGE.split_once("### In the source").unwrap();
        let (listed, _) = listed.split_once("\n## ").unwrap();
        let rows = listed.lines().filter(|line| line.starts_with("| `"));
        let quoted = |cell: &str| -> Vec<String> {
            cell.split('`').skip(1).step_by(2).map(Into::into).collect()
        };
        let mut found = 0;
        for row in rows {
            let cells: Vec<&str> = row.split('|').collect();
            let (names, file) = (quoted(cells[1]), &quoted(cells[2])[0]);
            let (room, rest) = file.split_once('/').unwrap();
            let text = std::fs::read_to_string(format!("{crates}/{room}/src/{rest}"));
            let text = text.unwrap_or_else(|e| panic!("{file}: {e}"));
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            for name in names {
                let there = text.split(|c| !is_word(c)).any(|word| word == name);
                assert!(there, "{file} has no {name}");
                found += 1;
            }
        }
        assert!(found > 80, "{found}");
    }

    #[test]
    fn no_cell_breaks_its_table() {
        for list in [settings(), counters(), events()] {
            for row in &list.rows {
                assert_eq!(row.len(), list.head.len());
                assert!(row.iter().all(|cell| !cell.contains(['|', '\n'])));
            }
        }
    }
}
