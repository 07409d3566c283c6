//! The command line of `mpiexec`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use crate::foreign::{self, Foreign};
use crate::hosts::{self, Host};
use crate::map::RankMap;
pub use crate::map::{Binding, Unit, binding};
use crate::options::{self, Opt};
use crate::trace::shared::Sharing;
use crate::verdict::Verdict;
use crate::wrap::Wrap;

/// The parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Print this text and exit with status 0.
    Print(String),
    /// Run a job.
    Run(Box<Request>),
    /// Be the helper of a mpiexec on another host.
    Help,
}

/// A job as asked for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Request {
    /// Programs in the order of their ranks.
    pub apps: Vec<App>,
    /// Variables for all programs.
    pub env: Vec<(OsString, OsString)>,
    /// Whether our own environment is withheld from the ranks.
    pub bare: bool,
    /// Variables of our environment that are passed on even then.
    pub pass: Vec<OsString>,
    /// Label output.
    pub label: bool,
    /// Print the map.
    pub map: bool,
    /// Record which MPI functions the ranks call.
    pub profile: bool,
    /// The file for the recorded calls, if one is requested.
    pub profile_json: Option<OsString>,
    /// The file for the trace.
    pub trace: Option<OsString>,
    /// What jobs that write to this trace file agree on.
    pub sharing: Sharing,
    /// End a job that hangs.
    pub end_hung: bool,
    /// How long the job may take.
    pub timeout: Option<Duration>,
    /// Binding that follows from all options together.
    pub bind: Binding,
    /// Placement of the ranks.
    pub places: RankMap,
    /// Hosts; none means this machine.
    pub hosts: Vec<Host>,
    /// Slots of every host, which override those in the list.
    pub per_host: Option<u32>,
    /// Command that reaches other hosts.
    pub ssh: Option<String>,
    /// Where the library is installed on other hosts.
    pub prefix: Option<OsString>,
    /// Address `NAME:PORT` of rank 0 in a job whose ranks are started separately.
    pub rendezvous: Option<OsString>,
    /// Rank of this process in such a job.
    pub rank: Option<u32>,
    /// Commands under which ranks are started.
    pub wraps: Vec<Wrap>,
    /// The rank that runs under a debugger.
    pub debug: Option<u32>,
    /// Options that have no effect here, with their values.
    pub unheeded: Vec<Vec<String>>,
}

/// One program.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct App {
    /// Number of ranks, if it was given.
    pub count: Option<u32>,
    /// Program and its arguments.
    pub words: Vec<OsString>,
    /// Variables for this program.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory.
    pub dir: Option<OsString>,
}

/// Most ranks of one job.
const MAX_RANKS: u32 = 100_000;

fn misuse<T>(text: String) -> Result<T, Verdict> {
    Err(Verdict::misuse(text))
}

/// Reads the words after the program name.
pub fn parse(words: Vec<OsString>) -> Result<Command, Verdict> {
    let mut request = Request::default();
    if words.first().is_some_and(|w| w == "--helper") {
        return Ok(Command::Help);
    }
    for words in words.split(|w| w == ":") {
        let mut reader = Reader { words, at: 0 };
        match reader.app(&mut request)? {
            Step::App(app) => request.apps.push(app),
            Step::Print(text) => return Ok(Command::Print(text)),
        }
    }
    if request.rank.is_some() && request.rendezvous.is_none() {
        return misuse("--rank goes with --rendezvous".into());
    }
    request.bind = request.places.binding()?;
    Ok(Command::Run(Box::new(request)))
}

enum Step {
    App(App),
    Print(String),
}

