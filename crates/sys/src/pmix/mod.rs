//! A process's conversation with a PMIx server, through the library that is found at run time
//! (`library`).
//!
//! One [`Pmix`] per process: the library itself keeps one state for the whole process. Calls block.
//! The server's answers are not trusted: a value of another type than expected counts as missing.

mod abi;
mod library;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use crate::threads;
use abi::{App, Info, Proc, Query, Value};
use library::Calls;

use abi::KEY_MAX;

/// Why something failed: a sentence's end.
pub type Failure = String;

/// Why there is no conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// No usable library, in the loader's words.
    NoLibrary(Failure),
    /// No server that answers as it should.
    NoServer(Failure),
}

/// A named set of processes, members by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Name.
    pub name: String,
    /// Members of this job.
    pub ranks: Vec<u32>,
}

/// The server's information about the job and its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Processes of the job.
    JobSize,
    /// Processes that the system could hold.
    UniverseSize,
    /// Processes of the job on this host.
    LocalSize,
    /// Application of the start that a rank belongs to.
    Appnum(u32),
    /// Number of the host of a rank.
    NodeId(u32),
}

/// The open conversation.
pub struct Pmix {
    calls: Calls,
    me: Proc,
}

impl std::fmt::Debug for Pmix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pmix({}, {})", self.space(), self.me.rank)
    }
}

impl Pmix {
    /// Opens the library (the one that is `named`, if one is) and the conversation.
    pub fn open(named: Option<&str>) -> Result<Pmix, Closed> {
        let calls = library::open(named).map_err(Closed::NoLibrary)?;
        let mut pmix = Pmix { calls, me: proc(0) };
        // its threads are not the program's either
        let status = threads::with_signals_blocked(|| {
            // SAFETY: `me` is a pmix_proc_t that the library fills; there is no array of infos.
            unsafe { (pmix.calls.init)(&mut pmix.me, ptr::null_mut(), 0) }
        });
        pmix.check(status).map_err(Closed::NoServer)?;
        Ok(pmix)
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.me.rank
    }

    /// The job's name.
    pub fn space(&self) -> String {
        text_of(&self.me.space)
    }

    /// A number that the server knows, if it does.
    pub fn fact(&self, fact: Fact) -> Option<u64> {
        let (rank, key) = match fact {
            Fact::JobSize => (abi::RANK_JOB, abi::JOB_SIZE),
            Fact::UniverseSize => (abi::RANK_JOB, abi::UNIVERSE_SIZE),
            Fact::LocalSize => (abi::RANK_JOB, abi::LOCAL_SIZE),
            Fact::Appnum(rank) => (rank, abi::APPNUM),
            Fact::NodeId(rank) => (rank, abi::NODE_ID),
        };
        self.read(rank, key, &[], number).ok()?.flatten()
    }

    /// The ranks of each host of the job, host by host; a question for each host, not for each
    /// rank.
    pub fn hosts(&self) -> Option<Vec<Vec<u32>>> {
        let mut list = ptr::null_mut::<c_char>();
        // SAFETY: the name of our job ends with NUL; the library sets `list` to a text that is ours
        // to free.
        let status = unsafe { (self.calls.nodes?)(self.me.space.as_ptr(), &mut list) };
        if status != abi::SUCCESS || list.is_null() {
            return None;
        }
        // SAFETY: a text of the library's, which ends with NUL; not used after it is freed.
        let names = unsafe {
            let names = CStr::from_ptr(list).to_string_lossy().into_owned();
            libc::free(list.cast());
            names
        };
        names.split(',').map(|name| self.ranks_on(name)).collect()
    }

    fn ranks_on(&self, host: &str) -> Option<Vec<u32>> {
        let host = CString::new(host).ok()?;
        let (mut at, mut count) = (ptr::null_mut::<Proc>(), 0usize);
        let space = self.me.space.as_ptr();
        // SAFETY: both texts end with NUL; the library sets an array of `count` processes that is
        // ours to free.
        let status = unsafe { (self.calls.peers?)(host.as_ptr(), space, &mut at, &mut count) };
        if status != abi::SUCCESS || at.is_null() {
            return None;
        }
        // SAFETY: an array that the library has set; not used after it is freed.
        unsafe {
            let ranks = std::slice::from_raw_parts(at, count).iter();
            let ranks = ranks.map(|p| p.rank).collect();
            libc::free(at.cast());
            Some(ranks)
        }
    }

