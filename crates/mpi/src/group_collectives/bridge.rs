//! Small collectives among the members of two groups, of which only the leaders communicate with
//! each other.

use super::{
    Members, Purpose, agree_among_jobs, finish_all, offered, propose, recv, start_send, take_back,
};
use kw_base::{ContextId, Peer};
use kw_objects::error::{Fault, Res};

/// The leaders of two groups, as one of them (or another member of its group) sees it.
#[derive(Clone, Debug)]
pub struct Bridge<'a> {
    /// This process's group, counted from its leader.
    pub local: Members<'a>,
    /// Context of the leaders' messages.
    pub context: ContextId,
    /// Their tag.
    pub purpose: Purpose,
    /// The leader's name. Only the leader reads this and the next field.
    pub mine: u32,
    /// The other leader's name and peer.
    pub other: (u32, Peer),
    /// Whether this side comes first, if one must.
    pub first: bool,
    /// Whether the processes of both groups belong to several jobs.
    pub spans: bool,
}

impl Bridge<'_> {
    /// Exchanges bytes of both sides, which only the leader needs to know; all members of both get
    /// those of the other side. `theirs`: number of bytes to expect.
    pub fn swap(&self, mine: &[u8], theirs: usize) -> Res<Vec<u8>> {
        let mut got = vec![0; theirs];
        self.by_leader(&mut got, |got| self.exchange(mine, got))?;
        Ok(got)
    }

    /// The leader alone acts; all members of its group get these bytes of it. If it fails all fail, and
    /// none waits for it.
    fn by_leader(&self, bytes: &mut [u8], act: impl FnOnce(&mut [u8]) -> Res) -> Res {
        let done = match self.local.rank {
            0 => act(bytes),
            _ => Ok(()),
        };
        let code = done.as_ref().err().map_or(0, |fault| fault.code.max(1));
        let mut all = [&code.to_ne_bytes()[..], &*bytes].concat();
        self.local.bcast(&mut all)?;
        done?;
        let code = i32::from_ne_bytes(all[..4].try_into().expect("four bytes"));
        if code != 0 {
            let text = "the leaders of the two groups cannot exchange messages";
            return Err(Fault::of_code(code, text));
        }
        bytes.copy_from_slice(&all[4..]);
        Ok(())
    }

    /// What the leaders alone do.
    fn exchange(&self, mine: &[u8], theirs: &mut [u8]) -> Res {
        let mpi = self.local.mpi;
        let sent = start_send(
            mpi,
            self.other.1,
            (self.context, self.purpose, self.mine),
            mine,
        )?;
        recv(mpi, self.other, (self.context, self.purpose), theirs)?;
        finish_all(mpi, sent.into_iter().collect())
    }

    /// [`Bridge::swap`] for data of any length.
    pub fn swap_any(&self, mine: &[u8]) -> Res<Vec<u8>> {
        let len = self.swap(&(mine.len() as u64).to_ne_bytes(), 8)?;
        let mut word = [0; 8];
        word.copy_from_slice(&len);
        self.swap(mine, u64::from_ne_bytes(word) as usize)
    }

    /// The maximum over the members of both groups.
    fn most(&self, mine: u32) -> Res<u32> {
        let ours = self.local.most_at_leader(mine)?;
        let mut word = [0; 4];
        self.by_leader(&mut word, |most| {
            let mut theirs = [0; 4];
            self.exchange(&ours.to_ne_bytes(), &mut theirs)?;
            most.copy_from_slice(&u32::from_ne_bytes(theirs).max(ours).to_ne_bytes());
            Ok(())
        })?;
        Ok(u32::from_ne_bytes(word))
    }

    /// Whether all members of both groups give yes.
    pub fn all(&self, yes: bool) -> Res<bool> {
        Ok(self.most(!yes as u32)? == 0)
    }

    /// The context id of a new communicator of both groups.
    pub fn agree(&self) -> Res<ContextId> {
        if self.spans {
            let most = |wanted| self.most(wanted);
            return agree_among_jobs(self.local.mpi, ContextId(0), most, |yes| self.all(yes));
        }
        loop {
            let mut word = u32::MAX.to_ne_bytes();
            if self.local.rank == 0 && self.first {
                word = propose(self.local.mpi).to_ne_bytes();
            }
            let theirs = self.swap(&word, 4)?;
            if self.first {
                self.local.bcast(&mut word)?;
            } else {
                word.copy_from_slice(&theirs);
            }
            let proposal = offered(u32::from_ne_bytes(word))?;
            if proposal.fresh {
                return Ok(proposal.id);
            }
            let free = self
                .local
                .mpi
                .lock()
                .above
                .comms
                .context_is_free(proposal.id);
            if self.all(free)? {
                return Ok(proposal.id);
            }
            if self.local.rank == 0 && self.first {
                take_back(self.local.mpi, proposal);
            }
        }
    }
}
