//! An unauthenticated peer, a false rank and an echo are refused.

use super::*;
use proptest::prelude::*;

const KEY: [u8; 32] = [7; 32];

fn rank(me: u32) -> Identity {
    Identity::new(KEY, "job-1", me, 4)
}

fn next<S: std::fmt::Debug, N: std::fmt::Debug>(p: Progress<S, N>) -> N {
    match p {
        Progress::Next(n) => n,
        other => panic!("{other:?}"),
    }
}

fn refusal<S: std::fmt::Debug, N: std::fmt::Debug>(p: Progress<S, N>) -> Refusal {
    match p {
        Progress::Refuse(r) => r,
        other => panic!("{other:?}"),
    }
}

/// A handshake of rank `i` with rank 0 up to the verdict; returns the initiator's messages.
fn talk(i: &Identity, a: &Identity, verdict: Verdict) -> (Verdict, Vec<u8>) {
    let (offered, hello) = i.offer(0, [1; 32]);
    let (challenged, challenge) = next(a.listen([2; 32]).handle(&mut &hello[..]));
    let (answered, proof) = next(offered.handle(&mut &challenge[..]));
    let proven = next(challenged.handle(&mut &proof[..]));
    assert_eq!(proven.rank(), i.me);
    let sent = next(answered.handle(&mut &proven.verdict(verdict)[..]));
    (sent, [&hello[..], &proof[..]].concat())
}

#[test]
fn two_ranks_of_a_job_agree_on_the_verdict() {
    for v in [Verdict::Welcome, Verdict::Duplicate] {
        assert_eq!(talk(&rank(3), &rank(0), v).0, v);
    }
}

#[test]
fn another_key_job_version_or_rank_is_refused_without_an_answer() {
    let hello_of = |id: &Identity, to| id.offer(to, [1; 32]).1;
    let at_0 = |hello: &[u8]| refusal(rank(0).listen([2; 32]).handle(&mut &hello[..]));
    let stranger = Identity::new([8; 32], "job-1", 3, 4);
    assert_eq!(at_0(&hello_of(&stranger, 0)), Refusal::Key);
    let other_job = Identity::new(KEY, "job-2", 3, 4);
    assert_eq!(at_0(&hello_of(&other_job, 0)), Refusal::Job);
    assert_eq!(
        at_0(&hello_of(&rank(3), 1)),
        Refusal::Rank { from: 3, to: 1 }
    );
    assert_eq!(
        at_0(&hello_of(&rank(0), 0)),
        Refusal::Rank { from: 0, to: 0 }
    );
    assert_eq!(
        at_0(&hello_of(&rank(9), 0)),
        Refusal::Rank { from: 9, to: 0 }
    );
    let mut old = hello_of(&rank(3), 0);
    old[4] = 99;
    assert_eq!(at_0(&old), Refusal::Version(99));
    let mut lies = hello_of(&rank(3), 0);
    lies[8] = 2;
    assert_eq!(at_0(&lies), Refusal::Key);
}

#[test]
fn an_acceptor_without_the_key_is_refused() {
    let (offered, _) = rank(3).offer(0, [1; 32]);
    let fake = [9; CHALLENGE_LEN];
    assert_eq!(refusal(offered.handle(&mut &fake[..])), Refusal::Key);
}

#[test]
fn a_replayed_conversation_fails_at_the_proof() {
    let (_, sent) = talk(&rank(3), &rank(0), Verdict::Welcome);
    let mut input = &sent[..];
    let (challenged, _) = next(rank(0).listen([3; 32]).handle(&mut input));
    assert_eq!(refusal(challenged.handle(&mut input)), Refusal::Key);
}

#[test]
fn a_reflected_challenge_proves_nothing() {
    // The attacker holds a connection from rank 0 to "rank 3" and mirrors all that rank 0 sends
    // back to rank 0.
    let (offered, hello) = rank(0).offer(3, [1; 32]);
    let r = refusal(rank(0).listen([2; 32]).handle(&mut &hello[..]));
    assert_eq!(r, Refusal::Rank { from: 0, to: 3 });
    let echo = &hello[..CHALLENGE_LEN];
    assert_eq!(refusal(offered.handle(&mut &echo[..])), Refusal::Key);
    // And an acceptor's own proof, sent back to it, is not the initiator's.
    let (_, hello) = rank(3).offer(0, [1; 32]);
    let (challenged, challenge) = next(rank(0).listen([2; 32]).handle(&mut &hello[..]));
    let own = [&[0; CLAIM_LEN][..], &challenge[NONCE_LEN..]].concat();
    assert_eq!(refusal(challenged.handle(&mut &own[..])), Refusal::Key);
}

#[test]
fn bytes_after_a_message_are_left_alone() {
    let (_, hello) = rank(3).offer(0, [1; 32]);
    let long = [&hello[..], b"more"].concat();
    let mut input = &long[..];
    next(rank(0).listen([2; 32]).handle(&mut input));
    assert_eq!(input, b"more");
}

