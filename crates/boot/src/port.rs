//! Ports: where a process waits for processes of other jobs (MPI_Open_port), and the channel on
//! which the two introduce their jobs to each other.
//!
//! The name of a port carries a secret. Both sides prove that they know it with their first
//! message, and without it an attacker can neither read nor change one:
//!
//! ```text
//! caller -> port   nonce C (32)
//! port -> caller   nonce L (32)
//! then, both ways  length (4), message, mac (32)
//! ```
//! The keys of the two directions follow from secret and nonces. A message is encrypted with the
//! hash function as a key stream; its mac covers its number, so none can be repeated.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use kw_base::sync::{Arc, Condvar, Mutex, MutexGuard, thread};
use kw_proto::handshake::key_of;
use kw_sys::poller::{Interest, Poller};
use kw_sys::threads::with_signals_blocked;

/// Time for a caller to prove that it knows the secret.
const PROOF: Duration = Duration::from_secs(5);
/// Most simultaneous callers that have not proven it.
const STRANGERS: usize = 64;
/// Longest message, bytes.
const LONGEST: usize = 64 << 20;
/// Longest name: MPI_MAX_PORT_NAME of MPICH, the smallest, without the final zero.
const LONGEST_NAME: usize = 255;
/// Prefix of a port's name.
const SCHEME: &str = "kittiwake:";
const SECRET: usize = 16;
const NONCE: usize = 32;
const MAC: usize = 32;

/// Why a port cannot be used; a sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The name is not a port's name.
    #[error("'{0}' is not the name of a port of this library")]
    Name(String),
    /// No process listens.
    #[error("no process listens on the port: it was closed, or its process has ended ({0})")]
    Closed(io::Error),
    /// No process has connected.
    #[error("the other side did not answer for {0} s")]
    Late(u64),
    /// An unauthenticated process.
    #[error("the other side failed to authenticate with the port's secret")]
    Stranger,
    /// The conversation broke.
    #[error("the connection to the other side broke: {0}")]
    Broken(io::Error),
    /// No socket.
    #[error("no socket can be opened: {0}")]
    System(io::Error),
}

/// One direction of a channel.
#[derive(Clone)]
struct Direction {
    key: [u8; 32],
    number: u64,
}

impl Direction {
    fn new(secret: &[u8], nonces: &[u8], who: &str) -> Direction {
        let key = key_of(&[secret, nonces].concat(), who);
        Direction { key, number: 0 }
    }

    /// Encrypts or decrypts.
    fn mask(&self, message: &mut [u8]) {
        for (i, block) in message.chunks_mut(32).enumerate() {
            let mut seed = self.key.to_vec();
            seed.extend(self.number.to_le_bytes());
            seed.extend((i as u64).to_le_bytes());
            let stream = key_of(&seed, "port stream");
            block.iter_mut().zip(stream).for_each(|(b, s)| *b ^= s);
        }
    }

    fn mac(&self, masked: &[u8]) -> [u8; MAC] {
        let mut all = self.key.to_vec();
        all.extend(self.number.to_le_bytes());
        all.extend(masked);
        key_of(&all, "port mac")
    }
}

/// Two processes that know the same secret talk.
pub struct Channel {
    stream: TcpStream,
    says: Direction,
    hears: Direction,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

impl Channel {
    fn new(stream: TcpStream, secret: &[u8], nonces: &[u8], calls: bool) -> Channel {
        let caller = Direction::new(secret, nonces, "port caller");
        let port = Direction::new(secret, nonces, "port listener");
        let (says, hears) = match calls {
            true => (caller, port),
            false => (port, caller),
        };
        Channel {
            stream,
            says,
            hears,
        }
    }

    /// Two processes that are connected already (MPI_Comm_join): the owner of the connection is
    /// trusted.
    pub fn over(mut stream: TcpStream) -> Result<Channel, PortError> {
        let mine: [u8; NONCE] = kw_sys::random::key().map_err(PortError::System)?;
        stream.write_all(&mine).map_err(PortError::Broken)?;
        let theirs = read_exactly::<NONCE>(&stream, None)?;
        let calls = mine > theirs;
        let nonces = match calls {
            true => [mine, theirs],
            false => [theirs, mine],
        };
        Ok(Channel::new(stream, &[], nonces.as_flattened(), calls))
    }

    /// Sends a message.
    pub fn say(&mut self, message: &[u8]) -> Result<(), PortError> {
        let mut out = (message.len() as u32).to_le_bytes().to_vec();
        out.extend(message);
        self.says.mask(&mut out[4..]);
        let mac = self.says.mac(&out);
        out.extend(mac);
        self.says.number += 1;
        self.stream.write_all(&out).map_err(PortError::Broken)
    }

