//! The options of `mpiexec`, once: parser, `--help`, manual page and completions are made from this
//! table.

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which option.
    pub opt: Opt,
    /// Accepted spellings; the first one is printed.
    pub names: &'static [&'static str],
    /// Names of its arguments.
    pub takes: &'static [&'static str],
    /// One sentence; empty if the help does not show the option.
    pub help: &'static str,
}

/// Defines the options: spellings, names of the arguments, help.
macro_rules! options {
    ($($opt:ident: [$($name:literal),*] [$($takes:literal),*] $help:literal;)*) => {
        /// Names an option.
        #[allow(missing_docs)] // the table describes them
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Opt {
            $($opt,)*
        }

        /// The table.
        pub const ALL: &[Row] = &[$(Row {
            opt: Opt::$opt,
            names: &[$($name),*],
            takes: &[$($takes),*],
            help: $help,
        }),*];
    };
}

options! {
    Count: ["-n", "-np", "--np", "-c"] ["N"]
        "Number of ranks (default: 1, or with hosts one per slot). It may exceed the number of CPUs.";
    Hosts: ["--hosts", "-hosts", "--host", "-host", "-H"] ["HOST[:N],..."]
        "Runs on these hosts, each with N slots (default 1). Without -n, starts one rank per slot.";
    HostFile: ["--hostfile", "-hostfile", "-f", "--machinefile", "-machinefile"] ["FILE"]
        "Reads the hosts from FILE, one per line: HOST, HOST:N or HOST slots=N; # starts a comment.";
    PerHost: ["-ppn", "--ppn", "-perhost", "-N"] ["N"]
        "Gives every host N slots, overriding the host list.";
    MapBy: ["--map-by", "-map-by"] ["HOW"]
        "slot: fills one host after the other (default); node: distributes ranks round-robin over the hosts; core, hwthread: binds each rank to one; socket, numa, l3cache, l2cache: distributes the ranks of a host round-robin over these; ppr:N:node: N ranks per host. :PE=N gives each rank N cores.";
    RankBy: ["--rank-by", "-rank-by"] ["HOW"]
        "slot: the ranks of a host are consecutive; node: ranks are numbered round-robin over the hosts (default: as --map-by).";
    Ssh: ["--ssh", "-launcher-exec", "--launcher-exec"] ["COMMAND"]
        "Runs COMMAND HOST PROGRAM... instead of ssh to reach other hosts (same as KW_SSH).";
    Prefix: ["--prefix"] ["DIR"]
        "Installation directory on other hosts (default: that of this mpiexec).";
    Rendezvous: ["--rendezvous"] ["NAME:PORT"]
        "Starts one rank of a job whose other ranks are each started by a command like this one. Rank 0 listens at NAME:PORT, -n is the number of ranks of the whole job, and KW_KEY_FILE or KW_KEY holds the job's secret.";
    Rank: ["--rank"] ["R"]
        "With --rendezvous: the rank of this process (default: KW_RANK, JOB_COMPLETION_INDEX, or the number at the end of the host name).";
    Env: ["-env", "--env"] ["NAME", "VALUE"]
        "Sets an environment variable for this program; also NAME=VALUE in one word.";
    GlobalEnv: ["-genv", "--genv"] ["NAME", "VALUE"]
        "Sets an environment variable for all programs; also NAME=VALUE in one word.";
    Export: ["-x"] ["NAME[=VALUE]"]
        "Sets an environment variable for all programs. Without a value it has no effect: all variables are passed on anyway.";
    EnvNone: ["-envnone", "--envnone", "-genvnone"] []
        "Passes no environment variables to the ranks, except those named by other options.";
    Dir: ["-wdir", "--wdir", "-wd", "--wd", "-workdir"] ["DIR"]
        "Starts this program in directory DIR.";
    Label: ["-l", "--label", "-prepend-rank", "--tag-output"] []
        "Prefixes every line of output with the rank that wrote it.";
    Bind: ["--bind", "-bind-to", "--bind-to"] ["HOW"]
        "auto (default): binds each rank to an equal share of the CPUs that no other job is bound to; when ranks outnumber CPUs, the same number on each CPU, or no binding if they do not divide evenly. none: no binding. core, thread: one core or hardware thread per rank; core:N: N cores. socket, numa, l3cache, l2cache: all CPUs of the one that the share is on.";
    Map: ["-v", "--map", "--verbose"] []
        "Prints the program and CPUs of each rank before the job starts.";
    Network: ["--report-network"] []
        "Makes every rank print which addresses its connections used and why others were rejected (KW_LOG=info).";
    Profile: ["--profile"] []
        "Records MPI calls and prints a table of them at the end, by source location: time, count, bytes, time spent waiting. kwinfo --job prints it for a running job.";
    ProfileJson: ["--profile-json"] ["FILE"]
        "Like --profile; also writes the complete profile to FILE as JSON.";
    Trace: ["--trace"] ["FILE"]
        "Records every rank's MPI calls (with arguments) and messages over time and writes them to FILE in Perfetto's format while the job runs (same as KW_TRACE). Read it with kwtrace.";
    EndHung: ["--end-hung"] []
        "Ends a job that is proven to be deadlocked (every rank waits inside MPI and none can continue), with exit status 123.";
    Timeout: ["--timeout", "-timeout"] ["SECONDS"]
        "Ends the job after this time with exit status 124 and prints what every rank was waiting for.";
    Wrap: ["--wrap"] ["[RANKS:]COMMAND"]
        "Runs all ranks, or the named ones (0,4-7), under COMMAND, for example --wrap 'valgrind --log-file=rank.%r'; %r is replaced by the rank. If given several times, the first is outermost.";
    Debug: ["--debug"] ["R"]
        "Starts rank R under gdb, which gets standard input. The other ranks run and wait for it as long as necessary.";
    Help: ["-h", "--help", "-help"] []
        "Prints this text.";
    Version: ["-V", "--version", "-version"] []
        "Prints the version.";
    // Prints the manual page.
    Man: ["--man"] [] "";
    // Prints completions for bash or fish.
    Completions: ["--completions"] ["SHELL"] "";
    // Accepted; this is always the case.
    Ignored: [
        "--oversubscribe", "-oversubscribe", "--allow-run-as-root", "-allow-run-as-root",
        "-envall", "-genvall", "--envall"
    ] [] "";
}

