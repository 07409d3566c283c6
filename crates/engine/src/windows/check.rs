//! Conflicting accesses, for `KW_CHECK` ([`kw_proto::rma::Accesses`]).
//!
//! A checked window uses messages for all memory except that of its own rank. So the rank that has
//! the memory sees every access to it, each with the call of the program that made it. A conflict
//! is reported where a call can return an error: between fences and after MPI_Win_post at the rank
//! that has the memory, and under a lock at the origin of the later access, with the answer to its
//! flush or unlock.
//!
//! Memory of the origin is checked as well: memory that a get will write may not be used by
//! anything else before the get has ended.

use super::exposure::ExposedMemory;
use super::{WinId, WindowError, Windows};
use kw_base::reader::Reader;
use kw_proto::rma::{Access, AccessConflict, AccessKind, AccessNote, Accesses, During, Epochs};
use kw_sys::buf::Buf;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A call of the program, in words of the layer above.
pub type Site = Arc<[u8]>;

/// Two accesses that conflict; each sentence of it names neither call nor window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundConflict {
    /// The conflict as a sentence, with `{}` for each of the two calls.
    pub what: String,
    /// The calls.
    pub calls: [Vec<u8>; 2],
}

/// Memory of an operation that has not ended at its origin.
#[derive(Debug)]
struct OwnBuffer {
    target: u32,
    buf: Buf,
    writes: bool,
    site: Site,
}

/// Where an operation is called, in what epoch, and whether it lasts until its end is reported.
#[derive(Clone, Debug)]
struct Call {
    site: Site,
    during: During,
    lasts: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Checks {
    accesses: Accesses<Site>,
    /// The next operation of each rank.
    calls: HashMap<u32, Call>,
    /// Where this rank calls its next operation.
    site: Site,
    /// The next operation has a request, whose completion frees its memory here and ends its fetch.
    has_request: bool,
    /// Conflicts found, for this rank to report.
    found: Vec<FoundConflict>,
    /// Conflicts found, for origins of locks.
    owed: HashMap<u32, Vec<FoundConflict>>,
    reported: HashSet<(Site, Site)>,
    buffers: Vec<OwnBuffer>,
}

/// The memory of an access: the first byte of the window, the rank that has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose {
    pub base: usize,
    pub rank: u32,
}

impl Checks {
    /// A rank tells where it calls the next operation.
    pub fn called_at(&mut self, origin: u32, during: During, lasts: bool, site: &[u8]) {
        let site = site.into();
        let call = Call {
            site,
            during,
            lasts,
        };
        self.calls.insert(origin, call);
    }

    /// The call to send with the next operation, which fetches data or does not.
    pub fn call(&self, fetches: bool) -> (bool, Site) {
        (!(fetches && self.has_request), self.site.clone())
    }

    /// An operation of a rank on memory here.
    pub fn access(&mut self, whose: Whose, by: u32, kind: AccessKind, memory: &Buf) {
        let Some(call) = self.calls.get(&by).filter(|c| !c.site.is_empty()) else {
            return;
        };
        let Call {
            site,
            during,
            lasts,
        } = call.clone();
        let new = AccessNote {
            by,
            kind,
            during,
            site,
        };
        self.note(whose, &new, memory, lasts);
    }

    fn note(&mut self, whose: Whose, new: &AccessNote<Site>, memory: &Buf, keep: bool) {
        let mut found = None;
        let accesses = &mut self.accesses;
        memory.runs(0, memory.len(), &mut |at, len| {
            let bytes = (at as u64, (at + len) as u64);
            found = found.take().or(accesses.add(bytes, new, keep));
        });
        if let Some(conflict) = found {
            self.tell(whose, conflict);
        }
    }