    /// The next message of the other side, which must arrive by `until`.
    pub fn hear(&mut self, until: Option<Instant>) -> Result<Vec<u8>, PortError> {
        let head = read_exactly::<4>(&self.stream, until)?;
        let len = u32::from_le_bytes(head) as usize;
        if len > LONGEST {
            return Err(PortError::Stranger);
        }
        let mut all = head.to_vec();
        read_more(&self.stream, &mut all, len, until)?;
        let mac = read_exactly::<MAC>(&self.stream, until)?;
        if self.hears.mac(&all) != mac {
            return Err(PortError::Stranger);
        }
        let mut message = all.split_off(4);
        self.hears.mask(&mut message);
        self.hears.number += 1;
        Ok(message)
    }
}

fn read_exactly<const N: usize>(
    stream: &TcpStream,
    until: Option<Instant>,
) -> Result<[u8; N], PortError> {
    let mut all = Vec::new();
    read_more(stream, &mut all, N, until)?;
    Ok(*all.first_chunk().unwrap_or(&[0; N]))
}

/// Appends this many bytes, reading a piece at a time: a peer cannot make this side allocate memory
/// for data that does not arrive.
fn read_more(
    mut stream: &TcpStream,
    all: &mut Vec<u8>,
    mut len: usize,
    until: Option<Instant>,
) -> Result<(), PortError> {
    let begun = Instant::now();
    let mut piece = [0; 4096];
    while len > 0 {
        let left = until.map(|u| u.saturating_duration_since(Instant::now()));
        let late = || PortError::Late(begun.elapsed().as_secs());
        if left.is_some_and(|l| l.is_zero()) {
            return Err(late());
        }
        let read = stream
            .set_read_timeout(left)
            .and_then(|()| stream.read(&mut piece[..len.min(4096)]));
        match read {
            Ok(0) => return Err(PortError::Broken(ErrorKind::UnexpectedEof.into())),
            Ok(n) => {
                all.extend_from_slice(&piece[..n]);
                len -= n;
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(late());
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(PortError::Broken(e)),
        }
    }
    Ok(())
}

/// Reports that there is something to take from a port.
type News = std::sync::Arc<dyn Fn() + Send + Sync>;

/// A port that is open. It closes when it is dropped.
pub struct Port {
    name: String,
    shared: Arc<Shared>,
    /// Ends the acceptor when it is dropped.
    line: Option<UnixStream>,
    acceptor: Option<thread::JoinHandle<()>>,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port").finish_non_exhaustive()
    }
}

/// State that a port shares with its acceptor and with the threads that serve callers.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Rings when a caller's handshake has ended, or the port closes.
    left: Condvar,
}

#[derive(Default)]
struct State {
    /// Callers that have proven the secret, and were not accepted yet.
    known: VecDeque<Channel>,
    /// Callers that have not proven it.
    strangers: usize,
    closing: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more handshake may begin; `false` when the port closes.
    fn let_in(&self) -> bool {
        let mut state = self.state();
        while state.strangers >= STRANGERS && !state.closing {
            let waited = self.left.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.strangers += 1;
        !state.closing
    }

    /// A caller's handshake has ended.
    fn heard(&self, channel: Option<Channel>) {
        let mut state = self.state();
        state.strangers -= 1;
        state.known.extend(channel);
        self.left.notify_all();
    }
}

impl Port {
    /// Opens a port on each of these addresses. `news` is called, by a thread of the port, whenever
    /// there may be something to [take](Port::take).
    pub fn open(
        addresses: &[IpAddr],
        news: impl Fn() + Send + Sync + 'static,
    ) -> Result<Port, PortError> {
        let secret: [u8; SECRET] = kw_sys::unix::random().map_err(PortError::System)?;
        let listeners = listen(addresses)?;
        let name = name_of(&secret, &listeners)?;
        let shared = Arc::<Shared>::default();
        let (line, end) = UnixStream::pair().map_err(PortError::System)?;
        let acceptor = Acceptor {
            poller: poller(&listeners, &end).map_err(PortError::System)?,
            listeners,
            _end: end,
            secret,
            shared: shared.clone(),
            news: std::sync::Arc::new(news),
        };
        let thread = with_signals_blocked(|| thread::spawn(move || acceptor.run()));
        Ok(Port {
            name,
            shared,
            line: Some(line),
            acceptor: Some(thread),
        })
    }

    /// Its name, with its secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The addresses on which it listens, without its secret.
    pub fn place(&self) -> &str {
        place(&self.name)
    }

