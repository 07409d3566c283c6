//! Forms of one operation: how the caller learns that it is complete. The Rust function of an
//! operation takes the form as its last argument (`api/forms.tsv`); the forms are implemented with
//! the operations: `calls/coll/form`, `calls/p2p/form` and `calls/request_many`.
//!
//! Each holds, as a tuple in C's order, the parameters that only this form has.

/// The call returns when the operation is complete.
#[derive(Clone, Copy, Debug)]
pub struct Blocking<O>(pub O);

/// The call starts the operation and returns a request for it.
#[derive(Clone, Copy, Debug)]
pub struct Nonblocking<O>(pub O);

/// The call returns a request that MPI_Start starts, any number of times.
#[derive(Clone, Copy, Debug)]
pub struct Persistent<O>(pub O);

/// The call completes only requests that have ended.
#[derive(Clone, Copy, Debug)]
pub struct Testing<O>(pub O);

/// The call only reports which requests have ended, and completes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Peeking<O>(pub O);

/// Meaning of completion of a send (MPI 5.0, 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The buffer may be used again.
    Standard,
    /// The message is in the buffer that the program attached.
    Buffered,
    /// The receive has begun.
    Synchronous,
    /// As standard; the program promises that the receive is posted.
    Ready,
}
