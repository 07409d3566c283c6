//! Frames over shared memory that are applied as soon as they are seen, past the queues of messages:
//! those of short operations, while no message waits before them.

use super::Window;
use crate::messages::Messages;
use kw_base::{ContextId, Key, Slab};
use kw_proto::rma::FRAMES_TAG;

/// Messages that are taken before other paths are polled. Built-in.
const AT_ONCE: usize = 8;

/// Result of a search for frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Taken {
    /// None have come.
    None,
    /// They are applied, and nothing waited for them.
    Settled,
    /// They are applied, and something may wait for them: [`crate::part::Part::advance`] must
    /// follow.
    Unsettled,
}

/// Takes frames until none has come in `looks` polls after the first; `bytes`: memory for them.
#[inline]
pub(super) fn take(
    all: &mut Slab<Window>,
    bytes: &mut Vec<u8>,
    messages: &mut Messages,
    looks: u32,
) -> Taken {
    let mut taken = Taken::None;
    let (mut frames, mut empty) = (0, 0);
    while frames < AT_ONCE {
        match take_next(all, bytes, messages) {
            Some(settled) => {
                (frames, empty) = (frames + 1, 0);
                taken = taken.max(settled);
            }
            None if taken == Taken::None || empty == looks => break,
            None => empty += 1,
        }
    }
    taken
}

/// Applies the next message with frames.
#[inline]
fn take_next(
    all: &mut Slab<Window>,
    bytes: &mut Vec<u8>,
    messages: &mut Messages,
) -> Option<Taken> {
    let mut of = None;
    let took = messages.take_unasked(|head, body| {
        let context = ContextId(head.context);
        of = match head.tag == FRAMES_TAG {
            true => window_of(all, context, head.source),
            false => None,
        }
        .map(|key| (key, head.source));
        if of.is_some() {
            bytes.clear();
            bytes.extend_from_slice(body);
        }
        of.is_some()
    });
    let (key, origin) = of.filter(|_| took)?;
    let window = all.get_mut(key)?;
    window.apply(messages, origin, bytes);
    Some(match window.is_settled() {
        true => Taken::Settled,
        false => Taken::Unsettled,
    })
}

/// The window whose context this is, if frames of that rank need not wait.
#[inline]
fn window_of(all: &Slab<Window>, context: ContextId, origin: u32) -> Option<Key> {
    let (key, window) = all.iter().find(|(_, w)| w.channel.context == context)?;
    let takes = window.arrivals.is_empty() && origin < window.channel.size();
    takes.then_some(key)
}
