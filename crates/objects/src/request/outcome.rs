//! Status and error of an engine's operation for its request.

use super::{Flight, Part};
use crate::error::{Class, Fault, Scope};
use crate::state::Tables;
use crate::status::{self, EMPTY};
use kw_engine::{Engine, Failure, MessageFailure, Outcome};
use kw_sys::args::Status;

/// The fault of an operation on an object other than a communicator.
#[cold]
pub(super) fn scoped(tables: &Tables, mut fault: Box<Fault>, scope: Scope) -> Box<Fault> {
    if let Scope::Win(win) = scope {
        return tables.operation_fault(win, fault);
    }
    fault.scope = scope;
    fault
}

/// Status and failure of an operation that has ended.
#[inline]
pub fn land(engine: &mut Engine, part: Part) -> (Status, Option<Box<Fault>>) {
    match part {
        Part::Ended(status) => (status, None),
        Part::Flying(f) => match engine.requests().take(f.id) {
            Some(outcome) => (status_of(&f, &outcome), fault_of(&f, outcome.failure)),
            None => (EMPTY, Some(lost(&f))),
        },
    }
}

#[inline]
pub(super) fn status_of(f: &Flight, outcome: &Outcome) -> Status {
    let mut status = EMPTY;
    if outcome.cancelled {
        status::set_cancelled(&mut status, true);
    } else if f.receives {
        status = status::received(outcome.source, outcome.tag, outcome.len);
    }
    status
}

/// Error of an operation, for the handler of its communicator.
#[inline]
pub fn fault_of(f: &Flight, failure: Option<Box<Failure>>) -> Option<Box<Fault>> {
    failure.map(|failure| explain(*failure).on(f.comm))
}

/// A failure of the engine as a sentence with a class.
#[cold]
pub fn explain(failure: Failure) -> Box<Fault> {
    match failure {
        Failure::Message(MessageFailure::Truncated { came, fits }) => Fault::new(
            Class::Truncate,
            format!("the message has {came} bytes, but the receive buffer only {fits}"),
        ),
        Failure::Message(MessageFailure::Types(text)) => Fault::new(Class::Type, text),
        Failure::Message(MessageFailure::PeerGone(text)) => Fault::new(Class::ProcAborted, text),
        Failure::Message(MessageFailure::Other(text)) | Failure::Calls(text) => {
            Fault::new(Class::Other, text)
        }
        Failure::Uneven { came, wants, text } => {
            let class = if came > wants {
                Class::Truncate
            } else {
                Class::Count
            };
            Fault::new(class, text)
        }
        Failure::Roots(text) => Fault::new(Class::Root, text),
        Failure::Disagreement { code, text } => Fault::of_code(code, text),
        Failure::NoShmRegion => Fault::new(Class::Intern, "this rank has no memory that it shares"),
    }
}

#[cold]
fn lost(f: &Flight) -> Box<Fault> {
    Fault::new(
        Class::Intern,
        format!("internal error: unknown operation {:?}", f.id),
    )
    .on(f.comm)
}
