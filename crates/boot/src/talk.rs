//! Carries out over a launcher what the machines of a start ask ([`kw_start`]).

use super::{BootError, Launcher, LauncherFault};
use kw_start::{Ask, Heard, Talk, Turn};

/// Holds a whole conversation.
pub fn hold<T: Talk>(launcher: &mut dyn Launcher, mut talk: T) -> Result<T::Out, BootError> {
    let mut heard = Heard::Done;
    loop {
        heard = match talk.next(heard)? {
            Turn::Ask(ask) => carry_out(launcher, ask)?,
            Turn::Over(out) => return Ok(out),
        };
    }
}

fn carry_out(launcher: &mut dyn Launcher, ask: Ask) -> Result<Heard, BootError> {
    match ask {
        Ask::Put { key, value } => launcher.put(&key, &value)?,
        Ask::Fence => launcher.fence()?,
        Ask::Get { from, key } => {
            let found = launcher.get(from, &key)?;
            let name = launcher.name().into();
            let rank = from;
            let lost = LauncherFault::LostValue { name, key, rank };
            return Ok(Heard::Value(found.ok_or(lost)?));
        }
    }
    Ok(Heard::Done)
}
