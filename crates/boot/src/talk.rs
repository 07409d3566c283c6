//! Carries out over a launcher what the machines of a start ask ([`kw_start`]).

use super::{BootError, Launcher, LauncherFault};
use kw_start::{Heard, KvsRequest, Talk, Turn};

/// Holds a whole conversation.
pub fn hold<T: Talk>(launcher: &mut dyn Launcher, mut talk: T) -> Result<T::Out, BootError> {
    let mut heard = Heard::Done;
    loop {
        heard = match talk.next(heard)? {
            Turn::Request(request) => carry_out(launcher, request)?,
            Turn::Over(out) => return Ok(out),
        };
    }
}

fn carry_out(launcher: &mut dyn Launcher, request: KvsRequest) -> Result<Heard, BootError> {
    match request {
        KvsRequest::Put { key, value } => launcher.put(&key, &value)?,
        KvsRequest::Fence => launcher.fence()?,
        KvsRequest::Get { from, key } => {
            let found = launcher.get(from, &key)?;
            let name = launcher.name().into();
            let rank = from;
            let lost = LauncherFault::LostValue { name, key, rank };
            return Ok(Heard::Value(found.ok_or(lost)?));
        }
    }
    Ok(Heard::Done)
}
