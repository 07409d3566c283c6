//! Copies into memory that other processes read next.
//!
//! An ordinary store takes its line away from the core that holds it. Between cores that share a
//! cache that is cheap; between others it is their slowest operation. A streaming store sends the
//! line to memory without asking other cores, but the reader finds it in no cache. Measured on two
//! cores of an EPYC, 64 KB written by one and read by the other, microseconds:
//!
//! | | ordinary: write | read | streaming: write | read |
//! | --- | ---: | ---: | ---: | ---: |
//! | cores that share a cache | 1.7 | 1.7 | 2.3 | 4.6 |
//! | cores that do not | 28 | 4.2 | 1.3 | 4.2 |
//!
//! A process in a virtual machine cannot find out which cores share a cache, and it changes while
//! it runs. But the writer can measure it: a [`NontemporalCopier`] times its own ordinary copies,
//! and streams while they take far longer than streamed ones ([`Judge`]). Both kinds of copies read
//! from the same caches or memory, so that part does not count.

use crate::clock;
use crate::region::Region;
use kw_base::Tick;

// Starting values, like all numbers here.
/// Shortest copy that is streamed, bytes.
const LONG: u64 = 2 << 10;
/// The value if ranks share cores: their data is in a shared cache more often than not.
const LONG_SHARED: u64 = 8 << 10;
/// One in this many ordinary copies is timed: reading the clock costs as much as a kilobyte.
const LOOK: u32 = 8;
/// Bytes of a copy that is timed every time.
const LONG_ENOUGH: u64 = 32 << 10;
/// An ordinary copy is slow if it takes more than two streamed ones plus this: the cost for its
/// reader of finding the data in no cache. Nanoseconds per kilobyte, a built-in value that is not
/// measured; it is between the excess of short ordinary copies if cores share a cache (40) and if
/// they do not (200 and more).
const READ_FAR: u64 = 80;
/// A copy that takes longer is slow in any case (5 GB/s): streamed copies may take as long, too,
/// while both sides of a shm region write. Nanoseconds for a kilobyte, a built-in value.
const SLOW: u64 = 200;
/// A copy that takes longer means nothing: the thread lost its core. Nanoseconds for a kilobyte.
const ABSURD: u64 = 3000;
/// After this many consecutive samples, copies become streamed, or ordinary again.
const PROOF: u32 = 4;
/// While copies are streamed, the first bytes of one in this many are copied in the ordinary way,
/// to see whether that is still slow.
const TRIAL: u32 = 32;
/// Number of these first bytes.
const TRIED: u64 = 8 << 10;

/// Decides how to copy, by how long copies took: nanoseconds for a kilobyte.
#[derive(Debug, Default)]
struct Judge {
    streams: bool,
    /// Consecutive samples that speak against the current way.
    against: u32,
    /// The last ordinary copy that was timed.
    ordinary: u64,
    /// A streamed copy; zero as long as none was timed.
    streamed: u64,
}

impl Judge {
    fn is_slow(&self) -> bool {
        self.ordinary > (self.streamed * 2 + READ_FAR).min(SLOW)
    }

    /// Ordinary copies look slow, compared with streamed ones of another time: the next copy has to
    /// be streamed and timed.
    fn doubts(&self) -> bool {
        !self.streams && self.against >= PROOF
    }

    /// An ordinary copy took this long.
    fn ordinary(&mut self, each: u64) {
        if each >= ABSURD {
            return;
        }
        self.ordinary = each;
        let slow = self.is_slow();
        if !slow {
            // A streamed one would not take longer.
            self.streamed = self.streamed.min(each);
        }
        self.against = if slow == self.streams {
            0
        } else {
            self.against + 1
        };
        if self.streams && self.against >= PROOF {
            (self.streams, self.against) = (false, 0);
        }
    }

    /// A streamed copy took this long.
    fn streamed(&mut self, each: u64) {
        if each >= ABSURD {
            return;
        }
        self.streamed = each.max(1);
        if self.doubts() {
            (self.streams, self.against) = (self.is_slow(), 0);
        }
    }
}

/// See the module. One per copying thread and destination.
#[derive(Debug)]
pub struct NontemporalCopier {
    /// Measurements of copies.
    clock: fn() -> Tick,
    /// Ranks share cores.
    shared: bool,
    judge: Judge,
    /// Copies since an ordinary one was timed.
    unseen: u32,
}

impl Default for NontemporalCopier {
    fn default() -> NontemporalCopier {
        NontemporalCopier {
            clock: clock::now,
            shared: false,
            judge: Judge::default(),
            unseen: 0,
        }
    }
}

