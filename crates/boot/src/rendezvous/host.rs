//! Rank 0 of a rendezvous: lets the others in (`acceptor`), and then serves them PMI-1, in threads
//! of its own.
//!
//! ```text
//! Forming: accept --secret proven--> admitted (instead of an earlier one of the same rank)
//!    |                                       \--all are admitted--> Formed
//!    \--time over: everyone admitted is told who is missing, and so is our caller
//! Formed: PMI-1, of which every line proves itself, until every rank has finalized; a rank that aborts, or ends before, ends the job: all connections are closed
//! ```

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::super::{BootError, NoMeeting};
use super::acceptor::{Acceptor, Member};
use super::{HandshakeError, Heard, Meeting};
use kw_base::sync::{Arc, thread};
use kw_proto::handshake::{Signer, Verifier};
use kw_start::pmi::{Effect, Lines, PmiError, Server, Stage, mapping, text};
use kw_sys::threads::with_signals_blocked;

/// Interval between two polls of the acceptor.
const LOOK: Duration = Duration::from_millis(20);
/// Interval if more connections wait than one poll accepts.
const CROWDED: Duration = Duration::from_millis(1);
/// Time for a rank to read a line that it is sent.
const TAKE: Duration = Duration::from_secs(10);

/// Waits until all have come; returns our own connection, and the thread that serves.
pub(super) fn gather(
    meeting: &Meeting,
    key: [u8; 32],
    until: Instant,
) -> Result<(OwnedFd, thread::JoinHandle<()>), BootError> {
    let members = form(meeting, key, until)?;
    let (ours, theirs) = UnixStream::pair().map_err(BootError::system("make a pair of sockets"))?;
    let mut tail = [0; 8];
    kw_sys::random::fill(&mut tail).map_err(BootError::system("name the job"))?;
    let name = format!("kw-rendezvous-{}", text::hex(&tail));
    let mut hosts = vec![meeting.host.clone()];
    hosts.extend(members.iter().map(|s| s.host.clone()));
    let none = vec![0; hosts.len()];
    let server = Server::new(
        &name,
        None,
        &none,
        &mapping::number(&hosts),
        hosts.len() as i32,
    );
    let mut wires = vec![(Wire::Own(theirs), None)];
    wires.extend(
        members
            .into_iter()
            .map(|s| (Wire::Other(s.stream), Some((s.says, s.hears)))),
    );
    let thread = with_signals_blocked(|| thread::spawn(move || serve(server, wires)));
    Ok((ours.into(), thread))
}

fn listen(meeting: &Meeting) -> Result<TcpListener, NoMeeting> {
    let port = meeting
        .at
        .rsplit_once(':')
        .and_then(|(_, p)| p.parse().ok());
    let port: u16 = port.unwrap_or(0);
    let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port));
    let listener = match both {
        Err(e) if e.kind() != ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
        }
        other => other,
    };
    let failed = |cause| NoMeeting::NoPort {
        port,
        at: meeting.at.clone(),
        cause,
    };
    let listener = listener.map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// The others, in the order of their ranks.
