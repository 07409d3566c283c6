//! A rank at the rendezvous: finds rank 0, whose name may not resolve yet and which may not listen
//! yet, proves the secret, and waits until all have come.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::super::{BootError, NoMeeting};
use super::{HandshakeError, Heard, Meeting, Timed, set_options};
use kw_base::sync::thread;
use kw_proto::handshake::{Identity, Progress, Signer, Verdict, Verifier};

/// Interval between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// Time for one address to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// Time for the whole handshake.
const HELLO: Duration = Duration::from_secs(5);
/// Extra time: rank 0 names those who are missing when its own time is over, and it began to wait
/// at another moment than this rank did.
const GRACE: Duration = Duration::from_secs(30);

/// A connection to rank 0, and the keys that authenticate its lines.
type Line = (TcpStream, (Signer, Verifier));

/// Result of one attempt.
enum Attempt {
    /// All have come.
    Formed(Line),
    /// There will be no job.
    Refused(BootError),
    /// Try again.
    Retry(Retry),
}

/// Why another attempt may do better.
#[derive(Debug, thiserror::Error)]
enum Retry {
    #[error("its host name cannot be resolved ({0})")]
    Name(std::io::Error),
    #[error("its name has no address")]
    NoAddress,
    #[error("{0}: {1}")]
    Handshake(SocketAddr, HandshakeError),
    #[error("it closed the connection ({0})")]
    Gone(HandshakeError),
}

pub(super) fn join(meeting: &Meeting, key: [u8; 32], until: Instant) -> Result<Line, BootError> {
    let identity = meeting.identity(key);
    loop {
        let why = match attempt(meeting, &identity, until) {
            Attempt::Formed(line) => return Ok(line),
            Attempt::Refused(why) => return Err(why),
            Attempt::Retry(why) => why,
        };
        tracing::debug!("rank 0 is not at the rendezvous yet: {why}");
        if Instant::now() >= until {
            return Err(NoMeeting::NotFound {
                rank: meeting.rank,
                at: meeting.at.clone(),
                wait: meeting.wait.as_secs(),
                why: why.to_string(),
            }
            .into());
        }
        thread::sleep(PAUSE);
    }
}

fn attempt(meeting: &Meeting, identity: &Identity, until: Instant) -> Attempt {
    let addresses = match meeting.at.to_socket_addrs() {
        Ok(list) => list.collect::<Vec<_>>(),
        Err(e) => return Attempt::Retry(Retry::Name(e)),
    };
    let mut why = Retry::NoAddress;
    for address in addresses {
        match reach(address, meeting, identity) {
            Ok(line) => return verdict(line, until),
            Err(e) => why = Retry::Handshake(address, e),
        }
    }
    Attempt::Retry(why)
}

/// Connects, proves the secret, and sends this rank's number.
fn reach(address: SocketAddr, meeting: &Meeting, identity: &Identity) -> Heard<Line> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    set_options(&stream)?;
    let nonce = kw_sys::random::key()?;
    let (mut offered, hello) = identity.offer(0, nonce);
    stream.write_all(&hello)?;
    let reading = stream.try_clone()?;
    let mut timed = Timed::new(&reading, Instant::now() + HELLO);
    let mut bytes = [0; 256];
    let (mut answered, proof) = loop {
        let wants = offered.wants();
        let mut input = timed.read_some(&mut bytes[..wants])?;
        match offered.handle(&mut input) {
            Progress::More(state) => offered = state,
            Progress::Next(next) => break next,
            Progress::Refuse(why) => return Err(why.into()),
        }
    };
    stream.write_all(&proof)?;
    let mut proofs = answered.lines();
    loop {
        let wants = answered.wants();
        let mut input = timed.read_some(&mut bytes[..wants])?;
        match answered.handle(&mut input) {
            Progress::More(state) => answered = state,
            Progress::Next(Verdict::Welcome) => break,
            Progress::Next(Verdict::Duplicate) => return Err(HandshakeError::Taken),
            Progress::Refuse(why) => return Err(why.into()),
        }
    }
    let host: String = meeting.host.chars().filter(|c| !c.is_control()).collect();
    let line = format!("{} {host}\n", meeting.size);
    let signed = proofs.0.sign(&line);
    stream.write_all(signed.as_bytes())?;
    Ok((stream, proofs))
}

/// Waits for rank 0's line, which comes when all have come or its time is over.
fn verdict((stream, mut proofs): Line, until: Instant) -> Attempt {
    let line = Timed::new(&stream, until + GRACE).read_line(&mut proofs.1);
    match line {
        Ok(line) if line == "go" => match stream.set_read_timeout(None) {
            Ok(()) => Attempt::Formed((stream, proofs)),
            Err(e) => Attempt::Refused(BootError::system("wait for rank 0")(e)),
        },
        Ok(line) => {
            let why = line.strip_prefix("no ").unwrap_or(&line).to_string();
            Attempt::Refused(NoMeeting::Refused(why).into())
        }
        Err(why) => Attempt::Retry(Retry::Gone(why)),
    }
}
