//! Time in ticks of the CPU's counter, if that counts time: half the price of the clock.

/// Whether the counter runs at one rate on all CPUs, whatever they do: the kernel keeps its time by
/// it, or the CPU says so.
pub fn counter_counts_time() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let kernel = std::fs::read_to_string(SOURCE).is_ok_and(|s| s.trim() == "tsc");
        #[allow(unused_unsafe)] // safe in newer versions of Rust
        // SAFETY: every x86-64 processor has this instruction and the first extended leaf.
        let says = unsafe {
            __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
        };
        kernel || says
    }
    // ARM's counter always does, and every process may read it (generic timer, CNTVCT_EL0).
    #[cfg(not(target_arch = "x86_64"))]
    cfg!(target_arch = "aarch64")
}

/// Current time: of the counter, or nanoseconds of the monotonic clock.
#[inline(always)]
pub fn now(counter: bool) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if counter {
        // SAFETY: an instruction that every x86-64 processor has.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    #[cfg(target_arch = "aarch64")]
    if counter {
        let ticks: u64;
        // SAFETY: reads a register and touches neither memory nor flags.
        unsafe {
            std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        return ticks;
    }
    let _ = counter;
    of_the_clock()
}

/// A separate function, so that it costs nothing on machines that have a counter.
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), cold)]
#[inline(never)]
fn of_the_clock() -> u64 {
    crate::clock::now().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on() {
        for counter in [false, counter_counts_time()] {
            let first = now(counter);
            assert!(now(counter) >= first && first > 0);
        }
    }
}
