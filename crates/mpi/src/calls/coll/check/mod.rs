//! KW_CHECK=1: before a collective the ranks compare their calls (`kw_engine::SignatureCheck`).
//! `record` is the data of one rank, `judge` finds two ranks that contradict each other, `say`
//! converts the arguments of a call to a record.
//!
//! Every collective call on a communicator is compared, including those that create, change or free
//! one; persistent ones when they are started. In calls of a group without a communicator of its
//! own (MPI_Comm_create_group, ..._from_group(s)) every member compares its group with every other
//! member (`among`); a different tag makes a different call, which is waited for.

mod judge;
mod record;
mod say;

pub(super) use record::{FORM, LATER, PERSISTENT};

use super::call::Call;
use super::plan::Plan;
use super::side::Side;
use crate::calls::p2p::running;
use crate::group_collectives::Members;
use kw_base::Peer;
use kw_engine::{CommView, Run, SignatureCheck};
use kw_objects::Group;
use kw_objects::comm::Comm;
use kw_objects::error::{Fault, Res};
use kw_objects::handle::CommH;
use kw_objects::state::{Mpi, State, Tables};
use kw_sys::buf::Buf;
use record::{Amount, Record};

/// Puts the comparison before a planned call. A rank whose arguments were refused reports this to
/// the others, which would otherwise wait for it forever.
#[cold]
pub(super) fn before(state: &mut State, call: &Call, comm: CommH, planned: Plan) -> Plan {
    let says =
        |tables: &Tables, c: &Comm, record: &mut Record| say::arguments(tables, c, call, record);
    compare(state, (comm, &say::name(call)), planned, says)
}

/// The comparison for a neighbourhood collective, whose sides have a block for each edge.
#[cold]
pub(super) fn along(
    state: &mut State,
    comm: CommH,
    name: &str,
    planned: Plan,
    sides: (Side, Side),
) -> Plan {
    compare(state, (comm, name), planned, |tables, c, record| {
        let around = c.topology.as_ref().and_then(|t| t.neighborhood(c.rank));
        say::along(tables, &around.unwrap_or_default(), sides, record)
    })
}

fn compare(
    state: &mut State,
    (comm, name): (CommH, &str),
    planned: Plan,
    says: impl FnOnce(&Tables, &Comm, &mut Record) -> Res,
) -> Plan {
    let c = state.above.comms.get(comm)?;
    let mut record = say::head(c, name);
    match planned {
        Ok(mut run) => {
            says(&state.above, c, &mut record)?;
            run.begin_with(SignatureCheck::new(record.to_bytes(), judge::judge));
            Ok(run)
        }
        Err(fault) => Err(refuse(state, comm, record, fault)),
    }
}

/// Reports to the others that this rank's arguments are refused.
fn refuse(state: &mut State, comm: CommH, mut record: Record, fault: Box<Fault>) -> Box<Fault> {
    (record.refused, record.detail) = (fault.code, fault.text.clone());
    let launched = alone(state, comm, &record).and_then(|run| {
        let (engine, _) = running(state)?;
        let launched = engine.launch(run);
        engine.messages.requests_mut().release(launched);
        Ok(())
    });
    launched.err().unwrap_or(fault)
}

/// Record of a call that is not planned here.
#[derive(Debug, Default)]
pub(crate) struct CheckedArguments {
    args: [u64; 3],
    /// Data for each rank.
    pairs: Vec<(Amount, Amount)>,
    text: String,
}

impl CheckedArguments {
    /// Numbers that must be the same on all ranks, and the arguments as text for people.
    pub(crate) fn same(numbers: &[i64], text: String) -> CheckedArguments {
        CheckedArguments {
            args: [record::mix(numbers), 0, 0],
            text,
            ..CheckedArguments::default()
        }
    }

    /// Numbers that must be the same in this rank's group of an intercommunicator: its first or its
    /// second.
    pub(crate) fn same_in_group(first: bool, numbers: &[i64], text: String) -> CheckedArguments {
        let hash = record::mix(numbers);
        CheckedArguments {
            args: if first { [0, hash, 0] } else { [0, 0, hash] },
            text,
            ..CheckedArguments::default()
        }
    }

    /// Number of edges to each rank, and from it.
    pub(crate) fn edges(self, edges: Vec<(usize, usize)>) -> CheckedArguments {
        let amount = |(to, from)| (Amount::edges(to), Amount::edges(from));
        let pairs = edges.into_iter().map(amount).collect();
        CheckedArguments { pairs, ..self }
    }

