//! Requirements on every launcher, as cases that all ranks of one job run together.
//!
//! Unit tests run them over this library's servers (`tests`), `examples/launcher.rs` under any
//! launcher. A case reports in one sentence what was wrong.

use super::Launcher;

/// A case: all ranks call it, in the same order.
pub type Case = fn(&mut dyn Launcher) -> Result<(), String>;

/// All cases by name. Abort and finalize end a job, and spawn starts one; they are tested by the
/// program that started it.
pub const CASES: &[(&str, Case)] = &[
    ("everybody is in the same job", everybody_is_in_the_same_job),
    ("what is put is got", what_is_put_is_got),
    (
        "nothing is under an unknown key",
        nothing_is_under_an_unknown_key,
    ),
    (
        "keys may have every character",
        keys_may_have_every_character,
    ),
    ("values may be empty", values_may_be_empty),
    ("values may have a megabyte", values_may_have_a_megabyte),
    (
        "every fence shows what is new",
        every_fence_shows_what_is_new,
    ),
    ("all know the same hosts", all_know_the_same_hosts),
    ("numbers are sensible", numbers_are_sensible),
    ("sets have members of the job", sets_have_members_of_the_job),
];

/// Runs all of them; the error names the first that fails.
pub fn run(launcher: &mut dyn Launcher) -> Result<usize, String> {
    for (name, case) in CASES {
        case(launcher).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(CASES.len())
}

fn put(l: &mut dyn Launcher, key: &str, value: &str) -> Result<(), String> {
    l.put(key, value).map_err(|e| e.to_string())
}

fn fence(l: &mut dyn Launcher) -> Result<(), String> {
    l.fence().map_err(|e| e.to_string())
}

fn expect(l: &mut dyn Launcher, from: u32, key: &str, value: &str) -> Result<(), String> {
    match l.get(from, key).map_err(|e| e.to_string())? {
        Some(got) if got == value => Ok(()),
        got => Err(format!(
            "rank {} got {:?} from rank {from} under '{}', not {:?}",
            l.rank(),
            got.as_deref().map(short),
            short(key),
            short(value)
        )),
    }
}

fn short(text: &str) -> String {
    format!(
        "{} ({} bytes)",
        text.chars().take(40).collect::<String>(),
        text.len()
    )
}

/// Every rank puts its value from `of`, and finds the values of all others.
fn exchange(l: &mut dyn Launcher, name: &str, of: impl Fn(u32) -> String) -> Result<(), String> {
    let key = |r: u32| format!("suite {name} {r}");
    let me = l.rank();
    put(l, &key(me), &of(me))?;
    fence(l)?;
    for r in 0..l.size() {
        expect(l, r, &key(r), &of(r))?;
    }
    Ok(())
}

fn everybody_is_in_the_same_job(l: &mut dyn Launcher) -> Result<(), String> {
    let (rank, size, job) = (l.rank(), l.size(), l.job().to_string());
    if rank >= size || job.is_empty() || l.name().is_empty() {
        return Err(format!(
            "rank {rank} of {size} in job '{job}' of '{}'",
            l.name()
        ));
    }
    exchange(l, "job", |r| format!("{job} {r} {size}"))
}

fn what_is_put_is_got(l: &mut dyn Launcher) -> Result<(), String> {
    exchange(l, "odd", |r| format!("a b=c;d=\n\t%{r} \"'\\ é \u{1F426}"))
}

fn nothing_is_under_an_unknown_key(l: &mut dyn Launcher) -> Result<(), String> {
    fence(l)?;
    for r in 0..l.size() {
        match l.get(r, "suite no rank put this") {
            Ok(None) => {}
            other => return Err(format!("rank {} got {other:?}", l.rank())),
        }
    }
    Ok(())
}

fn keys_may_have_every_character(l: &mut dyn Launcher) -> Result<(), String> {
    // not more than twenty at once: encoded, they have to fit the shortest limit of any launcher
    // (64 bytes)
    let all: Vec<char> = (0..=255u8).map(char::from).collect();
    let me = l.rank();
    let key = |r: u32, part: &[char]| format!("{r}{}", part.iter().collect::<String>());
    for part in all.chunks(8) {
        put(l, &key(me, part), "here")?;
    }
    fence(l)?;
    let next = (me + 1) % l.size();
    for part in all.chunks(8) {
        expect(l, next, &key(next, part), "here")?;
    }
    Ok(())
}

fn values_may_be_empty(l: &mut dyn Launcher) -> Result<(), String> {
    exchange(l, "empty", |_| String::new())
}

fn values_may_have_a_megabyte(l: &mut dyn Launcher) -> Result<(), String> {
    let large = "0123456789 abcde".repeat(65536);
    if l.rank() == 0 {
        put(l, "suite large", &large)?;
    }
    fence(l)?;
    // all of them reading it would be a test of patience
    match l.rank() {
        0 | 1 => expect(l, 0, "suite large", &large),
        _ => Ok(()),
    }
}

fn every_fence_shows_what_is_new(l: &mut dyn Launcher) -> Result<(), String> {
    let me = l.rank();
    let next = (me + 1) % l.size();
    for round in 0..10 {
        let key = |r: u32| format!("suite round {round} {r}");
        put(l, &key(me), "new")?;
        fence(l)?;
        expect(l, next, &key(next), "new")?;
    }
    Ok(())
}

fn all_know_the_same_hosts(l: &mut dyn Launcher) -> Result<(), String> {
    let hosts = l.hosts();
    if hosts.as_ref().is_some_and(|h| h.len() != l.size() as usize) {
        return Err(format!("{} ranks are on hosts {hosts:?}", l.size()));
    }
    exchange(l, "hosts", |_| format!("{hosts:?}"))
}

fn numbers_are_sensible(l: &mut dyn Launcher) -> Result<(), String> {
    let (universe, appnum) = (l.info().universe_size, l.info().appnum);
    if universe.is_some_and(|n| n < 1) || appnum.is_some_and(|n| n < 0) {
        return Err(format!("universe size {universe:?}, appnum {appnum:?}"));
    }
    exchange(l, "universe", |_| format!("{universe:?}"))
}

fn sets_have_members_of_the_job(l: &mut dyn Launcher) -> Result<(), String> {
    let size = l.size();
    let outside = |ranks: &[u32]| ranks.iter().any(|r| *r >= size);
    let sets = l.process_sets();
    match sets.iter().find(|s| s.name.is_empty() || outside(&s.ranks)) {
        Some(bad) => Err(format!("in a job of {size}: {bad:?}")),
        None => exchange(l, "sets", |_| format!("{sets:?}")),
    }
}
