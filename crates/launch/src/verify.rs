//! Verifies a calibration: jobs of this host time messages and collectives with the choices by it,
//! with the choices by the built-in values, and with each alternative forced (`kwinfo
//! --calibrate`).
//!
//! | file | what |
//! | --- | --- |
//! | [`cells`] | what is timed, the choices by some figures, settings that force an alternative |
//! | [`ranks`] | what a rank of such a job does |
//! | [`verdict`] | what the times say: the table, the regret, whether the calibration is discarded |
//!
//! The contenders take turns, one job each, for some rounds. They find their figures in a directory
//! of their own, so no other job sees figures that have not been verified.

pub mod cells;
pub mod ranks;
pub mod verdict;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kw_base::Calibration;
use kw_base::calibration::Part;
use kw_base::settings::Settings;
use kw_sys::calibration as host;

use crate::libraries;
use crate::wanted::{Job, Wanted};
use cells::{Cell, Protocol, What};
use verdict::{By, Contender, Verdict};

/// Number of rounds; in each, all contenders take their turn.
const ROUNDS: usize = 5;
/// Maximum number of ranks of the timed collectives.
const MOST_RANKS: usize = 8;
/// The option by which a measuring rank is started.
const MEASURE: &str = "--measure";
/// The file of choices for messages and collectives that ranks would otherwise find in the user's
/// directory.
const DIRECTORY: &str = "XDG_CACHE_HOME";

/// A job of the series: what it forces, and what it times.
#[derive(Clone, Debug)]
struct Turn {
    by: By,
    ranks: usize,
    /// Settings in addition to the directory of its figures.
    settings: Vec<(&'static str, String)>,
    /// Whether it uses the figures with which receivers read all messages.
    always_read: bool,
    cells: Vec<(Cell, String)>,
}

/// The times of this host with these figures, and the verdict on them. An error is a sentence
/// without its end: the host cannot be measured.
pub fn verify(figures: &Calibration) -> Result<Verdict, String> {
    let ranks = kw_sys::cpus::usable().min(MOST_RANKS);
    if ranks < 2 {
        return Err("this process may use one CPU, and two ranks take two".into());
    }
    let place = VerifyDirs::new(figures)?;
    let turns = turns(figures, ranks)?;
    let first = Verdict::of(&series(&place, &turns)?);
    let again = first.repeat();
    if again.is_empty() {
        return Ok(first);
    }
    let turns: Vec<Turn> = turns
        .into_iter()
        .filter_map(|t| t.limited_to(&again))
        .collect();
    let second = Verdict::of(&series(&place, &turns)?);
    Ok(first.repeated(&second))
}

impl Turn {
    /// The same job for some of its cells; `None` if it has none of them.
    fn limited_to(mut self, cells: &[Cell]) -> Option<Turn> {
        self.cells.retain(|(cell, _)| cells.contains(cell));
        (!self.cells.is_empty()).then_some(self)
    }
}

/// The jobs that are compared.
fn turns(figures: &Calibration, ranks: usize) -> Result<Vec<Turn>, String> {
    let mut all = message_turns(figures);
    let job = Wanted {
        ranks: ranks as u32,
        hosts: 1,
        ..Wanted::default()
    };
    let job = Job::of(&job, &Settings::defaults())?;
    all.extend(collective_turns(figures, &job, ranks));
    Ok(all)
}

/// Jobs for messages: by the choice, by that of the built-in values, and by each protocol.
fn message_turns(figures: &Calibration) -> Vec<Turn> {
    let settings = Settings::defaults();
    let named = |name: &dyn Fn(u64) -> Protocol| -> Vec<(Cell, String)> {
        let all = cells::messages().into_iter();
        all.map(|c| (c, name(c.bytes).name().to_string())).collect()
    };
    let turn = |by, settings, always_read, cells| Turn {
        by,
        ranks: 2,
        settings,
        always_read,
        cells,
    };
    let by = |figures: &Calibration| named(&|n| cells::protocol(figures, &settings, n));
    let off = vec![("KW_CALIBRATE", "no".to_string())];
    let mut all = vec![
        turn(By::Chosen, Vec::new(), false, by(figures)),
        turn(By::Start, off, false, by(&Calibration::START)),
    ];
    for protocol in Protocol::ALL {
        let settings = protocol.settings().map(|(name, v)| (name, v.to_string()));
        let read = protocol == Protocol::Read;
        let cells = named(&|_| protocol);
        all.push(turn(By::Forced, settings.to_vec(), read, cells));
    }
    all
}

/// Jobs for collectives: by the choice, by that of the built-in values, by the first alternative of
/// each, by the second of each, and so on.
fn collective_turns(figures: &Calibration, job: &Job, ranks: usize) -> Vec<Turn> {
    let algorithms = |figures: &Calibration, cell: Cell| match cell.what {
        What::Collective(coll) => cells::algorithms(figures, job, coll, cell.bytes),
        What::Message => Vec::new(),
    };
    let all = cells::collectives();
    let here: Vec<Vec<String>> = all.iter().map(|c| algorithms(figures, *c)).collect();
    let nth = |n: usize| -> Vec<(Cell, String)> {
        let named = |(cell, names): (&Cell, &Vec<String>)| Some((*cell, names.get(n)?.clone()));
        all.iter().zip(&here).filter_map(named).collect()
    };
    let turn = |by, settings, cells| Turn {
        by,
        ranks,
        settings,
        always_read: false,
        cells,
    };
    let start = all.iter().filter_map(|c| {
        let names = algorithms(&Calibration::START, *c);
        Some((*c, names.first()?.clone()))
    });
    let off = vec![("KW_CALIBRATE", "no".to_string())];
    let mut turns = vec![
        turn(By::Chosen, Vec::new(), nth(0)),
        turn(By::Start, off, start.collect()),
    ];
    for n in 1.. {
        let cells = nth(n);
        if cells.is_empty() {
            return turns;
        }
        turns.push(turn(
            By::Forced,
            vec![("KW_COLL", cells::forced(&cells))],
            cells,
        ));
    }
    turns
}

/// All jobs, several times in turn.
fn series(place: &VerifyDirs, turns: &[Turn]) -> Result<Vec<Contender>, String> {
    let mut all: Vec<Contender> = Vec::new();
    for round in 0..ROUNDS {
        for at in 0..turns.len() {
            // A different job begins each round.
            let turn = &turns[(round + at) % turns.len()];
            for (cell, nanos) in place.run(turn)? {
                let named = turn.cells.iter().find(|(c, _)| *c == cell);
                let Some((_, name)) = named else { continue };
                let same = |c: &&mut Contender| {
                    (c.cell, c.by, c.name.as_str()) == (cell, turn.by, name.as_str())
                };
                match all.iter_mut().find(same) {
                    Some(known) => known.rounds.push(nanos),
                    None => all.push(Contender {
                        cell,
                        by: turn.by,
                        name: name.clone(),
                        rounds: vec![nanos],
                    }),
                }
            }
        }
    }
    // In the order of the table, whichever job ran first.
    let order = |c: &Contender| {
        turns
            .iter()
            .flat_map(|t| &t.cells)
            .position(|(d, _)| *d == c.cell)
    };
    all.sort_by_key(order);
    Ok(all)
}

/// Temporary directories with the figures that the jobs use.
struct VerifyDirs {
    root: PathBuf,
    chosen: PathBuf,
    read: PathBuf,
    mpiexec: PathBuf,
    /// The words that start a measuring rank.
    ranks: [String; 3],
}

impl VerifyDirs {
    fn new(figures: &Calibration) -> Result<VerifyDirs, String> {
        let lost = |e| format!("the installation is not found: {e}");
        let home = libraries::home().map_err(lost)?;
        let name = format!("kwinfo-{}-{:x}", std::process::id(), kw_sys::clock::now().0);
        let root = std::env::temp_dir().join(name);
        let place = VerifyDirs {
            chosen: root.join("chosen"),
            read: root.join("read"),
            mpiexec: home.join("bin/mpiexec"),
            ranks: libraries::own_words("kwinfo").map_err(lost)?,
            root,
        };
        // No other user can put figures there: the directory is new.
        std::fs::create_dir(&place.root)
            .map_err(|e| format!("cannot create {}: {e}", place.root.display()))?;
        let store = |path: &Path, figures: &Calibration| {
            host::store_below(path, Part::Host, figures).map_err(|why| why.to_string())
        };
        store(&place.chosen, figures)?;
        store(&place.read, &cells::always_read(figures))?;
        Ok(place)
    }

