//! Long payloads over two connections, either of which is cut in the middle.

use super::soak::{Side, Soak};
use super::*;
use kw_path::tcp::Tuning;

const SIZES: [usize; 7] = [0, 8, 3_000, 50_000, 70_001, 300_000, 2_500_000];
/// Payloads from here on go in pieces.
const LONG: usize = 60_000;

/// Messages of all sizes, the long ones in pieces.
fn in_pieces() -> Soak {
    Soak {
        sizes: &SIZES,
        data_from: LONG,
        count: 60,
        window: 8,
        harm: 16,
        tuning: Tuning {
            piece: 30_000,
            stripe_from: LONG as u64,
            rails_anywhere: true,
            ..Tuning::for_size(2)
        },
    }
}

/// Striped traffic of both: payloads, bytes, and resent pieces.
fn striped(sides: &[Side; 2]) -> [u64; 3] {
    let both = sides.each_ref().map(|s| s.path.striped());
    [0, 1, 2].map(|k| both[0][k] + both[1][k])
}

#[test]
fn long_payloads_go_over_both_connections() {
    let [payloads, bytes, again] = striped(&in_pieces().run(1, |_, _| {}));
    assert!(
        payloads > 10 && bytes > 1_000_000 && again == 0,
        "{payloads} {bytes} {again}"
    );
}

#[test]
fn a_rail_that_is_cut_in_the_middle_loses_nothing() {
    let (mut cuts, mut again) = (0, 0);
    for seed in 10..16 {
        let sides = in_pieces().run(seed, |sides, dice| {
            let me = dice as usize % 2;
            cuts += sides[me].path.cut_rails(Peer(1 - me as u32)) as u32;
        });
        again += striped(&sides)[2];
    }
    assert!(
        cuts > 10 && again > 0,
        "{cuts} cuts, {again} pieces went again"
    );
}

#[test]
fn either_connection_may_be_cut() {
    let mut cuts = [0, 0];
    for seed in 20..26 {
        in_pieces().run(seed, |sides, dice| {
            let me = dice as usize % 2;
            let peer = Peer(1 - me as u32);
            if dice & 2 == 0 {
                cuts[1] += sides[me].path.cut_rails(peer) as u32;
            } else {
                sides[me].path.cut(peer);
                cuts[0] += 1;
            }
        });
    }
    assert!(cuts[0] > 10 && cuts[1] > 5, "{cuts:?}");
}
