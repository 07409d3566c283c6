//! KW_CHECK=1: before a collective the ranks compare what they say (`kw_engine::Preface`). `record` is what one rank says,
//! `judge` finds two who contradict each other, `say` turns the arguments of a call into a record.

mod judge;
mod record;
mod say;

pub(super) use record::{FORM, LATER, PERSISTENT};

use super::call::Call;
use super::plan::Plan;
use crate::calls::p2p::running;
use crate::error::Res;
use crate::handle::CommH;
use crate::objects::comm::Comm;
use crate::state::{Mpi, State};
use kw_engine::{Circle, Preface, Run};

/// Puts the comparison in front of a planned call. A rank whose arguments were refused tells the others so, who would wait
/// for it in vain.
#[cold]
pub(super) fn before(state: &mut State, call: &Call, comm: CommH, planned: Plan) -> Plan {
    let c = state.above.comm(comm)?;
    let mut record = say::head(c, say::name(call));
    match planned {
        Ok(mut run) => {
            say::arguments(&state.above, c, call, &mut record)?;
            run.begin_with(Preface::new(record.to_bytes(), judge::judge));
            Ok(run)
        }
        Err(fault) => {
            (record.refused, record.detail) = (fault.code, fault.text.clone());
            let mut run = idle(state, comm)?;
            run.begin_with(Preface::new(record.to_bytes(), judge::judge));
            let (engine, _) = running(state)?;
            let told = engine.launch(run);
            engine.release(told);
            Err(fault)
        }
    }
}

/// A call that is not planned here (it makes a communicator): all ranks say its name.
pub(crate) fn agree(mpi: &Mpi, comm: CommH, name: &str) -> Res {
    if !mpi.lock().above.checking {
        return Ok(());
    }
    super::block(mpi, comm, |state| {
        let record = say::head(state.above.comm(comm)?, name);
        let mut run = idle(state, comm)?;
        run.begin_with(Preface::new(record.to_bytes(), judge::judge));
        Ok(run)
    })
}

/// A run that does nothing, of all ranks of the communicator.
fn idle(state: &mut State, comm: CommH) -> Plan {
    let (_, tables) = running(state)?;
    let circle = circle(tables.comm_mut(comm)?);
    Ok(Box::new(Run::idle(circle)))
}

fn circle(comm: &mut Comm) -> Circle {
    if comm.is_inter() {
        return super::inter::circle(comm);
    }
    super::plan::circle(comm)
}