fn form(meeting: &Meeting, key: [u8; 32], until: Instant) -> Result<Vec<Member>, BootError> {
    let listener = listen(meeting)?;
    let mut members: Vec<Option<Member>> = (0..meeting.size).map(|_| None).collect();
    let (to, from) = channel();
    let mut acceptor = Acceptor::new(listener, meeting.identity(key), meeting.size, to);
    loop {
        let pause = if acceptor.look() { CROWDED } else { LOOK };
        match from.recv_timeout(pause) {
            Ok(member) => admit(&mut members, member, meeting),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if members[1..].iter().all(Option::is_some) {
            // a rank that came and went has to come again
            members
                .iter_mut()
                .for_each(|s| drop(s.take_if(|s| is_gone(&s.stream))));
        }
        let full = members[1..].iter().all(Option::is_some);
        if full {
            return start(members.into_iter().flatten().collect());
        }
        if Instant::now() >= until {
            return Err(give_up(meeting, members));
        }
    }
}

/// Sends a line, with its proof.
fn say(member: &mut Member, line: &str) -> std::io::Result<()> {
    member.stream.write_all(member.says.sign(line).as_bytes())
}

fn give_up(meeting: &Meeting, mut members: Vec<Option<Member>>) -> BootError {
    members
        .iter_mut()
        .for_each(|s| drop(s.take_if(|s| is_gone(&s.stream))));
    let came: Vec<u32> = std::iter::once(0)
        .chain(members.iter().flatten().map(|s| s.rank))
        .collect();
    let missing = meeting.missing(came);
    for mut member in members.into_iter().flatten() {
        let _ = say(&mut member, &format!("no {missing}\n"));
    }
    missing.into()
}

/// Sends `go` to all.
fn start(mut members: Vec<Member>) -> Result<Vec<Member>, BootError> {
    for member in &mut members {
        let stream = &member.stream;
        let sent = stream
            .set_read_timeout(None)
            .and_then(|()| stream.set_write_timeout(Some(TAKE)))
            .and_then(|()| say(member, "go\n"));
        let rank = member.rank;
        sent.map_err(|cause| NoMeeting::Disconnected { rank, cause })?;
    }
    Ok(members)
}

fn admit(members: &mut [Option<Member>], mut member: Member, meeting: &Meeting) {
    if member.size != meeting.size {
        let sentence = format!(
            "no rank {} has {} ranks as job size (KW_SIZE), but rank 0 has {}\n",
            member.rank, member.size, meeting.size
        );
        let _ = say(&mut member, &sentence);
    } else if let Some(place) = members.get_mut(member.rank as usize) {
        tracing::debug!("rank {} has come to the rendezvous", member.rank);
        *place = Some(member);
    }
}

/// Whether the other side has closed the connection. No data is expected before `go`.
fn is_gone(stream: &TcpStream) -> bool {
    let quiet = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut [0]));
    let gone = !matches!(&quiet, Err(e) if e.kind() == ErrorKind::WouldBlock);
    gone || stream.set_nonblocking(false).is_err()
}

/// The connection to a rank.
enum Wire {
    Own(UnixStream),
    Other(TcpStream),
}

impl Wire {
    fn read(&self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Wire::Own(s) => (&mut &*s).read(bytes),
            Wire::Other(s) => (&mut &*s).read(bytes),
        }
    }

    fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Wire::Own(s) => kw_sys::fd::send_all(s, bytes),
            Wire::Other(s) => (&mut &*s).write_all(bytes),
        }
    }

    fn hang_up(&self) {
        let _ = match self {
            Wire::Own(s) => s.shutdown(Shutdown::Both),
            Wire::Other(s) => s.shutdown(Shutdown::Both),
        };
    }
}

/// Authentication of the lines of a connection; rank 0's connection to itself needs none.
type Proofs = Option<(Signer, Verifier)>;

/// The message of a rank; empty at its end, and an error if it was not authenticated.
type Received = (u32, Heard<Vec<u8>>);

/// The lines of a connection, without their proofs.
#[derive(Default)]
struct Hearing {
    lines: Lines,
    hears: Option<Verifier>,
}

impl Hearing {
    fn handle(&mut self, bytes: &[u8]) -> Heard<Vec<u8>> {
        let Some(hears) = &mut self.hears else {
            return Ok(bytes.to_vec());
        };
        self.lines.feed(bytes);
        let mut text = Vec::new();
        while let Some(line) = self.lines.poll_line() {
            let line = hears
                .check(&line?)
                .ok_or(HandshakeError::Forged)?
                .to_string();
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
        }
        Ok(text)
    }
}

