//! Hooks of requests: a library on top of this one observes the end of an operation, whichever
//! thread completes its request and whether or not it is completed. Fortran's layer copies array
//! sections in this way.
//!
//! An operation that ends drops its guard ([`CompletionGuard`]), which calls its hook: at once, in
//! the thread that notices, before any call can report the request as complete. Requests without a
//! hook pay nothing. (Actions of the library's own requests at their end, which need the tables,
//! are [`Then`](super::request::Then).)

use crate::buffered::Buffers;
use crate::error::{Class, Fault, Res};
use crate::handle::{CommH, RequestH};
use crate::persistent::Start;
use crate::request::{Kind, Part, at_once, not_running, unknown};
use crate::state::State;
use kw_engine::{CompletionGuard, Engine};
use kw_sys::callback::{RequestEvent, RequestHook};
use std::sync::Arc;

/// A function of the layer above, with its data. The last call is [`RequestEvent::Gone`].
#[derive(Debug)]
pub struct Hook {
    function: RequestHook,
    data: usize,
}

impl Hook {
    /// A hook for the data at this address.
    pub fn new(function: RequestHook, data: usize) -> Arc<Hook> {
        Arc::new(Hook { function, data })
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.function.call(self.data, RequestEvent::Gone);
    }
}

/// An operation that is in flight.
#[derive(Debug)]
struct UnderWay(Arc<Hook>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.function.call(self.0.data, RequestEvent::Ended);
    }
}

/// How a persistent request with a hook is started.
#[derive(Debug)]
pub struct Hooked {
    start: Start,
    hook: Arc<Hook>,
}

impl Hooked {
    /// See [`Start`].
    pub fn run(&mut self, engine: &mut Engine, buffers: &mut Buffers, comm: CommH) -> Res<Part> {
        self.hook
            .function
            .call(self.hook.data, RequestEvent::Starts);
        let part = self.start.run(engine, buffers, comm)?;
        keep(engine, &[part], &self.hook);
        Ok(part)
    }

    /// See [`Start`].
    pub fn forget(&self, engine: &mut Engine) {
        self.start.forget(engine);
    }
}

/// Keeps the hook until all parts have ended.
fn keep(engine: &mut Engine, parts: &[Part], hook: &Arc<Hook>) {
    let under_way: CompletionGuard = Arc::new(UnderWay(hook.clone()));
    for part in parts {
        if let Part::Flying(f) = part {
            engine.messages.requests_mut().keep(f.id, under_way.clone());
        }
    }
}

/// Gives a request a hook, for all its operations. After an error the hook has already been told
/// that the request is gone.
pub fn attach(state: &mut State, handle: RequestH, hook: Arc<Hook>) -> Res {
    if handle.is_null() {
        return Err(unknown(handle));
    }
    let engine = state.engine.as_mut().ok_or_else(not_running)?;
    if at_once(handle).is_some() {
        keep(engine, &[], &hook);
        return Ok(());
    }
    match state.above.requests.get_mut(handle) {
        None => return Err(unknown(handle)),
        Some(Kind::Ended(_)) => keep(engine, &[], &hook),
        Some(Kind::Flight(f) | Kind::Then(f, _) | Kind::Scoped(f, _)) => {
            keep(engine, &[Part::Flying(*f)], &hook)
        }
        Some(Kind::Pair(parts)) => keep(engine, &parts[..], &hook),
        Some(Kind::Persistent(p)) if p.partitions.is_none() => {
            if let Some(active) = p.active {
                keep(engine, &[active], &hook);
            }
            let start = std::mem::replace(&mut p.start, Start::Nothing(super::status::EMPTY));
            p.start = Start::Hooked(Box::new(Hooked { start, hook }));
        }
        Some(Kind::Persistent(_) | Kind::Generalized(_) | Kind::Flush(..)) => {
            return Err(Fault::new(
                Class::Request,
                "request is of partitions, the program's own or a flush, which take no hook",
            ));
        }
    }
    Ok(())
}
