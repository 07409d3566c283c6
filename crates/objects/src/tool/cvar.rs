//! Settings as control variables (MPI 5.0, 15.3.6).
//!
//! A switch or a choice is an `int` with an enumeration, a number an `MPI_Count` in which -1 means
//! `auto`, everything else text. Values set before MPI is initialised are kept here and override
//! the environment when MPI starts.

use super::{MPI_CHAR, MPI_COUNT, MPI_INT, refuse, unknown};
use crate::error::{Res, ToolClass};
use crate::handle::{CvarH, TypeH};
use kw_base::Slab;
use kw_base::settings::{ALL, Kind, Reach, Setting, Settings, When, parse_bool, parse_bytes};

/// Bytes of a text, final zero included.
pub const TEXT_ROOM: usize = 4096;

/// A handle of a control variable.
#[derive(Clone, Copy, Debug)]
pub struct Cvar {
    /// Position of its setting.
    pub setting: usize,
}

/// Handles, and the values set before the start.
#[derive(Debug, Default)]
pub struct Cvars {
    handles: Slab<Cvar>,
    /// By position of the setting; empty until one is set.
    early: Vec<Option<String>>,
    /// Values when the job was left.
    last: Option<Settings>,
}

impl Cvars {
    /// A new handle.
    pub fn alloc(&mut self, setting: usize) -> CvarH {
        CvarH::from_key(self.handles.insert(Cvar { setting }))
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
    pub fn before_start(&self, env: impl Fn(&str) -> Option<String>) -> Settings {
        let mut settings = Settings::defaults();
        for (i, setting) in ALL.iter().enumerate() {
            if let Some(text) = env(setting.name) {
                let _ = settings.set_at(i, &text);
            }
        }
        self.lay_over(&mut settings);
        settings
    }

    /// Applies the values set here to the settings with which MPI starts.
    pub fn lay_over(&self, settings: &mut Settings) {
        for (i, text) in self.early.iter().enumerate() {
            if let Some(text) = text {
                // It was checked when it was set.
                let _ = settings.set_at(i, text);
            }
        }
    }

    /// Sets a value for the next start.
    pub fn set_early(&mut self, setting: usize, text: String) {
        self.early.resize(ALL.len(), None);
        self.early[setting] = Some(text);
    }

    /// Keeps the values in use when the job was left.
    pub fn leave(&mut self, settings: &Settings) {
        self.last = Some(settings.clone());
    }

    /// Values at that time.
    pub fn last(&self) -> Option<&Settings> {
        self.last.as_ref()
    }
}

/// Datatype and number of elements of a setting's value.
pub fn shape(setting: &Setting) -> (TypeH, i32) {
    match setting.kind {
        Kind::Bool | Kind::Choice(_) => (MPI_INT, 1),
        Kind::Count | Kind::Bytes | Kind::Micros => (MPI_COUNT, 1),
        Kind::Text | Kind::File | Kind::Secret | Kind::Ports | Kind::Seconds => {
            (MPI_CHAR, TEXT_ROOM as i32)
        }
    }
}

/// Bytes of a setting's value.
pub fn size(setting: &Setting) -> usize {
    match setting.kind {
        Kind::Bool | Kind::Choice(_) => 4,
        Kind::Count | Kind::Bytes | Kind::Micros => 8,
        Kind::Text | Kind::File | Kind::Secret | Kind::Ports | Kind::Seconds => TEXT_ROOM,
    }
}

/// MPI_T_SCOPE_*: read-only, local, or the same on all processes (of a host, or at all).
pub fn scope(setting: &Setting) -> i32 {
    match (setting.when, setting.reach) {
        (When::Never, _) => 2,
        (_, Reach::Local) => 3,
        (_, Reach::Host) => 5,
        (_, Reach::Alike) => 7,
    }
}

/// Converts a setting's text to the C value.
pub fn to_c(setting: &Setting, text: &str) -> Vec<u8> {
    let int = |n: usize| (n as i32).to_ne_bytes().to_vec();
    match setting.kind {
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
pub fn from_c(setting: &Setting, bytes: &[u8]) -> Res<String> {
    let word = |words: &[&str]| {
        let i = bytes.first_chunk().map_or(-1, |b| i32::from_ne_bytes(*b));
        let found = usize::try_from(i).ok().and_then(|i| words.get(i));
        match found {
            Some(w) => Ok(w.to_string()),
            None => wrong(
                setting,
                &format!("{i}, which is not an item of its enumeration"),
            ),
        }
    };
    match setting.kind {
        Kind::Bool => word(super::SWITCH.items),
        Kind::Choice(words) => word(words),
        Kind::Count | Kind::Bytes | Kind::Micros => {
            let n = bytes.first_chunk().map_or(-1, |b| i64::from_ne_bytes(*b));
            match n {
                0.. => Ok(n.to_string()),
                -1 if setting.is_auto("auto") => Ok("auto".into()),
                _ => wrong(setting, &n.to_string()),
            }
        }
        Kind::Text | Kind::File | Kind::Secret | Kind::Ports | Kind::Seconds => {
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            match std::str::from_utf8(&bytes[..end]) {
                Ok(text) => Ok(text.to_string()),
                Err(_) => wrong(setting, "no text"),
            }
        }
    }
}

fn wrong<T>(setting: &Setting, what: &str) -> Res<T> {
    let text = format!("{} cannot be {what}", setting.name);
    refuse(ToolClass::Invalid, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_base::settings::Id;

    #[test]
    fn every_default_survives_the_way_to_c_and_back() {
        for setting in ALL {
            let c = to_c(setting, setting.default);
            assert!(c.len() <= size(setting));
            let back = from_c(setting, &c).unwrap();
            assert_eq!(to_c(setting, &back), c, "{}", setting.name);
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
