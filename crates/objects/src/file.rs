//! Files, as far as all calls know them: a handle, an error handler, and the state of the files
//! chapter.

use crate::error::{Class, Fault, Res};
use crate::handle::{ErrhandlerH, FileH};
use crate::state::Tables;
use std::any::Any;
use std::sync::Arc;

/// An open file.
#[derive(Clone, Debug)]
pub struct File {
    /// Its error handler.
    pub errhandler: ErrhandlerH,
    /// State of `kw-file`.
    pub core: Arc<dyn Any + Send + Sync>,
}

impl Tables {
    /// The file of a handle.
    pub fn file(&self, handle: FileH) -> Res<&File> {
        let found = handle.key().and_then(|k| self.files.get(k));
        found.ok_or_else(|| unknown(handle))
    }

    /// The place of the error handler of a file; for MPI_FILE_NULL, of files opened later.
    pub fn file_errhandler(&mut self, handle: FileH) -> Res<&mut ErrhandlerH> {
        if handle.is_null() {
            return Ok(&mut self.errhandlers.of_files);
        }
        let found = handle.key().and_then(|k| self.files.get_mut(k));
        match found {
            Some(file) => Ok(&mut file.errhandler),
            None => Err(unknown(handle)),
        }
    }

    /// Adds an open file, which inherits the error handler for new files.
    pub fn add_file(&mut self, core: Arc<dyn Any + Send + Sync>) -> FileH {
        let errhandler = self.errhandlers.of_files;
        self.errhandlers.hold(errhandler);
        FileH::from_key(self.files.insert(File { errhandler, core }))
    }

    /// Removes a file from the table.
    pub fn remove_file(&mut self, handle: FileH) -> Res<File> {
        let removed = handle.key().and_then(|k| self.files.remove(k));
        let file = removed.ok_or_else(|| unknown(handle))?;
        self.errhandlers.release(file.errhandler);
        Ok(file)
    }
}

#[cold]
fn unknown(handle: FileH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_FILE_NULL".to_string()
    } else {
        format!(
            "{:#x}, which names no file {}",
            handle.0,
            crate::handle::amiss(handle.0, "closed")
        )
    };
    Fault::new(Class::File, format!("file is {what}"))
}