    /// Stores bytes under a key; others see them after [`Pmix::fence`].
    pub fn put(&self, key: &str, bytes: &[u8]) -> Result<(), Failure> {
        let key = word(key)?;
        let mut value = Value {
            kind: abi::BYTES,
            data: abi::Data { room: [0; 3] },
        };
        value.data.bytes = abi::Bytes {
            at: bytes.as_ptr() as *mut c_char,
            size: bytes.len(),
        };
        // SAFETY: the key ends with NUL; the library copies the value, whose bytes are ours until
        // it returns.
        self.check(unsafe { (self.calls.put)(abi::SCOPE_GLOBAL, key.as_ptr(), &mut value) })
    }

    /// Waits for all processes of the job, and spreads the stored values.
    pub fn fence(&self) -> Result<(), Failure> {
        // SAFETY: no arguments.
        self.check(unsafe { (self.calls.commit)() })?;
        let collect = [flag(abi::COLLECT)];
        // SAFETY: no processes named means all of the job; one info lies behind the pointer.
        self.check(unsafe { (self.calls.fence)(ptr::null(), 0, collect.as_ptr(), 1) })
    }

    /// Value that a rank has stored under a key before the last fence.
    pub fn get(&self, from: u32, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        let key = word(key)?;
        let found = self.read(from, &key, &[flag(abi::IMMEDIATE)], bytes)?;
        Ok(found.flatten())
    }

    /// Starts processes of a program, as a job of their own.
    pub fn spawn(&self, program: &str, args: &[String], count: u32) -> Result<(), Failure> {
        let text = |t: &str| CString::new(t).map_err(|_| format!("'{t}' has a NUL in it"));
        let words = std::iter::once(program).chain(args.iter().map(String::as_str));
        let words: Vec<CString> = words.map(text).collect::<Result<_, _>>()?;
        let mut args: Vec<*mut c_char> = words.iter().map(|w| w.as_ptr() as *mut c_char).collect();
        args.push(ptr::null_mut());
        let app = App {
            program: args[0],
            args: args.as_mut_ptr(),
            env: ptr::null_mut(),
            directory: ptr::null_mut(),
            count: c_int::try_from(count).map_err(|_| format!("{count} are too many"))?,
            infos: ptr::null_mut(),
            info_count: 0,
        };
        let mut space = proc(0).space;
        // SAFETY: no infos, one application whose texts and null-ended list are ours until the call
        // returns; the name of the new job has room for the longest there is.
        self.check(unsafe { (self.calls.spawn)(ptr::null(), 0, &app, 1, space.as_mut_ptr()) })
    }

    /// Ends the whole job; the launcher shows the message.
    pub fn abort(&self, status: i32, message: &str) -> Result<(), Failure> {
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the message ends with NUL; no processes named means the whole job.
        self.check(unsafe { (self.calls.abort)(status, message.as_ptr(), ptr::null_mut(), 0) })
    }

    /// Closes the conversation.
    pub fn finalize(&self) -> Result<(), Failure> {
        // SAFETY: no infos.
        self.check(unsafe { (self.calls.finalize)(ptr::null(), 0) })
    }

