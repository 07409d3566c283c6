//! Crash report: a handler for the signals of program errors that records where the program was,
//! and then lets the signal take its default action (core file, wait status).
//!
//! Only a signal with default disposition gets the handler, so handlers of the program, a
//! language's runtime or a sanitizer stay. The handler runs on its own stack (that of the thread
//! that installs it; another thread's runs on that thread's stack) or on the program's alternate
//! signal stack, which may be as small as 8 KB: its output buffer is allocated before. It runs
//! once, allocates nothing, takes none of the library's locks, and calls the unwinder of the
//! compiler's runtime. To Kittiwake's launcher it sends one line over the control socket:
//!
//! ```text
//! cmd=crashed signal=11 code=1 address=0 frames=PATH+OFFSET,PATH+OFFSET...   (path in hex digits, offset from the module's base)
//! ```
//! and to standard error, if no launcher reads that line, the same as text.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::io::Write;

use kw_base::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Signals of program errors.
const SIGNALS: [c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
];
/// Most frames that are written down.
const FRAMES: usize = 48;
/// Bytes of the handler's stack.
const STACK: usize = 64 << 10;
/// Most bytes of the report; less than a socket takes at once.
const MAX_TEXT: usize = 16 << 10;

/// Destination of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// A launcher that understands the line, over this socket.
    Launcher(c_int),
    /// Standard error.
    People,
}

/// State of the handler; allocated beforehand, never freed.
struct Plan {
    tell: Tell,
    rank: u32,
    /// The rank's process: a child that was forked and has not called exec is not the rank.
    pid: u32,
    /// Used by the thread that has set [`BUSY`].
    memory: UnsafeCell<Memory>,
}

/// Memory of the handler: too much for the small stacks that programs give their handlers.
struct Memory {
    trace: Trace,
    text: Text,
    maps: Maps,
}

/// The list of mappings while it is read.
struct Maps {
    read: [u8; 2048],
    line: [u8; 512],
    /// The last module that began.
    module: Frame,
}

impl Maps {
    const EMPTY: Maps = Maps {
        read: [0; 2048],
        line: [0; 512],
        module: Frame::NONE,
    };
}

/// A handler has no other way to find it: this is a global of the process, like the dispositions of
/// its signals.
static PLAN: AtomicPtr<Plan> = AtomicPtr::new(std::ptr::null_mut());
/// Whether a thread records where it was.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Installs the handler for the signals that have none. `rank`: that of this process.
pub fn install(tell: Tell, rank: u32) {
    let plan = Box::new(Plan {
        tell,
        rank,
        pid: std::process::id(),
        memory: UnsafeCell::new(Memory {
            trace: Trace::new(false),
            text: Text::new(),
            maps: Maps::EMPTY,
        }),
    });
    PLAN.store(Box::into_raw(plan), Ordering::Release);
    // loads what the unwinder needs while that is still safe
    Trace::new(true).take();
    give_stack();
    for signal in SIGNALS {
        // SAFETY: both structures are plain data; the handler has the signature that SA_SIGINFO
        // requires.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut now) == 0
                && now.sa_sigaction == libc::SIG_DFL
            {
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = handler();
                ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigemptyset(&mut ours.sa_mask);
                libc::sigaction(signal, &ours, std::ptr::null_mut());
            }
        }
    }
}

/// Removes the handler if it is still ours.
pub fn remove() {
    for signal in SIGNALS {
        // SAFETY: as in install.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut now) == 0
                && now.sa_sigaction == handler()
            {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

fn handler() -> usize {
    on_signal as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
}

/// Gives this thread a stack for handlers, unless it has one. The stack stays for as long as the
/// process.
fn give_stack() {
    // SAFETY: the structures are plain data; the mapping is fresh, and it is never unmapped.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        if libc::sigaltstack(std::ptr::null(), &mut now) != 0
            || now.ss_flags & libc::SS_DISABLE == 0
        {
            return;
        }
        let memory = libc::mmap(
            std::ptr::null_mut(),
            STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
            -1,
            0,
        );
        if memory == libc::MAP_FAILED {
            return;
        }
        let ours = libc::stack_t {
            ss_sp: memory,
            ss_flags: 0,
            ss_size: STACK,
        };
        libc::sigaltstack(&ours, std::ptr::null_mut());
    }
}

/// The handler. A thread that comes while another one writes lets it finish, but not forever.
extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel hands over a whole siginfo; a fault's address is only looked at for a
    // fault.
    let (code, address) = unsafe {
        let code = (*info).si_code;
        let fault = code > 0 && signal != libc::SIGABRT;
        (code, if fault { (*info).si_addr() as usize } else { 0 })
    };
    // SAFETY: the plan was made by install and is never freed.
    if let Some(plan) = unsafe { PLAN.load(Ordering::Acquire).as_ref() } {
        if plan.pid == std::process::id() {
            match BUSY.swap(true, Ordering::AcqRel) {
                // SAFETY: BUSY is never cleared, so this is the only thread that comes here, once.
                false => say(
                    plan,
                    unsafe { &mut *plan.memory.get() },
                    signal,
                    code,
                    address,
                ),
                // SAFETY: waits for nothing, for a second.
                true => drop(unsafe { libc::poll(std::ptr::null_mut(), 0, 1000) }),
            }
        }
    }
    // SAFETY: the default disposition again. A fault comes again when we return; what a process
    // sent (abort, kill) does not, so it is sent to this thread, and comes when the handler has
    // returned.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        if code <= 0 {
            libc::raise(signal);
        }
    }
}

