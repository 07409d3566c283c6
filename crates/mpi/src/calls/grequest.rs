//! Generalized requests (MPI 5.0, 13.2). The user's functions are called with the lock released.

use kw_objects::error::Res;
use kw_objects::handle::RequestH;
use kw_objects::request::{Generalized, Kind, unknown};
use kw_objects::state::Mpi;
use kw_sys::args::Out;
use kw_sys::callback::{GrequestCancel, GrequestFree, GrequestQuery};

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
