//! Standard input for rank 0.
//!
//! A file or a pipe is given to rank 0 as it is, so nothing is read that rank 0 does not read. A terminal cannot be: rank 0
//! is not in its foreground group. Then what is typed is relayed through a pipe, for as long as we are in the foreground.

use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// The relay of a terminal.
#[derive(Debug)]
pub struct Relay {
    to: Option<OwnedFd>,
    pending: Vec<u8>,
}

/// What rank 0 gets, and the relay if there has to be one.
pub fn for_rank_0() -> std::io::Result<(OwnedFd, Option<Relay>)> {
    let stdin = rustix::stdio::stdin();
    if !std::io::stdin().is_terminal() {
        return match rustix::io::fcntl_dupfd_cloexec(stdin, 3) {
            Ok(fd) => Ok((fd, None)),
            Err(_) => Ok((nothing()?, None)),
        };
    }
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    let relay = Relay {
        to: Some(ours),
        pending: Vec::new(),
    };
    Ok((theirs, Some(relay)))
}

/// An input that is at its end.
pub fn nothing() -> std::io::Result<OwnedFd> {
    Ok(std::fs::File::open("/dev/null")?.into())
}

impl Relay {
    /// Whether the terminal should be watched now.
    pub fn wants_input(&self) -> bool {
        self.to.is_some() && self.pending.is_empty() && in_foreground()
    }

    /// The terminal is readable: passes on what was typed.
    pub fn on_input(&mut self) {
        let mut some = [0u8; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut some) {
            Ok(0) => self.to = None,
            Ok(n) => {
                self.pending.extend_from_slice(&some[..n]);
                self.push();
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.to = None,
        }
    }

    /// Tries to hand on what is pending.
    pub fn push(&mut self) {
        let Some(to) = &self.to else { return };
        match rustix::io::write(to, &self.pending) {
            Ok(n) => drop(self.pending.drain(..n)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.to = None,
        }
    }

    /// Whether something waits for rank 0 to read.
    pub fn is_pending(&self) -> bool {
        self.to.is_some() && !self.pending.is_empty()
    }
}

fn in_foreground() -> bool {
    let stdin = rustix::stdio::stdin();
    rustix::termios::tcgetpgrp(stdin.as_fd()).is_ok_and(|g| g == rustix::process::getpgrp())
}
