//! Sockets of the loopback interface.

use super::*;
use crate::buf::moving::tests::{Wanderer, pattern};
use std::net::Ipv4Addr;

/// Two ends of a connection, both non-blocking.
fn pair() -> (Sock, Sock) {
    let (l, at) = Sock::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let a = Sock::connect(None, at).unwrap();
    let b = loop {
        if let Some(b) = l.accept().unwrap() {
            break b;
        }
    };
    while a.connecting().unwrap() == Connect::Pending {}
    (a, b)
}

#[test]
fn a_header_and_a_payload_travel_in_one_call_and_land_in_place() {
    let (a, b) = pair();
    let from = Buf::alloc(1000);
    from.write(0, &[5; 1000]);
    assert_eq!(
        a.send_cut(b"head", &from, 10, 900, &Cuts::NONE).unwrap(),
        904
    );
    let mut head = [0; 4];
    while b.recv(&mut head).unwrap() == Got::Nothing {}
    assert_eq!(&head, b"head");
    let (to, mut rest) = (Buf::alloc(900), [0; 8]);
    let got = b.recv_into(&to, 0, 900, &mut rest).unwrap().unwrap();
    assert_eq!(got, Got::Bytes(900));
    let mut bytes = [0; 900];
    to.read(0, &mut bytes);
    assert_eq!(bytes, [5; 900]);
    drop(a);
    while b.recv(&mut head).unwrap() == Got::Nothing {}
    assert_eq!(b.recv(&mut head).unwrap(), Got::End);
}

#[test]
fn a_payload_in_memory_that_moves_travels_in_pieces_and_lands_in_place() {
    let (a, b) = pair();
    let len = 2 * HELD_BY_CALL + 100;
    let data = pattern(len as usize);
    let (from, to) = (
        Wanderer::new(data.clone()),
        Wanderer::new(vec![0; data.len()]),
    );
    let (mut sent, mut came, mut rest) = (0, 0, [0; 16]);
    while came < len {
        if sent < len {
            sent += a
                .send_cut(b"", &from.buf(), sent, len - sent, &Cuts::NONE)
                .unwrap() as u64;
        } else if sent == len {
            sent += a.send(b"behind").unwrap() as u64;
        }
        match b.recv_into(&to.buf(), came, len - came, &mut rest).unwrap() {
            Ok(Got::Bytes(n)) => came += n as u64,
            Ok(other) => assert_eq!(other, Got::Nothing),
            Err(e) => panic!("{e}"),
        }
    }
    let more = (came - len) as usize;
    assert_eq!(&rest[..more], &b"behind"[..more]);
    assert!(to.bytes() == data);
    assert!(from.times.get() > 2 && to.times.get() > 2);
}

/// Two ends that have answered each other for a while, as a rule: acknowledgements ride on answers.
fn talked() -> (Sock, Sock) {
    let (a, b) = pair();
    let mut byte = [0];
    for _ in 0..40 {
        for (from, to) in [(&a, &b), (&b, &a)] {
            assert_eq!(from.send(&[1]).unwrap(), 1);
            while to.recv(&mut byte).unwrap() == Got::Nothing {}
        }
    }
    (a, b)
}

/// The first of two short packets is read; whether the second came with it or waits, and whether it
/// is there after `then`.
fn joined(a: &Sock, b: &Sock, then: impl Fn()) -> (bool, bool) {
    a.set_coalescing(true).unwrap();
    let mut bytes = [0; 8];
    a.send(&[1]).unwrap();
    while b.recv(&mut bytes[..1]).unwrap() == Got::Nothing {}
    a.send(&[2]).unwrap();
    let waits = b.recv(&mut bytes).unwrap() == Got::Nothing;
    then();
    let comes = b.recv(&mut bytes).unwrap() == Got::Bytes(1);
    a.set_coalescing(false).unwrap();
    (waits, comes)
}

#[test]
fn what_waits_to_be_joined_goes_when_what_was_read_is_acknowledged_or_joining_ends() {
    // Each may come a little later, or for another reason; not every time.
    let (mut acknowledged, mut ended) = (false, false);
    for _ in 0..50 {
        let (a, b) = talked();
        acknowledged |= joined(&a, &b, || b.acknowledge()) == (true, true);
        let (a, b) = talked();
        ended |= joined(&a, &b, || a.set_coalescing(false).unwrap()) == (true, true);
    }
    assert!(acknowledged && ended);
}

#[test]
fn within_a_machine_neither_end_is_paced() {
    let (a, b) = pair();
    for end in [&a, &b] {
        assert_eq!(sockopt::tcp_congestion(end).unwrap(), "reno");
    }
}

#[test]
fn a_refused_connect_says_so() {
    let (l, at) = Sock::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    drop(l);
    let outcome = Sock::connect(None, at).and_then(|s| {
        loop {
            if s.connecting()? == Connect::Made {
                return Ok(());
            }
        }
    });
    assert_eq!(
        outcome.unwrap_err().kind(),
        io::ErrorKind::ConnectionRefused
    );
}

#[test]
fn the_ends_of_a_connection_that_was_reset_are_known() {
    for accepted in [false, true] {
        let (a, b) = pair();
        let (lost, other) = if accepted { (b, a) } else { (a, b) };
        let ends = lost.ends();
        sockopt::set_socket_linger(&other, Some(Duration::ZERO)).unwrap();
        drop(other);
        while let Ok(Got::Nothing) = lost.recv(&mut [0]) {}
        assert!(net::getpeername(&lost).is_err());
        let addresses =
            |ends: Option<(SocketAddr, SocketAddr)>| ends.map(|(h, t)| (h.ip(), t.ip()));
        assert!(ends.is_some());
        assert_eq!(addresses(lost.ends()), addresses(ends));
    }
}