impl NontemporalCopier {
    /// A copier for a rank that shares its core with others, or does not.
    pub fn new(shared: bool) -> NontemporalCopier {
        NontemporalCopier {
            shared,
            ..NontemporalCopier::default()
        }
    }

    /// Shortest copy that is worth [`NontemporalCopier::copy`] or [`fetch`], bytes.
    #[inline]
    pub fn long(&self) -> u64 {
        if self.shared { LONG_SHARED } else { LONG }
    }

    /// Whether copies are streamed at present.
    #[inline]
    pub fn streams(&self) -> bool {
        self.judge.streams
    }

    /// Copies at least [`NontemporalCopier::long`] bytes to a region of the same length that does
    /// not overlap them.
    ///
    /// # Panics
    /// When the lengths differ (a fault of our own).
    pub fn copy(&mut self, from: Region<'_>, to: Region<'_>) {
        assert_eq!(from.len(), to.len(), "bytes from one region to another");
        self.unseen += 1;
        if self.judge.streams {
            return self.go_on_streaming(from, to);
        }
        if self.judge.doubts() {
            return self.watch_streamed(from, to);
        }
        match self.unseen < LOOK && from.len() < LONG_ENOUGH && !self.shared {
            true => from.copy_to(to),
            false => self.watch_ordinary(from, to),
        }
    }

    /// Streams, except for a trial now and then.
    fn go_on_streaming(&mut self, from: Region<'_>, to: Region<'_>) {
        let len = from.len();
        match self.unseen {
            0..TRIAL => stream(from, to),
            TRIAL => self.watch_streamed(from, to),
            _ => {
                let tried = len.min(TRIED);
                self.watch_ordinary(from.part(0, tried), to.part(0, tried));
                stream(from.part(tried, len - tried), to.part(tried, len - tried));
            }
        }
    }

    fn watch_ordinary(&mut self, from: Region<'_>, to: Region<'_>) {
        self.unseen = 0;
        let begin = (self.clock)();
        from.copy_to(to);
        self.judge.ordinary(self.each(begin, from.len()));
    }

    fn watch_streamed(&mut self, from: Region<'_>, to: Region<'_>) {
        let begin = (self.clock)();
        stream(from, to);
        self.judge.streamed(self.each(begin, from.len()));
    }

    /// Nanoseconds per kilobyte since `begin`, for `len` bytes.
    fn each(&self, begin: Tick, len: u64) -> u64 {
        ((self.clock)().0 - begin.0) * 1024 / len
    }
}

/// Copies data that another process has published: with vector loads, of which a core has more in
/// flight at a time than of the string copy that the C library uses for such lengths (64 KB from
/// memory: 4.3 us, not 6.8).
///
/// # Panics
/// When the lengths differ (a fault of our own).
pub fn fetch(from: Region<'_>, to: Region<'_>) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        let fours = from.len() / 128 * 128;
        // SAFETY: the CPU has it.
        unsafe { vectors(from.part(0, fours), to.part(0, fours)) };
        let rest = from.len() - fours;
        return from
            .part(fours, rest)
            .copy_to(to.part(fours, to.len() - fours));
    }
    from.copy_to(to);
}

/// Prefetches the cache line of a word, to be written soon.
#[inline(always)]
pub fn prefetch_for_write<T>(word: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; the word is there.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_ref(word).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

/// Copies as many times 128 bytes as both have.
///
/// # Safety
/// On a CPU that has these vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn vectors(from: Region<'_>, to: Region<'_>) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};
    let (at, into) = (
        from.bytes().cast::<__m256i>(),
        to.bytes_mut().cast::<__m256i>(),
    );
    let fours = from.len().min(to.len()) as usize / 128;
    for i in (0..fours * 4).step_by(4) {
        // SAFETY: both regions have these bytes.
        unsafe {
            let four = [0, 1, 2, 3].map(|k| _mm256_loadu_si256(at.add(i + k)));
            _mm256_storeu_si256(into.add(i), four[0]);
            _mm256_storeu_si256(into.add(i + 1), four[1]);
            _mm256_storeu_si256(into.add(i + 2), four[2]);
            _mm256_storeu_si256(into.add(i + 3), four[3]);
        }
    }
}

