//! The job's choices on request (`kwinfo --job PID --choices`): from the settings agreed on by its
//! ranks when they met, which are in the key-value space here.

use super::Common;
use crate::calibrate;
use crate::wanted;
use kw_base::settings::Settings;

/// Prints them.
pub(super) fn print(common: &Common) {
    let text = match choices(common) {
        Ok(text) => format!("mpiexec: what the job chooses:\n{text}"),
        Err(why) => format!("mpiexec: the choices of the job are unknown: {why}\n"),
    };
    common.say(text);
}

fn choices(common: &Common) -> Result<String, String> {
    let plan = &common.plan;
    let agreed = kw_start::agreed(&common.server, plan.ranks.len() as u32);
    let agreed = agreed.ok_or("its ranks have not met in MPI_Init, or there is only one")?;
    let first = &plan.ranks[0];
    let app = &plan.apps[first.app];
    let env = match plan.machines[first.machine].here {
        true => &app.env,
        false => &app.env_away,
    };
    let variable = |name: &str| {
        let found = env.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    };
    let settings = Settings::read(variable).map_err(|bad| bad.to_string())?;
    let job = wanted::Job::met(&plan.hosts, &agreed, &settings)?;
    calibrate::choices_met(&job, &agreed.calibration, &settings)
}
