//! Ranks of a job in one process, over the simulated network.

use kw_base::Peer;
use kw_base::knobs::{Id, Knobs};
use kw_engine::Engine;
use kw_engine::boot::{Agreed, BootError, Job, Launcher};
use kw_engine::paths::Paths;
use kw_path::sim::{SimNet, SimOptions};
use kw_start::Load;

struct Nobody(u32, u32);

impl Launcher for Nobody {
    fn rank(&self) -> u32 {
        self.0
    }
    fn size(&self) -> u32 {
        self.1
    }
    fn name(&self) -> &str {
        "a test"
    }
    fn job(&self) -> &str {
        "simulated"
    }
    fn appnum(&self) -> Option<i32> {
        None
    }
    fn universe_size(&self) -> Option<i32> {
        None
    }
    fn put(&mut self, _: &str, _: &str) -> Result<(), BootError> {
        Ok(())
    }
    fn fence(&mut self) -> Result<(), BootError> {
        Ok(())
    }
    fn get(&mut self, _: u32, _: &str) -> Result<Option<String>, BootError> {
        Ok(None)
    }
    fn hosts(&mut self) -> Option<Vec<u32>> {
        None
    }
    fn abort(&mut self, _: i32, _: &str) -> Result<(), BootError> {
        Ok(())
    }
    fn finalize(&mut self) -> Result<(), BootError> {
        Ok(())
    }
}

fn job(me: u32, size: u32) -> Job {
    let mut knobs = Knobs::defaults();
    knobs.set(Id::Paths, "self").unwrap();
    let load = Load::even(true, size);
    Job {
        me: Peer(me),
        key: [7; 32],
        agreed: Agreed::new(vec![0; size as usize], load, &knobs).unwrap(),
    }
}

/// `n` ranks; all that is random follows from the seed.
pub fn ranks(n: u32, seed: u64, options: SimOptions, write: bool) -> (SimNet, Vec<Engine>) {
    let (net, paths) = SimNet::new(n, seed, options);
    let mut knobs = Knobs::defaults();
    knobs
        .set(Id::Write, if write { "yes" } else { "no" })
        .unwrap();
    knobs.set(Id::EagerShm, "512").unwrap();
    let start = |(r, path)| {
        let job = job(r as u32, n);
        let paths = Paths::simulated(&job, path);
        Engine::over(paths, Box::new(Nobody(r as u32, n)), job, knobs.clone())
    };
    let engines = paths.into_iter().enumerate().map(start).collect();
    (net, engines)
}
