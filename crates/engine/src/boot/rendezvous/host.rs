//! Rank 0 of a rendezvous: lets the others in, and then serves them PMI-1, in threads of its own.
//!
//! ```text
//! Forming: accept --secret proven--> seated (a later one of the same rank takes the seat) --all seats taken--> Formed
//!    \--time over: everyone seated is told who is missing, and so is our caller
//! Formed: PMI-1 until every rank has finalized; a rank that aborts, or ends before, ends the job: all connections are closed
//! ```

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::super::BootError;
use super::{Meeting, read_line, read_some, settle};
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use kw_base::sync::{Arc, thread};
use kw_proto::handshake::{Identity, Progress, Verdict};
use kw_start::pmi::{Effect, Server, Stage, mapping, text};
use kw_sys::threads::with_signals_blocked;

/// For each message of a handshake.
const WORD: Duration = Duration::from_secs(5);
/// Between two looks at the door.
const LOOK: Duration = Duration::from_millis(20);
/// Handshakes at once, beyond one for each rank.
const SPARE: usize = 32;
/// For a rank to take what it is told.
const TAKE: Duration = Duration::from_secs(10);

/// Somebody who has proven the secret.
struct Seat {
    rank: u32,
    size: u32,
    host: String,
    stream: TcpStream,
}

/// Waits until all have come; our own connection, and the thread that serves.
pub(super) fn gather(
    meeting: &Meeting,
    key: [u8; 32],
    until: Instant,
) -> Result<(OwnedFd, thread::JoinHandle<()>), BootError> {
    let seats = form(meeting, key, until)?;
    let system = |what: &'static str| move |e| BootError(format!("cannot {what}: {e}"));
    let (ours, theirs) = UnixStream::pair().map_err(system("make a pair of sockets"))?;
    let mut tail = [0; 8];
    kw_sys::random::fill(&mut tail).map_err(system("name the job"))?;
    let name = format!("kw-rendezvous-{}", text::hex(&tail));
    let mut hosts = vec![meeting.host.clone()];
    hosts.extend(seats.iter().map(|s| s.host.clone()));
    let none = vec![0; hosts.len()];
    let server = Server::new(
        &name,
        None,
        &none,
        &mapping::number(&hosts),
        hosts.len() as i32,
    );
    let mut wires = vec![Wire::Own(theirs)];
    wires.extend(seats.into_iter().map(|s| Wire::Other(s.stream)));
    let thread = with_signals_blocked(|| thread::spawn(move || serve(server, wires)));
    Ok((ours.into(), thread))
}

fn listen(meeting: &Meeting) -> Result<TcpListener, BootError> {
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
    let failed = |e| {
        BootError(format!(
            "rank 0 cannot listen on port {port} (KW_RENDEZVOUS is '{}'): {e}",
            meeting.at
        ))
    };
    let listener = listener.map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// The others, in the order of their ranks.
fn form(meeting: &Meeting, key: [u8; 32], until: Instant) -> Result<Vec<Seat>, BootError> {
    let listener = listen(meeting)?;
    let mut seats: Vec<Option<Seat>> = (0..meeting.size).map(|_| None).collect();
    let (to, from) = channel();
    let busy = Arc::new(AtomicUsize::new(0));
    loop {
        while let Ok((stream, _)) = listener.accept() {
            greet(
                stream,
                meeting.identity(key),
                &to,
                &busy,
                meeting.size as usize + SPARE,
            );
        }
        match from.recv_timeout(LOOK) {
            Ok(seat) => sit(&mut seats, seat, meeting),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if seats[1..].iter().all(Option::is_some) {
            // who came and went again has to come again
            seats
                .iter_mut()
                .for_each(|s| drop(s.take_if(|s| is_gone(&s.stream))));
        }
        let full = seats[1..].iter().all(Option::is_some);
        if full {
            return start(seats.into_iter().flatten().collect());
        }
        if Instant::now() >= until {
            return Err(give_up(meeting, seats));
        }
    }
}

fn give_up(meeting: &Meeting, mut seats: Vec<Option<Seat>>) -> BootError {
    seats
        .iter_mut()
        .for_each(|s| drop(s.take_if(|s| is_gone(&s.stream))));
    let came: Vec<u32> = std::iter::once(0)
        .chain(seats.iter().flatten().map(|s| s.rank))
        .collect();
    let sentence = meeting.missing(&came);
    for mut seat in seats.into_iter().flatten() {
        let _ = seat.stream.write_all(format!("no {sentence}\n").as_bytes());
    }
    BootError(sentence)
}

/// Says `go` to all.
fn start(mut seats: Vec<Seat>) -> Result<Vec<Seat>, BootError> {
    for seat in &mut seats {
        let stream = &mut seat.stream;
        let said = stream
            .set_read_timeout(None)
            .and_then(|()| stream.set_write_timeout(Some(TAKE)))
            .and_then(|()| stream.write_all(b"go\n"));
        said.map_err(|e| {
            BootError(format!(
                "rank {} was lost as the job formed: {e}",
                seat.rank
            ))
        })?;
    }
    Ok(seats)
}

fn sit(seats: &mut [Option<Seat>], mut seat: Seat, meeting: &Meeting) {
    if seat.size != meeting.size {
        let sentence = format!(
            "no rank {} says that the job has {} ranks (KW_SIZE), rank 0 says {}\n",
            seat.rank, seat.size, meeting.size
        );
        let _ = seat.stream.write_all(sentence.as_bytes());
    } else if let Some(place) = seats.get_mut(seat.rank as usize) {
        *place = Some(seat);
    }
}

/// Whether the other side has hung up. Nobody says anything before `go`.
fn is_gone(stream: &TcpStream) -> bool {
    let quiet = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut [0]));
    let gone = !matches!(&quiet, Err(e) if e.kind() == ErrorKind::WouldBlock);
    gone || stream.set_nonblocking(false).is_err()
}