/// Copies past the caches; both have the same length.
#[cfg(target_arch = "x86_64")]
fn stream(from: Region<'_>, to: Region<'_>) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    /// Bytes of a cache line.
    const LINE: u64 = 64;
    let len = from.len().min(to.len());
    let begins = to.bytes() as u64;
    let head = (begins.next_multiple_of(LINE) - begins).min(len);
    from.part(0, head).copy_to(to.part(0, head));
    let lines = (len - head) / LINE;
    let at = from.part(head, lines * LINE).bytes().cast::<__m128i>();
    let into = to.part(head, lines * LINE).bytes_mut().cast::<__m128i>();
    for i in 0..lines as usize * 4 {
        // SAFETY: both regions have these lines; the stores are aligned.
        unsafe { _mm_stream_si128(into.add(i), _mm_loadu_si128(at.add(i))) };
    }
    // SAFETY: every CPU of this kind has it. Streaming stores are not ordered with later ordinary
    // stores.
    unsafe { _mm_sfence() };
    let done = head + lines * LINE;
    from.part(done, len - done)
        .copy_to(to.part(done, len - done));
}

/// Other CPUs have no such stores that could be named here.
#[cfg(not(target_arch = "x86_64"))]
fn stream(from: Region<'_>, to: Region<'_>) {
    from.copy_to(to);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buf::Buf;

    fn all(buf: &Buf) -> Region<'_> {
        buf.region().expect("memory of our own lies in a row")
    }

    #[test]
    fn streamed_bytes_arrive_and_no_others_change() {
        let data: Vec<u8> = (0..1000u32).map(|i| (i % 251) as u8).collect();
        let from = Buf::alloc(1000);
        from.write(0, &data);
        for (shift, len) in (0..70).flat_map(|s| [0, 1, 63, 64, 65, 200, 900].map(|l| (s, l))) {
            let to = Buf::alloc(1100);
            stream(all(&from).part(3, len), all(&to).part(shift, len));
            let mut got = vec![0; 1100];
            to.read(0, &mut got);
            let mut want = vec![0; 1100];
            want[shift as usize..][..len as usize].copy_from_slice(&data[3..][..len as usize]);
            assert_eq!(got, want, "{len} bytes at {shift}");
        }
    }

    /// Judgement on ordinary copies of this duration, if a streamed one takes `streamed` whenever
    /// it is sampled.
    fn say(judge: &mut Judge, each: &[u64], streamed: u64) -> bool {
        for each in each {
            if judge.doubts() || judge.streams {
                judge.streamed(streamed);
            }
            judge.ordinary(*each);
        }
        judge.streams
    }

    #[test]
    fn slow_copies_are_streamed_until_trials_are_quick() {
        let mut judge = Judge::default();
        assert!(!say(&mut judge, &[26; 50], 20));
        // Short copies wait for their first lines.
        assert!(!say(&mut judge, &[100; 50], 20));
        // A slow copy now and then, or a thread that lost its core, means nothing.
        assert!(!say(&mut judge, &[220, 26, 220, 220, 26, 220], 20));
        assert!(!say(&mut judge, &[ABSURD; 50], 20));
        assert!(!say(&mut judge, &[26, 220, 220, 220], 20));
        assert!(say(&mut judge, &[220; 50], 20));
        assert!(say(&mut judge, &[26, 26, 26], 20));
        assert!(!say(&mut judge, &[26], 20));
    }

    #[test]
    fn what_is_read_from_memory_speaks_for_no_way() {
        let mut judge = Judge::default();
        assert!(!say(&mut judge, &[26; 10], 20));
        assert!(!say(&mut judge, &[100; 50], 85));
        assert!(!say(&mut judge, &[190; 50], 85));
        // No memory is this slow.
        assert!(say(&mut judge, &[600; 10], 500));
        assert!(!say(&mut judge, &[26; 10], 20));
        // An estimate for slow memory does not hide slow lines.
        assert!(!say(&mut judge, &[26; 10], 20));
        assert!(say(&mut judge, &[150; 10], 20));
    }

    #[test]
    fn copies_are_whole_whichever_way_they_go() {
        let len = 12 * LONG + 5;
        let data: Vec<u8> = (0..len).map(|i| (i % 253) as u8).collect();
        let from = Buf::alloc(len as usize);
        from.write(0, &data);
        for streams in [false, true] {
            let judge = Judge {
                streams,
                ..Judge::default()
            };
            let mut p = NontemporalCopier {
                judge,
                ..NontemporalCopier::default()
            };
            for len in (0..2 * TRIAL).map(|i| len - i as u64 * 100) {
                let (to, back) = (Buf::alloc(len as usize), Buf::alloc(len as usize));
                p.copy(all(&from).part(0, len), all(&to));
                fetch(all(&to), all(&back));
                let mut got = vec![0; len as usize];
                back.read(0, &mut got);
                assert!(got == data[..len as usize]);
            }
        }
    }
}
