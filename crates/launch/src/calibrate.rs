//! The calibration values of this host (figures), for `kwinfo --calibrate` and `--choices`, and
//! when mpiexec measures them.
//!
//! mpiexec measures at the end of a job that lasted [`LONG_JOB`] or longer, on a host without a
//! valid file of figures. The job leaves all processors idle then, no short job pays for it, and a
//! long one pays some 2 % of its time, once.

use crate::choices::{self, messages};
use crate::collectives::{self, collectives, prices};
use crate::listing::Listing;
use crate::verify::{verdict::Verdict, verify};
use crate::wanted::{Job, Wanted};
use kw_base::Calibration;
use kw_base::calibration::{self, Part};
use kw_base::settings::{Id, Settings};
use kw_sys::calibration as host;
use std::time::Duration;

/// Duration of a job that can spare the time of a measurement.
const LONG_JOB: Duration = Duration::from_secs(5);

/// Measures the host, verifies the figures if requested, and saves them unless they lose to the
/// built-in values. Returns the text to print, and whether the figures were saved and all choices
/// were good.
pub fn calibrate(verified: bool) -> (String, bool) {
    let figures = host::measure();
    let mut text = format!("{}\n", listing(&figures, &[Part::Host]).text());
    let mut good = true;
    if verified {
        match verify(&figures) {
            Err(why) => text += &not_verified(&why),
            Ok(verdict) => {
                text += &outcome(&verdict);
                good = verdict.is_good();
                if verdict.loses().is_some() {
                    return (text, good);
                }
            }
        }
    }
    match host::store(Part::Host, &figures) {
        Ok(path) => (format!("{text}Saved in {}.\n", path.display()), good),
        Err(why) => (
            format!("{text}Not kept, so that no job will use them: {why}.\n"),
            false,
        ),
    }
}

/// Verifies the figures that jobs use, and discards those that lose to the built-in values. Returns
/// the text to print, and whether all choices were good.
pub fn verify_known() -> (String, bool) {
    let known = host::path(Part::Host).and_then(|path| Ok((path, host::load(Part::Host)?)));
    let (from, figures) = match known {
        Ok((path, known)) => (format!("measured, from {}", path.display()), known),
        Err(why) => (format!("built-in values: {why}"), Calibration::START),
    };
    let (text, good) = match verify(&figures) {
        Err(why) => (not_verified(&why), false),
        Ok(verdict) => (outcome(&verdict), verdict.is_good()),
    };
    (format!("Calibration: {from}.\n{text}"), good)
}

fn not_verified(why: &str) -> String {
    format!("Not verified: {why}.\n")
}

/// Result of a verification. Figures that lose are discarded: a note says that they must not be
/// used.
fn outcome(verdict: &Verdict) -> String {
    let text = format!("{}\n{}", verdict.listing().text(), verdict.sentences());
    if verdict.loses().is_none() {
        return text;
    }
    match host::discard(Part::Host) {
        Ok(_) => text,
        Err(why) => {
            format!("{text}That is not noted, so a file that was there before stays: {why}.\n")
        }
    }
}

/// Measures the host at the end of a job if it has no valid figures.
pub fn after_job(lasted: Duration) {
    if lasted < LONG_JOB {
        return;
    }
    let wanted = |settings: Settings| settings.flag(Id::Calibrate);
    let settings = Settings::read(kw_sys::environment::variable);
    let missing = || host::path(Part::Host).is_ok() && host::load(Part::Host).is_err();
    // Figures that were discarded are measured again only on request.
    if settings.is_ok_and(wanted) && missing() && !host::is_discarded(Part::Host) {
        // If the file cannot be written, the built-in values are used, as before.
        let _ = host::store(Part::Host, &host::measure());
    }
}

/// The figures by which a job would be priced, their source, and its choices: for the requested
/// job, or for some usual ones.
pub fn choices(wanted: Option<&Wanted>) -> Result<String, String> {
    let settings = Settings::read(kw_sys::environment::variable).map_err(|bad| bad.to_string())?;
    let job = wanted.map(|w| Job::of(w, &settings)).transpose()?;
    let mut figures = Calibration::START;
    let mut from = String::new();
    for part in Part::ALL {
        let (of, origin_text) = part_in_use(part, &settings);
        figures = figures.with_part(part, &of);
        from += &origin_text;
    }
    page(job.as_ref(), &from, &figures, &settings)
}

/// The choices of a running job, with the calibration that its ranks have.
pub fn choices_met(
    job: &Job,
    figures: &Calibration,
    settings: &Settings,
) -> Result<String, String> {
    let part = |(part, what): (Part, &str)| {
        let from = match figures.has(part) {
            true => "measured",
            false => "built-in values",
        };
        format!("Calibration of {what}: {from}.\n")
    };
    let parts = [
        (Part::Host, "rank 0's host"),
        (Part::Network, "its network"),
    ];
    page(Some(job), &parts.map(part).concat(), figures, settings)
}

