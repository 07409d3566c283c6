//! Spawned jobs are traced and profiled like the job of their parent. mpiexec puts the names of its
//! files into the environment of its ranks, and the mpiexec of a job that they spawn finds them
//! there. On the same host it appends to the parent's trace. Otherwise, and for profiles, it writes
//! files of its own, named like the parent's with the process id appended.

use crate::args::Request;
use crate::ranks::Env;
use crate::trace::shared::Sharing;
use kw_base::spawned::{PARENT_PORT, PROFILE, PROFILE_JSON, TRACE, TRACE_KEY};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Reads from the environment what the parent's job records, and records the same unless the
/// request says otherwise.
pub fn take_over(request: &mut Request, ours: &mut Env) {
    let spawned = ours.iter().any(|(name, _)| name == PARENT_PORT);
    let mut take = |variable: &str| {
        let at = ours.iter().position(|(name, _)| name == variable)?;
        Some(ours.swap_remove(at).1).filter(|_| spawned)
    };
    let (trace, key) = (take(TRACE), take(TRACE_KEY));
    let json = take(PROFILE_JSON).map(beside);
    request.profile |= take(PROFILE).is_some();
    if request.trace.is_none() {
        (request.trace, request.sharing) = trace.map_or_else(Default::default, |t| theirs(t, key));
    }
    if request.trace.is_some() && !request.sharing.joins {
        request.sharing = Sharing::fresh();
    }
    request.profile_json = request.profile_json.take().or(json);
}

/// The trace of the parent's job, or one beside it.
fn theirs(trace: OsString, key: Option<OsString>) -> (Option<OsString>, Sharing) {
    let key = key.and_then(|key| key.into_string().ok());
    match key.and_then(|key| Sharing::of_parent(Path::new(&trace), &key)) {
        Some(sharing) => (Some(trace), sharing),
        None => (Some(beside(trace)), Sharing::default()),
    }
}

/// The file of this job beside the file of the parent's job.
fn beside(mut file: OsString) -> OsString {
    file.push(format!(".{}", std::process::id()));
    file
}

/// Tells the ranks, so that the jobs which they spawn do the same.
pub fn pass_on(request: &Request, env: &mut Env) {
    let absolute = |file: &OsStr| std::path::absolute(file).ok().map(OsString::from);
    let trace = request.trace.as_deref().and_then(absolute);
    let json = request.profile_json.as_deref().and_then(absolute);
    let profile = request.profile.then(|| "yes".into());
    let key = trace.as_ref().map(|_| (&request.sharing.word).into());
    let all = [
        (TRACE, trace),
        (TRACE_KEY, key),
        (PROFILE, profile),
        (PROFILE_JSON, json),
    ];
    for (name, value) in all {
        env.extend(value.map(|value| (name.into(), value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spawned_job_writes_beside_its_parents_files_and_no_other_job_does() {
        let parent = Request {
            trace: Some("/t".into()),
            profile: true,
            ..Request::default()
        };
        let mut env = Env::new();
        pass_on(&parent, &mut env);
        let mut nested = Request::default();
        take_over(&mut nested, &mut env.clone());
        assert_eq!((nested.trace, nested.profile), (None, false));

        env.push((PARENT_PORT.into(), "port".into()));
        let mut child = Request::default();
        take_over(&mut child, &mut env);
        let own = format!("/t.{}", std::process::id());
        assert_eq!(child.trace.as_deref(), Some(OsStr::new(&own)));
        assert!(child.profile && child.profile_json.is_none());
        assert_eq!(env.len(), 1, "nothing is passed on twice");

        let mut grandchild = Env::new();
        pass_on(&child, &mut grandchild);
        assert_eq!(grandchild[0], (TRACE.into(), own.into()));
        assert_eq!(grandchild[1], (TRACE_KEY.into(), child.sharing.word.into()));
    }
}
