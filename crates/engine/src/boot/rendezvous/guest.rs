//! A rank that goes to the rendezvous: finds rank 0, whose name may not be known yet and who may not listen yet, proves the secret,
//! and waits until all have come.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::super::BootError;
use super::{Meeting, read_line, read_some, settle};
use kw_base::sync::thread;
use kw_proto::handshake::{Identity, Progress, Verdict};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// For one address to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// For each message of the handshake.
const WORD: Duration = Duration::from_secs(5);
/// Rank 0 names those who are missing when its own time is over; it began to wait at another moment than we did.
const GRACE: Duration = Duration::from_secs(30);

/// What came of one attempt.
enum Attempt {
    /// All have come.
    Formed(TcpStream),
    /// Rank 0 says that there will be no job.
    Refused(String),
    /// Try again.
    Later(String),
}

pub(super) fn join(
    meeting: &Meeting,
    key: [u8; 32],
    until: Instant,
) -> Result<TcpStream, BootError> {
    let identity = meeting.identity(key);
    loop {
        let why = match attempt(meeting, &identity, until) {
            Attempt::Formed(stream) => return Ok(stream),
            Attempt::Refused(why) => return Err(BootError(why)),
            Attempt::Later(why) => why,
        };
        if Instant::now() >= until {
            return Err(BootError(format!(
                "rank {} did not find rank 0 at {} (KW_RENDEZVOUS) within {} s: {why}",
                meeting.rank,
                meeting.at,
                meeting.wait.as_secs()
            )));
        }
        thread::sleep(PAUSE);
    }
}

fn attempt(meeting: &Meeting, identity: &Identity, until: Instant) -> Attempt {
    let addresses = match meeting.at.to_socket_addrs() {
        Ok(list) => list.collect::<Vec<_>>(),
        Err(e) => return Attempt::Later(format!("its name is not known ({e})")),
    };
    let mut why = "its name has no address".to_string();
    for address in addresses {
        match reach(address, meeting, identity) {
            Ok(stream) => return verdict(stream, until),
            Err(e) => why = format!("{address}: {e}"),
        }
    }
    Attempt::Later(why)
}

/// Connects, proves the secret, and says who we are.
fn reach(address: SocketAddr, meeting: &Meeting, identity: &Identity) -> Result<TcpStream, String> {
    let text = |e: std::io::Error| e.to_string();
    let mut stream = TcpStream::connect_timeout(&address, ANSWER).map_err(text)?;
    settle(&stream).map_err(text)?;
    stream.set_read_timeout(Some(WORD)).map_err(text)?;
    let nonce = kw_sys::random::key().map_err(text)?;
    let (mut offered, hello) = identity.offer(0, nonce);
    stream.write_all(&hello).map_err(text)?;
    let mut bytes = [0; 256];
    let (mut answered, proof) = loop {
        let wants = offered.wants();
        let mut input = read_some(&mut stream, &mut bytes[..wants])?;
        match offered.handle(&mut input) {
            Progress::More(state) => offered = state,
            Progress::Next(next) => break next,
            Progress::Refuse(why) => return Err(why.to_string()),
        }
    };
    stream.write_all(&proof).map_err(text)?;
    loop {
        let wants = answered.wants();
        let mut input = read_some(&mut stream, &mut bytes[..wants])?;
        match answered.handle(&mut input) {
            Progress::More(state) => answered = state,
            Progress::Next(Verdict::Welcome) => break,
            Progress::Next(Verdict::Duplicate) => return Err("it has this rank already".into()),
            Progress::Refuse(why) => return Err(why.to_string()),
        }
    }
    let host: String = meeting.host.chars().filter(|c| !c.is_control()).collect();
    let line = format!("{} {host}\n", meeting.size);
    stream.write_all(line.as_bytes()).map_err(text)?;
    Ok(stream)
}

/// Waits for what rank 0 says when all have come, or its time is over.
fn verdict(mut stream: TcpStream, until: Instant) -> Attempt {
    let left = until.saturating_duration_since(Instant::now()) + GRACE;
    if stream.set_read_timeout(Some(left)).is_err() {
        return Attempt::Later("its connection is of no use".into());
    }
    match read_line(&mut stream) {
        Ok(line) if line == "go" => match stream.set_read_timeout(None) {
            Ok(()) => Attempt::Formed(stream),
            Err(e) => Attempt::Refused(e.to_string()),
        },
        Ok(line) => Attempt::Refused(line.strip_prefix("no ").unwrap_or(&line).to_string()),
        Err(why) => Attempt::Later(format!("it has gone again ({why})")),
    }
}
