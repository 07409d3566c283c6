//! Payloads that are in pieces, large and small, on either side.

use super::*;
use kw_sys::buf::Addr;
use kw_types::layout::{Layout, basic};
use std::sync::Arc;

/// A buffer of at least `total` bytes in pieces of `piece` bytes with gaps of the same length;
/// keeps its memory.
fn scattered(piece: u64, total: u64) -> (Buf, Vec<u8>) {
    let byte = basic::NAMED
        .iter()
        .map(Layout::named)
        .find(|l| l.size() == 1)
        .expect("a type of one byte");
    let n = total / piece;
    let layout = Arc::new(byte.hvector(n, piece, 2 * piece as i64).unwrap());
    let mut memory = vec![0u8; (2 * n * piece) as usize];
    // SAFETY: `memory` holds the whole layout and is given back together with the buffer.
    let addr = unsafe { Addr::new(memory.as_mut_ptr().cast()) };
    (Buf::typed(addr, 1, &layout), memory)
}

#[test]
fn payloads_in_pieces_arrive_whole() {
    let [mut a, mut b] = pair();
    let mut log = [Log::default(), Log::default()];
    let mut count = 0;
    for total in [96, 6_000, 3_000_000u64] {
        for (from, to) in [
            (8, 600),
            (600, 8),
            (24, 24),
            (5_000, 6_000),
            (1_000, 100_000),
        ] {
            let (src, _keep) = scattered(from, total / from * from);
            let (dst, _kept) = scattered(to, src.len() / to * to);
            if src.is_empty() || dst.is_empty() {
                continue;
            }
            let want = body(count, src.len() as usize);
            src.write(0, &want);
            log[1].place = Some(dst.clone());
            send(&mut a, 1, count, &src).unwrap();
            count += 1;
            until("a payload in pieces", || {
                a.poll(now(), &mut log[0]);
                b.poll(now(), &mut log[1]);
                log[1].came.len() == count as usize && !a.pending()
            });
            let got = &log[1].came[count as usize - 1].1;
            let n = got.len();
            assert!(got[..] == want[..n], "{from} to {to}, {total} bytes");
        }
    }
}
