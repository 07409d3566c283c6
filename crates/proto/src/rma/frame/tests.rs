//! Frames are read as they were written, and anything else is refused.

use super::*;
use proptest::prelude::*;

fn frames() -> Vec<Frame<'static>> {
    let row = TargetLocation::Row { at: -3, len: 4 };
    let typed = TargetLocation::Typed {
        at: 7,
        count: 9,
        id: 70_000,
    };
    let (op, basic, data) = (0x21, Basic::I32, &[1, 2, 3, 4, 5, 6, 7, 8][..]);
    let whole = TargetLocation::Row {
        at: 1 << 31,
        len: 8,
    };
    let short = |reply| {
        Frame::Op(Operation::Accumulate(Accumulate {
            place: whole,
            op,
            basic,
            from: 0,
            len: 8,
            data,
            reply,
        }))
    };
    vec![
        Frame::Op(Operation::Put { place: row, data }),
        Frame::Op(Operation::Put { place: whole, data }),
        short(None),
        short(Some(9)),
        Frame::Op(Operation::PutLong {
            place: typed,
            tag: 4,
        }),
        Frame::Op(Operation::Get { place: row, tag: 5 }),
        Frame::Op(Operation::Accumulate(Accumulate {
            place: typed,
            op,
            basic,
            from: 12,
            len: 8,
            data,
            reply: None,
        })),
        Frame::Op(Operation::Accumulate(Accumulate {
            place: row,
            op,
            basic,
            from: 0,
            len: 8,
            reply: Some(7),
            data,
        })),
        Frame::Op(Operation::CompareAndSwap {
            at: 8,
            basic,
            tag: 9,
            compare: &[1; 4],
            swap: &[2; 4],
        }),
        Frame::Type {
            id: 70_000,
            layout: data,
        },
        Frame::ForgetTypes,
        Frame::Lock(LockMode::Shared),
        Frame::Lock(LockMode::Exclusive),
        Frame::Unchecked,
        Frame::Unlock { tag: 3 },
        Frame::Flush { tag: 11 },
        Frame::Fence(u64::MAX),
        Frame::Start,
        Frame::Complete,
        Frame::Post,
        Frame::Wake,
        Frame::CalledAt {
            lasts: false,
            site: &[],
        },
        Frame::CalledAt {
            lasts: true,
            site: data,
        },
    ]
}

#[test]
fn what_is_written_is_read_and_nothing_shorter() {
    let mut all = Vec::new();
    for frame in frames() {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        all.extend_from_slice(&bytes);
        assert_eq!(Frame::decode(&bytes), Some((frame, &[][..])));
        for end in 0..bytes.len() {
            assert_eq!(Frame::decode(&bytes[..end]), None, "{frame:?} cut at {end}");
        }
    }
    let mut rest = &all[..];
    for frame in frames() {
        let (read, after) = Frame::decode(rest).expect("frames in a row");
        assert_eq!(read, frame);
        rest = after;
    }
}

#[test]
fn an_epoch_of_one_short_operation_fits_into_a_cache_line() {
    let (op, basic, data) = (0x21, Basic::I64, &[1; 8][..]);
    let place = TargetLocation::Row {
        at: u32::MAX.into(),
        len: 8,
    };
    let combine = |reply| {
        Operation::Accumulate(Accumulate {
            place,
            op,
            basic,
            from: 0,
            len: 8,
            data,
            reply,
        })
    };
    let (lock, flush) = (Frame::Lock(LockMode::Shared), Frame::Flush { tag: 3 });
    let put = Operation::Put { place, data };
    let epochs = [
        vec![lock, Frame::Op(put), flush],
        vec![lock, Frame::Op(combine(None)), flush],
        vec![lock, Frame::Op(combine(Some(9)))],
        vec![Frame::Fence(7), Frame::Op(put)],
    ];
    for epoch in epochs {
        let mut bytes = Vec::new();
        epoch.iter().for_each(|frame| frame.encode(&mut bytes));
        // What a line has besides a word of the ring and the header.
        assert!(bytes.len() <= 64 - 8 - 32, "{} B: {epoch:?}", bytes.len());
    }
}

#[test]
fn elements_in_pieces_and_tags_of_the_other_kind_are_refused() {
    let place = TargetLocation::Row { at: 0, len: 8 };
    let refused = [
        Frame::Op(Operation::Accumulate(Accumulate {
            place,
            op: 0x21,
            basic: Basic::I32,
            from: 2,
            len: 4,
            data: &[0; 4],
            reply: None,
        })),
        Frame::Op(Operation::Accumulate(Accumulate {
            place,
            op: 0x21,
            basic: Basic::I32,
            from: 0,
            len: 6,
            data: &[0; 6],
            reply: None,
        })),
        Frame::Op(Operation::Accumulate(Accumulate {
            place,
            op: 0x21,
            basic: Basic::I32,
            from: 0,
            len: 8,
            reply: Some(3),
            data: &[0; 4],
        })),
        Frame::Op(Operation::Get { place, tag: 4 }),
        Frame::Op(Operation::PutLong { place, tag: 5 }),
        Frame::Flush { tag: 1 },
        Frame::Unlock { tag: -1 },
    ];
    for frame in refused {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        assert_eq!(Frame::decode(&bytes), None, "{frame:?}");
    }
}

proptest! {
    #[test]
    fn anything_may_come(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut rest = &bytes[..];
        while let Some((_, after)) = Frame::decode(rest) {
            prop_assert!(after.len() < rest.len());
            rest = after;
        }
    }
}
