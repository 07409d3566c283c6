//! Entry of a recorded function. Rust cannot name the address to which a function returns, so a few
//! instructions before it save that address in memory of the thread.

use crate::record::Thread;

/// Saved state of a call, and the thread's own state. The assembly knows the offsets of the first
/// two.
#[repr(C)]
pub(crate) struct Entered {
    /// Return address of the call.
    pub site: usize,
    /// Stack pointer at entry. On x86-64 the return address is above it.
    pub stack: usize,
    /// Null before the thread's first call.
    pub thread: *mut Thread,
}

// Memory of the thread at a fixed distance: the library is loaded at program start.
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

/// Body of a symbol: saves the return address and the stack pointer, and continues with the
/// function behind it, as if that had been called. It uses registers that a call may change and no
/// argument uses.
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

/// The same for this architecture.
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
