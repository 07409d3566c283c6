//! Generalized requests (MPI 5.0, 13.2). The user's functions are called with the lock released.

use crate::error::{Class, Fault, Res};
use crate::handle::RequestH;
use crate::objects::request::{Generalized, Kind, unknown};
use crate::objects::status::EMPTY;
use crate::state::Mpi;
use kw_sys::args::{Out, Status};
use kw_sys::callback::{GrequestCancel, GrequestFree, GrequestQuery};

fn failed(code: i32, what: &str) -> Box<Fault> {
    let mut fault = Fault::new(
        Class::Other,
        format!("the {what} function of a generalized request failed with code {code}"),
    );
    fault.code = code;
    fault
}

impl Generalized {
    /// Asks the user for the status.
    pub(crate) fn ask(&self) -> (Status, Res) {
        let mut status = EMPTY;
        let end = match self.query {
            Some(query) => query.call(self.extra, &mut status),
            None => Ok(()),
        };
        (status, end.map_err(|code| failed(code, "query")))
    }

    /// Tells the user that the request is gone.
    pub(crate) fn tell_gone(&self) -> Res {
        match self.free {
            Some(free) => free.call(self.extra).map_err(|code| failed(code, "free")),
            None => Ok(()),
        }
    }

    /// Asks the user to cancel.
    pub(crate) fn tell_cancel(&self) -> Res {
        match self.cancel {
            Some(cancel) => cancel
                .call(self.extra, self.complete)
                .map_err(|code| failed(code, "cancel")),
            None => Ok(()),
        }
    }
}

/// MPI_Grequest_start
pub fn grequest_start(
    mpi: &Mpi,
    query_fn: Option<GrequestQuery>,
    free_fn: Option<GrequestFree>,
    cancel_fn: Option<GrequestCancel>,
    extra_state: usize,
    request: Out<RequestH>,
) -> Res {
    let kind = Kind::Generalized(Box::new(Generalized {
        query: query_fn,
        free: free_fn,
        cancel: cancel_fn,
        extra: extra_state,
        complete: false,
        freed: false,
    }));
    request.set(mpi.lock().above.new_request(kind));
    Ok(())
}

/// MPI_Grequest_complete
pub fn grequest_complete(mpi: &Mpi, request: RequestH) -> Res {
    let mut guard = mpi.lock();
    let Some(Kind::Generalized(g)) = guard.above.requests.get_mut(request) else {
        return Err(unknown(request));
    };
    g.complete = true;
    let gone = g.freed.then_some(**g);
    if gone.is_some() {
        guard.above.requests.remove(request);
    }
    drop(guard);
    mpi.wake_all();
    gone.map_or(Ok(()), |g| g.tell_gone())
}