    /// Checks that this rank will be in a group whose members are exactly the members of the
    /// communicator that expect to be in it.
    pub(crate) fn group(all: &Group, me: Peer, group: &Group) -> CheckedArguments {
        let hash = members(&[group]);
        let ours = group.contains(me);
        let with = |peer| {
            Amount::together(if ours && group.contains(peer) {
                hash
            } else {
                0
            })
        };
        CheckedArguments {
            pairs: all.iter().map(|peer| (with(peer), with(peer))).collect(),
            text: format!(" with a group of {} processes", group.size()),
            ..CheckedArguments::default()
        }
    }
}

/// A call that is not planned here, with its arguments if they are valid: all ranks compare its
/// name, and the arguments that must be the same.
pub(crate) fn agree_on<T>(
    mpi: &Mpi,
    comm: CommH,
    name: &str,
    checked: Res<T>,
    says: impl FnOnce(&T) -> CheckedArguments,
) -> Res<T> {
    let mut guard = mpi.lock();
    if !guard.above.checking {
        return checked;
    }
    let mut record = say::head(guard.above.comms.get(comm)?, name);
    let arguments = match checked {
        Ok(arguments) => arguments,
        Err(fault) => return Err(refuse(&mut guard, comm, record, fault)),
    };
    drop(guard);
    let checked_arguments = says(&arguments);
    record.args = checked_arguments.args;
    record.detail.insert_str(0, &checked_arguments.text);
    for (pair, amounts) in record.pairs.iter_mut().zip(checked_arguments.pairs) {
        *pair = amounts;
    }
    super::block(mpi, comm, |state| alone(state, comm, &record))?;
    Ok(arguments)
}

/// The comparison for a call that is compared by name only.
pub(crate) fn agree(mpi: &Mpi, comm: CommH, name: &str) -> Res {
    agree_on(mpi, comm, name, Ok(()), |()| CheckedArguments::default())
}

/// Broadcasts `word` from rank 0 (of both groups in a row) to all others; with KW_CHECK=1 they
/// compare the call of that name first.
pub(crate) fn tell(state: &mut State, comm: CommH, name: &str, word: &Buf) -> Plan {
    let (_, tables) = running(state)?;
    let record = say::head(tables.comms.get(comm)?, name);
    let mut run = Run::tell(comm_view(tables.comms.get_mut(comm)?), word);
    if tables.checking {
        run.begin_with(SignatureCheck::new(record.to_bytes(), judge::judge));
    }
    Ok(Box::new(run))
}

/// Comparison among the members of a group that has no communicator yet: all must mean the same
/// groups, and give the same values.
pub(crate) fn among(
    all: &Members,
    name: &str,
    groups: &[&Group],
    checked_arguments: CheckedArguments,
) -> Res {
    if !all.mpi.lock().above.checking {
        return Ok(());
    }
    let meant = Amount::together(members(groups));
    let who = format!("process {} of the job", all.group.peer(all.rank));
    let mut record = Record::new(name, who, 2);
    record.pairs.fill((meant, meant));
    record.args = checked_arguments.args;
    record.detail = format!(" with {}{}", listed(groups), checked_arguments.text);
    let mine = record.to_bytes();
    let objection = all.compare(&mine, |theirs| {
        let other = Record::from_bytes(theirs);
        let (refused, detail) = match other.refused {
            0 => judge::judge(&[theirs, &mine].concat(), 2)?,
            class => (class, other.detail),
        };
        let objection = Record {
            refused,
            detail,
            ..record.clone()
        };
        Some(objection.to_bytes())
    })?;
    match objection.map(|words| Record::from_bytes(&words)) {
        None => Ok(()),
        Some(record) => Err(Fault::of_code(record.refused, record.detail)),
    }
}

/// A hash of the members of these groups, in order.
fn members(groups: &[&Group]) -> u64 {
    let list = groups.iter().flat_map(|g| {
        let peers = g.iter().map(|p| p.0 as i64);
        std::iter::once(-1).chain(peers)
    });
    record::mix(&list.collect::<Vec<_>>())
}

/// Groups by the processes in them.
fn listed(groups: &[&Group]) -> String {
    let one = |group: &&Group| {
        let some: Vec<String> = group.iter().take(8).map(|p| p.to_string()).collect();
        let more = if group.size() > 8 { ", ..." } else { "" };
        format!(
            "a group of {} processes ({}{more})",
            group.size(),
            some.join(", ")
        )
    };
    groups.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// A run of all ranks of the communicator that only compares.
fn alone(state: &mut State, comm: CommH, record: &Record) -> Plan {
    let (_, tables) = running(state)?;
    let mut run = Run::idle(comm_view(tables.comms.get_mut(comm)?));
    run.begin_with(SignatureCheck::new(record.to_bytes(), judge::judge));
    Ok(Box::new(run))
}

fn comm_view(comm: &mut Comm) -> CommView {
    if comm.is_inter() {
        return super::inter::comm_view(comm);
    }
    super::plan::comm_view(comm)
}
