//! How a rank publishes its addresses, once it knows the job.

use std::collections::VecDeque;

use super::{Heard, KvsRequest, Mismatch, Talk, Turn, address_key, memory_key};

/// Values to publish and to look up.
#[derive(Debug)]
pub struct Publish<'a> {
    /// This rank.
    pub rank: u32,
    /// Whether there are other ranks, and a second fence is needed ([`super::Agreed::here`]).
    pub fence: bool,
    /// A path to other hosts, and the address of this rank on it.
    pub listens: Option<(&'a str, String)>,
    /// This rank is the first of its host and its memory is here, but not published yet.
    pub leads: Option<String>,
    /// This rank is another one of its host.
    pub joins: Option<Joins>,
}

/// The rank whose memory a rank joins.
#[derive(Clone, Copy, Debug)]
pub struct Joins {
    /// The first rank of the host.
    pub lead: u32,
    /// Whether that rank has published it while all agreed.
    pub published: bool,
}

impl Publish<'_> {
    /// The state machine; its result is the location of the memory, at a rank that joins it.
    pub fn plan(self) -> Publishing {
        let memory = self.leads.map(|value| KvsRequest::Put {
            key: memory_key(self.rank, false),
            value,
        });
        let wire = self.listens.map(|(path, value)| KvsRequest::Put {
            key: address_key(path, self.rank),
            value,
        });
        let fence = self.fence.then_some(KvsRequest::Fence);
        let get = self.joins.map(|j| KvsRequest::Get {
            from: j.lead,
            key: memory_key(j.lead, j.published),
        });
        let puts = memory.into_iter().chain(wire);
        Publishing {
            plan: puts.chain(fence).chain(get).collect(),
        }
    }
}

/// The state machine.
#[derive(Debug)]
pub struct Publishing {
    plan: VecDeque<KvsRequest>,
}

impl Talk for Publishing {
    type Out = Option<String>;

    fn next(&mut self, heard: Heard) -> Result<Turn<Option<String>>, Mismatch> {
        Ok(match (self.plan.pop_front(), heard) {
            (Some(request), _) => Turn::Request(request),
            (None, Heard::Value(memory)) => Turn::Over(Some(memory)),
            (None, Heard::Done) => Turn::Over(None),
        })
    }
}