fn listen_to(rank: u32, wire: &Wire, mut hearing: Hearing, to: &Sender<Received>) {
    let mut bytes = [0; 4096];
    loop {
        let n = match wire.read(&mut bytes) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            read => read.unwrap_or(0),
        };
        let received = hearing.handle(&bytes[..n]);
        let over = n == 0 || received.is_err();
        let none_yet = !over && matches!(&received, Ok(lines) if lines.is_empty());
        if !none_yet && to.send((rank, received)).is_err() || over {
            return;
        }
    }
}

/// A rank's connection, for sending.
struct Speaker {
    wire: Arc<Wire>,
    says: Option<Signer>,
}

impl Speaker {
    fn say(&mut self, lines: &str) -> std::io::Result<()> {
        match &mut self.says {
            Some(says) => self.wire.write(says.sign(lines).as_bytes()),
            None => self.wire.write(lines.as_bytes()),
        }
    }
}

/// Why a job that had formed ends before its time.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("rank {0} has ended without calling MPI_Finalize")]
    Ended(u32),
    #[error("the connection of rank {0} is broken: {1}")]
    Broken(u32, HandshakeError),
    #[error("rank {0} cannot be reached: {1}")]
    Deaf(u32, std::io::Error),
    #[error("rank {0} aborted it with status {1}: {2}")]
    Aborted(u32, i32, String),
    #[error(
        "rank {missing} has left while rank {waiting} waits for it in MPI_Init or MPI_Finalize"
    )]
    Left { waiting: u32, missing: u32 },
    #[error("protocol error: invalid message from rank {0} ({1})")]
    Malformed(u32, PmiError),
}

/// Serves PMI-1 until all have finalized or the job has failed.
fn serve(server: Server, wires: Vec<(Wire, Proofs)>) {
    let mut speakers = Vec::new();
    let (to, from) = channel();
    for (rank, (wire, proofs)) in (0u32..).zip(wires) {
        let (says, hears) = proofs.unzip();
        let (to, wire) = (to.clone(), Arc::new(wire));
        let lines = Lines::default();
        let theirs = wire.clone();
        thread::spawn(move || listen_to(rank, &theirs, Hearing { lines, hears }, &to));
        speakers.push(Speaker { wire, says });
    }
    drop(to);
    if let Err(failed) = conversation(server, &mut speakers, &from) {
        eprintln!("the job has failed: {failed}");
    }
    speakers.iter().for_each(|s| s.wire.hang_up());
}

fn conversation(
    mut server: Server,
    speakers: &mut [Speaker],
    from: &Receiver<Received>,
) -> Result<(), Failed> {
    let mut effects = Vec::new();
    let all = 0..speakers.len() as u32;
    while let Ok((rank, received)) = from.recv() {
        let open = !matches!(server.stage(rank), Stage::Finalized);
        match received {
            Ok(bytes) if !bytes.is_empty() => server.handle(rank, &bytes, &mut effects),
            Ok(_) if open => {
                return Err(Failed::Ended(rank));
            }
            Err(why) if open => {
                return Err(Failed::Broken(rank, why));
            }
            _ => server.left(rank, &mut effects),
        }
        for effect in std::mem::take(&mut effects) {
            carry_out(effect, speakers)?;
        }
        let done = |r| matches!(server.stage(r), Stage::Finalized | Stage::Left { .. });
        if all.clone().all(done) {
            return Ok(());
        }
    }
    Ok(())
}

fn carry_out(effect: Effect, speakers: &mut [Speaker]) -> Result<(), Failed> {
    match effect {
        Effect::Send { rank, line } => speakers[rank as usize]
            .say(&line)
            .map_err(|e| Failed::Deaf(rank, e)),
        Effect::Abort {
            rank,
            status,
            message,
        } => Err(Failed::Aborted(rank, status, message)),
        Effect::BrokenFence { waiting, missing } => Err(Failed::Left { waiting, missing }),
        Effect::Garbage { rank, error } => Err(Failed::Malformed(rank, error)),
        // Sent to launchers that have asked.
        Effect::Waits { .. } => Ok(()),
    }
}