    /// Runs one job; returns the times that it prints.
    fn run(&self, turn: &Turn) -> Result<Vec<(Cell, f64)>, String> {
        let words: Vec<String> = turn.cells.iter().map(|(c, _)| c.to_string()).collect();
        let mut command = Command::new(&self.mpiexec);
        command.args(["--host", &format!("localhost:{}", turn.ranks)]);
        command.args(["-n", &turn.ranks.to_string()]);
        command.args(&self.ranks);
        command.args([MEASURE, &words.join(",")]);
        // The user's settings for other jobs do not apply here.
        for (name, _) in
            std::env::vars_os().filter(|(n, _)| n.as_encoded_bytes().starts_with(b"KW_"))
        {
            command.env_remove(name);
        }
        let directory = if turn.always_read {
            &self.read
        } else {
            &self.chosen
        };
        command.env(DIRECTORY, directory).stdin(Stdio::null());
        command.envs(turn.settings.iter().map(|(n, v)| (n, v)));
        let failed = |why: String| format!("{} fails: {why}", self.mpiexec.display());
        let out = command.output().map_err(|e| failed(e.to_string()))?;
        let text = String::from_utf8_lossy(&out.stderr);
        match out.status.success() {
            true => Ok(ranks::parse(&String::from_utf8_lossy(&out.stdout))),
            false => Err(failed(format!("{}, {}", out.status, text.trim()))),
        }
    }
}

impl Drop for VerifyDirs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_choice_and_alternatives_by_the_built_in_values() {
        let start = Calibration::START;
        let mut all = message_turns(&start);
        all.extend(collective_turns(&start, &Job::plain(2, 2), 2));
        for cell in cells::messages().into_iter().chain(cells::collectives()) {
            let names = |by: By| -> Vec<&str> {
                let turns = all.iter().filter(|t| t.by == by);
                let cells = turns.flat_map(|t| &t.cells);
                let names = cells.filter(|(c, _)| *c == cell);
                names.map(|(_, name)| name.as_str()).collect()
            };
            let [chosen] = names(By::Chosen)[..] else {
                panic!("{cell} has one choice")
            };
            assert_eq!(
                names(By::Start),
                [chosen],
                "the figures are the built-in values"
            );
            assert!(names(By::Forced).iter().any(|n| *n != chosen), "{cell}");
        }
    }

    #[test]
    fn a_turn_is_limited_to_what_is_measured_again() {
        let turns = message_turns(&Calibration::START);
        let one = turns[0].cells[3].0;
        let again = turns[0]
            .clone()
            .limited_to(&[one])
            .expect("it has the cell");
        assert_eq!(again.cells.len(), 1);
        assert!(turns[0].clone().limited_to(&[]).is_none());
    }
}
