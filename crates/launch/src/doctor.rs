//! `kwinfo --doctor`: properties of this machine that slow MPI programs down or keep them from
//! running.
//!
//! | file | what |
//! | --- | --- |
//! | [`facts`] | what the system says; asks and tries, judges nothing |
//! | [`checks`] | what follows from that: a finding for each matter; pure |
//! | [`between`] | whether hosts reach each other: tries connections between them |
//!
//! A finding says that all is well, or what the trouble costs and what to do about it. Users paste
//! the page into bug reports, so it holds no secret.

pub mod between;
pub mod checks;
pub mod facts;

use crate::hosts::Host;
use crate::listing::Listing;
use facts::Facts;

/// Severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grade {
    /// All is well.
    Ok,
    /// Programs run, but something costs time or a command is missing.
    Note,
    /// Programs do not run, or not between these hosts.
    Fault,
}

impl Grade {
    /// The grade as it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Grade::Ok => "ok",
            Grade::Note => "note",
            Grade::Fault => "FAULT",
        }
    }

    /// The grade that is printed as this word.
    pub fn read(word: &str) -> Option<Grade> {
        let all = [Grade::Ok, Grade::Note, Grade::Fault];
        all.into_iter().find(|g| g.word() == word)
    }
}

/// Finding about one matter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The matter, such as `open files`.
    pub what: String,
    /// Its severity.
    pub grade: Grade,
    /// What was found; unless all is well, what it costs and what to do.
    pub text: String,
}

impl Finding {
    /// A finding that all is well.
    pub fn ok(what: &str, text: impl Into<String>) -> Finding {
        Finding::of(what, Grade::Ok, text)
    }

    /// A finding that something costs time or is missing.
    pub fn note(what: &str, text: impl Into<String>) -> Finding {
        Finding::of(what, Grade::Note, text)
    }

    /// A finding that programs do not run.
    pub fn fault(what: &str, text: impl Into<String>) -> Finding {
        Finding::of(what, Grade::Fault, text)
    }

    fn of(what: &str, grade: Grade, text: impl Into<String>) -> Finding {
        Finding {
            what: what.into(),
            grade,
            text: text.into(),
        }
    }
}

/// The page about this machine and, if hosts are named, about the connections between them; and
/// whether it contains no fault.
pub fn page(hosts: &[Host]) -> (String, bool) {
    let facts = Facts::gather();
    let mut findings = checks::all(&facts);
    match hosts.is_empty() {
        true => findings.push(Finding::ok(
            "other hosts",
            "not tried; kwinfo --doctor --hosts a,b tries to connect them with each other",
        )),
        false => findings.extend(between::findings(hosts)),
    }
    text(&checks::heading(&facts), findings)
}

/// The page of these findings; and whether it contains no fault.
fn text(heading: &str, findings: Vec<Finding>) -> (String, bool) {
    let count = |grade| findings.iter().filter(|f| f.grade == grade).count();
    let (notes, faults) = (count(Grade::Note), count(Grade::Fault));
    let rows = findings
        .into_iter()
        .map(|f| vec![f.what, f.grade.word().into(), f.text]);
    let table = Listing {
        head: vec!["What", "", "Finding"],
        rows: rows.collect(),
    };
    let counted = |n: usize, what: &str| match n {
        0 => format!("no {what}"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let (faulty, noted) = (counted(faults, "fault"), counted(notes, "note"));
    let page = format!("{heading}\n\n{}\n{faulty}, {noted}\n", table.text());
    (page, faults == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_counts_what_it_holds() {
        let findings = vec![
            Finding::ok("clock", "tsc"),
            Finding::note("ssh", "missing"),
            Finding::note("gcc", "missing"),
        ];
        let (page, well) = text("Kittiwake", findings.clone());
        assert!(well && page.ends_with("no fault, 2 notes\n"), "{page}");
        let worse = [findings, vec![Finding::fault("memory", "none")]].concat();
        let (page, well) = text("Kittiwake", worse);
        assert!(!well && page.ends_with("1 fault, 2 notes\n"), "{page}");
        assert!(page.contains("memory  FAULT  none"), "{page}");
    }

    #[test]
    fn a_grade_is_read_as_it_is_printed() {
        for grade in [Grade::Ok, Grade::Note, Grade::Fault] {
            assert_eq!(Grade::read(grade.word()), Some(grade));
        }
        assert_eq!(Grade::read("well"), None);
    }
}
