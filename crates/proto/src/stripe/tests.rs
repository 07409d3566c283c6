//! Pieces over connections that are slow, quick, and break.

use super::*;
use proptest::prelude::*;

const PIECE: u64 = 10;

fn piece(number: u64, offset: u64, len: u64) -> Piece {
    Piece {
        number,
        offset,
        len,
    }
}

#[test]
fn pieces_are_handed_out_once_and_the_oldest_payload_first() {
    let mut out = Outgoing::new(PIECE);
    assert_eq!(out.begin("a", 100, 25, 7), 0);
    assert_eq!(out.begin("b", 0, 10, 8), 1);
    assert_eq!(out.waiting(), 35);
    let given: Vec<_> = (0..5).map_while(|k| out.hand_out(k % 2)).collect();
    assert_eq!(
        given,
        [
            piece(0, 0, 10),
            piece(0, 10, 10),
            piece(0, 20, 5),
            piece(1, 0, 10)
        ]
    );
    assert_eq!(out.source(&given[1]), Some((&"a", 110)));
    assert_eq!(out.waiting(), 0);
}

#[test]
fn what_a_broken_connection_carried_goes_again() {
    let mut out = Outgoing::new(PIECE);
    out.begin((), 0, 40, 7);
    let given: Vec<_> = [0, 1, 2, 1]
        .into_iter()
        .map_while(|c| out.hand_out(c))
        .collect();
    assert_eq!(out.lost(1), 2);
    assert!(!out.payloads[0].again.is_empty());
    let again: Vec<_> = std::iter::from_fn(|| out.hand_out(0)).collect();
    assert_eq!(again, [given[3], given[1]]);
    assert_eq!(out.lost(1), 0);
    out.went(0, 55);
    assert_eq!(out.confirmed(0), Some((7, 55)));
    assert_eq!(out.confirmed(0), None);
    assert_eq!(out.lost(2), 0);
}

#[test]
fn a_piece_waits_for_its_payload_and_is_thrown_away_when_it_has_come_before() {
    let mut into = Incoming::new(PIECE);
    assert_eq!(into.place(&piece(0, 0, 10)), Ok(PieceState::Early));
    into.begin(15, "x");
    assert_eq!(into.place(&piece(0, 10, 5)), Ok(PieceState::Wanted(&"x")));
    assert_eq!(into.arrived(&piece(0, 10, 5)), None);
    assert_eq!(into.place(&piece(0, 10, 5)), Ok(PieceState::Had));
    assert_eq!(into.arrived(&piece(0, 10, 5)), None);
    assert_eq!(into.arrived(&piece(0, 0, 10)), Some("x"));
    assert_eq!(into.place(&piece(0, 0, 10)), Ok(PieceState::Had));
    assert_eq!(into.arrived(&piece(0, 0, 10)), None);
    assert!(into.is_empty() && !into.is_open(0));
}

#[test]
fn pieces_that_no_payload_has_are_refused() {
    let mut into = Incoming::new(PIECE);
    into.begin(15, ());
    for bad in [
        (5, 10),
        (0, 9),
        (10, 10),
        (20, 0),
        (u64::MAX / PIECE * PIECE, 10),
    ] {
        assert_eq!(
            into.place(&piece(0, bad.0, bad.1)),
            Err(Mismatch),
            "{bad:?}"
        );
    }
}

proptest! {
    /// Connections deliver in any order and break; every payload lands once, with every byte, and
    /// is confirmed once.
    #[test]
    fn every_byte_arrives_and_every_payload_lands_once(
        lens in proptest::collection::vec(1u64..120, 1..6),
        dice in proptest::collection::vec(0u32..100, 0..400),
    ) {
        let mut out = Outgoing::new(PIECE);
        let mut into = Incoming::new(PIECE);
        for (i, &len) in lens.iter().enumerate() {
            out.begin(i, 0, len, i as u64);
        }
        let mut bytes: Vec<_> = lens.iter().map(|&n| vec![0u32; n as usize]).collect();
        let mut ways: [VecDeque<Piece>; 3] = Default::default();
        let (mut complete, mut completed) = (Vec::new(), Vec::new());
        // After the random part: everything is handed out by turns and delivered.
        let fair = (0..).map(|k| k % 6);
        for roll in dice.into_iter().chain(fair) {
            let carrier = roll % 3;
            let way = &mut ways[carrier as usize];
            match roll {
                98.. if carrier != 0 => {
                    way.clear();
                    out.lost(carrier);
                }
                0..=2 | 6..=50 => way.extend(out.hand_out(carrier)),
                51..=60 if into.begun < lens.len() as u64 => {
                    let number = into.begun;
                    into.begin(lens[number as usize], number);
                }
                _ => {
                    if let Some(&p) = way.front() {
                        match into.place(&p).unwrap() {
                            PieceState::Early => {
                                let number = into.begun;
                                into.begin(lens[number as usize], number);
                                continue;
                            }
                            PieceState::Wanted(_) => {
                                let place = &mut bytes[p.number as usize];
                                place[p.offset as usize..(p.offset + p.len) as usize].iter_mut().for_each(|b| *b += 1);
                            }
                            PieceState::Had => {}
                        }
                        way.pop_front();
                        if let Some(number) = into.arrived(&p) {
                            complete.push(number);
                            completed.extend(out.confirmed(number).map(|t| t.0));
                        }
                    }
                }
            }
            if complete.len() == lens.len() {
                break;
            }
        }
        complete.sort_unstable();
        completed.sort_unstable();
        prop_assert_eq!(&complete, &(0..lens.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(&completed, &complete);
        prop_assert!(bytes.iter().flatten().all(|&b| b == 1), "written once each");
        prop_assert!(out.is_empty() && into.is_empty());
    }
}
