//! Plans of collectives between the groups of an intercommunicator.

use super::{Circle, Run};
use crate::engine::Engine;
use kw_coll::inter::{Emit, InterAsk};
use kw_coll::{Ask, Coll};

impl Engine {
    /// As [`Engine::plan`]; the circle's members are the ranks of both groups.
    pub fn plan_inter(&mut self, circle: Circle, emit: Emit, ask: &InterAsk) -> Box<Run> {
        if self.collectives.choosing.is_none() {
            self.open_collectives();
        }
        let collectives = &mut self.collectives;
        let mut run = Box::<Run>::default();
        if let Some(choosing) = &collectives.choosing {
            let choose =
                |coll: Coll, bytes: u64, part: &Ask<'_>| choosing.choose(None, coll, bytes, part);
            emit(ask, &choose, &mut run.work().schedule);
        }
        run.circle = Some(circle);
        run
    }
}
