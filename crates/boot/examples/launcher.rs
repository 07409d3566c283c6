//! One rank of the launchers' conformance suite, for any launcher: `mpiexec -n 3
//! target/release/examples/launcher`.
//!
//! Every rank prints one line; the status is 0 when all cases passed. With the argument `abort`,
//! rank 1 ends the job with status 3 after the suite, and the others wait for that; with `die`,
//! rank 1 exits without a message; with `spawn`, rank 0 starts two more such processes, which form
//! a job of their own and run the suite too.

use kw_boot::{Launcher, Spawn, conformance};

fn main() {
    let end = std::env::args().nth(1).unwrap_or_default();
    if let Err(why) = rank(&end) {
        eprintln!("FAILED: {why}");
        std::process::exit(1);
    }
}

fn rank(end: &str) -> Result<(), String> {
    let env = |name: &str| std::env::var(name).ok();
    let mut launcher = kw_boot::connect(&env).map_err(|e| e.to_string())?;
    let l = launcher.as_mut();
    let passed = conformance::run(l)?;
    let (rank, size, name) = (l.rank(), l.size(), l.name().to_string());
    let sets: Vec<String> = l
        .process_sets()
        .into_iter()
        .map(|s| format!("{}={:?}", s.name, s.ranks))
        .collect();
    println!(
        "rank {rank} of {size}: {passed} cases passed under {name}, hosts {:?}, universe {:?}, appnum {:?}, sets {sets:?}",
        l.hosts(),
        l.info().universe_size,
        l.info().appnum
    );
    finish(l, end)
}

fn finish(l: &mut dyn Launcher, end: &str) -> Result<(), String> {
    match (end, l.rank()) {
        ("abort", 1) => {
            l.abort(3, "asked to").map_err(|e| e.to_string())?;
            std::process::exit(3)
        }
        ("die", 1) => std::process::exit(4),
        ("abort" | "die", _) => {
            let _ = l.fence();
            std::thread::sleep(std::time::Duration::from_secs(60));
            Err("the job was not ended".into())
        }
        ("spawn", 0) => {
            let me = std::env::current_exe().map_err(|e| e.to_string())?;
            let more = Spawn {
                program: me.to_string_lossy().into_owned(),
                args: vec!["spawned".into()],
                count: 2,
            };
            l.spawn(&more).map_err(|e| e.to_string())?;
            l.finalize().map_err(|e| e.to_string())
        }
        _ => l.finalize().map_err(|e| e.to_string()),
    }
}