    fn tell(&mut self, whose: Whose, conflict: AccessConflict<Site>) {
        let AccessConflict {
            first,
            end,
            earlier,
            later,
        } = conflict;
        let pair = (earlier.site.clone(), later.site.clone());
        if !self.reported.insert(pair) {
            return;
        }
        let base = whose.base as u64;
        let what = format!(
            "rank {}'s {{}} and rank {}'s {{}} access bytes {} to {} of the memory of rank {} without an order, and conflict: {}",
            earlier.by,
            later.by,
            first.wrapping_sub(base),
            end.wrapping_sub(base),
            whose.rank,
            why(earlier.kind, later.kind)
        );
        let found = FoundConflict {
            what,
            calls: [earlier.site.to_vec(), later.site.to_vec()],
        };
        match later.during {
            During::Lock if later.by != whose.rank => {
                self.owed.entry(later.by).or_default().push(found);
            }
            _ => self.found.push(found),
        }
    }

    /// Epochs of this kind have ended, or a flush has; `by`: those of this rank.
    pub fn end(&mut self, during: During, by: Option<u32>) {
        self.accesses.end(during, by);
    }

    /// The conflicts to send to an origin with the answer to its flush or unlock.
    pub fn answer(&mut self, origin: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for found in self.owed.remove(&origin).unwrap_or_default() {
            for part in [found.what.as_bytes(), &found.calls[0], &found.calls[1]] {
                bytes.extend((part.len() as u32).to_le_bytes());
                bytes.extend(part);
            }
        }
        bytes.truncate(MOST_ANSWER);
        bytes
    }

    /// Takes the conflicts that a target has sent.
    pub fn on_answer(&mut self, bytes: &[u8]) {
        let mut reader = Reader::new(bytes);
        let mut part = || Some(reader.counted()?.to_vec());
        while let (Some(what), Some(first), Some(second)) = (part(), part(), part()) {
            self.found.push(FoundConflict {
                what: String::from_utf8_lossy(&what).into_owned(),
                calls: [first, second],
            });
        }
    }
}

/// Most bytes of an answer that describes conflicts.
pub(super) const MOST_ANSWER: usize = 16 << 10;

const BUFFERS: &str = "{} has not ended, and {} uses memory of this rank that it uses, too, and that one of them writes";

fn why(a: AccessKind, b: AccessKind) -> &'static str {
    use AccessKind::{Accumulate, Load, Store};
    match (a, b) {
        (Accumulate { basic, .. }, Accumulate { basic: other, .. }) if basic != other => {
            "accumulates of different datatypes"
        }
        (Accumulate { .. }, Accumulate { .. }) => "accumulates of different operations",
        (Load | Store, _) | (_, Load | Store) => {
            "one is the rank's own use of memory that the epoch exposes"
        }
        _ => "one of them writes, and not both are accumulates",
    }
}

/// The kind of this rank's epoch, for accesses to its own memory.
pub(super) fn during(epochs: &Epochs) -> During {
    match epochs.access() {
        Access::Started(_) => During::Posted,
        Access::Locked(_) | Access::LockedAll => During::Lock,
        Access::Fence { .. } | Access::Closed => During::Fence,
    }
}

impl ExposedMemory {
    /// An operation of this rank on its own memory.
    pub fn note_own(&mut self, during: During, (kind, fetches): (AccessKind, bool), memory: &Buf) {
        let whose = self.whose();
        let Some(checks) = &mut self.checks else {
            return;
        };
        // It has ended already, except for the epoch.
        let (lasts, site) = checks.call(fetches);
        checks.called_at(whose.rank, during, lasts, &site);
        checks.access(whose, whose.rank, kind, memory);
    }

    /// A flush or unlock of a rank, or of all, ends what this rank has issued on it.
    pub fn end_own_operations(&mut self, target: Option<u32>) {
        self.free_buffers(target);
        let me = self.channel.me;
        if let Some(checks) = &mut self.checks
            && target.is_none_or(|target| target == me)
        {
            checks.end(During::Lock, Some(me));
        }
    }

