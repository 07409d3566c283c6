//! Messages matched by a probe and not yet received (MPI 5.0, 3.8.2).

use crate::error::{Class, Fault, Res};
use crate::handle::{CommH, MessageH};
use crate::state::Tables;
use kw_base::Peer;
use kw_engine::MessageId;

/// A message taken off the queue.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The engine's name for it.
    pub id: MessageId,
    /// The communicator in which it arrived.
    pub comm: CommH,
    /// The sender.
    pub from: Peer,
}

impl Tables {
    /// The message of a handle.
    pub fn message(&self, handle: MessageH) -> Res<Message> {
        let found = handle.key().and_then(|k| self.messages.get(k));
        found.copied().ok_or_else(|| unknown(handle))
    }
}

#[cold]
fn unknown(handle: MessageH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_MESSAGE_NULL".to_string()
    } else {
        format!(
            "{:#x}, which names no message (received already?)",
            handle.0
        )
    };
    Fault::new(Class::Request, format!("message is {what}"))
}