/// A handshake, in a thread of its own; strangers beyond `most` at once are hung up on.
fn greet(
    stream: TcpStream,
    identity: Identity,
    to: &Sender<Seat>,
    busy: &Arc<AtomicUsize>,
    most: usize,
) {
    // SYNC: rendezvous-busy (a count; nothing else hangs on it)
    if busy.fetch_add(1, Ordering::Relaxed) >= most {
        busy.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let (to, busy) = (to.clone(), busy.clone());
    let one = move || {
        if let Ok(seat) = welcome(stream, &identity) {
            // the receiver is gone when the job has formed without it
            let _ = to.send(seat);
        }
        busy.fetch_sub(1, Ordering::Relaxed);
    };
    with_signals_blocked(|| thread::spawn(one));
}

fn welcome(mut stream: TcpStream, identity: &Identity) -> Result<Seat, String> {
    let text = |e: std::io::Error| e.to_string();
    stream.set_nonblocking(false).map_err(text)?;
    settle(&stream).map_err(text)?;
    stream.set_read_timeout(Some(WORD)).map_err(text)?;
    stream.set_write_timeout(Some(WORD)).map_err(text)?;
    let mut listening = identity.listen(kw_sys::random::key().map_err(text)?);
    let mut bytes = [0; 256];
    let (mut challenged, challenge) = loop {
        let wants = listening.wants();
        let mut input = read_some(&mut stream, &mut bytes[..wants])?;
        match listening.handle(&mut input) {
            Progress::More(state) => listening = state,
            Progress::Next(next) => break next,
            Progress::Refuse(why) => return Err(why.to_string()),
        }
    };
    stream.write_all(&challenge).map_err(text)?;
    let proven = loop {
        let wants = challenged.wants();
        let mut input = read_some(&mut stream, &mut bytes[..wants])?;
        match challenged.handle(&mut input) {
            Progress::More(state) => challenged = state,
            Progress::Next(proven) => break proven,
            Progress::Refuse(why) => return Err(why.to_string()),
        }
    };
    let rank = proven.rank();
    stream
        .write_all(&proven.verdict(Verdict::Welcome))
        .map_err(text)?;
    let line = read_line(&mut stream)?;
    let (size, host) = line.split_once(' ').ok_or("it does not say where it is")?;
    Ok(Seat {
        rank,
        size: size
            .parse()
            .map_err(|_| "it does not say how many ranks there are")?,
        host: host.to_string(),
        stream,
    })
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
            Wire::Own(s) => (&mut &*s).write_all(bytes),
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

/// What a rank said; nothing at its end.
type Said = (u32, Vec<u8>);

fn listen_to(rank: u32, wire: &Wire, to: &Sender<Said>) {
    let mut bytes = [0; 4096];
    loop {
        let n = match wire.read(&mut bytes) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            read => read.unwrap_or(0),
        };
        if to.send((rank, bytes[..n].to_vec())).is_err() || n == 0 {
            return;
        }
    }
}

/// Serves PMI-1 until all have finalized or the job has failed.
fn serve(server: Server, wires: Vec<Wire>) {
    let wires: Vec<Arc<Wire>> = wires.into_iter().map(Arc::new).collect();
    let (to, from) = channel();
    for (rank, wire) in (0u32..).zip(&wires) {
        let (to, wire) = (to.clone(), wire.clone());
        thread::spawn(move || listen_to(rank, &wire, &to));
    }
    drop(to);
    if let Err(sentence) = conversation(server, &wires, &from) {
        eprintln!("the job has failed: {sentence}");
    }
    wires.iter().for_each(|w| w.hang_up());
}

fn conversation(
    mut server: Server,
    wires: &[Arc<Wire>],
    from: &Receiver<Said>,
) -> Result<(), String> {
    let mut effects = Vec::new();
    let all = 0..wires.len() as u32;
    while let Ok((rank, bytes)) = from.recv() {
        if bytes.is_empty() {
            let open = !matches!(server.stage(rank), Stage::Finalized);
            if open {
                return Err(format!(
                    "rank {rank} has ended without calling MPI_Finalize"
                ));
            }
            server.left(rank, &mut effects);
        } else {
            server.handle(rank, &bytes, &mut effects);
        }
        for effect in std::mem::take(&mut effects) {
            carry_out(effect, wires)?;
        }
        let done = |r| matches!(server.stage(r), Stage::Finalized | Stage::Left { .. });
        if all.clone().all(done) {
            return Ok(());
        }
    }
    Ok(())
}

fn carry_out(effect: Effect, wires: &[Arc<Wire>]) -> Result<(), String> {
    match effect {
        Effect::Send { rank, line } => wires[rank as usize]
            .write(line.as_bytes())
            .map_err(|e| format!("rank {rank} cannot be told anything: {e}")),
        Effect::Abort {
            rank,
            status,
            message,
        } => Err(format!(
            "rank {rank} aborted it with status {status}: {message}"
        )),
        Effect::Stuck { waiting, missing } => Err(format!(
            "rank {missing} has left while rank {waiting} waits for it in MPI_Init or MPI_Finalize"
        )),
        Effect::Garbage { rank, error } => {
            Err(format!("rank {rank} cannot be understood: {error}"))
        }
    }
}