    /// The first caller that knows the secret, still waits, and was not taken yet.
    pub fn take(&self) -> Option<Channel> {
        loop {
            let mut channel = self.shared.state().known.pop_front()?;
            if !kw_sys::fd::is_hung_up(&channel.stream) && channel.say(b"welcome").is_ok() {
                return Some(channel);
            }
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.shared.state().closing = true;
        self.shared.left.notify_all();
        drop(self.line.take());
        if let Some(thread) = self.acceptor.take() {
            // It calls no process and waits for nothing else.
            let _ = thread.join();
        }
    }
}

/// The name of a port without its secret, for people.
pub fn place(name: &str) -> &str {
    name.trim().rsplit_once('@').map_or("", |(_, at)| at)
}

/// Listens on each of these addresses where that is possible.
fn listen(addresses: &[IpAddr]) -> Result<Vec<TcpListener>, PortError> {
    let mut listeners = Vec::new();
    let mut why = None;
    for &address in addresses {
        let made = TcpListener::bind((address, 0)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        match made {
            Ok(listener) => listeners.push(listener),
            Err(e) => why = Some(e),
        }
    }
    if listeners.is_empty() {
        let none = || io::Error::other("this host has no address to listen on");
        return Err(PortError::System(why.unwrap_or_else(none)));
    }
    Ok(listeners)
}

fn name_of(secret: &[u8; SECRET], listeners: &[TcpListener]) -> Result<String, PortError> {
    let mut name = format!("{SCHEME}{}@", kw_sys::unix::hex(secret));
    for (i, listener) in listeners.iter().enumerate() {
        let address = listener
            .local_addr()
            .map_err(PortError::System)?
            .to_string();
        if i > 0 && name.len() + 1 + address.len() > LONGEST_NAME {
            break;
        }
        let comma = if i > 0 { "," } else { "" };
        name.push_str(&format!("{comma}{address}"));
    }
    Ok(name)
}

fn poller(listeners: &[TcpListener], end: &UnixStream) -> io::Result<Poller> {
    let poller = Poller::new()?;
    for (i, listener) in listeners.iter().enumerate() {
        poller.add(listener, i as u64, Interest::Read)?;
    }
    poller.add(end, listeners.len() as u64, Interest::Read)?;
    Ok(poller)
}

/// The thread that accepts callers.
struct Acceptor {
    poller: Poller,
    listeners: Vec<TcpListener>,
    /// Ends when the port is dropped.
    _end: UnixStream,
    secret: [u8; SECRET],
    shared: Arc<Shared>,
    news: News,
}

impl Acceptor {
    fn run(mut self) {
        let mut events = Vec::new();
        while !self.shared.state().closing {
            if self.poller.wait(None, &mut events).is_err() {
                return;
            }
            let came = events.iter().map(|e| e.data as usize);
            for at in came
                .filter(|&at| at < self.listeners.len())
                .collect::<Vec<_>>()
            {
                if !self.shared.let_in() {
                    return;
                }
                let stream = self.listeners[at].accept().ok();
                match stream {
                    Some((stream, _)) => self.hear(stream),
                    None => self.shared.heard(None),
                }
            }
        }
    }

    /// Serves a caller, in a thread of its own.
    fn hear(&self, stream: TcpStream) {
        let (secret, shared, news) = (self.secret, self.shared.clone(), self.news.clone());
        let hear = move || {
            shared.heard(welcome(stream, &secret).ok());
            news();
        };
        with_signals_blocked(|| thread::spawn(hear));
    }
}

/// Checks whether a caller knows the secret.
fn welcome(mut stream: TcpStream, secret: &[u8; SECRET]) -> Result<Channel, PortError> {
    let set_up = |stream: &TcpStream| {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PROOF))
    };
    set_up(&stream).map_err(PortError::Broken)?;
    let until = Some(Instant::now() + PROOF);
    let theirs = read_exactly::<NONCE>(&stream, until)?;
    let mine: [u8; NONCE] = kw_sys::random::key().map_err(PortError::System)?;
    stream.write_all(&mine).map_err(PortError::Broken)?;
    let nonces = [theirs, mine];
    let mut channel = Channel::new(stream, secret, nonces.as_flattened(), false);
    channel.hear(until)?;
    let forever = channel.stream.set_write_timeout(None);
    forever.map_err(PortError::Broken)?;
    Ok(channel)
}

/// Calls a port, which has `patience` to accept.
pub fn call(name: &str, patience: Duration) -> Result<Channel, PortError> {
    let wrong = || PortError::Name(name.chars().take(40).collect());
    let rest = name.trim().strip_prefix(SCHEME).ok_or_else(wrong)?;
    let (secret, at) = rest.split_once('@').ok_or_else(wrong)?;
    let secret: [u8; SECRET] = kw_sys::unix::from_hex(secret).ok_or_else(wrong)?;
    let addresses: Result<Vec<SocketAddr>, _> = at.split(',').map(str::parse).collect();
    let addresses = addresses.map_err(|_| wrong())?;
    let until = Instant::now() + patience;
    let mut why = PortError::Closed(ErrorKind::NotFound.into());
    for address in addresses {
        let left = until.saturating_duration_since(Instant::now());
        let most = left.clamp(Duration::from_millis(1), Duration::from_secs(5));
        match TcpStream::connect_timeout(&address, most) {
            Ok(stream) => match greet(stream, &secret, until) {
                Ok(channel) => return Ok(channel),
                Err(e) => why = e,
            },
            Err(e) => why = PortError::Closed(e),
        }
    }
    Err(match why {
        PortError::Late(_) => PortError::Late(patience.as_secs()),
        PortError::Broken(e) => PortError::Closed(e),
        why => why,
    })
}

fn greet(
    mut stream: TcpStream,
    secret: &[u8; SECRET],
    until: Instant,
) -> Result<Channel, PortError> {
    stream.set_nodelay(true).map_err(PortError::Broken)?;
    let mine: [u8; NONCE] = kw_sys::random::key().map_err(PortError::System)?;
    stream.write_all(&mine).map_err(PortError::Broken)?;
    let theirs = read_exactly::<NONCE>(&stream, Some(until))?;
    let nonces = [mine, theirs];
    let mut channel = Channel::new(stream, secret, nonces.as_flattened(), true);
    channel.say(b"here")?;
    channel.hear(Some(until))?;
    Ok(channel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const MINUTE: Duration = Duration::from_secs(60);

    fn open() -> (Port, std::sync::mpsc::Receiver<()>) {
        let (tell, news) = std::sync::mpsc::channel();
        let port = Port::open(&[HERE], move || {
            let _ = tell.send(());
        })
        .unwrap();
        (port, news)
    }

    #[test]
    fn whoever_knows_the_name_is_heard_and_nobody_else() {
        let (port, news) = open();
        let name = port.name().to_string();
        assert!(name.len() <= LONGEST_NAME && name.starts_with(SCHEME));
        let caller = thread::spawn(move || {
            let at = name.rsplit_once('@').unwrap().1.to_string();
            let mut silent = TcpStream::connect(&at).unwrap();
            let other = format!("{SCHEME}{}@{at}", "0".repeat(32));
            let why = call(&other, MINUTE).unwrap_err();
            assert!(matches!(why, PortError::Closed(_)), "{why}");
            let mut channel = call(&name, MINUTE).unwrap();
            channel.say(&[7; 10_000]).unwrap();
            let heard = channel.hear(None).unwrap();
            let _ = silent.write_all(b"x");
            heard
        });
        let mut channel = loop {
            match port.take() {
                Some(channel) => break channel,
                None => news.recv_timeout(MINUTE).unwrap(),
            }
        };
        assert_eq!(channel.hear(None).unwrap(), [7; 10_000]);
        channel.say(b"").unwrap();
        assert_eq!(caller.join().unwrap(), b"");
    }

    #[test]
    fn what_was_changed_on_the_way_is_not_believed() {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let other = listener.accept().unwrap().0;
        let pair = [(stream, true), (other, false)];
        let [mut a, mut b] = pair.map(|(s, calls)| Channel::new(s, &[1], &[2; 64], calls));
        a.say(b"one").unwrap();
        assert_eq!(b.hear(None).unwrap(), b"one");
        a.says.number += 1;
        a.say(b"three").unwrap();
        assert!(matches!(b.hear(None), Err(PortError::Stranger)));
    }

    #[test]
    fn a_closed_port_and_no_port_are_distinguished() {
        let (port, _news) = open();
        let name = port.name().to_string();
        drop(port);
        let why = call(&name, MINUTE).unwrap_err();
        assert!(matches!(why, PortError::Closed(_)), "{why}");
        for name in ["", "kittiwake:00@x", "tag#0$description", "kittiwake:"] {
            let why = call(name, MINUTE).unwrap_err();
            assert!(matches!(why, PortError::Name(_)), "{why}");
        }
        let (port, _news) = open();
        assert!(port.place().starts_with("127.0.0.1:"));
        let why = call(port.name(), Duration::from_millis(20)).unwrap_err();
        assert!(matches!(why, PortError::Late(_)), "{why}");
        assert!(port.take().is_none(), "a closed connection is not accepted");
    }
}
