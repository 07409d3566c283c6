//! The addresses on which a rank listens, and their text for others: the same for every path over a
//! network.

use kw_sys::netif::Interface;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Most addresses that are published or tried.
const MAX_ADDRESSES: usize = 8;

/// Interfaces that lead to virtual machines or containers of the same host only.
const LOCAL_ONLY: &[&str] = &[
    "docker", "virbr", "br-", "veth", "cni", "flannel", "lxc", "podman",
];

/// Chooses the addresses to listen on. `text` is a comma separated list: `auto`, names of
/// interfaces, addresses, networks (`10.77.0.0/24`). An entry that begins with `!` is excluded; a
/// list of only such entries excludes them from `auto`.
pub fn choose(text: &str, single_host: bool, all: &[Interface]) -> Result<Vec<IpAddr>, Misnamed> {
    let words = || text.split(',').map(str::trim).filter(|w| !w.is_empty());
    let mut left = all.to_vec();
    for word in words().filter_map(|w| w.strip_prefix('!')) {
        let out = Word::read(word)?;
        left.retain(|i| !out.is(i));
    }
    let auto = || match single_host && left.iter().any(|i| i.loopback) {
        true => automatic(true, &left),
        false => automatic(false, &left),
    };
    let mut chosen = Vec::new();
    let mut named = words().filter(|w| !w.starts_with('!')).peekable();
    match (named.peek(), words().next()) {
        (None, None) => return Err(Misnamed::Empty),
        (None, Some(_)) => chosen = auto(),
        (Some(_), _) => {}
    }
    for word in named {
        let before = chosen.len();
        match word {
            "auto" => chosen.extend(auto()),
            _ => chosen.extend(Word::read(word)?.of(&left)),
        }
        if chosen.len() == before {
            return Err(Misnamed::Absent {
                word: word.to_string(),
                here: names(&left),
            });
        }
    }
    // `auto` falls back to loopback, which may be excluded or missing
    if text.contains('!') {
        chosen.retain(|a| left.iter().any(|i| i.addr == *a));
    }
    match chosen.is_empty() {
        true => Err(Misnamed::NothingLeft {
            text: text.to_string(),
            here: names(all),
        }),
        false => Ok(tidy(chosen)),
    }
}

/// Error in `KW_INTERFACES`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misnamed {
    /// It is not the name of anything here.
    #[error("KW_INTERFACES is empty; leave it out or say auto")]
    Empty,
    /// A word with a slash.
    #[error("KW_INTERFACES names '{0}', which is not a network such as 10.77.0.0/24 or fd77::/64")]
    NoNetwork(String),
    /// A word of digits.
    #[error("KW_INTERFACES names '{0}', which is neither an address nor an interface")]
    NoName(String),
    /// An entry that this host does not have.
    #[error("KW_INTERFACES names '{word}', but this host has {here}")]
    Absent {
        /// The word.
        word: String,
        /// Interfaces and addresses of this host.
        here: String,
    },
    /// All is left out.
    #[error("KW_INTERFACES is '{text}', which leaves out all that this host has: {here}")]
    NothingLeft {
        /// The setting.
        text: String,
        /// Interfaces and addresses of this host.
        here: String,
    },
}

/// Meaning of a word of `KW_INTERFACES`.
enum Word<'a> {
    Name(&'a str),
    Address(IpAddr),
    /// An address in it, and how many of its first bits count.
    Network(IpAddr, u8),
}

impl Word<'_> {
    fn read(word: &str) -> Result<Word<'_>, Misnamed> {
        if let Ok(addr) = word.parse() {
            return Ok(Word::Address(addr));
        }
        if let Some((addr, bits)) = word.split_once('/') {
            let network = addr.parse::<IpAddr>().ok().zip(bits.parse::<u8>().ok());
            return match network {
                Some((a, n)) if n <= if a.is_ipv4() { 32 } else { 128 } => Ok(Word::Network(a, n)),
                _ => Err(Misnamed::NoNetwork(word.to_string())),
            };
        }
        let digits = |c: char| c.is_ascii_digit() || c == '.' || c == ':';
        match word.is_empty() || word.chars().all(digits) {
            true => Err(Misnamed::NoName(word.to_string())),
            false => Ok(Word::Name(word)),
        }
    }

    fn is(&self, i: &Interface) -> bool {
        match *self {
            Word::Name(name) => i.name == name,
            Word::Address(addr) => i.addr == addr,
            Word::Network(network, bits) => within(i.addr, network, bits),
        }
    }

    /// The addresses that it names; for an interface only those that are valid beyond its link.
    fn of(&self, all: &[Interface]) -> Vec<IpAddr> {
        let hits = all.iter().filter(|i| self.is(i)).map(|i| i.addr);
        let useful = |a: &IpAddr| match self {
            Word::Name(_) => !link_local(*a),
            // an IPv6 address of a link cannot be reached without the link's number
            Word::Network(..) => a.is_ipv4() || !link_local(*a),
            Word::Address(_) => true,
        };
        hits.filter(useful).collect()
    }
}

