//! Processes with the same parent as this one: the ranks that a launcher has started on this host.

use crate::neighbours;
use std::time::Duration;

/// The clock of each: this process and its siblings.
#[derive(Debug)]
pub struct Siblings(Vec<libc::clockid_t>);

impl Siblings {
    /// The current siblings, if there are at least `least`.
    pub fn find(least: usize) -> Option<Siblings> {
        let pids = neighbours::siblings();
        let clocks: Vec<_> = pids.into_iter().filter_map(clock_of).collect();
        (clocks.len() >= least).then_some(Siblings(clocks))
    }

    /// Total CPU time that they have used; `None` once one of them has ended.
    pub fn used(&self) -> Option<Duration> {
        self.0.iter().map(|&clock| read(clock)).sum()
    }
}

/// The clock of a process's CPU time.
fn clock_of(pid: u32) -> Option<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: the system writes a number.
    let failed = unsafe { libc::clock_getcpuclockid(pid as i32, &mut clock) };
    (failed == 0).then_some(clock)
}

fn read(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the system writes the structure.
    let failed = unsafe { libc::clock_gettime(clock, &mut time) };
    (failed == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_this_process_is_among_that_of_its_siblings() {
        if !std::path::Path::new("/proc/thread-self/children").exists() {
            return; // this kernel lists no children
        }
        let all = Siblings::find(1).expect("this process is there");
        assert!(Siblings::find(usize::MAX).is_none());
        let own = clock_of(std::process::id())
            .and_then(read)
            .expect("it runs");
        // One that has ended meanwhile leaves nothing to compare.
        assert!(all.used().is_none_or(|used| used >= own));
    }
}
