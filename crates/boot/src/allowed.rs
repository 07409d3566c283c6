//! Which paths `KW_PATHS` allows. The same on all ranks.

use super::Misuse;
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
    /// Reads the knob.
    pub fn read(knobs: &Knobs) -> Result<Allowed, Misuse> {
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
                    return Err(Misuse::NoPath {
                        text: text.into(),
                        word: word.into(),
                    });
                }
            }
        }
        Ok(allowed)
    }
}