#[test]
fn claims_reach_the_other_side_and_no_one_else_can_make_them() {
    let claim = |n| Claim {
        link: n,
        connections: n + 1,
        received: n << 40,
    };
    let (offered, hello) = rank(3).offer(0, [1; 32]);
    let (challenged, challenge) = next(rank(0).listen([2; 32]).handle(&mut &hello[..]));
    let (answered, proof) = next(offered.handle_with(&mut &challenge[..], claim(5)));
    for at in 0..CLAIM_LEN {
        let mut lie = proof;
        lie[at] ^= 1;
        assert_eq!(
            refusal(challenged.clone().handle(&mut &lie[..])),
            Refusal::Key
        );
    }
    let proven = next(challenged.handle(&mut &proof[..]));
    assert_eq!(proven.claim(), claim(5));
    let sent = proven.verdict_with(Verdict::Welcome, claim(6));
    let heard = next(answered.clone().handle_with(&mut &sent[..]));
    assert_eq!(heard, (Verdict::Welcome, claim(6)));
    let mut lie = sent;
    lie[CLAIM_LEN - 1] ^= 1;
    assert_eq!(refusal(answered.handle(&mut &lie[..])), Refusal::Key);
}

/// Feeds bytes to the acceptor in pieces until it refuses, has no more bytes or (never) accepts.
fn believes(bytes: &[u8], pieces: usize) -> bool {
    let mut state = rank(0).listen([2; 32]);
    let mut challenged = None;
    for piece in bytes.chunks(pieces.max(1)) {
        let mut input = piece;
        if challenged.is_none() {
            match state.handle(&mut input) {
                Progress::More(s) => state = s,
                Progress::Next((c, _)) => {
                    challenged = Some(c);
                    state = rank(0).listen([2; 32]);
                }
                Progress::Refuse(_) => return false,
            }
        }
        if let Some(c) = challenged.take() {
            match c.handle(&mut input) {
                Progress::More(c) => challenged = Some(c),
                Progress::Next(_) => return true,
                Progress::Refuse(_) => return false,
            }
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn no_bytes_are_believed(bytes in prop::collection::vec(any::<u8>(), 0..300), pieces in 1usize..100, real_hello: bool) {
        let mut all = Vec::new();
        if real_hello {
            all.extend_from_slice(&rank(3).offer(0, [1; 32]).1);
        }
        all.extend_from_slice(&bytes);
        prop_assert!(!believes(&all, pieces));
    }

    #[test]
    fn one_flipped_bit_is_not_believed(at in 0usize..(HELLO_LEN + PROOF_LEN) * 8) {
        let (_, mut sent) = talk(&rank(3), &rank(0), Verdict::Welcome);
        prop_assert!(believes(&sent, 1000));
        sent[at / 8] ^= 1 << (at % 8);
        prop_assert!(!believes(&sent, 1000));
    }

    #[test]
    fn an_initiator_believes_no_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (offered, _) = rank(3).offer(0, [1; 32]);
        if let Progress::Next(_) = offered.handle(&mut &bytes[..]) {
            prop_assert!(false);
        }
    }

    #[test]
    fn any_splitting_gives_the_same_end(pieces in 1usize..200) {
        let (_, sent) = talk(&rank(3), &rank(0), Verdict::Welcome);
        prop_assert!(believes(&sent, pieces));
    }

    #[test]
    fn a_truncated_conversation_is_not_believed(keep in 0usize..HELLO_LEN + PROOF_LEN) {
        let (_, sent) = talk(&rank(3), &rank(0), Verdict::Welcome);
        prop_assert!(!believes(&sent[..keep], 7));
    }
}

/// Line channels of the two sides of a fresh handshake of ranks 3 and 0.
fn ends(nonce: u8) -> [(Signer, Verifier); 2] {
    let (offered, hello) = rank(3).offer(0, [nonce; 32]);
    let (challenged, challenge) = next(rank(0).listen([2; 32]).handle(&mut &hello[..]));
    let (answered, proof) = next(offered.handle(&mut &challenge[..]));
    let proven = next(challenged.handle(&mut &proof[..]));
    [answered.lines(), proven.lines()]
}

#[test]
fn a_line_proves_who_sent_it_and_when() {
    let [(mut say, mut hear_back), (mut answer, mut hear)] = ends(1);
    let sent = say.sign("cmd=one\ncmd=two 2\n");
    let [one, two]: [&str; 2] = sent.lines().collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(hear.check(two), None, "a line was left out");
    assert_eq!(hear.check("cmd=abort exitcode=9"), None);
    assert_eq!(hear.check(&one.replace("one", "own")), None);
    assert_eq!(hear.check(one), Some("cmd=one"));
    assert_eq!(hear.check(one), None, "it was said again");
    assert_eq!(hear.check(two), Some("cmd=two 2"));
    assert_eq!(hear_back.check(one), None, "it was turned back");
    let back = answer.sign("cmd=yes\n");
    assert_eq!(hear_back.check(back.trim_end()), Some("cmd=yes"));
}

#[test]
fn a_line_of_one_connection_proves_nothing_on_another() {
    let [(mut say, _), _] = ends(1);
    let [_, (_, mut hear)] = ends(9);
    assert_eq!(hear.check(say.sign("cmd=init\n").trim_end()), None);
}