fn within(addr: IpAddr, network: IpAddr, bits: u8) -> bool {
    let number = |a: IpAddr| match a {
        IpAddr::V4(a) => u128::from(a.to_bits()) << 96,
        IpAddr::V6(a) => a.to_bits(),
    };
    let other = number(addr) ^ number(network);
    addr.is_ipv4() == network.is_ipv4()
        && other.checked_shr(128 - u32::from(bits)).unwrap_or(0) == 0
}

fn automatic(single_host: bool, all: &[Interface]) -> Vec<IpAddr> {
    let loopback = || {
        let at = |v4: bool| {
            all.iter()
                .find(move |i| i.loopback && i.addr.is_ipv4() == v4)
                .map(|i| i.addr)
        };
        at(true)
            .or(at(false))
            .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    };
    if single_host {
        return vec![loopback()];
    }
    let outside = |i: &&Interface| !i.loopback && !link_local(i.addr);
    let useful = |i: &&Interface| !LOCAL_ONLY.iter().any(|p| i.name.starts_with(p));
    let mut chosen: Vec<_> = all
        .iter()
        .filter(outside)
        .filter(useful)
        .map(|i| i.addr)
        .collect();
    if chosen.is_empty() {
        chosen = all.iter().filter(outside).map(|i| i.addr).collect();
    }
    if chosen.is_empty() {
        chosen.push(loopback());
    }
    tidy(chosen)
}

fn link_local(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(a) => a.is_link_local(),
        IpAddr::V6(a) => a.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Sorts and cuts the list: IPv4 first, no address twice, not too many.
fn tidy(mut chosen: Vec<IpAddr>) -> Vec<IpAddr> {
    chosen.sort();
    chosen.dedup();
    chosen.truncate(MAX_ADDRESSES);
    chosen
}

fn names(all: &[Interface]) -> String {
    let list: Vec<_> = all
        .iter()
        .map(|i| format!("{} ({})", i.name, i.addr))
        .collect();
    list.join(", ")
}

/// The text that other ranks are given.
pub fn to_text(at: &[SocketAddr]) -> String {
    let list: Vec<_> = at.iter().map(|a| a.to_string()).collect();
    list.join(",")
}

/// The addresses as text; addresses of the second and further interfaces end with `#` and the
/// interface's number, so that others know which are addresses of one link.
pub fn to_text_by_interface(at: &[SocketAddr], all: &[Interface]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut number = |a: &SocketAddr| {
        let interface = all.iter().find(|i| i.addr == a.ip());
        let name = interface.map_or("", |i| i.name.as_str());
        let known = names.iter().position(|n| *n == name);
        known.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        })
    };
    let word = |a| match number(a) {
        0 => a.to_string(),
        n => format!("{a}#{n}"),
    };
    at.iter().map(word).collect::<Vec<_>>().join(",")
}

/// Puts a host's name before such a text, if it can stand there.
pub fn with_host(name: &str, text: String) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    match !name.is_empty() && name.len() <= 64 && name.chars().all(plain) {
        true => format!("{name}={text}"),
        false => text,
    }
}

/// Contents of such a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Name of the rank's host; empty: it does not say.
    pub host: String,
    /// Where it listens, and which of its host's interfaces each address belongs to. Empty: it was
    /// not asked yet.
    at: Vec<(SocketAddr, u8)>,
}

impl Known {
    /// Reads such a text.
    pub fn read(text: &str) -> Result<Known, NoAddress> {
        let (host, list) = text.split_once('=').unwrap_or(("", text));
        let at = list.split(',').take(MAX_ADDRESSES).map(read_word);
        Ok(Known {
            host: host.to_string(),
            at: at.collect::<Result<_, _>>()?,
        })
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// All addresses.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.at.iter().map(|a| a.0)
    }

    /// Whether it listens on several interfaces.
    pub fn has_links(&self) -> bool {
        self.at.iter().any(|a| a.1 != self.at[0].1)
    }

    /// Number of the interface that has this address.
    pub fn interface_of(&self, address: IpAddr) -> Option<u8> {
        let found = self.at.iter().find(|a| a.0.ip() == address);
        found.map(|a| a.1)
    }
}

/// A peer's address text that is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("its address '{0}' is not an IP address with a port")]
pub struct NoAddress(String);

