//! Exchange between members of a group where no tree can be trusted yet, because they may not mean
//! the same group.

use super::{Members, finish, received, start_recv};
use kw_engine::{Engine, ReqId, WaitOn};
use kw_objects::error::Res;
use kw_sys::buf::Buf;

/// A message that another member owes.
struct Owed {
    from: u32,
    /// Whether it is the other member's first.
    first: bool,
    id: ReqId,
    buf: Buf,
}

impl Members<'_> {
    /// Every member sends `mine` to every other, and sends it again when it has received those of
    /// all and agrees. The first objection that `objects` raises to another's data (all have the
    /// same length) is sent to all instead, and ends the comparison: otherwise a member whose group
    /// contains a process that did not call would wait for it forever.
    ///
    /// So each member sends two messages to each other. After an objection the receives of those
    /// that have not come stay posted: they take the messages when they come, and none of them is
    /// left for a later call with the same tag. An objection has the length of `mine`.
    pub fn compare(
        &self,
        mine: &[u8],
        objects: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Res<Option<Vec<u8>>> {
        let mut owed = Vec::new();
        for first in [true, false] {
            for from in self.others() {
                owed.push(self.listen(from, first, mine.len())?);
            }
        }
        self.tell_others(mine)?;
        let mut reported = false;
        while !owed.is_empty() {
            let (first, words) = self.hear(&mut owed, mine.len())?;
            if let Some(objection) = objects(&words) {
                if !reported {
                    self.tell_others(&objection)?;
                }
                self.leave_receives(owed);
                return Ok(Some(objection));
            }
            if first && !owed.iter().any(|o| o.first) {
                self.tell_others(mine)?;
                reported = true;
            }
        }
        Ok(None)
    }

    fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let me = self.rank;
        (0..self.size()).filter(move |&r| r != me)
    }

    fn tell_others(&self, bytes: &[u8]) -> Res {
        for to in self.others() {
            let sent = self.send(to, bytes)?;
            if let (Some(id), Some(engine)) = (sent, &mut self.mpi.lock().engine) {
                engine.messages.requests_mut().release(id);
            }
        }
        Ok(())
    }

    fn listen(&self, from: u32, first: bool, len: usize) -> Res<Owed> {
        let buf = Buf::alloc(len);
        let what = (self.context, self.purpose);
        let id = start_recv(self.mpi, self.member(from), what, &buf)?;
        Ok(Owed {
            from,
            first,
            id,
            buf,
        })
    }

    /// Waits for one of them.
    fn hear(&self, owed: &mut Vec<Owed>, len: usize) -> Res<(bool, Vec<u8>)> {
        let ids: Vec<ReqId> = owed.iter().map(|o| o.id).collect();
        let on = WaitOn {
            requests: &ids,
            ..WaitOn::default()
        };
        let come = |e: &Engine| ids.iter().position(|&id| e.messages.requests().is_done(id));
        let guard = self.mpi.lock.wait(self.mpi.lock(), on, |inner| {
            let engine = inner.engine.as_ref();
            engine.is_none_or(|e| come(e).is_some())
        });
        let at = guard.engine.as_ref().and_then(come);
        drop(guard);
        let o = owed.swap_remove(at.unwrap_or(0));
        let peer = self.member(o.from).1;
        let outcome = finish(self.mpi, o.id, Some(peer))?;
        let mut words = vec![0; len];
        received(peer, outcome, &o.buf, &mut words)?;
        Ok((o.first, words))
    }

    /// No thread waits for these, and their memory lives as long as they do.
    fn leave_receives(&self, owed: Vec<Owed>) {
        let mut guard = self.mpi.lock();
        let Some(engine) = &mut guard.engine else {
            return;
        };
        for o in owed {
            engine.messages.requests_mut().release(o.id);
        }
    }
}
