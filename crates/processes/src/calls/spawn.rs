//! Starting processes (MPI 5.0, 11.8).

use crate::calls::port::{open, same_root, wait_for};
use crate::hints;
use crate::meet::{Introduction, wait};
use crate::start::{Program, start};
use kw_base::sync::{Arc, thread};
use kw_boot::port::Channel;
use kw_mpi::chapter::Parent;
use kw_mpi::end_job_by;
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::{CommH, InfoH};
use kw_objects::info::Info;
use kw_objects::spawned::{Spawned, Stand};
use kw_objects::state::Mpi;
use kw_sys::args::{Array, Ints, Out, Text, TextLists, Texts};
use kw_sys::threads::with_signals_blocked;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

/// Most arguments of a program.
const MOST_ARGUMENTS: usize = 1 << 20;
/// MPI_ERR_SPAWN
const ERR_SPAWN: i32 = 53;

fn program(command: Text, args: Texts, maxprocs: i64, info: Option<&Info>) -> Res<Program> {
    let command = command.to_text().unwrap_or_default();
    let command = command.trim().to_string();
    if command.is_empty() {
        return fail(Class::Arg, "command is empty");
    }
    let count = u32::try_from(maxprocs).ok().filter(|&n| n > 0);
    let Some(count) = count else {
        return fail!(Arg: "maxprocs is {maxprocs}, but must be positive");
    };
    let mut program = Program {
        command,
        args: args.to_vec(MOST_ARGUMENTS),
        count,
        most: count,
        ..Program::default()
    };
    hints::apply(&mut program, info)?;
    Ok(program)
}

/// MPI_Comm_spawn. All but the last four are significant only at the root.
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

/// MPI_Comm_spawn_multiple. All but the last four are significant only at the root.
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
            return fail!(Arg: "count is {count}, but must be positive");
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

/// Starts the processes that the root requests; all are told how many there are.
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
    let root = same_root(&parent, root)?;
    let introduction = Introduction::new(&parent, root);
    let (mut numbers, mut job) = (Vec::new(), None);
    let made = introduction.meet(|| {
        let programs = programs()?;
        numbers = programs.iter().flat_map(|p| [p.count, p.most]).collect();
        let (channel, spawned) = run(mpi, &programs)?;
        job = Some(spawned);
        Ok(channel)
    });
    let numbers = introduction.numbers_of_root(&numbers)?;
    if let Some(job) = job {
        connect(mpi, job, made.as_ref().ok())?;
    }
    if !codes.is_null() {
        for (i, code) in error_codes(&numbers, made.is_ok()).enumerate() {
            codes.set(i, code.into());
        }
    }
    intercomm.set(made?);
    Ok(())
}

/// A code for each requested process; within each program the started ones come first. `numbers`
/// are the numbers of started and requested processes of each.
fn error_codes(numbers: &[u32], made: bool) -> impl Iterator<Item = i32> {
    let programs = numbers.as_chunks::<2>().0.iter();
    programs.flat_map(move |&[started, wanted]| {
        (0..wanted).map(move |i| if made && i < started { 0 } else { ERR_SPAWN })
    })
}

/// Notes that the job has connected, or ends it.
fn connect(mpi: &Mpi, job: Arc<Spawned>, made: Option<&CommH>) -> Res {
    let Some(&made) = made else {
        job.give_up();
        return Ok(());
    };
    let mut guard = mpi.lock();
    let first = guard.above.comms.get(made)?.target().peer(0);
    let world = guard.engine.as_ref().and_then(|e| e.job.worlds.of(first));
    let Some((peers, name)) = world.map(|w| (w.peers(), w.name.clone())) else {
        return Ok(());
    };
    job.on_met(&name);
    let failed = job.ended().filter(|status| !status.success());
    guard.above.spawned.add(peers, job);
    match failed {
        Some(status) => fail!(Spawn: "job {name} has failed ({status})"),
        None => Ok(()),
    }
}

/// Runs an mpiexec whose processes connect to a port of this one.
fn run(mpi: &Mpi, programs: &[Program]) -> Res<(Channel, Arc<Spawned>)> {
    let names: Vec<&str> = programs.iter().map(|p| &*p.command).collect();
    let names = names.join(", ");
    let spawned = |text: String| Fault::new(Class::Spawn, format!("{names}: {text}"));
    let port = open(mpi)?;
    let started = start(programs, port.name(), &own_name(mpi)).map_err(spawned)?;
    let job = look_after(mpi, started, &names);
    let seconds = wait(mpi);
    let until = Instant::now() + Duration::from_secs(seconds);
    let what =
        format!("waits for the processes of {names}; they have not come to the end of MPI_Init");
    let came = wait_for(mpi, what, |_| match (port.take(), job.ended()) {
        (Some(channel), _) => Some(Ok(channel)),
        (None, Some(status)) => {
            let why = job.why().map_or(String::new(), |why| format!(": {why}"));
            Some(Err(spawned(format!(
                "the processes ended ({status}) before they had called MPI_Init{why}"
            ))))
        }
        (None, None) if Instant::now() >= until => Some(Err(spawned(format!(
            "the processes have not called MPI_Init within {seconds} s (KW_CONNECT_WAIT)"
        )))),
        (None, None) => None,
    });
    if came.is_err() {
        // Its processes end with it.
        job.give_up();
    }
    Ok((came?, job))
}

/// Describes this process to the job that it spawns.
fn own_name(mpi: &Mpi) -> String {
    let guard = mpi.lock();
    guard.engine.as_ref().map_or(String::new(), |engine| {
        let job = &engine.job;
        format!("rank {} of job {}", job.me, job.worlds.own().name)
    })
}

/// Waits for an mpiexec in the background, so that it leaves no zombie. If it fails while its job
/// is connected with this one, this one fails as well.
fn look_after(mpi: &Mpi, (mut child, line): (Child, UnixStream), names: &str) -> Arc<Spawned> {
    let job = Arc::new(Spawned::new(line));
    let (lock, theirs) = (mpi.lock.share(), job.clone());
    let (names, own) = (names.to_string(), own_name(mpi));
    let waits = move || {
        let Ok(status) = child.wait() else { return };
        let stand = theirs.on_ended(status);
        lock.wake_all();
        if let (Stand::Connected(name), false) = (stand, status.success()) {
            let sentence = format!(
                "job {name} ({names}), which {own} has spawned and is connected with, has failed ({status}); MPI_Comm_disconnect separates jobs"
            );
            end_job_by(&lock, status.code().unwrap_or(1), &sentence);
        }
    };
    with_signals_blocked(|| thread::spawn(waits));
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_soft_left_out_have_the_code_of_a_failed_spawn() {
        let codes = |made| error_codes(&[1, 2, 1, 1], made).collect::<Vec<_>>();
        assert_eq!(codes(true), [0, ERR_SPAWN, 0]);
        assert_eq!(codes(false), [ERR_SPAWN; 3]);
    }

    #[test]
    fn the_code_of_a_failed_spawn_is_its_class() {
        assert_eq!(Class::Spawn as i32, ERR_SPAWN);
    }
}