struct Reader<'a> {
    words: &'a [OsString],
    at: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<&OsStr> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn app(&mut self, request: &mut Request) -> Result<Step, Verdict> {
        let mut app = App::default();
        while let Some(word) = self.words.get(self.at) {
            if !word.as_bytes().starts_with(b"-") {
                break;
            }
            self.at += 1;
            if word == "--" {
                break;
            }
            if let Some(text) = self.option(word, &mut app, request)? {
                return Ok(Step::Print(text));
            }
        }
        app.words = self.words[self.at..].to_vec();
        if app.words.is_empty() {
            return misuse(
                "no program was named; for example: mpiexec -n 4 ./program (more: mpiexec --help)"
                    .into(),
            );
        }
        Ok(Step::App(app))
    }

    /// Handles one option; a returned text is to be printed before mpiexec exits.
    fn option(
        &mut self,
        word: &OsStr,
        app: &mut App,
        request: &mut Request,
    ) -> Result<Option<String>, Verdict> {
        let (name, inline) = split(word);
        if let Some(foreign) = foreign::find(&name) {
            return self.foreign(foreign, (name, inline), app, request);
        }
        let row = row(&name)?;
        match row.opt {
            Opt::Help => return Ok(Some(options::help())),
            Opt::Version => return Ok(Some(options::version())),
            Opt::Man => return Ok(Some(options::man())),
            Opt::Completions => return self.completions(&name, inline).map(Some),
            Opt::Label => request.label = true,
            Opt::Map => request.map = true,
            Opt::Profile => request.profile = true,
            Opt::ProfileJson => {
                request.profile = true;
                request.profile_json = Some(self.value(&name, inline)?);
            }
            Opt::Trace => request.trace = Some(self.value(&name, inline)?),
            Opt::Wrap => request.wraps.push(Wrap::parse(&self.text(&name, inline)?)?),
            Opt::Debug => request.debug = Some(rank(&name, &self.value(&name, inline)?)?),
            Opt::EndHung => request.end_hung = true,
            Opt::Timeout => request.timeout = Some(seconds(&name, &self.text(&name, inline)?)?),
            Opt::Network => request.env.push(("KW_LOG".into(), "info".into())),
            Opt::EnvNone => request.bare = true,
            Opt::Ignored => {}
            Opt::Count => app.count = Some(count(&name, &self.value(&name, inline)?)?),
            Opt::Hosts => {
                let text = self.text(&name, inline)?;
                request.hosts.extend(hosts::list(&text)?);
            }
            Opt::HostFile => {
                let path = self.value(&name, inline)?;
                request.hosts.extend(hosts::file(path.as_ref())?);
            }
            Opt::PerHost => request.per_host = Some(count(&name, &self.value(&name, inline)?)?),
            Opt::MapBy => {
                let how = self.text(&name, inline)?;
                let per_host = request.places.map_by(&name, &how)?;
                request.per_host = per_host.or(request.per_host);
            }
            Opt::RankBy => request.places.rank_by(&name, &self.text(&name, inline)?)?,
            Opt::Ssh => request.ssh = Some(self.text(&name, inline)?),
            Opt::Prefix => request.prefix = Some(self.value(&name, inline)?),
            Opt::Rendezvous => request.rendezvous = Some(self.value(&name, inline)?),
            Opt::Rank => request.rank = Some(rank(&name, &self.value(&name, inline)?)?),
            Opt::Dir => app.dir = Some(self.value(&name, inline)?),
            Opt::Bind => request.places.bind(&name, &self.text(&name, inline)?)?,
            Opt::Env => app.env.push(self.variable(&name, inline)?),
            Opt::GlobalEnv => request.env.push(self.variable(&name, inline)?),
            Opt::Export => self.export(&name, request)?,
        }
        Ok(None)
    }

    /// Handles an option of another launcher.
    fn foreign(
        &mut self,
        foreign: Foreign,
        (name, inline): (String, Option<OsString>),
        app: &mut App,
        request: &mut Request,
    ) -> Result<Option<String>, Verdict> {
        match foreign {
            Foreign::Nothing(values) => {
                let words = self.all(name, inline, values)?;
                request.unheeded.push(words);
                Ok(None)
            }
            Foreign::Instead(what) => misuse(format!("unknown option '{name}': use {what}")),
            Foreign::Same(words) => {
                let value = match words.iter().any(|w| w.contains("{}")) {
                    true => self.text(&name, inline)?,
                    false => String::new(),
                };
                let ours = words.iter().map(|w| w.replace("{}", &value).into());
                let ours: Vec<OsString> = ours.collect();
                let mut reader = Reader {
                    words: &ours,
                    at: 1,
                };
                reader.option(&ours[0], app, request)
            }
        }
    }

    fn completions(&mut self, name: &str, inline: Option<OsString>) -> Result<String, Verdict> {
        let shell = self.value(name, inline)?;
        let shell = shell.to_string_lossy();
        options::completions(&shell).map_or_else(
            || misuse(format!("{name} supports bash and fish, not '{shell}'")),
            Ok,
        )
    }

    fn value(&mut self, name: &str, inline: Option<OsString>) -> Result<OsString, Verdict> {
        match inline.or_else(|| self.next().map(OsStr::to_os_string)) {
            Some(v) => Ok(v),
            None => misuse(format!("option '{name}' needs a value")),
        }
    }

    fn text(&mut self, name: &str, inline: Option<OsString>) -> Result<String, Verdict> {
        let value = self.value(name, inline)?;
        Ok(value.to_string_lossy().into_owned())
    }

    /// An option with all its values.
    fn all(
        &mut self,
        name: String,
        inline: Option<OsString>,
        values: usize,
    ) -> Result<Vec<String>, Verdict> {
        let mut words = vec![name];
        words.extend(inline.map(|v| v.to_string_lossy().into_owned()));
        while words.len() <= values {
            words.push(self.text(&words[0].clone(), None)?);
        }
        Ok(words)
    }

    /// `NAME VALUE` or `NAME=VALUE`.
    fn variable(
        &mut self,
        name: &str,
        inline: Option<OsString>,
    ) -> Result<(OsString, OsString), Verdict> {
        let first = self.value(name, inline)?;
        if let (var, Some(value)) = cut(&first) {
            return Ok((var, value));
        }
        let value = self.value(name, None)?;
        Ok((first, value))
    }

    fn export(&mut self, name: &str, request: &mut Request) -> Result<(), Verdict> {
        match cut(&self.value(name, None)?) {
            (var, Some(value)) => request.env.push((var, value)),
            (var, None) => request.pass.push(var),
        }
        Ok(())
    }
}

