//! Which paths `KW_PATHS` allows. The same on all ranks.

use super::BootError;
use kw_base::knobs::{Id, Knobs};

/// What leads to another host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// What `KW_PATHS` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowed {
    /// Ranks of a host share memory.
    pub shm: bool,
    /// What leads to other hosts: the first that was named.
    pub wire: Option<Wire>,
}

impl Allowed {
    /// Reads the knob; an error is a sentence that names the word which is no path.
    pub fn read(knobs: &Knobs) -> Result<Allowed, BootError> {
        let text = knobs.text(Id::Paths);
        let mut allowed = Allowed {
            shm: false,
            wire: None,
        };
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match word {
                "self" => {}
                "shm" => allowed.shm = true,
                "tcp" => allowed.wire = allowed.wire.or(Some(Wire::Tcp)),
                "udp" => allowed.wire = allowed.wire.or(Some(Wire::Udp)),
                _ => {
                    let what = format!(
                        "KW_PATHS is '{text}', but '{word}' is no path; there are self, shm, tcp and udp"
                    );
                    return Err(BootError(what));
                }
            }
        }
        Ok(allowed)
    }
}
