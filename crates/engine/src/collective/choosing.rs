//! Which algorithm runs a call. All ranks of a communicator must choose the same, so the choice
//! depends only on what the job agreed on: the call, the rows of the communicator's hint, and
//! itself.

use kw_base::Calibration;
use kw_boot::Agreed;
use kw_coll::algorithms::Algorithm;
use kw_coll::cost::Prices;
use kw_coll::table::Site;
use kw_coll::{CallView, Chooser, Coll, Table};

/// Basis of the choice of algorithms.
#[derive(Debug)]
pub(super) struct Choosing {
    table: Table,
    site: Site,
}

impl Choosing {
    #[cold]
    pub(super) fn of(agreed: &Agreed) -> Choosing {
        Choosing {
            table: agreed.table(),
            site: agreed.site(),
        }
    }

    /// The basis for ranks of several jobs, which have agreed on nothing: the built-in table, with
    /// the built-in values of all figures.
    #[cold]
    pub(super) fn between_jobs() -> Choosing {
        Choosing {
            table: Table::default().priced(Prices::of(&Calibration::START)),
            site: Site {
                shared: false,
                network: true,
            },
        }
    }

    /// The basis for the parts of composed algorithms.
    #[inline]
    pub(super) fn chooser(&self) -> Chooser<'_> {
        Chooser {
            table: &self.table,
            site: self.site,
        }
    }

    /// The algorithm and its number; `rows` precede the table.
    #[inline]
    pub(super) fn choose(
        &self,
        rows: Option<&Table>,
        coll: Coll,
        bytes: u64,
        call: &CallView<'_>,
    ) -> (&'static Algorithm, u32) {
        let chosen = rows
            .and_then(|r| r.find(coll, bytes, self.site, call))
            .unwrap_or_else(|| self.table.choose(coll, bytes, self.site, call));
        tracing::debug!(
            "{coll:?} of {bytes} bytes by {} {}",
            chosen.0.name,
            chosen.1
        );
        chosen
    }
}
