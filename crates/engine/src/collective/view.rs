//! Descriptions of collectives for users when nothing progresses.

use super::channel::{ChannelId, Watch};
use super::run::{Run, State};
use super::{Collectives, Running};
use crate::messages::ReqId;
use kw_base::ContextId;

/// A collective that is active in the background.
#[derive(Debug)]
pub(crate) struct RunView {
    /// Its request.
    pub req: ReqId,
    /// Context of the communicator's collectives, and which call it is.
    pub place: (ContextId, i32),
    /// Its condition on a shm region.
    pub watch: Option<Watch>,
    /// Its transfers that have not been taken.
    pub flights: Vec<ReqId>,
    /// It waits for a function of the user.
    pub wants_user: bool,
}

impl Watch {
    /// The channel that it is about.
    pub fn channel(self) -> ChannelId {
        self.channel
    }
}

impl Collectives {
    /// The collectives that are active in the background.
    #[cold]
    pub(crate) fn views(&self) -> Vec<RunView> {
        let runs = self.running.each();
        runs.filter_map(|(req, run)| view(req, run)).collect()
    }
}

fn view(req: ReqId, run: &Run) -> Option<RunView> {
    let comm_view = run.comm_view.as_ref()?;
    Some(RunView {
        req,
        place: (comm_view.context, comm_view.tag),
        watch: run.waits_on(),
        flights: run.flights().iter().filter_map(|f| f.req).collect(),
        wants_user: matches!(run.state, State::WantsUser | State::InUser),
    })
}

impl Running {
    fn each(&self) -> impl Iterator<Item = (ReqId, &Run)> {
        self.all().iter().map(|(req, run)| (*req, &**run))
    }
}
