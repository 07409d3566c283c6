//! Categories (MPI 5.0, 15.3.9): settings, counters and events, each by component. The tree follows
//! from the tables of `kw_base` and never changes.

use kw_base::components::{self, Component};
use kw_base::counters;
use kw_base::events;
use kw_base::settings;

/// One category: positions in the tables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Category {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub help: String,
    /// Control variables.
    pub cvars: Vec<usize>,
    /// Performance variables.
    pub pvars: Vec<usize>,
    /// Kinds of events.
    pub events: Vec<usize>,
    /// Categories below this one.
    pub below: Vec<usize>,
}

/// Every category; the first holds the others.
pub fn all() -> Vec<Category> {
    let mut all = vec![named(
        "kittiwake",
        "All variables and events of this library.",
    )];
    let settings: Vec<Component> = settings::ALL.iter().map(|k| k.component).collect();
    let counters: Vec<Component> = counters::ALL.iter().map(|c| c.component).collect();
    let events: Vec<Component> = events::ALL.iter().map(|e| e.component).collect();
    branch(&mut all, "settings", "What can be set.", &settings, |c| {
        &mut c.cvars
    });
    branch(&mut all, "counters", "What is counted.", &counters, |c| {
        &mut c.pvars
    });
    branch(&mut all, "events", "Events.", &events, |c| &mut c.events);
    all
}

fn named(name: &str, help: &str) -> Category {
    Category {
        name: name.into(),
        help: help.into(),
        ..Category::default()
    }
}

/// A category below the first one, with a subcategory for each component that has rows.
fn branch(
    all: &mut Vec<Category>,
    name: &str,
    help: &str,
    components: &[Component],
    list: fn(&mut Category) -> &mut Vec<usize>,
) {
    let top = all.len();
    all[0].below.push(top);
    all.push(named(name, help));
    for component in components::ALL {
        let rows: Vec<usize> = (0..components.len())
            .filter(|i| components[*i] == *component)
            .collect();
        if rows.is_empty() {
            continue;
        }
        let below = all.len();
        all[top].below.push(below);
        let mut category = named(&format!("{name}.{}", component.name()), component.help());
        *list(&mut category) = rows;
        all.push(category);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_exactly_one_category_and_every_category_below_one_other() {
        let all = all();
        let once = |n: usize, rows: Vec<usize>| {
            let mut rows = rows;
            rows.sort_unstable();
            assert_eq!(rows, (0..n).collect::<Vec<_>>());
        };
        let each = |f: fn(&Category) -> &Vec<usize>| all.iter().flat_map(f).copied().collect();
        once(settings::ALL.len(), each(|c| &c.cvars));
        once(counters::ALL.len(), each(|c| &c.pvars));
        once(events::ALL.len(), each(|c| &c.events));
        let mut below: Vec<usize> = each(|c| &c.below);
        below.push(0);
        once(all.len(), below);
    }
}
