//! Generalized requests (MPI 5.0, 13.2): the user's functions, called with the lock released.

use crate::error::{Class, Fault, Res};
use crate::request::Generalized;
use crate::status::EMPTY;
use kw_sys::args::Status;

fn failed(code: i32, what: &str) -> Box<Fault> {
    let mut fault = Fault::new(
        Class::Other,
        format!("the {what} function of a generalized request failed with code {code}"),
    );
    fault.code = code;
    fault
}

impl Generalized {
    /// Calls the user's function for the status.
    pub fn ask(&self) -> (Status, Res) {
        let mut status = EMPTY;
        let end = match self.query {
            Some(query) => query.call(self.extra, &mut status),
            None => Ok(()),
        };
        (status, end.map_err(|code| failed(code, "query")))
    }

    /// Calls the user's function that frees the request.
    pub fn tell_gone(&self) -> Res {
        match self.free {
            Some(free) => free.call(self.extra).map_err(|code| failed(code, "free")),
            None => Ok(()),
        }
    }

    /// Calls the user's function that cancels.
    pub fn tell_cancel(&self) -> Res {
        match self.cancel {
            Some(cancel) => cancel
                .call(self.extra, self.complete)
                .map_err(|code| failed(code, "cancel")),
            None => Ok(()),
        }
    }
}