    /// Notes the memory that an operation of this rank uses here; returns a sentence if another
    /// operation that has not ended uses it.
    pub fn use_buffer(
        &mut self,
        during: During,
        target: u32,
        buf: &Buf,
        writes: bool,
    ) -> Result<(), WindowError> {
        if self.checks.is_none() {
            return Ok(());
        }
        let (whose, exposes) = (self.whose(), self.area.shares_memory(buf));
        let Some(checks) = &mut self.checks else {
            return Ok(());
        };
        let mut others = checks.buffers.iter();
        let meets = |b: &&OwnBuffer| (b.writes || writes) && b.buf.shares_memory(buf);
        if let Some(other) = others.find(meets) {
            let found = FoundConflict {
                what: BUFFERS.into(),
                calls: [other.site.to_vec(), checks.site.to_vec()],
            };
            checks.found.push(found);
            return Err(WindowError::Conflict);
        }
        if checks.has_request {
            return Ok(());
        }
        let site = checks.site.clone();
        if exposes && during == During::Fence {
            let kind = own_use(writes);
            let new = AccessNote {
                by: whose.rank,
                kind,
                during,
                site: site.clone(),
            };
            checks.note(whose, &new, buf, true);
        }
        checks.buffers.push(OwnBuffer {
            target,
            buf: buf.clone(),
            writes,
            site,
        });
        Ok(())
    }

    /// The epoch of MPI_Win_post has ended.
    pub fn end_posted(&mut self) {
        if let Some(checks) = &mut self.checks {
            checks.end(During::Posted, None);
        }
    }

    /// Operations on a rank, or on all, have ended here: their memory is free.
    pub fn free_buffers(&mut self, target: Option<u32>) {
        if let Some(checks) = &mut self.checks {
            let ended = |b: &OwnBuffer| target.is_none_or(|t| t == b.target);
            checks.buffers.retain(|b| !ended(b));
        }
    }
}

fn own_use(writes: bool) -> AccessKind {
    match writes {
        true => AccessKind::Store,
        false => AccessKind::Load,
    }
}

impl Windows {
    /// Notes where the program calls the next operation; `has_request`: it has one.
    pub fn called_at(&mut self, id: WinId, site: Site, has_request: bool) {
        if let Ok(window) = self.get_mut(id)
            && let Some(checks) = &mut window.exposure.memory.checks
        {
            (checks.site, checks.has_request) = (site, has_request);
        }
    }

    /// Conflicts that have been found and not been taken.
    pub fn take_conflicts(&mut self, id: WinId) -> Vec<FoundConflict> {
        let window = self.get_mut(id).ok();
        let checks = window.and_then(|window| window.exposure.memory.checks.as_mut());
        checks.map_or_else(Vec::new, |checks| std::mem::take(&mut checks.found))
    }

    /// A message uses memory that an unfinished get writes, or that is exposed and accessed by
    /// another rank; `writes`: the message is received. Returns the conflict, with the other call.
    #[cold]
    pub fn misuse(&self, buf: &Buf, writes: bool) -> Option<FoundConflict> {
        let mut windows = self.all.iter().map(|(_, window)| window);
        windows.find_map(|window| window.exposure.memory.misuse(buf, writes))
    }
}

impl ExposedMemory {
    fn misuse(&self, buf: &Buf, writes: bool) -> Option<FoundConflict> {
        let checks = self.checks.as_ref()?;
        let mut others = checks.buffers.iter();
        let meets = |b: &&OwnBuffer| (b.writes || writes) && b.buf.shares_memory(buf);
        if let Some(other) = others.find(meets) {
            return Some(FoundConflict {
                what: BUFFERS.into(),
                calls: [other.site.to_vec(), Vec::new()],
            });
        }
        if !self.area.shares_memory(buf) {
            return None;
        }
        let new = |during| AccessNote {
            by: self.channel.me,
            kind: own_use(writes),
            during,
            site: Site::default(),
        };
        let mut found = None;
        for during in [During::Fence, During::Posted] {
            let new = new(during);
            buf.runs(0, buf.len(), &mut |at, len| {
                let bytes = (at as u64, (at + len) as u64);
                found = found.take().or(checks.accesses.find(bytes, &new));
            });
        }
        let AccessConflict { earlier, .. } = found?;
        Some(FoundConflict {
            what: format!(
                "rank {}'s {{}} has not ended, and {{}} uses the same memory of this rank, which the epoch exposes",
                earlier.by
            ),
            calls: [earlier.site.to_vec(), Vec::new()],
        })
    }
}
