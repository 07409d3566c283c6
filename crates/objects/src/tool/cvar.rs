//! Settings as control variables (MPI 5.0, 15.3.6).
//!
//! A switch or a choice is an `int` with an enumeration, a number an `MPI_Count` in which -1 means
//! `auto`, everything else text. Values set before MPI is initialised are kept here and override
//! the environment when MPI starts.

use super::{MPI_CHAR, MPI_COUNT, MPI_INT, refuse, unknown};
use crate::error::{Res, ToolClass};
use crate::handle::{CvarH, TypeH};
use kw_base::Slab;
use kw_base::knobs::{ALL, Kind, Knob, Knobs, Reach, When, parse_bool, parse_bytes};

/// Bytes of a text, final zero included.
pub const TEXT_ROOM: usize = 4096;

/// A handle of a control variable.
#[derive(Clone, Copy, Debug)]
pub struct Cvar {
    /// Position of its setting.
    pub knob: usize,
}

/// Handles, and the values set before the start.
#[derive(Debug, Default)]
pub struct Cvars {
    handles: Slab<Cvar>,
    /// By position of the setting; empty until one is set.
    early: Vec<Option<String>>,
    /// Values when the job was left.
    last: Option<Knobs>,
}

impl Cvars {
    /// A new handle.
    pub fn alloc(&mut self, knob: usize) -> CvarH {
        CvarH::from_key(self.handles.insert(Cvar { knob }))
    }

    /// The variable of a handle.
    pub fn get(&self, handle: CvarH) -> Res<Cvar> {
        let found = handle.key().and_then(|k| self.handles.get(k));
        found.copied().ok_or_else(|| unknown(CvarH::WHAT, handle.0))
    }

    /// Frees a handle.
    pub fn free(&mut self, handle: CvarH) -> Res {
        let found = handle.key().and_then(|k| self.handles.remove(k));
        found
            .map(drop)
            .ok_or_else(|| unknown(CvarH::WHAT, handle.0))
    }

    /// Handles the end of the last user of the tool interface.
    pub fn forget(&mut self) {
        let keys: Vec<_> = self.handles.iter().map(|(k, _)| k).collect();
        keys.into_iter().for_each(|k| {
            self.handles.remove(k);
        });
    }

    /// The environment overlaid with the values set here. An invalid text in the environment is
    /// ignored here: the start of MPI will report it.
    pub fn before_start(&self, env: impl Fn(&str) -> Option<String>) -> Knobs {
        let mut knobs = Knobs::defaults();
        for (i, knob) in ALL.iter().enumerate() {
            if let Some(text) = env(knob.name) {
                let _ = knobs.set_at(i, &text);
            }
        }
        self.lay_over(&mut knobs);
        knobs
    }

    /// Applies the values set here to the settings with which MPI starts.
    pub fn lay_over(&self, knobs: &mut Knobs) {
        for (i, text) in self.early.iter().enumerate() {
            if let Some(text) = text {
                // It was checked when it was set.
                let _ = knobs.set_at(i, text);
            }
        }
    }

    /// Sets a value for the next start.
    pub fn set_early(&mut self, knob: usize, text: String) {
        self.early.resize(ALL.len(), None);
        self.early[knob] = Some(text);
    }

    /// Keeps the values in use when the job was left.
    pub fn leave(&mut self, knobs: &Knobs) {
        self.last = Some(knobs.clone());
    }

    /// Values at that time.
    pub fn last(&self) -> Option<&Knobs> {
        self.last.as_ref()
    }
}

/// Datatype and number of elements of a setting's value.
pub fn shape(knob: &Knob) -> (TypeH, i32) {
    match knob.kind {
        Kind::Bool | Kind::Choice(_) => (MPI_INT, 1),
        Kind::Count | Kind::Bytes | Kind::Micros => (MPI_COUNT, 1),
        Kind::Text | Kind::File | Kind::Secret | Kind::Ports | Kind::Seconds => {
            (MPI_CHAR, TEXT_ROOM as i32)
        }
    }
}

/// Bytes of a setting's value.
pub fn size(knob: &Knob) -> usize {
    match knob.kind {
        Kind::Bool | Kind::Choice(_) => 4,
        Kind::Count | Kind::Bytes | Kind::Micros => 8,
        Kind::Text | Kind::File | Kind::Secret | Kind::Ports | Kind::Seconds => TEXT_ROOM,
    }
}