fn say(plan: &Plan, memory: &mut Memory, signal: c_int, code: c_int, address: usize) {
    let Memory { trace, text, maps } = memory;
    trace.take();
    trace.place(maps);
    match plan.tell {
        Tell::Launcher(fd) => {
            trace.for_launcher(text, signal, code, address);
            // SAFETY: sends bytes of the report; the descriptor is the launcher's control socket.
            unsafe {
                let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                libc::send(fd, text.bytes.as_ptr().cast(), text.len, flags);
            }
        }
        Tell::People => {
            trace.for_people(text, plan.rank, signal, address);
            // SAFETY: writes bytes of the report.
            unsafe {
                libc::write(2, text.bytes.as_ptr().cast(), text.len);
            }
        }
    }
}

/// Text of limited length; the rest is left out.
struct Text {
    bytes: [u8; MAX_TEXT],
    len: usize,
}

impl Text {
    fn new() -> Text {
        Text {
            bytes: [0; MAX_TEXT],
            len: 0,
        }
    }
}

impl Write for Text {
    fn write(&mut self, some: &[u8]) -> std::io::Result<usize> {
        let n = some.len().min(MAX_TEXT - 1 - self.len);
        self.bytes[self.len..self.len + n].copy_from_slice(&some[..n]);
        self.len += n;
        Ok(some.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Longest path of a module that is kept.
const PATH: usize = 256;

#[derive(Clone, Copy)]
struct Frame {
    address: usize,
    /// Offset from the base of its module; the address itself if no module was found.
    offset: usize,
    path: [u8; PATH],
    path_len: usize,
}

impl Frame {
    const NONE: Frame = Frame {
        address: 0,
        offset: 0,
        path: [0; PATH],
        path_len: 0,
    };

    fn path(&self) -> &[u8] {
        &self.path[..self.path_len]
    }
}

/// The calls that led here.
struct Trace {
    frames: [Frame; FRAMES],
    len: usize,
    /// Whether the interrupted frame was met: those before it are the handler's own.
    met: bool,
}

/// State of the unwinder.
#[repr(C)]
pub(crate) struct UnwindContext {
    _private: [u8; 0],
}

unsafe extern "C" {
    pub(crate) fn _Unwind_Backtrace(
        each: extern "C" fn(*mut UnwindContext, *mut c_void) -> c_int,
        state: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut UnwindContext, before: *mut c_int) -> usize;
}

extern "C" fn on_frame(context: *mut UnwindContext, state: *mut c_void) -> c_int {
    let mut before = 0;
    // SAFETY: the unwinder hands over its context, and the state that Trace::take gave it.
    let (address, trace) = unsafe {
        (
            _Unwind_GetIPInfo(context, &mut before),
            &mut *state.cast::<Trace>(),
        )
    };
    trace.add(address, before != 0)
}

impl Trace {
    /// `all`: with the frames of the handler.
    fn new(all: bool) -> Trace {
        Trace {
            frames: [Frame::NONE; FRAMES],
            len: 0,
            met: all,
        }
    }

    fn take(&mut self) {
        // SAFETY: the callback gets this trace, which lives until the call returns.
        unsafe {
            _Unwind_Backtrace(on_frame, (self as *mut Trace).cast());
        }
    }

    /// Adds a frame; `interrupted`: it was not left by a call, so its address is the very
    /// instruction. Not 0: enough.
    fn add(&mut self, address: usize, interrupted: bool) -> c_int {
        if interrupted && !self.met {
            (self.met, self.len) = (true, 0);
        }
        if self.len == FRAMES || address == 0 {
            // _URC_END_OF_STACK
            return 5;
        }
        self.frames[self.len].address = address - usize::from(!interrupted);
        self.len += 1;
        0
    }

    /// Finds the modules of all frames in the list of mappings.
    fn place(&mut self, maps: &mut Maps) {
        // SAFETY: a NUL-terminated path.
        let fd = unsafe {
            libc::open(
                c"/proc/self/maps".as_ptr(),
                libc::O_RDONLY | libc::O_CLOEXEC,
            )
        };
        for frame in &mut self.frames[..self.len] {
            frame.offset = frame.address;
        }
        if fd < 0 {
            return;
        }
        let Maps { read, line, module } = maps;
        let mut len = 0;
        loop {
            // SAFETY: reads into a buffer of that length.
            let n = unsafe { libc::read(fd, read.as_mut_ptr().cast(), read.len()) };
            if n <= 0 {
                break;
            }
            for &byte in &read[..n as usize] {
                if byte == b'\n' {
                    self.on_mapping(&line[..len], module);
                    len = 0;
                } else if len < line.len() {
                    line[len] = byte;
                    len += 1;
                }
            }
        }
        // SAFETY: the descriptor that was opened above.
        unsafe {
            libc::close(fd);
        }
    }

    /// A line of the list of mappings, `START-END RIGHTS OFFSET DEVICE INODE PATH`; `module` is the
    /// last one that began.
    fn on_mapping(&mut self, line: &[u8], module: &mut Frame) {
        let mut words = line
            .split(|b| matches!(b, b' ' | b'-'))
            .filter(|w| !w.is_empty());
        let (Some(start), Some(end)) = (words.next().map(hex), words.next().map(hex)) else {
            return;
        };
        let path = line.iter().position(|b| *b == b'/');
        let path = path.map_or(&[][..], |at| &line[at..]);
        let path = &path[..path.len().min(PATH)];
        if path.is_empty() {
            return;
        }
        if module.path() != path {
            module.address = start;
            module.path[..path.len()].copy_from_slice(path);
            module.path_len = path.len();
        }
        for frame in &mut self.frames[..self.len] {
            if (start..end).contains(&frame.address) {
                frame.offset = frame.address - module.address;
                frame.path = module.path;
                frame.path_len = module.path_len;
            }
        }
    }

    fn for_launcher(&self, text: &mut Text, signal: c_int, code: c_int, address: usize) {
        let _ = write!(
            text,
            "cmd=crashed signal={signal} code={code} address={address:x} frames="
        );
        for frame in &self.frames[..self.len] {
            for byte in frame.path() {
                let _ = write!(text, "{byte:02x}");
            }
            let _ = write!(text, "+{:x},", frame.offset);
        }
        text.bytes[text.len] = b'\n';
        text.len += 1;
    }

    fn for_people(&self, text: &mut Text, rank: u32, signal: c_int, address: usize) {
        let name = crate::signals::word(signal);
        let _ = write!(text, "rank {rank}: killed by signal {signal} ({name})");
        if address != 0 {
            let _ = write!(text, " at address {address:#x}");
        }
        let _ = writeln!(text, "; addr2line -fe FILE OFFSET says more about:");
        for (number, frame) in self.frames[..self.len].iter().enumerate() {
            let _ = write!(text, "rank {rank}:  #{number} ");
            let _ = text.write(frame.path());
            let _ = writeln!(text, " {:#x}", frame.offset);
        }
    }
}

fn hex(word: &[u8]) -> usize {
    word.iter().fold(0, |all, b| {
        all << 4 | (*b as char).to_digit(16).unwrap_or(0) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_find_their_modules() {
        let mut trace = Trace::new(true);
        for address in [0x5010, 0x7120, 0x9000] {
            trace.add(address, true);
        }
        let mut module = Frame::NONE;
        for line in [
            "4000-5000 r--p 00000000 08:01 7          /bin/a b",
            "5000-6000 r-xp 00001000 08:01 7          /bin/a b",
            "7000-8000 r-xp 00000000 00:00 0",
            "7000-8000 r-xp 00000000 08:01 9          /lib/c",
        ] {
            trace.on_mapping(line.as_bytes(), &mut module);
        }
        let found: Vec<_> = trace.frames[..3]
            .iter()
            .map(|f| (f.path(), f.offset))
            .collect();
        assert_eq!(found[0], (&b"/bin/a b"[..], 0x1010));
        assert_eq!(found[1], (&b"/lib/c"[..], 0x120));
        assert!(found[2].0.is_empty());
        let mut text = Text::new();
        trace.for_launcher(&mut text, 11, 1, 0x10);
        let text = String::from_utf8_lossy(&text.bytes[..text.len]).into_owned();
        assert!(
            text.starts_with(
                "cmd=crashed signal=11 code=1 address=10 frames=2f62696e2f612062+1010,"
            )
        );
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn a_trace_of_this_thread_has_frames() {
        let mut trace = Trace::new(true);
        trace.take();
        assert!(trace.len > 1);
    }
}