/// The name of an option, and the value that came with it.
fn split(word: &OsStr) -> (String, Option<OsString>) {
    let word = word.to_string_lossy().into_owned();
    match word.split_once('=') {
        Some((n, v)) if n.starts_with("--") => (n.to_string(), Some(OsString::from(v))),
        _ => (word, None),
    }
}

/// Our option with this name.
fn row(name: &str) -> Result<&'static options::Row, Verdict> {
    options::find(name).map_or_else(
        || {
            misuse(match options::nearest(name) {
                Some(near) => {
                    format!("unknown option '{name}'; did you mean '{near}'? (all: mpiexec --help)")
                }
                None => format!("unknown option '{name}' (all: mpiexec --help)"),
            })
        },
        Ok,
    )
}

fn cut(word: &OsStr) -> (OsString, Option<OsString>) {
    let bytes = word.as_bytes();
    match bytes.iter().position(|b| *b == b'=') {
        Some(0) | None => (word.to_os_string(), None),
        Some(at) => (
            OsString::from_vec(bytes[..at].to_vec()),
            Some(OsString::from_vec(bytes[at + 1..].to_vec())),
        ),
    }
}

fn count(name: &str, value: &OsStr) -> Result<u32, Verdict> {
    let text = value.to_string_lossy();
    match text.parse::<u32>() {
        Ok(n @ 1..=MAX_RANKS) => Ok(n),
        Ok(0) => misuse(format!("{name} 0 asks for no ranks; a job has at least 1")),
        Ok(n) => misuse(format!("{name} {n} asks for more than {MAX_RANKS} ranks")),
        Err(_) => misuse(format!("{name} needs a number of ranks, not '{text}'")),
    }
}

fn seconds(name: &str, text: &str) -> Result<Duration, Verdict> {
    match kw_base::settings::parse_seconds(text) {
        Some(time) if !time.is_zero() => Ok(time),
        _ => misuse(format!(
            "{name} needs seconds, such as 60 or 0.5, not '{text}'"
        )),
    }
}

