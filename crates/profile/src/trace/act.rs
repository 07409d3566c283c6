//! Actions of calls as recorded in a trace: the meaningful words of their arguments, in positions
//! that the generator of the wrappers knows (`kw_apigen::profile_wrappers`).

use kw_start::trace::ABSENT;

/// Action of a call. The words of each are listed; they are pointers unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum What {
    Plain,
    /// Nothing; ranks, tag or requests among its arguments are recorded.
    Named,
    /// Each member waits for those before it.
    Scan,
    /// Nothing; `dest` is a rank of the window, `tag` the type of a lock.
    Window,
    /// group
    WindowGroup,
    /// new window
    MakesWindow,
    /// window
    FreesWindow,
    NamesWindow,
    Send,
    /// status
    Recv,
    /// status
    Sendrecv,
    /// request
    Irecv,
    /// request
    Isendrecv,
    /// request, count, datatype
    SendInit,
    /// request
    RecvInit,
    /// 1, request; or count, requests
    Start,
    /// 1, request, status; or count, requests, statuses; flag or null
    Wait,
    /// count, requests, status, flag or null, index
    Waitany,
    /// count, requests, statuses, outcount, indices
    Waitsome,
    /// request
    RequestFree,
    /// message, status, flag or null
    Mprobe,
    /// -, -, flag or null
    Probe,
    /// message, status
    Mrecv,
    /// message, request
    Imrecv,
    /// new communicator
    MakesComm,
    /// new communicator
    CopiesComm,
    /// communicator
    FreesComm,
    NamesComm,
    Begins,
    Ends,
}

/// A call's arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Act {
    pub what: What,
    /// Whether all members of the communicator or the window must call it, each the same number of times.
    pub collective: bool,
    /// A handle, or 0.
    pub comm: usize,
    /// A handle, or 0.
    pub win: usize,
    pub dest: i32,
    pub source: i32,
    pub root: i32,
    pub tag: i32,
    pub recvtag: i32,
    pub requests: usize,
    pub words: [usize; 5],
}

impl Act {
    /// An action of which only the call itself is recorded.
    pub const PLAIN: Act = Act {
        what: What::Plain,
        collective: false,
        comm: 0,
        win: 0,
        dest: ABSENT,
        source: ABSENT,
        root: ABSENT,
        tag: ABSENT,
        recvtag: ABSENT,
        requests: 0,
        words: [0; 5],
    };
}