/// Reads one address, with the number of its interface.
fn read_word(word: &str) -> Result<(SocketAddr, u8), NoAddress> {
    let (word, number) = word.split_once('#').unwrap_or((word, "0"));
    let address = word.parse();
    let address = address.map_err(|_| NoAddress(word.to_string()))?;
    Ok((address, number.parse().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Vec<Interface> {
        let i = |name: &str, addr: &str, loopback| Interface {
            name: name.to_string(),
            addr: addr.parse().unwrap(),
            loopback,
        };
        vec![
            i("lo", "127.0.0.1", true),
            i("lo", "::1", true),
            i("eth0", "10.0.0.5", false),
            i("eth0", "fe80::5", false),
            i("eth1", "2001:db8::5", false),
            i("docker0", "172.17.0.1", false),
        ]
    }

    #[test]
    fn a_job_on_one_host_listens_on_loopback_only() {
        let chosen = choose("auto", true, &host()).unwrap();
        assert_eq!(chosen, vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    }

    #[test]
    fn a_job_on_several_hosts_leaves_out_what_leads_nowhere() {
        let chosen = choose("auto", false, &host()).unwrap();
        assert_eq!(to_words(&chosen), ["10.0.0.5", "2001:db8::5"]);
    }

    fn to_words(list: &[IpAddr]) -> Vec<String> {
        list.iter().map(|a| a.to_string()).collect()
    }

    #[test]
    fn a_list_names_interfaces_or_addresses_and_errors_say_what_there_is() {
        let chosen = choose("eth1, 127.0.0.1", false, &host()).unwrap();
        assert_eq!(to_words(&chosen), ["127.0.0.1", "2001:db8::5"]);
        let e = choose("ib0", false, &host()).unwrap_err().to_string();
        assert!(e.contains("'ib0'") && e.contains("eth0 (10.0.0.5)"), "{e}");
    }

    #[test]
    fn networks_are_chosen_and_left_out() {
        let with = |text, single| choose(text, single, &host()).map(|c| to_words(&c));
        for (text, chosen) in [
            ("10.0.0.0/24", &["10.0.0.5"][..]),
            ("10.0.0.77/8", &["10.0.0.5"]),
            ("2001:db8::/32", &["2001:db8::5"]),
            ("10.0.0.5/32,2001:db8::5/128", &["10.0.0.5", "2001:db8::5"]),
            ("0.0.0.0/0,!127.0.0.0/8,!docker0", &["10.0.0.5"]),
            ("!eth1", &["10.0.0.5"]),
            ("auto,!10.0.0.0/8", &["2001:db8::5"]),
            ("!10.0.0.0/8,!2001:db8::/32", &["172.17.0.1"]),
            ("!ib7", &["10.0.0.5", "2001:db8::5"]),
            ("172.16.0.0/12", &["172.17.0.1"]),
        ] {
            assert_eq!(with(text, false).unwrap(), chosen, "{text}");
        }
        assert_eq!(with("!docker0", true).unwrap(), ["127.0.0.1"]);
        assert_eq!(with("!127.0.0.1", true).unwrap(), ["::1"]);
    }

    #[test]
    fn what_cannot_be_chosen_is_named() {
        for (text, what) in [
            ("10.0.0.0/33", "'10.0.0.0/33', which is not a network"),
            ("eth0,!10.0.0/8", "'10.0.0/8', which is not a network"),
            ("fd77::/129", "'fd77::/129', which is not a network"),
            ("!10.0.0.300", "'10.0.0.300', which is neither"),
            ("!", "'', which is neither"),
            ("192.168.0.0/16", "'192.168.0.0/16', but this host has lo"),
            ("eth0,!eth0", "'eth0', but this host has lo"),
            ("!0.0.0.0/0,!::/0", "leaves out all that this host has: lo"),
            (" ,", "is empty"),
        ] {
            let e = choose(text, false, &host()).unwrap_err().to_string();
            assert!(e.contains(what), "{text}: {e}");
        }
    }

    #[test]
    fn addresses_survive_their_text() {
        let at: Vec<SocketAddr> = vec![
            "10.0.0.5:99".parse().unwrap(),
            "[2001:db8::5]:7".parse().unwrap(),
        ];
        let known = Known::read(&to_text(&at)).unwrap();
        assert!(known.addresses().eq(at));
        assert!(Known::read("nonsense").is_err());
    }

    #[test]
    fn the_text_tells_which_addresses_are_of_one_interface() {
        let i = |name: &str, addr: &str| Interface {
            name: name.to_string(),
            addr: addr.parse().unwrap(),
            loopback: false,
        };
        let all = [
            i("eth0", "10.0.0.5"),
            i("eth1", "10.1.0.5"),
            i("eth0", "2001:db8::5"),
        ];
        let at: Vec<SocketAddr> = ["10.0.0.5:99", "10.1.0.5:98", "[2001:db8::5]:97"]
            .map(|a| a.parse().unwrap())
            .to_vec();
        let text = to_text_by_interface(&at, &all);
        assert_eq!(text, "10.0.0.5:99,10.1.0.5:98#1,[2001:db8::5]:97");
        let named = with_host("node-1.example", text.clone());
        for (text, host) in [(&text, ""), (&named, "node-1.example")] {
            let known = Known::read(text).unwrap();
            assert_eq!(known.host, host);
            assert!(known.addresses().eq(at.clone()));
            let interfaces = at.iter().map(|a| known.interface_of(a.ip()));
            assert_eq!(interfaces.collect::<Vec<_>>(), [Some(0), Some(1), Some(0)]);
        }
        assert_eq!(with_host("a b,=", text.clone()), text);
    }
}
