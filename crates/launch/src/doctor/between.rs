//! Whether hosts reach each other: on each a second `kwinfo` listens and connects to all others.
//!
//! `kwinfo --doctor-peer` is started through ssh, as mpiexec starts its helpers, and speaks in lines,
//! after whatever login scripts print:
//!
//! | who | line | meaning |
//! | --- | --- | --- |
//! | peer | `kw-doctor-1 VERSION ARCHITECTURE` | it is there |
//! | peer | `found WHAT<tab>GRADE<tab>TEXT` | a finding of its host that is not ok |
//! | peer | `at ADDRESS:PORT WORD` | it listens there, and greets with that word; once for each address |
//! | peer | `ready` | nothing of these follows |
//! | first | `try HOST ADDRESS:PORT WORD` | connect there; once for each address of each other host |
//! | first | `go` | nothing of these follows |
//! | peer | `tried HOST ADDRESS:PORT OUTCOME` | what came of it: `ok`, or words |
//! | peer | `done` | nothing of these follows; it ends when its input ends |

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use kw_base::settings::{Id, Settings};

use super::facts::Facts;
use super::{Finding, Grade, checks};
use crate::hosts::{Host, is_here};
use crate::remote::quoted;

/// The option that starts a `kwinfo` as such a peer.
pub const PEER: &str = "--doctor-peer";
/// Beginning of a peer's first line.
const MAGIC: &str = "kw-doctor-1";
/// Bytes of the random word with which a listener greets each connection. It identifies the
/// listener, because several hosts may have the same address.
const GREETING: usize = 16;
/// Time limit of a connection attempt.
const CONNECT: Duration = Duration::from_secs(5);
/// Time limits for the start of a peer, its resolver included, and for all its connections.
const PATIENCE: Duration = Duration::from_secs(40);

/// Data that a peer has reported about itself.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Introduction {
    version: String,
    architecture: String,
    at: Vec<String>,
    found: Vec<Finding>,
}

/// One connection that was tried.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Tried {
    from: String,
    to: String,
    address: SocketAddr,
    /// `None`: the connection was made.
    failed: Option<String>,
}

/// A running peer.
struct Peer {
    host: String,
    child: Child,
    to: ChildStdin,
    lines: Receiver<String>,
    complaint: Receiver<String>,
}

/// Findings about these hosts and the connections between them.
pub fn findings(hosts: &[Host]) -> Vec<Finding> {
    let mut all = Vec::new();
    let started: Vec<_> = hosts.iter().map(|h| (h, Peer::start(&h.name))).collect();
    let mut peers = Vec::new();
    for (host, started) in started {
        let met = started.and_then(|mut peer| peer.meet().map(|intro| (peer, intro)));
        match met {
            Ok((peer, intro)) => {
                all.push(of_host(&host.name, &intro));
                all.extend(intro.found.iter().map(|f| on_host(&host.name, f)));
                peers.push((peer, intro));
            }
            Err(why) => all.push(unreached(&host.name, &why)),
        }
    }
    let tried = ask(&mut peers);
    let names: Vec<&str> = peers.iter().map(|(p, _)| p.host.as_str()).collect();
    all.extend(connections(&names, &tried));
    all
}

/// Has every peer try every other one.
fn ask(peers: &mut [(Peer, Introduction)]) -> Vec<Tried> {
    let at: Vec<(String, Vec<String>)> = peers
        .iter()
        .map(|(p, intro)| (p.host.clone(), intro.at.clone()))
        .collect();
    for (peer, _) in peers.iter_mut() {
        let others = at.iter().filter(|(host, _)| *host != peer.host);
        let lines =
            others.flat_map(|(host, at)| at.iter().map(move |a| format!("try {host} {a}\n")));
        let text: String = lines.chain(["go\n".to_string()]).collect();
        // A peer that has exited reports nothing below.
        let _ = peer.to.write_all(text.as_bytes());
    }
    let mut all = Vec::new();
    for (peer, _) in peers.iter_mut() {
        let until = Instant::now() + PATIENCE;
        while let Some(line) = peer.line(until).filter(|l| l != "done") {
            all.extend(tried(&peer.host, &line));
        }
    }
    all
}

