//! Standard input for rank 0, or the debugged rank.
//!
//! Rank 0 inherits a file or a pipe directly, so nothing is read that rank 0 does not read. It
//! cannot inherit a terminal, because it is not in its foreground group: typed input is relayed
//! through a pipe, as long as we are in the foreground. A rank 0 on another host is sent the input,
//! one piece after the other.

use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::ranks::{Source, watch};

/// Destination of a relay.
#[derive(Debug)]
enum To {
    /// Rank 0's pipe, with the data that waits for room there.
    Pipe(OwnedFd, Vec<u8>),
    /// Another host; whether it still has the last piece.
    Away { busy: bool },
    /// None any more.
    Discard,
}

/// The relay of a terminal, or to another host; or none.
#[derive(Debug)]
pub struct Relay {
    to: To,
    /// Whether our standard input is watched.
    watched: bool,
}

/// Our own standard input.
pub fn own() -> std::io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?)
}

/// Standard input of the reading rank, and the relay.
pub fn for_rank() -> std::io::Result<(OwnedFd, Relay)> {
    if !std::io::stdin().is_terminal() {
        return match own() {
            Ok(fd) => Ok((fd, Relay::none())),
            Err(_) => Ok((nothing()?, Relay::none())),
        };
    }
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((theirs, Relay::new(To::Pipe(ours, Vec::new()))))
}

/// An input that is at its end.
pub fn nothing() -> std::io::Result<OwnedFd> {
    Ok(std::fs::File::open("/dev/null")?.into())
}

impl Relay {
    fn new(to: To) -> Relay {
        Relay { to, watched: false }
    }

    /// A relay without a destination.
    pub fn none() -> Relay {
        Relay::new(To::Discard)
    }

    /// A relay for a rank 0 on another host.
    pub fn away() -> Relay {
        Relay::new(To::Away { busy: false })
    }

    /// Watches our standard input while it is wanted. Returns whether it can be read now: a file
    /// cannot be watched, and can always be read; a closed input is at its end.
    pub fn watch(&mut self, epoll: &OwnedFd) -> bool {
        let wants = self.wants_input();
        if wants == self.watched {
            return false;
        }
        let stdin = rustix::stdio::stdin();
        let done = match wants {
            true => watch(epoll, stdin, Source::Input),
            false => epoll::delete(epoll, stdin),
        };
        self.watched = wants && done.is_ok();
        wants && done.is_err()
    }

    /// Whether our standard input should be watched now.
    fn wants_input(&self) -> bool {
        let ready = match &self.to {
            To::Pipe(_, pending) => pending.is_empty(),
            To::Away { busy } => !busy,
            To::Discard => false,
        };
        ready && (!std::io::stdin().is_terminal() || in_foreground())
    }

    /// Standard input is readable: forwards its contents. Returns the data for another host, empty
    /// at the end.
    pub fn on_input(&mut self) -> Option<Vec<u8>> {
        let mut some = [0u8; 32768];
        let read = match rustix::io::read(rustix::stdio::stdin(), &mut some) {
            Err(Errno::INTR | Errno::AGAIN) => return None,
            read => read.unwrap_or(0),
        };
        match &mut self.to {
            To::Pipe(_, pending) if read > 0 => {
                pending.extend_from_slice(&some[..read]);
                self.push();
                None
            }
            To::Away { busy } if read > 0 => {
                *busy = true;
                Some(some[..read].to_vec())
            }
            To::Away { .. } => {
                self.to = To::Discard;
                Some(Vec::new())
            }
            _ => {
                self.to = To::Discard;
                None
            }
        }
    }

    /// Notes that the other host has passed the last piece on.
    pub fn on_taken(&mut self) {
        if let To::Away { busy } = &mut self.to {
            *busy = false;
        }
    }

    /// Tries to pass pending data on.
    pub fn push(&mut self) {
        let To::Pipe(to, pending) = &mut self.to else {
            return;
        };
        match rustix::io::write(to, pending) {
            Ok(n) => drop(pending.drain(..n)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.to = To::Discard,
        }
    }

    /// Whether data waits for rank 0 to read.
    pub fn is_pending(&self) -> bool {
        matches!(&self.to, To::Pipe(_, pending) if !pending.is_empty())
    }
}

fn in_foreground() -> bool {
    let stdin = rustix::stdio::stdin();
    rustix::termios::tcgetpgrp(stdin.as_fd()).is_ok_and(|g| g == rustix::process::getpgrp())
}