    /// From now on this process ends, with a sentence, when the server is gone.
    pub fn end_with_server(&self) -> Result<(), Failure> {
        let mut code = abi::ERR_LOST_CONNECTION;
        // SAFETY: one code lies behind the pointer, `on_loss` has the type of a handler and needs
        // no data; without a callback the call blocks until the handler is registered.
        let status = unsafe {
            (self.calls.register)(
                &mut code,
                1,
                ptr::null_mut(),
                0,
                on_loss,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        // the number of the handler is a good result too
        self.check(status.min(abi::SUCCESS))
    }

    /// The named sets of processes that the launcher made; none if it knows of none.
    pub fn sets(&self) -> Vec<Set> {
        let names = self.ask(abi::QUERY_SETS, &mut [], |v| {
            // SAFETY: the value is one that the library answered.
            unsafe { string(v) }
        });
        let names = names.flatten().unwrap_or_default();
        let named = |name: &str| {
            let key = CString::new(name).ok()?;
            let mut which = [info(abi::SET_NAME, abi::STRING)];
            which[0].value.data.text = key.as_ptr() as *mut c_char;
            let ranks = self.ask(abi::QUERY_MEMBERS, &mut which, |v| {
                // SAFETY: the value is one that the library answered.
                unsafe { members(v, &self.me) }
            });
            Some(Set {
                name: name.to_string(),
                ranks: ranks.flatten()?,
            })
        };
        let some = names.split(',').filter(|n| !n.is_empty());
        some.filter_map(named).collect()
    }

    /// Asks the server; the answer is read by `read`, and freed except for the array of infos
    /// itself.
    fn ask<T>(&self, what: &CStr, which: &mut [Info], read: impl Fn(&Value) -> T) -> Option<T> {
        let mut keys = [what.as_ptr() as *mut c_char, ptr::null_mut()];
        let mut query = Query {
            keys: keys.as_mut_ptr(),
            qualifiers: if which.is_empty() {
                ptr::null_mut()
            } else {
                which.as_mut_ptr()
            },
            count: which.len(),
        };
        let (mut at, mut count) = (ptr::null_mut::<Info>(), 0usize);
        // SAFETY: one query with a null-ended list of keys and `count` qualifiers, all ours until
        // the call returns.
        let status = unsafe { (self.calls.query)(&mut query, 1, &mut at, &mut count) };
        if status != abi::SUCCESS || at.is_null() || count == 0 {
            return None;
        }
        // SAFETY: the library answered `count` infos here, which it never touches again.
        let infos = unsafe { std::slice::from_raw_parts_mut(at, count) };
        let found = read(&infos[0].value);
        for info in infos {
            self.drop_inside(&mut info.value);
        }
        // SAFETY: allocated by the library with malloc, for us to free.
        unsafe { libc::free(at.cast()) };
        Some(found)
    }

    fn read<T>(
        &self,
        rank: u32,
        key: &CStr,
        how: &[Info],
        read: unsafe fn(&Value) -> T,
    ) -> Result<Option<T>, Failure> {
        let mut at = ptr::null_mut::<Value>();
        let who = Proc { rank, ..self.me };
        let infos = if how.is_empty() {
            ptr::null()
        } else {
            how.as_ptr()
        };
        // SAFETY: all pointers are ours and live until the call returns; it sets `at` only when it
        // succeeds.
        let status = unsafe { (self.calls.get)(&who, key.as_ptr(), infos, how.len(), &mut at) };
        if status == abi::ERR_NOT_FOUND {
            return Ok(None);
        }
        self.check(status)?;
        // SAFETY: a value that the library made for us, or null.
        let Some(value) = (unsafe { at.as_mut() }) else {
            return Ok(None);
        };
        // SAFETY: `read` looks at the member that the value's kind says.
        let found = unsafe { read(value) };
        self.drop_inside(value);
        // SAFETY: allocated by the library with malloc, for us to free.
        unsafe { libc::free(at.cast()) };
        Ok(Some(found))
    }

    fn drop_inside(&self, value: &mut Value) {
        if let Some(destruct) = self.calls.destruct {
            // SAFETY: a value that the library made, not used again.
            unsafe { destruct(value) }
        }
    }

    fn check(&self, status: c_int) -> Result<(), Failure> {
        if status == abi::SUCCESS {
            return Ok(());
        }
        // SAFETY: the library answers a constant text, or null.
        let text = unsafe {
            (self.calls.error_text)(status)
                .as_ref()
                .map(|t| CStr::from_ptr(t))
        };
        let text = text.map_or("unknown".into(), |t| t.to_string_lossy());
        Err(format!("{text} ({status})"))
    }
}

/// The server has exited, and with it the process that would end this one with its job.
unsafe extern "C" fn on_loss(
    _id: usize,
    _status: c_int,
    _source: *const Proc,
    _info: *mut Info,
    _infos: usize,
    _results: *mut Info,
    _count: usize,
    _done: *mut c_void,
    _data: *mut c_void,
) {
    let (id, host) = (std::process::id(), crate::host::name());
    eprintln!("process {id} on {host}: the job has ended because its PMIx launcher has exited");
    crate::host::leave(1);
}

fn proc(rank: u32) -> Proc {
    Proc {
        space: [0; abi::NAME_MAX + 1],
        rank,
    }
}

fn info(key: &CStr, kind: u16) -> Info {
    let mut info = Info {
        key: [0; KEY_MAX + 1],
        flags: 0,
        value: Value {
            kind,
            data: abi::Data { room: [0; 3] },
        },
    };
    let bytes = key.to_bytes().iter().take(KEY_MAX);
    for (slot, b) in info.key.iter_mut().zip(bytes) {
        *slot = *b as c_char;
    }
    info
}

/// An info with this key that is true.
fn flag(key: &CStr) -> Info {
    let mut info = info(key, abi::BOOL);
    info.value.data.flag = true;
    info
}

fn word(key: &str) -> Result<CString, Failure> {
    match CString::new(key) {
        Ok(word) if key.len() <= KEY_MAX => Ok(word),
        Ok(_) => Err(format!(
            "a key takes {KEY_MAX} bytes, this one has {}",
            key.len()
        )),
        Err(_) => Err("a key has a NUL in it".into()),
    }
}

fn text_of(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .map(|c| *c as u8)
        .take_while(|b| *b != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// # Safety
/// The value's member is the one its kind says.
unsafe fn number(v: &Value) -> Option<u64> {
    // SAFETY: as the caller promises.
    unsafe {
        match v.kind {
            abi::SIZE | abi::UINT64 => Some(v.data.size as u64),
            abi::UINT | abi::UINT32 | abi::PROC_RANK => Some(v.data.uint32.into()),
            abi::UINT16 => Some(v.data.uint16.into()),
            abi::INT | abi::INT32 => u64::try_from(v.data.int).ok(),
            abi::INT64 => u64::try_from(v.data.int64).ok(),
            _ => None,
        }
    }
}

/// # Safety
/// The value's member is the one its kind says, and what it points to lives.
unsafe fn bytes(v: &Value) -> Option<Vec<u8>> {
    if v.kind != abi::BYTES {
        return None;
    }
    // SAFETY: as the caller promises.
    unsafe {
        let b = v.data.bytes;
        match b.at.is_null() || b.size == 0 {
            true => Some(Vec::new()),
            false => Some(std::slice::from_raw_parts(b.at.cast::<u8>(), b.size).to_vec()),
        }
    }
}

/// # Safety
/// As for [`bytes`].
unsafe fn string(v: &Value) -> Option<String> {
    if v.kind != abi::STRING {
        return None;
    }
    // SAFETY: as the caller promises; a text ends with NUL.
    unsafe {
        let text = v.data.text.as_ref()?;
        Some(CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

/// Ranks of `me`'s job in an array of processes.
///
/// # Safety
/// As for [`bytes`].
unsafe fn members(v: &Value, me: &Proc) -> Option<Vec<u32>> {
    if v.kind != abi::ARRAY {
        return None;
    }
    // SAFETY: as the caller promises; an array of processes holds `size` of them.
    unsafe {
        let array = v.data.array.as_ref()?;
        if array.kind != abi::PROC || array.at.is_null() {
            return None;
        }
        let procs = std::slice::from_raw_parts(array.at.cast::<Proc>(), array.size);
        let mine = procs
            .iter()
            .filter(|p| text_of(&p.space) == text_of(&me.space));
        Some(mine.map(|p| p.rank).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_their_kind_says() {
        let mut v = info(c"k", abi::UINT32).value;
        v.data.uint32 = 7;
        // SAFETY: the member is the one of the kind.
        unsafe {
            assert_eq!(number(&v), Some(7));
            assert_eq!(bytes(&v), None);
            v.kind = abi::INT;
            v.data.int = -1;
            assert_eq!(number(&v), None);
            v.kind = abi::STRING;
            v.data.text = c"a,b".as_ptr() as *mut c_char;
            assert_eq!(string(&v).as_deref(), Some("a,b"));
            assert_eq!(members(&v, &proc(0)), None);
        }
    }

    #[test]
    fn members_of_other_jobs_are_left_out() {
        let mut procs = [proc(3), proc(5), proc(1)];
        procs[1].space[0] = b'x' as c_char;
        let mut array = abi::Array {
            kind: abi::PROC,
            size: 3,
            at: procs.as_mut_ptr().cast(),
        };
        let mut v = info(c"k", abi::ARRAY).value;
        v.data.array = &mut array;
        // SAFETY: the array and its processes live.
        assert_eq!(unsafe { members(&v, &proc(0)) }, Some(vec![3, 1]));
    }

    #[test]
    fn keys_that_do_not_fit_are_refused() {
        assert!(word(&"k".repeat(KEY_MAX)).is_ok());
        assert!(word(&"k".repeat(KEY_MAX + 1)).unwrap_err().contains("512"));
        assert!(word("a\0b").is_err());
    }
}
