//! Starting processes (MPI 5.0, 11.8).

use crate::calls::port::open;
use crate::meet::{Introduction, wait};
use crate::start::{Program, look_after, start};
use kw_boot::port::{Channel, PortError};
use kw_mpi::chapter::{Parent, checked_root};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::{CommH, InfoH};
use kw_objects::info::Info;
use kw_objects::state::Mpi;
use kw_sys::args::{Array, Ints, Out, Text, TextLists, Texts};
use std::time::{Duration, Instant};

/// Arguments of a program at most.
const MOST_ARGUMENTS: usize = 1 << 20;
/// MPI_ERR_SPAWN
const ERR_SPAWN: i32 = 53;

/// What an Info object says of a program.
fn hints(program: &mut Program, info: Option<&Info>) {
    let get = |key: &str| info.and_then(|i| i.get(key)).map(str::to_string);
    program.host = get("host")
        .or_else(|| get("add-host"))
        .or_else(|| get("hosts"));
    program.wdir = get("wdir").or_else(|| get("wd"));
    program.path = get("path");
    for line in get("env").iter().flat_map(|e| e.lines()) {
        if let Some((name, value)) = line.split_once('=') {
            program.env.push((name.trim().into(), value.into()));
        }
    }
}

fn program(command: Text, args: Texts, maxprocs: i64, info: Option<&Info>) -> Res<Program> {
    let command = command.to_text().unwrap_or_default();
    let command = command.trim().to_string();
    if command.is_empty() {
        return fail(Class::Arg, "command is empty");
    }
    let count = u32::try_from(maxprocs).ok().filter(|&n| n > 0);
    let Some(count) = count else {
        return fail(
            Class::Arg,
            format!("maxprocs is {maxprocs}, but must be positive"),
        );
    };
    let mut program = Program {
        command,
        args: args.to_vec(MOST_ARGUMENTS),
        count,
        ..Program::default()
    };
    hints(&mut program, info);
    Ok(program)
}

/// MPI_Comm_spawn. All but the last four mean something at the root only.
pub fn comm_spawn(
    mpi: &Mpi,
    command: Text,
    argv: Texts,
    maxprocs: i32,
    info: InfoH,
    root: i32,
    comm: CommH,
    intercomm: Out<CommH>,
    array_of_errcodes: Ints,
) -> Res {
    spawn(mpi, root, comm, intercomm, array_of_errcodes, || {
        let guard = mpi.lock();
        let info = guard.above.infos.get_or_null(info)?;
        Ok(vec![program(command, argv, maxprocs.into(), info)?])
    })
}

/// MPI_Comm_spawn_multiple. All but the last four mean something at the root only.
pub fn comm_spawn_multiple(
    mpi: &Mpi,
    count: i32,
    array_of_commands: Texts,
    array_of_argv: TextLists,
    array_of_maxprocs: Ints,
    array_of_info: Array<InfoH>,
    root: i32,
    comm: CommH,
    intercomm: Out<CommH>,
    array_of_errcodes: Ints,
) -> Res {
    spawn(mpi, root, comm, intercomm, array_of_errcodes, || {
        if count < 1 {
            return fail(
                Class::Arg,
                format!("count is {count}, but must be positive"),
            );
        }
        if array_of_maxprocs.is_null() {
            return fail(Class::Arg, "array_of_maxprocs is a null pointer");
        }
        let guard = mpi.lock();
        let one = |i: usize| {
            let info = match array_of_info.is_null() {
                true => Ok(None),
                false => guard.above.infos.get_or_null(array_of_info.get(i)),
            };
            let info = info?;
            let command = array_of_commands.get(i);
            program(
                command,
                array_of_argv.get(i),
                array_of_maxprocs.get(i),
                info,
            )
        };
        (0..count as usize).map(one).collect()
    })
}

/// Starts what the root wants; all hear how many there are.
fn spawn(
    mpi: &Mpi,
    root: i32,
    comm: CommH,
    intercomm: Out<CommH>,
    codes: Ints,
    programs: impl FnOnce() -> Res<Vec<Program>>,
) -> Res {
    let parent = Parent::intra(mpi, comm, "comm")?;
    intercomm.set(CommH::NULL);
    let root = checked_root(root, parent.members.group.size())?;
    let introduction = Introduction::new(&parent, root);
    let mut count = 0;
    let opened = introduction.open(|| {
        let programs = programs()?;
        count = programs.iter().map(|p| p.count).sum();
        run(mpi, &programs)
    });
    let made = opened.and_then(|()| introduction.meet());
    let code = if made.is_ok() { 0 } else { ERR_SPAWN };
    if let Ok(made) = made {
        let guard = mpi.lock();
        count = guard.above.comm(made)?.target().size();
    }
    if !codes.is_null() {
        for i in 0..count as usize {
            codes.set(i, code.into());
        }
    }
    intercomm.set(made?);
    Ok(())
}

/// Runs an mpiexec whose processes connect to a port of this one.
fn run(mpi: &Mpi, programs: &[Program]) -> Res<Channel> {
    let spawned = |text: String| {
        let names: Vec<&str> = programs.iter().map(|p| &*p.command).collect();
        Fault::new(Class::Spawn, format!("{}: {text}", names.join(", ")))
    };
    let port = open(mpi)?;
    let mut child = start(programs, port.name()).map_err(spawned)?;
    let seconds = wait(mpi);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut status = None;
    let accepted = port.accept(|| {
        status = child.try_wait().ok().flatten();
        status.is_none() && Instant::now() < until
    });
    let channel = accepted.map_err(|e| match (e, status) {
        (PortError::GivenUp, Some(status)) => spawned(format!(
            "the processes ended ({status}) before they called MPI_Init; see the message of mpiexec"
        )),
        (PortError::GivenUp, None) => spawned(format!(
            "the processes have not called MPI_Init within {seconds} s (KW_CONNECT_WAIT)"
        )),
        (e, _) => spawned(e.to_string()),
    });
    if channel.is_err() && status.is_none() {
        // Its processes go with it.
        let _ = child.kill();
    }
    look_after(child);
    channel
}

/// Checks that the standard's classes are as they are written here.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_failed_spawn_is_its_class() {
        assert_eq!(Class::Spawn as i32, ERR_SPAWN);
    }
}
