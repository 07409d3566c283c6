//! Info keys of windows (MPI 5.0, 12.2.1 and 12.2.3): the known ones, with their defaults. An
//! invalid value is ignored, as the standard requires for all hints.

use kw_objects::info::Info;
use kw_objects::window::Flavor;

/// Format of a key's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// `true` or `false`.
    Truth,
    /// `none`, or some of rar, raw, war and waw, separated by commas.
    Ordering,
    /// `same_op` or `same_op_no_op`.
    Operations,
    /// Bytes.
    Bytes,
    /// Bytes, a power of two.
    Alignment,
    /// Anything.
    Text,
}

/// A key.
struct Key {
    name: &'static str,
    form: Form,
    /// The default value; if it is empty, an unset key is not returned.
    default: &'static str,
    /// Whether only windows with memory allocated by MPI have it.
    allocated: bool,
    /// Whether the hint can be changed after the creation of the window.
    changes: bool,
}

const KEYS: &[Key] = &[
    key("no_locks", Form::Truth, "false", false, false),
    key(
        "accumulate_ordering",
        Form::Ordering,
        "rar,raw,war,waw",
        false,
        true,
    ),
    key(
        "accumulate_ops",
        Form::Operations,
        "same_op_no_op",
        false,
        true,
    ),
    key("mpi_accumulate_granularity", Form::Bytes, "0", false, true),
    key("same_size", Form::Truth, "false", false, false),
    key("same_disp_unit", Form::Truth, "false", false, false),
    key("alloc_shared_noncontig", Form::Truth, "false", true, false),
    key(
        "mpi_minimum_memory_alignment",
        Form::Alignment,
        "64",
        true,
        false,
    ),
    key(
        "mpi_assert_memory_alloc_kinds",
        Form::Text,
        "",
        false,
        false,
    ),
];

const fn key(
    name: &'static str,
    form: Form,
    default: &'static str,
    allocated: bool,
    changes: bool,
) -> Key {
    Key {
        name,
        form,
        default,
        allocated,
        changes,
    }
}

impl Form {
    fn takes(self, value: &str) -> bool {
        let bytes = value.parse::<u64>();
        match self {
            Form::Truth => matches!(value, "true" | "false"),
            Form::Ordering => {
                let known = |word: &str| matches!(word, "rar" | "raw" | "war" | "waw");
                value == "none" || value.split(',').all(|word| known(word.trim()))
            }
            Form::Operations => matches!(value, "same_op" | "same_op_no_op"),
            Form::Bytes => bytes.is_ok(),
            Form::Alignment => bytes.is_ok_and(u64::is_power_of_two),
            Form::Text => true,
        }
    }
}

/// The hints of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    info: Info,
}

fn is_allocated(flavor: Flavor) -> bool {
    matches!(flavor, Flavor::Allocate | Flavor::Shared)
}

impl Hints {
    /// The defaults of a window of this kind.
    pub fn new(flavor: Flavor) -> Hints {
        let mut info = Info::default();
        let known = KEYS.iter().filter(|k| !k.allocated || is_allocated(flavor));
        for key in known.filter(|k| !k.default.is_empty()) {
            info.set(key.name, key.default);
        }
        Hints { info }
    }

    /// Takes over the hints given at creation.
    pub fn take(&mut self, given: &Info) {
        self.take_where(given, |_| true);
    }

    fn take_where(&mut self, given: &Info, may: impl Fn(&Key) -> bool) {
        for key in KEYS.iter().filter(|k| may(k)) {
            let value = given.get(key.name).filter(|v| key.form.takes(v));
            let here = key.default.is_empty() || self.info.get(key.name).is_some();
            if let Some(value) = value.filter(|_| here) {
                self.info.set(key.name, value);
            }
        }
    }

    /// Whether a hint is `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.info.get(name) == Some("true")
    }

    /// The requested alignment of memory.
    pub fn alignment(&self) -> u64 {
        let asked = self.info.get("mpi_minimum_memory_alignment");
        asked.and_then(|a| a.parse().ok()).unwrap_or(1)
    }

    /// All of them.
    pub fn info(self) -> Info {
        self.info
    }
}

/// Takes over hints for an existing window.
pub fn change(hints: &mut Info, given: &Info) {
    let mut changed = Hints {
        info: std::mem::take(hints),
    };
    changed.take_where(given, |key| key.changes);
    *hints = changed.info;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Info {
        let mut info = Info::default();
        pairs.iter().for_each(|(k, v)| info.set(k, v));
        info
    }

    #[test]
    fn known_hints_are_taken_and_the_others_left_aside() {
        let mut hints = Hints::new(Flavor::Create);
        hints.take(&given(&[
            ("no_locks", "true"),
            ("accumulate_ordering", "raw,waw"),
            ("accumulate_ops", "any"),
            ("alloc_shared_noncontig", "true"),
            ("color", "blue"),
        ]));
        let info = hints.info();
        assert_eq!(info.get("no_locks"), Some("true"));
        assert_eq!(info.get("accumulate_ordering"), Some("raw,waw"));
        assert_eq!(info.get("accumulate_ops"), Some("same_op_no_op"));
        assert_eq!(info.get("alloc_shared_noncontig"), None);
        assert_eq!(info.get("color"), None);
    }

    #[test]
    fn what_the_window_was_made_with_stays() {
        let mut info = Hints::new(Flavor::Allocate).info();
        change(
            &mut info,
            &given(&[("no_locks", "true"), ("accumulate_ordering", "none")]),
        );
        assert_eq!(info.get("no_locks"), Some("false"));
        assert_eq!(info.get("accumulate_ordering"), Some("none"));
    }

    #[test]
    fn an_alignment_is_a_power_of_two() {
        let mut hints = Hints::new(Flavor::Allocate);
        hints.take(&given(&[("mpi_minimum_memory_alignment", "100")]));
        assert_eq!(hints.alignment(), 64);
        hints.take(&given(&[("mpi_minimum_memory_alignment", "4096")]));
        assert_eq!(hints.alignment(), 4096);
    }
}
