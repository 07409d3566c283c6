//! The figures of this host, for `kwinfo --calibrate` and `--choices`, and when mpiexec measures
//! them.
//!
//! mpiexec measures at the end of a job that lasted [`LONG_JOB`] or longer, on a host that has no
//! file of figures that counts: all processors are idle then as far as the job goes, no short job
//! pays for it, and a long one at most 2 % of its time, once.

use crate::choices::messages;
use crate::listing::Listing;
use kw_base::Calibration;
use kw_base::calibration;
use kw_base::knobs::{Id, Knobs};
use kw_sys::calibration as host;
use std::time::Duration;

/// A job that lasted so long can spare the time that measuring takes.
const LONG_JOB: Duration = Duration::from_secs(10);

/// Measures the host and keeps the figures; what is to be printed, and whether they could be kept.
pub fn calibrate() -> (String, bool) {
    let figures = host::measure();
    let (kept, well) = match host::store(&figures) {
        Ok(path) => (format!("Kept in {}.", path.display()), true),
        Err(why) => (
            format!("Not kept, so that no job will use them: {why}."),
            false,
        ),
    };
    (format!("{}\n{kept}\n", listing(&figures).text()), well)
}

/// A job of this host has ended: measures the host where there are no figures that count.
pub fn after_job(lasted: Duration) {
    if lasted < LONG_JOB {
        return;
    }
    let wanted = |knobs: Knobs| knobs.flag(Id::Calibrate);
    let knobs = Knobs::read(kw_sys::environment::variable);
    if knobs.is_ok_and(wanted) && host::path().is_ok() && host::load().is_err() {
        // Who may not write there goes on with the starting values, as before.
        let _ = host::store(&host::measure());
    }
}

/// The figures that a job would be priced with, where they are from, and what it would choose.
pub fn choices() -> String {
    let knobs = match Knobs::read(kw_sys::environment::variable) {
        Ok(knobs) => knobs,
        Err(bad) => return format!("{bad}\n"),
    };
    let (figures, from) = match (knobs.flag(Id::Calibrate), host::path(), host::load()) {
        (false, ..) => (
            Calibration::START,
            "starting values: KW_CALIBRATE is off".into(),
        ),
        (true, Ok(path), Ok(figures)) => (figures, format!("measured, from {}", path.display())),
        (true, _, Err(why)) | (true, Err(why), _) => {
            let from = format!("starting values: {why} (kwinfo --calibrate measures)");
            (Calibration::START, from)
        }
    };
    let (table, choices) = (listing(&figures).text(), messages(&figures, &knobs).text());
    format!("Figures of this host: {from}.\n\n{table}\nMessages:\n\n{choices}")
}

/// Figures for people.
fn listing(figures: &Calibration) -> Listing {
    let row = |(figure, row): &(calibration::Figure, calibration::Row)| {
        let value = figures.value(*figure);
        vec![row.name.into(), row.unit.show(value), row.help.into()]
    };
    Listing {
        head: vec!["Figure", "Here", "What it is"],
        rows: calibration::ALL.iter().map(row).collect(),
    }
}
