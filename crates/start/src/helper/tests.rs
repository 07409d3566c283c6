//! Messages between mpiexec and its helpers: a written message is read back, and nothing else is
//! accepted.

use super::*;
use proptest::prelude::*;

fn start() -> Start {
    Start {
        job: "kw-1".into(),
        number: 2,
        host: "node-b".into(),
        size: 9,
        bind: "auto".into(),
        map: true,
        profile: true,
        trace: true,
        wraps: vec!["0:gdb".into()],
        programs: vec![Program {
            words: vec![b"./a".to_vec(), b"".to_vec(), b"x \xff".to_vec()],
            env: vec![(b"A".to_vec(), b"1\n2".to_vec())],
            dir: b"/tmp".to_vec(),
        }],
        tasks: vec![Task {
            rank: 3,
            program: 0,
            local: 2,
            before: 1,
            cpus: vec![5, 7],
        }],
    }
}

fn orders() -> Vec<Order> {
    vec![
        Order::Start(start()),
        Order::Wire(7, b"cmd=init\n".to_vec()),
        Order::Input(Vec::new()),
        Order::Signal(15),
        Order::Flow(false),
        Order::Ping,
        Order::Pause,
        Order::End(true),
        Order::Calls,
    ]
}

fn reports() -> Vec<Report> {
    vec![
        Report::Ready(VERSION, "0.1".into()),
        Report::Wire(1, b"cmd=put\n".to_vec()),
        Report::Output(1, 1, b"\0\n".to_vec()),
        Report::Ended {
            rank: 4,
            status: 0,
            signal: 9,
            core: true,
        },
        Report::Failed(127, "there is no program 'x'".into()),
        Report::Taken,
        Report::Say("rank 0 on a\n".into()),
        Report::Pong,
        Report::Calls {
            rank: 5,
            over: true,
            calls: b"\0\x01".to_vec(),
        },
        Report::AllCalls,
    ]
}

fn all<M: Message>(m: &mut Messages) -> Vec<M> {
    std::iter::from_fn(|| m.poll().map(|r| r.unwrap())).collect()
}

#[test]
fn every_message_survives_in_pieces_of_any_size() {
    let bytes: Vec<u8> = orders().iter().flat_map(Message::encode).collect();
    for piece in [1, 3, 7, bytes.len()] {
        let (mut m, mut got) = (Messages::new(), Vec::new());
        for part in bytes.chunks(piece) {
            m.feed(part);
            got.extend(all::<Order>(&mut m));
        }
        assert_eq!(got, orders());
    }
    let bytes: Vec<u8> = reports().iter().flat_map(Message::encode).collect();
    let mut m = Messages::new();
    m.feed(&bytes);
    assert_eq!(all::<Report>(&mut m), reports());
}

#[test]
fn what_a_login_script_prints_is_skipped() {
    let mut bytes = b"Welcome to node-b!\n\0kw-helper-".to_vec();
    bytes.extend_from_slice(MAGIC);
    bytes.extend(Report::Pong.encode());
    for piece in [1, 5, bytes.len()] {
        let (mut m, mut got) = (Messages::after_magic(), Vec::new());
        for part in bytes.chunks(piece) {
            m.feed(part);
            got.extend(all::<Report>(&mut m));
        }
        assert_eq!(got, [Report::Pong]);
    }
}

proptest! {
    #[test]
    fn garbage_is_an_error_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut m = Messages::new();
        m.feed(&bytes);
        while let Some(Ok(_)) = m.poll::<Order>() {}
    }
}