/// The words that reach a host.
fn reaching(name: &str) -> Result<Vec<String>, String> {
    let [own, as_word, kwinfo] = crate::libraries::own_words("kwinfo")
        .map_err(|e| format!("the path of kwinfo is unknown: {e}"))?;
    let addresses = kw_sys::netif::interfaces().unwrap_or_default();
    let addresses: Vec<IpAddr> = addresses.iter().map(|i| i.addr).collect();
    if is_here(name, &kw_sys::host::name(), &addresses) {
        return Ok(vec![own, as_word, kwinfo, PEER.into()]);
    }
    let settings = Settings::read(kw_sys::environment::variable).map_err(|e| e.to_string())?;
    let words = settings
        .text(Id::Ssh)
        .split_whitespace()
        .map(str::to_string);
    Ok(words
        .chain([name.into(), quoted(&own), as_word, kwinfo, PEER.into()])
        .collect())
}

impl Peer {
    fn start(name: &str) -> Result<Peer, String> {
        let words = reaching(name)?;
        let [first, rest @ ..] = &words[..] else {
            return Err("KW_SSH is empty".into());
        };
        let mut child = Command::new(first)
            .args(rest)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("'{first}' cannot be started: {e}"))?;
        let (Some(to), Some(from), Some(err)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("a pipe is missing".into());
        };
        Ok(Peer {
            host: name.into(),
            child,
            to,
            lines: lines(from),
            complaint: lines(err),
        })
    }

    /// The next line; `None` if none arrives in time.
    fn line(&mut self, until: Instant) -> Option<String> {
        let left = until.saturating_duration_since(Instant::now());
        self.lines.recv_timeout(left).ok()
    }

    /// Reads the peer's report about itself.
    fn meet(&mut self) -> Result<Introduction, String> {
        let until = Instant::now() + PATIENCE;
        let mut intro = Introduction::default();
        while let Some(line) = self.line(until) {
            if intro.hear(&line) {
                return Ok(intro);
            }
        }
        let last =
            std::iter::from_fn(|| self.complaint.recv_timeout(Duration::from_millis(100)).ok());
        let complaint: Vec<String> = last.filter(|l| !l.trim().is_empty()).collect();
        Err(match complaint.last() {
            Some(words) => words.clone(),
            None => format!("it has not answered within {} s", PATIENCE.as_secs()),
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A peer ends when its input ends; one that hangs is killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All lines until the end of the output.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, hear) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    hear
}

impl Introduction {
    /// Handles a line; returns whether it was the last one. Lines before the first known one are
    /// greetings of login scripts.
    fn hear(&mut self, line: &str) -> bool {
        let line = line.trim_end();
        if let Some((_, own)) = line.split_once(MAGIC) {
            let mut words = own.split_whitespace().map(str::to_string);
            self.version = words.next().unwrap_or_default();
            self.architecture = words.next().unwrap_or_default();
            return false;
        }
        if self.version.is_empty() {
            return false;
        }
        match line.split_once(' ') {
            Some(("at", place)) => self.at.push(place.into()),
            Some(("found", text)) => self.found.extend(finding(text)),
            _ => {}
        }
        line == "ready"
    }
}

/// A finding as a peer writes it.
fn finding(text: &str) -> Option<Finding> {
    let mut words = text.splitn(3, '\t');
    Some(Finding {
        what: words.next()?.into(),
        grade: Grade::read(words.next()?)?,
        text: words.next()?.into(),
    })
}

fn tried(from: &str, line: &str) -> Option<Tried> {
    let mut words = line.strip_prefix("tried ")?.splitn(3, ' ');
    let (to, address, outcome) = (words.next()?, words.next()?, words.next()?);
    Some(Tried {
        from: from.into(),
        to: to.into(),
        address: address.parse().ok()?,
        failed: (outcome != "ok").then(|| outcome.to_string()),
    })
}

/// Differences between a host that was reached and this one.
fn of_host(host: &str, intro: &Introduction) -> Finding {
    let what = format!("host {host}");
    let own = env!("CARGO_PKG_VERSION");
    if intro.version != own {
        return Finding::fault(
            &what,
            format!(
                "its Kittiwake is {}, this one is {own}: jobs across both are refused; install the same version on all hosts",
                intro.version
            ),
        );
    }
    if intro.architecture != std::env::consts::ARCH {
        return Finding::note(
            &what,
            format!(
                "its architecture is {}, this one's {}: a job needs one executable for each; start them as MPMD (-n 1 \
                 ./a : -n 1 ./b), one host each",
                intro.architecture,
                std::env::consts::ARCH
            ),
        );
    }
    Finding::ok(&what, format!("reached, Kittiwake {own}"))
}

fn on_host(host: &str, f: &Finding) -> Finding {
    Finding {
        what: format!("{host}: {}", f.what),
        ..f.clone()
    }
}

fn unreached(host: &str, why: &str) -> Finding {
    Finding::fault(
        &format!("host {host}"),
        format!(
            "cannot be reached: {why}: no rank can run there; 'ssh {host} true' must work without a prompt, and \
             Kittiwake must be in the same directory there"
        ),
    )
}

/// A finding for each pair of hosts that were reached, in each direction.
fn connections(hosts: &[&str], all: &[Tried]) -> Vec<Finding> {
    let pairs = hosts
        .iter()
        .flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
    let of = |(from, to): (&str, &str)| {
        let of_pair = all.iter().filter(|t| t.from == from && t.to == to);
        connection(&format!("{from} to {to}"), &of_pair.collect::<Vec<_>>())
    };
    pairs.filter(|(from, to)| from != to).map(of).collect()
}

fn connection(what: &str, tried: &[&Tried]) -> Finding {
    let made = tried
        .iter()
        .filter(|t| t.failed.is_none())
        .map(|t| t.address.ip().to_string());
    let made: Vec<String> = made.collect();
    let failed = tried
        .iter()
        .filter_map(|t| Some(format!("{} ({})", t.address.ip(), t.failed.as_ref()?)));
    let failed: Vec<String> = failed.collect();
    let (made, failed) = (made.join(", "), failed.join(", "));
    match (made.as_str(), failed.as_str()) {
        ("", "") => Finding::fault(
            what,
            "no address to connect to: only loopback is up there, so jobs across both hosts fail; bring up the \
             interface that leads to the other host",
        ),
        ("", _) => Finding::fault(
            what,
            format!(
                "no connection to {failed}: jobs across both hosts fail; open the ports between the hosts in the \
                 firewall (KW_PORTS=FIRST-LAST limits them), and select the network with KW_INTERFACES"
            ),
        ),
        (made, "") => Finding::ok(what, made),
        (made, failed) => Finding::ok(what, format!("{made}; not {failed} (ignored)")),
    }
}

/// Runs as a peer, on standard input and output, until its input ends.
pub fn serve() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\n{MAGIC} {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    )?;
    let facts = Facts::gather();
    for f in checks::all(&facts).iter().filter(|f| f.grade != Grade::Ok) {
        writeln!(out, "found {}\t{}\t{}", f.what, f.grade.word(), f.text)?;
    }
    for at in listen(&facts)? {
        writeln!(out, "at {at}")?;
    }
    writeln!(out, "ready")?;
    out.flush()?;
    let mut attempts = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line?;
        match line.split_once(' ') {
            Some(("try", place)) => attempts.extend(attempt(place)),
            _ if line == "go" => {
                for attempt in attempts.drain(..) {
                    writeln!(out, "{}", attempt.join().unwrap_or_default())?;
                }
                writeln!(out, "done")?;
                out.flush()?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Listens on every address but loopback, in the ports that the ranks of a job would take; where, with the word.
fn listen(facts: &Facts) -> std::io::Result<Vec<String>> {
    let settings =
        Settings::read(kw_sys::environment::variable).unwrap_or_else(|_| Settings::defaults());
    let (first, last) = settings.ports(Id::Ports).unwrap_or((0, 0));
    let any = IpAddr::from([0u16; 8]);
    let listener = (first..=last)
        .find_map(|port| TcpListener::bind((any, port)).ok())
        .map_or_else(|| TcpListener::bind(("0.0.0.0", first)), Ok)?;
    let port = listener.local_addr()?.port();
    let word = greeting()?;
    let intro = word.clone();
    std::thread::spawn(move || {
        for mut met in listener.incoming().flatten() {
            let _ = met.write_all(intro.as_bytes());
        }
    });
    let usable = facts
        .interfaces
        .iter()
        .filter(|i| !i.loopback && !is_local(&i.addr));
    let at = usable.map(|i| SocketAddr::new(i.addr, port));
    Ok(at.map(|at| format!("{at} {word}")).collect())
}

/// A random word that identifies this listener.
fn greeting() -> std::io::Result<String> {
    let mut bytes = [0u8; GREETING / 2];
    kw_sys::random::fill(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Addresses that are valid only together with an interface.
fn is_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(a) if a.segments()[0] & 0xffc0 == 0xfe80)
}

/// Tries to connect in a thread of its own; `place`: `HOST ADDRESS:PORT WORD`. The thread returns
/// the line to write.
fn attempt(place: &str) -> Option<std::thread::JoinHandle<String>> {
    let (place, word) = place.rsplit_once(' ')?;
    let (_, address) = place.split_once(' ')?;
    let address = address.parse::<SocketAddr>().ok()?;
    let (place, word) = (place.to_string(), word.to_string());
    Some(std::thread::spawn(move || {
        format!("tried {place} {}", outcome(address, &word))
    }))
}

fn outcome(address: SocketAddr, word: &str) -> String {
    let greeted = TcpStream::connect_timeout(&address, CONNECT).and_then(|mut met| {
        met.set_read_timeout(Some(CONNECT))?;
        let mut intro = [0; GREETING];
        met.read_exact(&mut intro)?;
        Ok(intro == word.as_bytes())
    });
    match greeted {
        Ok(true) => "ok".into(),
        Ok(false) => "another program answers there".into(),
        Err(e) => match e.kind() {
            std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => {
                format!("no answer in {} s", CONNECT.as_secs())
            }
            _ => e.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduced(text: &str) -> (Introduction, bool) {
        let mut intro = Introduction::default();
        let ready = text.lines().any(|line| intro.hear(line));
        (intro, ready)
    }

    #[test]
    fn a_peer_is_understood_after_the_greeting_of_a_login() {
        let (intro, ready) = introduced(
            "Welcome\nat nowhere\nprompt> kw-doctor-1 0.1.0 x86_64\nfound ssh\tnote\tnot on PATH: a, b\n\
             at 10.0.0.7:4711 00ff\nat [fd00::7]:4711 00ff\nready\n",
        );
        assert!(ready);
        assert_eq!(
            (intro.version.as_str(), intro.architecture.as_str()),
            ("0.1.0", "x86_64")
        );
        assert_eq!(intro.found, [Finding::note("ssh", "not on PATH: a, b")]);
        assert_eq!(intro.at.len(), 2);
        assert!(
            !introduced("Welcome\nready").1 || introduced("Welcome\nready").0.version.is_empty()
        );
    }

    #[test]
    fn another_version_is_a_fault_and_another_architecture_is_reported() {
        let intro = |version: &str, architecture: &str| Introduction {
            version: version.into(),
            architecture: architecture.into(),
            ..Introduction::default()
        };
        let own = env!("CARGO_PKG_VERSION");
        assert_eq!(
            of_host("b", &intro(own, std::env::consts::ARCH)).grade,
            Grade::Ok
        );
        let older = of_host("b", &intro("0.0.1", std::env::consts::ARCH));
        assert!(
            older.grade == Grade::Fault && older.text.contains("0.0.1"),
            "{older:?}"
        );
        let other = of_host("b", &intro(own, "vax"));
        assert!(
            other.grade == Grade::Note && other.text.contains("vax"),
            "{other:?}"
        );
    }

    #[test]
    fn a_pair_is_well_when_one_of_its_addresses_is() {
        let all: Vec<Tried> = [
            "tried b 10.0.0.7:9 ok",
            "tried b 10.1.0.7:9 no answer in 5 s",
        ]
        .iter()
        .filter_map(|line| tried("a", line))
        .collect();
        let found = connections(&["a", "b"], &all);
        assert_eq!(found.len(), 2, "one for each direction");
        assert!(
            found[0].grade == Grade::Ok && found[0].text.contains("not 10.1.0.7"),
            "{found:?}"
        );
        let found = connections(&["a", "b"], &all[1..]);
        assert!(
            found[0].grade == Grade::Fault && found[0].text.contains("KW_PORTS"),
            "{found:?}"
        );
        assert_eq!(tried("a", "done"), None);
    }

    #[test]
    fn a_listener_is_known_by_its_greeting() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, word) = (listener.local_addr().unwrap(), greeting().unwrap());
        assert_eq!(word.len(), GREETING);
        let answers = [word.clone(), "SSH-2.0-other server".into()];
        let server = std::thread::spawn(move || {
            for answer in answers {
                listener
                    .accept()
                    .unwrap()
                    .0
                    .write_all(answer.as_bytes())
                    .unwrap();
            }
        });
        assert_eq!(outcome(at, &word), "ok");
        assert_eq!(outcome(at, &word), "another program answers there");
        server.join().unwrap();
        assert_ne!(outcome(at, &word), "ok");
    }
}
