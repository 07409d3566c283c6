//! Jobs without a launcher, whose ranks are values of one process: engines over a network that is
//! open already, such as the simulated one; for tests.

use crate::engine::Engine;
use crate::paths::Paths;
use kw_base::Peer;
use kw_base::settings::Settings;
use kw_boot::{Agreed, BootError, Job, JobInfo, Launcher, Worlds};
use kw_path::Network;
use kw_start::Load;

/// The launcher of a simulated rank: it has nothing to report, because no rank has an address.
#[derive(Debug)]
struct NoLauncher(JobInfo);

impl Launcher for NoLauncher {
    fn info(&self) -> &JobInfo {
        &self.0
    }

    fn name(&self) -> &str {
        "a test"
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

/// The engine of rank `me`, over its network. `hosts`: host number of every rank; all are
/// oversubscribed, so that every unsuccessful poll reads the clock (the network's).
pub fn engine(
    net: Box<dyn Network>,
    me: Peer,
    hosts: &[u32],
    settings: Settings,
) -> Result<Engine, BootError> {
    start(net, me, hosts, true, settings)
}

/// The engine if every rank has a CPU; for ranks that never wait in a call.
pub fn with_processors(
    net: Box<dyn Network>,
    me: Peer,
    hosts: &[u32],
    settings: Settings,
) -> Result<Engine, BootError> {
    start(net, me, hosts, false, settings)
}

fn start(
    net: Box<dyn Network>,
    me: Peer,
    hosts: &[u32],
    oversubscribed: bool,
    settings: Settings,
) -> Result<Engine, BootError> {
    let size = hosts.len() as u32;
    let load = Load::even(oversubscribed, size);
    let agreed =
        Agreed::new(hosts.to_vec(), load, &settings)?.bound(&Default::default(), &settings)?;
    let job = Job {
        me,
        worlds: Worlds::new([7; 32], "simulated", agreed),
    };
    let paths = Paths::over(&job, &settings, Some(net));
    let launcher = NoLauncher(JobInfo {
        rank: me.0,
        size,
        job: "simulated".into(),
        ..JobInfo::default()
    });
    Ok(Engine::over(paths, Box::new(launcher), job, settings))
}
