//! Fuzz targets: invalid messages between launchers, ranks and helpers.

use kw_fuzz::{config, damaged, damaged_text, pieces};
use kw_start::helper::{Message, Messages, Order, Report};
use kw_start::pmi::{
    Answer, Client, Client2, Frames, Line, Request, Request2, Server, mapping, text,
};
use proptest::prelude::*;
use proptest::sample::Index;

fn cuts() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 0..4)
}

/// Messages of ranks in PMI-1.
fn samples() -> Vec<Vec<u8>> {
    let lines = [
        "cmd=init pmi_version=1 pmi_subversion=1\n",
        "cmd=get_maxes\ncmd=get_appnum\ncmd=get_universe_size\ncmd=get_my_kvsname\n",
        "cmd=put kvsname=kw-test_0 key=card value=abc\ncmd=barrier_in\n",
        "cmd=get kvsname=kw-test_0 key=PMI_process_mapping\n",
        "mcmd=spawn\nnprocs=2\nexecname=a.out\ntotspawns=1\nspawnssofar=1\nargcnt=1\narg1=x\nendcmd\n",
        "cmd=abort exitcode=3 msg=why\ncmd=finalize\n",
    ];
    lines.iter().map(|l| l.as_bytes().to_vec()).collect()
}

/// Answers of launchers.
const ANSWERS: [&str; 8] = [
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
    "cmd=my_kvsname kvsname=kvs_1_0",
    "cmd=get_result rc=0 msg=success value=(vector,(0,2,4))",
    "cmd=put_result rc=0 msg=success",
    "cmd=barrier_out",
    "cmd=appnum appnum=0",
    "cmd=universe_size rc=0 size=4",
];

fn asks() -> Vec<Request> {
    let (kvs, key) = (String::from("kvs"), String::from("k"));
    vec![
        Request::Maxes,
        Request::Appnum,
        Request::Universe,
        Request::Name,
        Request::Fence,
        Request::Get { kvs, key },
        Request::Finalize,
    ]
}

/// Frames of PMI-2: six digits of length, then words.
fn frames() -> Vec<Vec<u8>> {
    let bodies = [
        "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=0;size=2;appnum=0;",
        "cmd=kvs-get-response;rc=0;found=TRUE;value=abc;;def;",
        "cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,1,2));",
        "cmd=kvs-fence-response;rc=0;",
    ];
    let frame = |body: &&str| format!("{:6}{body}", body.len()).into_bytes();
    bodies.iter().map(frame).collect()
}

/// Messages between mpiexec and its helper on another host.
fn messages() -> Vec<Vec<u8>> {
    vec![
        Order::Wire(3, b"cmd=init\n".to_vec()).encode(),
        Order::Input(b"text".to_vec()).encode(),
        Order::Signal(15).encode(),
        Order::Flow(true).encode(),
        Report::Pong.encode(),
        Report::Say("(vector,(0,1,1))".into()).encode(),
    ]
}

proptest! {
    #![proptest_config(config())]

    /// However a stream of lines is cut, the launcher interprets it in the same way, and does not
    /// panic.
    #[test]
    fn fuzz_pmi_server(bytes in damaged(samples()), cuts in cuts()) {
        let server = || Server::new("kw-test", Some(&[7; 32]), &[0, 0], &[0, 1], 8);
        let (mut whole, mut cut) = (Vec::new(), Vec::new());
        server().handle(1, &bytes, &mut whole);
        let mut other = server();
        for piece in pieces(&bytes, &cuts) {
            other.handle(1, piece, &mut cut);
        }
        prop_assert_eq!(whole, cut);
        other.left(1, &mut Vec::new());
        other.late();
    }

    #[test]
    fn fuzz_pmi_client(answer in damaged_text(&ANSWERS), which in 0usize..7) {
        let mut client = Client::new();
        let opened = client.ask(&Request::Init).and_then(|_| client.handle(ANSWERS[0]));
        prop_assert_eq!(opened, Ok(Answer::Done));
        client.ask(&asks()[which]).unwrap();
        let _ = client.handle(&answer);
    }

    /// The first answer, before anything is known about the other side.
    #[test]
    fn fuzz_pmi_greeting(answer in damaged_text(&ANSWERS)) {
        let mut client = Client::new();
        client.ask(&Request::Init).unwrap();
        let _ = client.handle(&answer);
    }

    #[test]
    fn fuzz_pmi_line(line in damaged_text(&ANSWERS)) {
        if let Ok(line) = Line::parse(&line) {
            let _ = (line.cmd(), line.is_ok(), line.number("rc"), line.need("value"));
        }
        let _ = text::decode(&line);
    }

    #[test]
    fn fuzz_pmi_mapping(value in damaged_text(&["(vector,(0,2,4))", "(vector,(0,1,1),(1,3,2))"]), n in 1u32..40) {
        if let Some(hosts) = mapping::parse(&value, n) {
            prop_assert_eq!(hosts.len(), n as usize);
            prop_assert_eq!(mapping::parse(&mapping::write(&hosts), n), Some(hosts));
        }
    }

    #[test]
    fn fuzz_pmi2_frames(bytes in damaged(frames()), cuts in cuts()) {
        let mut client = Client2::new();
        let _ = client.ask(&Request2::Fence);
        let (mut whole, mut cut) = (Frames::default(), Frames::default());
        whole.feed(&bytes);
        for piece in pieces(&bytes, &cuts) {
            cut.feed(piece);
        }
        loop {
            match (whole.poll_frame(), cut.poll_frame()) {
                (Some(Ok(a)), Some(Ok(b))) => {
                    prop_assert_eq!(a.short(), b.short());
                    let _ = client.handle(&a);
                }
                (None, None) | (Some(Err(_)), Some(Err(_))) => break,
                (a, b) => prop_assert!(false, "{a:?} whole, {b:?} cut"),
            }
        }
    }

    #[test]
    fn fuzz_helper_messages(bytes in damaged(messages()), cuts in cuts()) {
        let (mut orders, mut reports) = (Messages::new(), Messages::after_magic());
        for piece in pieces(&bytes, &cuts) {
            orders.feed(piece);
            reports.feed(piece);
            while let Some(Ok(order)) = orders.poll::<Order>() {
                let _ = order.encode();
            }
            while let Some(Ok(_)) = reports.poll::<Report>() {}
        }
    }
}