/// `from`: source of the figures.
fn page(
    job: Option<&Job>,
    from: &str,
    figures: &Calibration,
    settings: &Settings,
) -> Result<String, String> {
    let mut from = from.to_string();
    let all = listing(figures, &Part::ALL).text();
    let (origin_text, messages, collectives, prices) = match job {
        None => (
            "Collectives, by these prices, a core for each rank".into(),
            messages(figures, settings),
            collectives(figures, settings)?,
            prices(figures, None),
        ),
        Some(job) => {
            from = format!("{}\n\n{from}", job.sentence());
            (
                match job.oversubscribed {
                    true => "Collectives (the prices assume one core per rank)",
                    false => "Collectives, by these prices",
                }
                .to_string(),
                choices::of_job(job, figures, settings),
                collectives::of_job(job, figures, settings)?,
                prices(figures, Some(job)),
            )
        }
    };
    Ok(format!(
        "{from}\n{all}\nMessages:\n\n{}\n{origin_text}:\n\n{}\nPrices of collectives and their origin:\n\n{}",
        messages.text(),
        collectives.text(),
        prices.text()
    ))
}

/// The choices for programs: tab-separated lines, the first word of which is the kind of the line.
///
/// | first word | what follows |
/// | --- | --- |
/// | `figure` | name, value, its unit, `measured` or `start`, the starting value |
/// | `price` | name, nanoseconds, `measured` or `start`, the figure that makes it or `-`, its starting value |
/// | `messages` | path, ranks, largest eager message, smallest one that is fetched or `-`, why |
/// | `collective` | name, ranks, hosts, bytes, what is chosen, microseconds by the prices; of a job that is wanted also what decides |
pub fn choices_for_programs(wanted: Option<&Wanted>) -> Result<String, String> {
    let settings = Settings::read(kw_sys::environment::variable).map_err(|bad| bad.to_string())?;
    let job = wanted.map(|w| Job::of(w, &settings)).transpose()?;
    let figures = host::known(&settings);
    let mut rows: Vec<Vec<String>> = figure_rows(&figures);
    rows.extend(collectives::price_rows(&figures, job.as_ref()));
    match &job {
        None => {
            rows.extend(choices::message_rows(&figures, &settings));
            rows.extend(collectives::choice_rows(&figures, &settings)?);
        }
        Some(job) => {
            rows.extend(choices::job_rows(job, &figures, &settings));
            rows.extend(collectives::job_rows(job, &figures, &settings)?);
        }
    }
    Ok(rows.iter().map(|row| row.join("\t") + "\n").collect())
}

fn figure_rows(figures: &Calibration) -> Vec<Vec<String>> {
    let row = |(figure, row): &(calibration::Figure, calibration::Row)| {
        vec![
            "figure".into(),
            row.name.into(),
            figures.value(*figure).to_string(),
            row.unit.name().into(),
            origin(figures.has_measured(*figure)).into(),
            row.start.to_string(),
        ]
    };
    calibration::ALL.iter().map(row).collect()
}

/// Source of a number, in a word for programs.
pub fn origin(measured: bool) -> &'static str {
    if measured { "measured" } else { "start" }
}

/// The figures of one part that a job would use, and a sentence about their source.
fn part_in_use(part: Part, settings: &Settings) -> (Calibration, String) {
    let (what, who) = match part {
        Part::Host => ("Calibration of this host", "kwinfo --calibrate measures"),
        Part::Network => (
            "Calibration of its network",
            "measured by a job that starts here and has ranks on other hosts",
        ),
    };
    let start = |why: String| {
        let origin_text = format!("{what}: built-in values: {why}.\n");
        (Calibration::START, origin_text)
    };
    match (
        settings.flag(Id::Calibrate),
        host::path(part),
        host::load(part),
    ) {
        (false, ..) => start("KW_CALIBRATE is off".into()),
        (true, Ok(path), Ok(figures)) => {
            let origin_text = format!("{what}: measured, from {}.\n", path.display());
            (figures, origin_text)
        }
        (true, _, Err(why)) | (true, Err(why), _) => start(format!("{why} ({who})")),
    }
}

/// Figures for people.
fn listing(figures: &Calibration, parts: &[Part]) -> Listing {
    let row = |(figure, row): &(calibration::Figure, calibration::Row)| {
        let value = figures.value(*figure);
        vec![row.name.into(), row.unit.show(value), row.help.into()]
    };
    let shown = parts.iter().flat_map(|part| part.rows());
    Listing {
        head: vec!["Parameter", "Here", "Meaning"],
        rows: shown.map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_line_for_programs() {
        let known = Calibration::START.with_network(100_000_000, 0);
        let rows = figure_rows(&known);
        assert_eq!(rows.len(), calibration::ALL.len());
        let of = |name: &str| rows.iter().find(|r| r[1] == name).map(|r| r[2..].join(" "));
        let trip = of("net-round-trip");
        assert_eq!(trip.as_deref(), Some("100000000 ps measured 24000000"));
        assert_eq!(of("wake").as_deref(), Some("15000000 ps start 15000000"));
        assert_eq!(of("line-core").as_deref(), Some("0 ps start 0"));
    }
}
