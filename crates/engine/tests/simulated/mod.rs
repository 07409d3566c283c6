//! Ranks of a job in one process, over the simulated network.

use kw_base::settings::{Id, Settings};
use kw_engine::{Engine, simulated};
use kw_path::sim::{SimNet, SimOptions, SimPath};

/// `n` ranks; all that is random follows from the seed.
pub fn ranks(n: u32, seed: u64, options: SimOptions, write: bool) -> (SimNet, Vec<Engine>) {
    let (net, paths) = SimNet::new(n, seed, options);
    let mut settings = Settings::defaults();
    settings
        .set(Id::Write, if write { "yes" } else { "no" })
        .unwrap();
    settings.set(Id::EagerShm, "512").unwrap();
    settings.set(Id::Paths, "self").unwrap();
    let hosts = vec![0; n as usize];
    let start = |path: SimPath| {
        let me = path.me();
        simulated::with_processors(Box::new(path), me, &hosts, settings.clone()).unwrap()
    };
    let engines = paths.into_iter().map(start).collect();
    (net, engines)
}
