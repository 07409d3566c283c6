//! How a recorded function begins: Rust has no word for the address that a function returns to, so a
//! few instructions before it keep that for it, in memory of the thread.

use crate::record::Thread;

/// Saved state of a call, and the thread's own state. The assembly knows the offsets of the first
/// two.
#[repr(C)]
pub(crate) struct Entered {
    /// Where the call returns to.
    pub site: usize,
    /// The stack when the function was entered. On x86-64 the address above stands there.
    pub stack: usize,
    /// Null before the thread's first call.
    pub thread: *mut Thread,
}

// Memory of the thread at a fixed distance: the library is there when the program starts.
std::arch::global_asm!(
    ".pushsection .tbss.kw_profile_entered,\"awT\",%nobits",
    ".p2align 4",
    ".globl kw_profile_entered",
    ".hidden kw_profile_entered",
    ".type kw_profile_entered, %object",
    ".size kw_profile_entered, 32",
    "kw_profile_entered: .zero 32",
    ".popsection",
);

/// The body of a symbol: keeps who called and where the stack is, and continues what is behind it,
/// as if that had been called. The registers are those that a call may change and no argument uses.
#[cfg(target_arch = "x86_64")]
macro_rules! begins {
    ($inner:ident) => {
        std::arch::naked_asm!(
            "mov r11, qword ptr [rip + kw_profile_entered@GOTTPOFF]",
            "mov rax, qword ptr [rsp]",
            "mov qword ptr fs:[r11], rax",
            "mov qword ptr fs:[r11 + 8], rsp",
            "jmp {inner}",
            inner = sym $inner,
        )
    };
}

/// See above.
#[cfg(target_arch = "aarch64")]
macro_rules! begins {
    ($inner:ident) => {
        std::arch::naked_asm!(
            "mrs x16, tpidr_el0",
            "adrp x17, :gottprel:kw_profile_entered",
            "ldr x17, [x17, :gottprel_lo12:kw_profile_entered]",
            "add x16, x16, x17",
            "mov x17, sp",
            "stp x30, x17, [x16]",
            "b {inner}",
            inner = sym $inner,
        )
    };
}
pub(crate) use begins;

/// Saved state of this thread; it does not move while the thread runs.
#[inline(always)]
pub(crate) fn entered() -> *mut Entered {
    let at: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the address of memory of the thread; nothing is changed.
    unsafe {
        std::arch::asm!(
            "mov {at}, qword ptr [rip + kw_profile_entered@GOTTPOFF]",
            "add {at}, qword ptr fs:[0]",
            at = out(reg) at,
            options(pure, readonly, nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "mrs {at}, tpidr_el0",
            "adrp {more}, :gottprel:kw_profile_entered",
            "ldr {more}, [{more}, :gottprel_lo12:kw_profile_entered]",
            "add {at}, {at}, {more}",
            at = out(reg) at,
            more = out(reg) _,
            options(pure, readonly, nostack),
        );
    }
    at as *mut Entered
}
