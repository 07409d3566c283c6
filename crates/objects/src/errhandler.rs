//! Error handlers: which function, for which kind of object (MPI 5.0, 9.3).
//!
//! A handler lives as long as it is referenced: by the user's handles (MPI_*_create_errhandler and
//! MPI_*_get_errhandler each create one, MPI_Errhandler_free removes one) and by the objects it is
//! attached to.

use crate::error::{Class, Fault, Handler, Res, Scope, fail};
use crate::handle::{CommH, ErrhandlerH, FileH, SessionH};
use crate::state::{Mpi, Tables};
use kw_base::Slab;
use kw_sys::callback::ErrorHandler;

/// Kind of object to which a handler may be attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Communicators.
    Comm,
    /// Windows.
    Win,
    /// Files.
    File,
    /// Sessions.
    Session,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Comm => "communicators",
            Kind::Win => "windows",
            Kind::File => "files",
            Kind::Session => "sessions",
        }
    }
}

/// A user-defined handler.
#[derive(Clone, Debug)]
pub struct Errhandler {
    kind: Kind,
    function: ErrorHandler,
    references: u32,
}

/// All error handlers.
#[derive(Debug)]
pub struct Errhandlers {
    /// User-defined handlers.
    pub made: Slab<Errhandler>,
    /// Default handler of files; MPI_ERRORS_RETURN unless MPI_File_set_errhandler changed it for
    /// MPI_FILE_NULL.
    pub of_files: ErrhandlerH,
}

impl Default for Errhandlers {
    fn default() -> Self {
        Errhandlers {
            made: Slab::default(),
            of_files: ErrhandlerH::RETURN,
        }
    }
}

impl Errhandlers {
    /// A handle for a user's function, with one reference.
    pub fn add(&mut self, kind: Kind, function: Option<ErrorHandler>) -> Res<ErrhandlerH> {
        let Some(function) = function else {
            return fail(Class::Arg, "the error handler function is null");
        };
        let key = self.made.insert(Errhandler {
            kind,
            function,
            references: 1,
        });
        Ok(ErrhandlerH::from_key(key))
    }

    /// Checks that the handler can be attached to objects of this kind.
    pub fn check(&self, handle: ErrhandlerH, kind: Kind) -> Res {
        if is_standard(handle) {
            return Ok(());
        }
        let found = handle.key().and_then(|k| self.made.get(k));
        let found = found.ok_or_else(|| unknown_errhandler(handle))?;
        if found.kind != kind {
            return fail!(Errhandler: "errhandler was made for {}, not for {}", found.kind.name(), kind.name());
        }
        Ok(())
    }

    /// Adds a reference.
    pub fn hold(&mut self, handle: ErrhandlerH) {
        if let Some(e) = handle.key().and_then(|k| self.made.get_mut(k)) {
            e.references += 1;
        }
    }

    /// Removes a reference; without references the handler is removed.
    pub fn release(&mut self, handle: ErrhandlerH) {
        let Some(key) = handle.key() else { return };
        if let Some(e) = self.made.get_mut(key) {
            e.references -= 1;
            if e.references == 0 {
                self.made.remove(key);
            }
        }
    }

    /// Handles a free by the user. Predefined handlers may be freed, since MPI_Comm_get_errhandler
    /// returns them.
    pub fn free(&mut self, handle: ErrhandlerH) -> Res {
        if is_standard(handle) {
            return Ok(());
        }
        let known = handle.key().and_then(|k| self.made.get(k)).is_some();
        if !known {
            return Err(unknown_errhandler(handle));
        }
        self.release(handle);
        Ok(())
    }

    /// Action of a handler on an error of the object `on`.
    pub fn what_to_do(&self, handle: ErrhandlerH, on: usize) -> Handler {
        match handle {
            ErrhandlerH::RETURN => Handler::Return,
            ErrhandlerH::ABORT => Handler::Abort,
            _ => match handle.key().and_then(|k| self.made.get(k)) {
                Some(e) => Handler::User {
                    function: e.function,
                    handle: on,
                },
                None => Handler::Fatal,
            },
        }
    }
}

impl Tables {
    /// The handler of the object that an error concerns, and the handle of that object.
    fn attached(&self, scope: Scope) -> (ErrhandlerH, usize) {
        match scope {
            Scope::Comm(c) if self.comms.get(c).is_ok() => (
                self.comms
                    .get(c)
                    .map_or(ErrhandlerH::FATAL, |c| c.errhandler),
                c.0,
            ),
            Scope::Session(s) if self.sessions.get(s).is_ok() => (
                self.sessions
                    .get(s)
                    .map_or(ErrhandlerH::FATAL, |s| s.errhandler),
                s.0,
            ),
            Scope::Win(w) if self.window(w).is_ok() => (
                self.window(w).map_or(ErrhandlerH::FATAL, |w| w.errhandler),
                w.0,
            ),
            Scope::File(f) => match self.file(f) {
                Ok(file) => (file.errhandler, f.0),
                Err(_) => (self.errhandlers.of_files, FileH::NULL.0),
            },
            Scope::NewComm(e) if self.errhandlers.check(e, Kind::Comm).is_ok() => {
                (e, CommH::NULL.0)
            }
            Scope::NewSession(e) if self.errhandlers.check(e, Kind::Session).is_ok() => {
                (e, SessionH::NULL.0)
            }
            _ => (
                self.comms
                    .get(CommH::SELF)
                    .map_or(self.sessions.early_errhandler(), |c| c.errhandler),
                CommH::SELF.0,
            ),
        }
    }
}

impl Mpi {
    /// Handles an error of this scope ([`Scope::Call`]: MPI_COMM_SELF's handler). Takes the lock.
    pub fn handler(&self, scope: Scope) -> Handler {
        let guard = self.lock();
        let (errhandler, on) = guard.above.attached(scope);
        guard.above.errhandlers.what_to_do(errhandler, on)
    }
}

fn is_standard(handle: ErrhandlerH) -> bool {
    matches!(
        handle,
        ErrhandlerH::FATAL | ErrhandlerH::ABORT | ErrhandlerH::RETURN
    )
}

#[cold]
fn unknown_errhandler(handle: ErrhandlerH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_ERRHANDLER_NULL".to_string()
    } else {
        format!(
            "{:#x}, which names no error handler {}",
            handle.0,
            crate::handle::amiss(handle.0, "freed")
        )
    };
    Fault::new(Class::Errhandler, format!("errhandler is {what}"))
}