fn rank(name: &str, value: &OsStr) -> Result<u32, Verdict> {
    let text = value.to_string_lossy();
    let rank = text.parse().ok().filter(|r| *r < MAX_RANKS);
    rank.map_or_else(
        || misuse(format!("{name} needs a rank of the job, not '{text}'")),
        Ok,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Request, String> {
        let words = line
            .split(' ')
            .filter(|w| !w.is_empty())
            .map(OsString::from)
            .collect();
        match parse(words) {
            Ok(Command::Run(r)) => Ok(*r),
            Ok(_) => Err("no job".into()),
            Err(v) => Err(v.sentence),
        }
    }

    #[test]
    fn programs_counts_and_variables() {
        let r = run("-n 2 -env A 1 ./a x -n 3 : -np 1 -wdir /tmp ./b").unwrap();
        assert_eq!(r.apps.len(), 2);
        assert_eq!((r.apps[0].count, r.apps[0].words.len()), (Some(2), 4));
        assert_eq!(r.apps[0].env, [("A".into(), "1".into())]);
        assert_eq!(r.apps[1].dir, Some("/tmp".into()));
        let r = run("-genv A=1 -x B=2 -x C --bind=core -l ./a").unwrap();
        assert_eq!(r.env.len(), 2);
        assert_eq!(r.pass, ["C"]);
        assert!(r.label && r.bind == Binding::Core);
    }

    #[test]
    fn options_of_other_launchers_are_taken() {
        let r = run("--oversubscribe --mca btl self,vader -launcher ssh ./a --mca x").unwrap();
        assert_eq!(r.apps[0].words, ["./a", "--mca", "x"]);
        let refused: Vec<_> = r.unheeded.iter().map(|words| words.join(" ")).collect();
        let all = ["--mca btl self,vader", "-launcher ssh"];
        assert_eq!(refused, all);
    }

    /// The table of docs/launchers.md: option, and what the page says about it.
    fn unheeded_options() -> Vec<(&'static str, &'static str)> {
        let page = include_str!("../../../docs/launchers.md");
        let (_, rest) = page.split_once("| option | of | here |").unwrap();
        let rows = rest
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        let cells = |row: &'static str| row.trim_matches('|').split(" | ").map(str::trim);
        rows.map(|row| {
            let row: Vec<_> = cells(row).collect();
            (row[0].trim_matches('`'), row[2])
        })
        .collect()
    }

    #[test]
    fn options_of_other_launchers_do_what_the_page_says() {
        let rows = unheeded_options();
        assert!(rows.len() > 60, "{}", rows.len());
        let plain = run("./a").unwrap();
        for (option, here) in rows {
            let found = run(&format!("{option} ./a"));
            if let Some(what) = here.strip_prefix("refused: ") {
                let refused = found.expect_err(option);
                assert!(
                    refused.contains(what.trim_matches('`')),
                    "{option}: {refused}"
                );
                continue;
            }
            let found = found.expect(option);
            let ignored = found.unheeded.iter().map(|words| words.join(" "));
            assert_eq!(ignored.count() == 1, here == "ignored", "{option}");
            let without = Request {
                unheeded: Vec::new(),
                ..found.clone()
            };
            if here.starts_with("as without it") || here == "ignored" {
                assert_eq!(without.bind, plain.bind, "{option}");
                assert_eq!(without.apps, plain.apps, "{option}");
            } else if here.starts_with('`') {
                assert_eq!(
                    found,
                    run(&format!("{} ./a", here.trim_matches('`'))).unwrap(),
                    "{option}"
                );
            } else {
                assert_ne!(without, plain, "{option}");
            }
        }
    }

    #[test]
    fn mistakes_get_one_sentence() {
        for (line, part) in [
            ("", "no program"),
            ("-n 2", "no program"),
            ("-n 0 ./a", "at least 1"),
            ("-n x ./a", "not 'x'"),
            ("-n -1 ./a", "not '-1'"),
            ("-n", "needs a value"),
            ("--lable ./a", "'--label'"),
            ("-n 1 ./a :", "no program"),
            ("--bind sockets ./a", "not 'sockets'"),
            ("--map-by board ./a", "not 'board'"),
            ("--hosts a,,b ./a", "is not a host name"),
            (
                "--hostfile /no/such/file ./a",
                "'/no/such/file' cannot be read",
            ),
            ("-ppn 0 ./a", "at least 1"),
            ("--rank x ./a", "not 'x'"),
            ("--rank 0 ./a", "goes with --rendezvous"),
        ] {
            let e = run(line).unwrap_err();
            assert!(e.contains(part) && !e.contains('\n'), "{line}: {e}");
        }
    }
}
