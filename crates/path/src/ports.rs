//! The ports on which a rank listens (`KW_PORTS`): the same for every path over a network.

use crate::NoPort;
use std::io::{self, ErrorKind};

/// Any port, or the first free one of a range that the ranks of a host share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// First and last; `None`: any port.
    pub range: Option<(u16, u16)>,
    /// Ranks of the job on this host.
    pub ranks: u32,
    /// This one's index among them; each begins with another port.
    pub index: u32,
}

impl Ports {
    /// Result of `open` for the first free port; it is given zero if the system chooses.
    pub fn open<T>(&self, mut open: impl FnMut(u16) -> io::Result<T>) -> Result<T, NoPort> {
        let Some((first, last)) = self.range else {
            return open(0).map_err(NoPort::Any);
        };
        let count = u32::from(last.saturating_sub(first)) + 1;
        for i in 0..count {
            let port = first + ((self.index % count + i) % count) as u16;
            match open(port) {
                Err(e) if e.kind() == ErrorKind::AddrInUse => {}
                done => return done.map_err(|e| NoPort::Refused(port, e)),
            }
        }
        Err(NoPort::Taken {
            first,
            last,
            ranks: self.ranks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(index: u32, range: Option<(u16, u16)>, taken: &[u16]) -> Result<u16, String> {
        let ports = Ports {
            range,
            ranks: 4,
            index,
        };
        let free = ports.open(|port| match taken.contains(&port) {
            true => Err(ErrorKind::AddrInUse.into()),
            false => Ok(port),
        });
        free.map_err(|why| why.to_string())
    }

    #[test]
    fn a_rank_takes_a_free_port_of_the_range() {
        assert_eq!(at(3, None, &[]), Ok(0));
        let range = Some((65533, 65535));
        assert_eq!(at(1, range, &[]), Ok(65534));
        assert_eq!(at(1, range, &[65534, 65535]), Ok(65533));
        let full = at(1, range, &[65533, 65534, 65535]).unwrap_err();
        assert!(full.contains("65533-65535, are in use"), "{full}");
        assert!(full.contains("the job's 4 ranks on this host"), "{full}");
    }
}
