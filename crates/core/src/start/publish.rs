//! How a rank says where it can be found, once it knows the job.

use std::collections::VecDeque;

use super::{Ask, Heard, Talk, Turn, address_key, memory_key};

/// The machine; what it is for is the address of the memory that the ranks of this host share, at ranks that join it.
#[derive(Debug)]
pub struct Publish {
    plan: VecDeque<Ask>,
}

impl Publish {
    /// A rank of a job of `size`. `listens`: a path to other hosts, and where it listens there. `leads`: it is the first of its
    /// host, and this is where its memory is. `joins`: it is another, and this is the first.
    pub fn new(
        (rank, size): (u32, u32),
        listens: Option<(&str, String)>,
        leads: Option<String>,
        joins: Option<u32>,
    ) -> Publish {
        let memory = leads.map(|value| Ask::Put {
            key: memory_key(rank),
            value,
        });
        let wire = listens.map(|(path, value)| Ask::Put {
            key: address_key(path, rank),
            value,
        });
        let fence = (size > 1).then_some(Ask::Fence);
        let get = joins.map(|lead| Ask::Get {
            from: lead,
            key: memory_key(lead),
        });
        Publish {
            plan: memory
                .into_iter()
                .chain(wire)
                .chain(fence)
                .chain(get)
                .collect(),
        }
    }
}

impl Talk for Publish {
    type Out = Option<String>;

    fn next(&mut self, heard: Heard) -> Result<Turn<Option<String>>, String> {
        Ok(match (self.plan.pop_front(), heard) {
            (Some(ask), _) => Turn::Ask(ask),
            (None, Heard::Value(memory)) => Turn::Over(Some(memory)),
            (None, Heard::Done) => Turn::Over(None),
        })
    }
}
