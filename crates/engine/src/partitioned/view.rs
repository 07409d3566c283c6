//! Descriptions of partitioned operations for users; not used while messages are transferred.

use super::Partitioned;
use super::op::{Op, Side};
use super::setup::{SETUP_LEN, SETUP_TAG, Setup};
use crate::messages::ReqId;
use kw_base::Peer;
use kw_hang::{Early, Kind, Wait};
use kw_proto::p2p::Unreceived;
use kw_sys::buf::Buf;

impl Partitioned {
    /// Condition of the operation of this request, if it is a partitioned one.
    pub(crate) fn wait_of(&self, req: ReqId) -> Option<Wait> {
        let mut ops = self.ops.iter().map(|(_, op)| op);
        ops.find(|op| op.active == Some(req)).map(wait)
    }

    /// Sends whose setup was taken in, but that no receive was made for.
    pub(crate) fn unreceived(&self) -> Vec<Early> {
        let mut all = Vec::new();
        for (&(context, rank), source) in &self.sources {
            let setups = source.lines.values().flat_map(|line| &line.setups);
            let Some(from) = source.from else { continue };
            all.extend(setups.map(|setup| early(from, context.0, rank, setup)));
        }
        all
    }
}

fn early(from: Peer, context: u32, source: u32, setup: &Setup) -> Early {
    Early {
        from: from.0,
        source,
        tag: setup.tag,
        context,
        bytes: setup.len(),
        partitioned: true,
    }
}

/// A message without a receive that is the setup of a partitioned send, as that send.
pub(crate) fn setup_of(message: &Unreceived<'_, Buf>) -> Option<Early> {
    let payload = message.payload.filter(|_| message.env.tag == SETUP_TAG)?;
    let mut bytes = [0; SETUP_LEN];
    if payload.len() != SETUP_LEN as u64 {
        return None;
    }
    payload.read(0, &mut bytes);
    let setup = Setup::decode(&bytes)?;
    let (env, from) = (message.env, message.from);
    Some(early(from, env.context, env.source, &setup))
}

fn wait(op: &Op) -> Wait {
    let tag = op.setup.map(|s| s.tag);
    let bytes = op.buf.len();
    match &op.side {
        Side::Recv { want, .. } => Wait {
            kind: Kind::PartReceive,
            peer: want.source.map(|s| s.1.0),
            source: want.source.map(|s| s.0),
            tag: want.tag,
            context: want.context.0,
            bytes,
        },
        Side::Send {
            to, context, waits, ..
        } => Wait {
            kind: match waits.iter().any(|&left| left > 0) {
                true => Kind::Ready,
                false => Kind::PartSend,
            },
            peer: Some(to.0),
            source: None,
            tag,
            context: context.0,
            bytes,
        },
    }
}