/// The options that the help shows.
fn shown() -> impl Iterator<Item = &'static Row> {
    ALL.iter().filter(|r| !r.help.is_empty())
}

/// The row of an option as written.
pub fn find(word: &str) -> Option<&'static Row> {
    ALL.iter().find(|r| r.names.contains(&word))
}

/// The known name that is nearest to a wrong one, if any is near.
pub fn nearest(word: &str) -> Option<&'static str> {
    kw_base::near::nearest(word, shown().flat_map(|r| r.names.iter().copied()))
}

const HEAD: &str = "\
mpiexec starts the ranks of an MPI program on this machine or, through ssh, on other hosts.

Usage: mpiexec [-n N] [options] PROGRAM [arguments] [: [-n N] [options] PROGRAM [arguments]]...

";

const TAIL: &str = "
Standard input goes to rank 0, or to the rank of --debug. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and
SIGUSR2 are forwarded to all ranks; a second SIGINT kills them. SIGQUIT (Ctrl and backslash) prints what every
rank waits for and whether that is a deadlock; a second SIGQUIT within 3 s is forwarded. The same
report appears when all ranks have waited inside MPI for KW_HANG seconds (default 10; 0 = never).

The exit status is that of the first rank that failed: 128 + N after signal N, 127 if the program
was not found, 126 if it could not be executed; 124 after --timeout, 123 after --end-hung. If the
first rank to fail was killed by SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT, mpiexec prints where in
the program that happened (KW_BACKTRACE=no turns this off).

mpiexec reports why the job ended even if its output is not read. It then keeps running until all
buffered output has been read; send it a signal to exit at once.

Variables named KW_* are settings of the library: see kwinfo --settings.
";

/// The text of `--help`.
pub fn help() -> String {
    let mut out = HEAD.to_string();
    for r in shown() {
        let names = format!("{} {}", r.names.join(", "), r.takes.join(" "));
        out += &format!("  {}\n        {}\n", names.trim_end(), r.help);
    }
    out + TAIL
}

/// The text of `--version`.
pub fn version() -> String {
    format!("mpiexec (Kittiwake) {}\n", env!("CARGO_PKG_VERSION"))
}

/// The manual page.
pub fn man() -> String {
    let mut out = format!(
        ".TH MPIEXEC 1 \"\" \"Kittiwake {}\" \"Kittiwake\"\n.SH NAME\nmpiexec, mpirun \\- start the ranks of an MPI \
         program\n.SH SYNOPSIS\n.B mpiexec\n[\\-n N] [options] PROGRAM [arguments] [: [\\-n N] [options] PROGRAM \
         [arguments]]...\n.SH OPTIONS\n",
        env!("CARGO_PKG_VERSION")
    );
    for r in shown() {
        let takes = r.takes.join(" ");
        let names = r.names.join(", ").replace('-', "\\-");
        out += &format!(
            ".TP\n.B {names}\n.I {takes}\n{}\n",
            r.help.replace('-', "\\-")
        );
    }
    out += ".SH NOTES\n";
    out += &TAIL.trim_start().replace('-', "\\-");
    out + ".SH SEE ALSO\n.BR mpicc (1),\n.BR kwinfo (1)\n"
}

/// Completions for a shell, or `None` when it is unknown.
pub fn completions(shell: &str) -> Option<String> {
    let names = || shown().flat_map(|r| r.names.iter().copied());
    match shell {
        "bash" => Some(format!(
            "_mpiexec() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}}\n  case $word in\n    -*) COMPREPLY=($(compgen -W \
             '{}' -- \"$word\")) ;;\n    *) COMPREPLY=($(compgen -c -- \"$word\") $(compgen -f -- \"$word\")) ;;\n  \
             esac\n}}\ncomplete -o filenames -F _mpiexec mpiexec mpirun\n",
            names().collect::<Vec<_>>().join(" ")
        )),
        "fish" => Some(
            shown()
                .flat_map(|r| {
                    let help = r.help.replace('\'', "");
                    r.names.iter().map(move |n| {
                        let dashes = if n.starts_with("--") {
                            "-l"
                        } else if n.len() == 2 {
                            "-s"
                        } else {
                            "-o"
                        };
                        let name = n.trim_start_matches('-');
                        format!("complete -c mpiexec {dashes} {name} -d '{help}'\n")
                    })
                })
                .collect(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_given_twice() {
        let mut all: Vec<_> = ALL.iter().flat_map(|r| r.names).collect();
        let n = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), n);
    }

    #[test]
    fn typing_errors_are_understood() {
        assert_eq!(nearest("--lable"), Some("--label"));
        assert_eq!(nearest("-genvx"), Some("-genv"));
        assert_eq!(nearest("--something-else"), None);
    }
}