/// MPI_T_SCOPE_*: read-only, local, or the same on all processes (of a host, or at all).
pub fn scope(knob: &Knob) -> i32 {
    match (knob.when, knob.reach) {
        (When::Never, _) => 2,
        (_, Reach::Local) => 3,
        (_, Reach::Host) => 5,
        (_, Reach::Alike) => 7,
    }
}

/// Converts a setting's text to the C value.
pub fn to_c(knob: &Knob, text: &str) -> Vec<u8> {
    let int = |n: usize| (n as i32).to_ne_bytes().to_vec();
    match knob.kind {
        Kind::Bool => int(parse_bool(text).unwrap_or(false) as usize),
        Kind::Choice(words) => int(words.iter().position(|w| *w == text).unwrap_or(0)),
        Kind::Count | Kind::Bytes | Kind::Micros => {
            let number = parse_bytes(text).and_then(|n| i64::try_from(n).ok());
            number.unwrap_or(-1).to_ne_bytes().to_vec()
        }
        Kind::Text | Kind::File | Kind::Secret | Kind::Ports | Kind::Seconds => {
            let mut bytes: Vec<u8> = text.bytes().take(TEXT_ROOM - 1).collect();
            bytes.push(0);
            bytes
        }
    }
}

/// Converts a C value to the setting's text; `bytes` are [`size`] of them, or for text as many as
/// the caller has.
pub fn from_c(knob: &Knob, bytes: &[u8]) -> Res<String> {
    let word = |words: &[&str]| {
        let i = bytes.first_chunk().map_or(-1, |b| i32::from_ne_bytes(*b));
        let found = usize::try_from(i).ok().and_then(|i| words.get(i));
        match found {
            Some(w) => Ok(w.to_string()),
            None => wrong(
                knob,
                &format!("{i}, which is not an item of its enumeration"),
            ),
        }
    };
    match knob.kind {
        Kind::Bool => word(super::SWITCH.items),
        Kind::Choice(words) => word(words),
        Kind::Count | Kind::Bytes | Kind::Micros => {
            let n = bytes.first_chunk().map_or(-1, |b| i64::from_ne_bytes(*b));
            match n {
                0.. => Ok(n.to_string()),
                -1 if knob.is_auto("auto") => Ok("auto".into()),
                _ => wrong(knob, &n.to_string()),
            }
        }
        Kind::Text | Kind::File | Kind::Secret | Kind::Ports | Kind::Seconds => {
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            match std::str::from_utf8(&bytes[..end]) {
                Ok(text) => Ok(text.to_string()),
                Err(_) => wrong(knob, "no text"),
            }
        }
    }
}

fn wrong<T>(knob: &Knob, what: &str) -> Res<T> {
    let text = format!("{} cannot be {what}", knob.name);
    refuse(ToolClass::Invalid, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_base::knobs::Id;

    #[test]
    fn every_default_survives_the_way_to_c_and_back() {
        for knob in ALL {
            let c = to_c(knob, knob.default);
            assert!(c.len() <= size(knob));
            let back = from_c(knob, &c).unwrap();
            assert_eq!(to_c(knob, &back), c, "{}", knob.name);
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let of = |id: Id| &ALL[id as usize];
        assert!(from_c(of(Id::Write), &2i32.to_ne_bytes()).is_err());
        assert!(from_c(of(Id::Log), &(-1i32).to_ne_bytes()).is_err());
        assert!(from_c(of(Id::Watch), &(-1i64).to_ne_bytes()).is_err());
        assert_eq!(
            from_c(of(Id::EagerShm), &(-1i64).to_ne_bytes()).unwrap(),
            "auto"
        );
    }

    #[test]
    fn what_is_set_early_goes_before_the_environment() {
        let mut c = Cvars::default();
        let env = |name: &str| (name == "KW_SPIN").then(|| "7".to_string());
        assert_eq!(c.before_start(env).text(Id::Spin), "7");
        c.set_early(Id::Spin as usize, "9".into());
        assert_eq!(c.before_start(env).text(Id::Spin), "9");
    }
}
