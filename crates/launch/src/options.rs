//! The options of `mpiexec`, once: parser, `--help`, manual page and completions are made from this
//! table.

/// Names an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opt {
    /// Ranks of this program.
    Count,
    /// Environment variable for this program.
    Env,
    /// Environment variable for all programs.
    GlobalEnv,
    /// Environment variable for all programs, value optional.
    Export,
    /// Pass no environment but what is named.
    EnvNone,
    /// Working directory of this program.
    Dir,
    /// Hosts, in a list.
    Hosts,
    /// Hosts, in a file.
    HostFile,
    /// Ranks of each host.
    PerHost,
    /// How ranks follow each other.
    MapBy,
    /// Command that reaches a host.
    Ssh,
    /// Installation on other hosts.
    Prefix,
    /// Join a job that is started elsewhere.
    Rendezvous,
    /// As which rank.
    Rank,
    /// Label output lines.
    Label,
    /// Binding.
    Bind,
    /// Print the map of ranks.
    Map,
    /// Print the networks.
    Network,
    /// Start ranks under a command.
    Wrap,
    /// Start one under a debugger.
    Debug,
    /// Have another MPI run it.
    With,
    /// Accepted for other launchers' sake: what it asks for is always so.
    Ignored,
    /// Tell what ranks called of MPI.
    Profile,
    /// That in a file, for programs.
    ProfileJson,
    /// Write what ranks do over time.
    Trace,
    /// End a job that hangs.
    EndHung,
    /// End a job after a time.
    Timeout,
    /// Accepted for other launchers' sake, has no effect, which is said.
    Unheeded,
    /// Help.
    Help,
    /// Version.
    Version,
    /// Manual page.
    Man,
    /// Shell completions.
    Completions,
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which one.
    pub opt: Opt,
    /// How it may be written; the first is the one we print.
    pub names: &'static [&'static str],
    /// Names of its arguments.
    pub takes: &'static [&'static str],
    /// One sentence.
    pub help: &'static str,
    /// Not shown in the help.
    pub hidden: bool,
}

const fn row(
    opt: Opt,
    names: &'static [&'static str],
    takes: &'static [&'static str],
    help: &'static str,
) -> Row {
    Row {
        opt,
        names,
        takes,
        help,
        hidden: false,
    }
}

const fn hidden(
    opt: Opt,
    names: &'static [&'static str],
    takes: &'static [&'static str],
    help: &'static str,
) -> Row {
    Row {
        opt,
        names,
        takes,
        help,
        hidden: true,
    }
}

/// The table.
pub const ALL: &[Row] = &[
    row(
        Opt::Count,
        &["-n", "-np", "--np", "-c"],
        &["N"],
        "Ranks to start (default 1, with hosts one for every slot), any number on any number of processors.",
    ),
    row(
        Opt::Hosts,
        &["--hosts", "-hosts", "--host", "-host", "-H"],
        &["HOST[:N],..."],
        "Runs on these hosts, each with N slots (default 1); without -n one rank for every slot.",
    ),
    row(
        Opt::HostFile,
        &[
            "--hostfile",
            "-hostfile",
            "-f",
            "--machinefile",
            "-machinefile",
        ],
        &["FILE"],
        "Runs on the hosts of a file: a host a line, as HOST, HOST:N or HOST slots=N; # begins a comment.",
    ),
    row(
        Opt::PerHost,
        &["-ppn", "--ppn", "-perhost", "-N"],
        &["N"],
        "Gives every host N slots, whatever the list says.",
    ),
    row(
        Opt::MapBy,
        &["--map-by", "-map-by"],
        &["HOW"],
        "slot: the ranks of a host follow each other (default); node: ranks go to the hosts in turn.",
    ),
    row(
        Opt::Ssh,
        &["--ssh", "-launcher-exec", "--launcher-exec"],
        &["COMMAND"],
        "Reaches other hosts with COMMAND HOST PROGRAM... instead of ssh; KW_SSH says the same.",
    ),
    row(
        Opt::Prefix,
        &["--prefix"],
        &["DIR"],
        "Where Kittiwake is installed on other hosts (default: where this mpiexec is).",
    ),
    row(
        Opt::Rendezvous,
        &["--rendezvous"],
        &["NAME:PORT"],
        "Starts one rank of a job whose other ranks are started elsewhere, each by such a command; rank 0 is found at NAME:PORT, -n says how many ranks the job has, KW_KEY_FILE or KW_KEY holds the secret of the job.",
    ),
    row(
        Opt::Rank,
        &["--rank"],
        &["R"],
        "With --rendezvous: which rank this is (default: KW_RANK, JOB_COMPLETION_INDEX, or the number at the end of the host's name).",
    ),
    row(
        Opt::Env,
        &["-env", "--env"],
        &["NAME", "VALUE"],
        "Sets a variable for this program; NAME=VALUE in one word is understood too.",
    ),
    row(
        Opt::GlobalEnv,
        &["-genv", "--genv"],
        &["NAME", "VALUE"],
        "Sets a variable for all programs; NAME=VALUE in one word is understood too.",
    ),
    row(
        Opt::Export,
        &["-x"],
        &["NAME[=VALUE]"],
        "Sets a variable for all programs; without a value it is passed on, as all variables are.",
    ),
    row(
        Opt::EnvNone,
        &["-envnone", "--envnone", "-genvnone"],
        &[],
        "Passes no variable of the environment on, except those that are named.",
    ),
    row(
        Opt::Dir,
        &["-wdir", "--wdir", "-wd", "-workdir"],
        &["DIR"],
        "Starts this program in DIR.",
    ),
    row(
        Opt::Label,
        &["-l", "--label", "-prepend-rank", "--tag-output"],
        &[],
        "Begins every line of output with the rank that wrote it.",
    ),
    row(
        Opt::Bind,
        &["--bind", "-bind-to", "--bind-to"],
        &["HOW"],
        "auto: an equal share of the processors for each rank, of those that no other job is bound to; of more ranks than processors as many on each, nothing where that does not go out evenly (default); none; core; thread.",
    ),
    row(
        Opt::Map,
        &["-v", "--map", "--verbose"],
        &[],
        "Prints which rank runs what, and on which processors, before the start.",
    ),
    row(
        Opt::Network,
        &["--report-network"],
        &[],
        "Has every rank print which addresses its connections used, and why not others, or that none was (KW_LOG=info).",
    ),
    row(
        Opt::Profile,
        &["--profile"],
        &[],
        "Records the calls of MPI, and prints at the end a table of them by place in the program: time, number, bytes, how long ranks waited; kwinfo --job has it printed of a job that runs.",
    ),
    row(
        Opt::ProfileJson,
        &["--profile-json"],
        &["FILE"],
        "As --profile, and writes all of it to FILE as JSON.",
    ),
    row(
        Opt::Trace,
        &["--trace"],
        &["FILE"],
        "Records what every rank does with MPI over time (calls with their arguments, messages), and writes it to FILE while the job runs; it is a trace of Perfetto's. Without the option KW_TRACE says it.",
    ),
    row(
        Opt::EndHung,
        &["--end-hung"],
        &[],
        "Ends a job that is proven to hang (every rank waits inside MPI for another, and none can go on), with status 123.",
    ),
    row(
        Opt::Timeout,
        &["--timeout", "-timeout"],
        &["SECONDS"],
        "Ends the job after this time, with status 124, and prints what every rank waits for.",
    ),
    row(
        Opt::Wrap,
        &["--wrap"],
        &["[RANKS:]COMMAND"],
        "Starts all ranks, or those named (0,4-7), under a command: --wrap 'valgrind --log-file=rank.%r' has valgrind run the program, with the rank for %r. Of several the first stands outermost.",
    ),
    row(
        Opt::Debug,
        &["--debug"],
        &["R"],
        "Starts rank R under gdb, which gets the terminal or whatever is standard input; the others run, and wait for it as long as they have to.",
    ),
    row(
        Opt::With,
        &["--with"],
        &["MPI"],
        "Has another MPI run the same command, for comparison: openmpi, mpich, intel, or the directory where one is installed; the program must have been compiled for it, or for the standard ABI where it has that.",
    ),
    row(
        Opt::Help,
        &["-h", "--help", "-help"],
        &[],
        "Prints this text.",
    ),
    row(
        Opt::Version,
        &["-V", "--version", "-version"],
        &[],
        "Prints the version.",
    ),
    hidden(Opt::Man, &["--man"], &[], "Prints the manual page."),
    hidden(
        Opt::Completions,
        &["--completions"],
        &["SHELL"],
        "Prints completions for bash or fish.",
    ),
    hidden(
        Opt::Ignored,
        &[
            "--oversubscribe",
            "-oversubscribe",
            "--allow-run-as-root",
            "-allow-run-as-root",
        ],
        &[],
        "Always so.",
    ),
    hidden(
        Opt::Unheeded,
        &["--mca", "-mca", "--gmca", "-gmca"],
        &["NAME", "VALUE"],
        "Open MPI's parameters; Kittiwake has others.",
    ),
    hidden(
        Opt::Unheeded,
        &[
            "-iface",
            "-rmk",
            "-bootstrap",
            "-launcher",
            "-demux",
            "-ranks-per-proc",
        ],
        &["VALUE"],
        "Of MPICH's mpiexec; has no meaning here.",
    ),
    hidden(
        Opt::Ignored,
        &["-envall", "-genvall", "--envall"],
        &[],
        "Always so.",
    ),
];

/// The row of an option as written.
pub fn find(word: &str) -> Option<&'static Row> {
    ALL.iter().find(|r| r.names.contains(&word))
}

/// The known name that is nearest to a wrong one, if any is near.
pub fn nearest(word: &str) -> Option<&'static str> {
    let names = ALL
        .iter()
        .filter(|r| !r.hidden)
        .flat_map(|r| r.names.iter().copied());
    kw_base::near::nearest(word, names)
}

const HEAD: &str = "\
mpiexec starts the ranks of an MPI program, on this machine or on hosts that ssh reaches.

Usage: mpiexec [-n N] [options] PROGRAM [arguments] [: [-n N] [options] PROGRAM [arguments]]...

";

const TAIL: &str = "
Standard input goes to rank 0, or to that of --debug. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to all ranks; a second SIGINT kills them.
SIGQUIT (Ctrl and the backslash) prints what every rank waits for, and whether that is a deadlock; a second one within 3 s is passed
on. The same is printed when every rank has waited inside MPI for KW_HANG seconds (default 10; 0: never).

The exit status is that of the first rank that failed: 128 + N after signal N, 127 when the program is not found, 126 when it cannot
be executed; 124 after --timeout, 123 after --end-hung. Of the first rank that SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT killed it
prints where it was (KW_BACKTRACE=no: not). Neither the verdict nor a signal waits for a reader of the output: mpiexec says why the job
ended, and stays for as long as somebody may still read what the ranks printed; a signal ends that too.

Variables named KW_* set the library's knobs: see kwinfo --knobs.
";

/// The text of `--help`.
pub fn help() -> String {
    let mut out = HEAD.to_string();
    for r in ALL.iter().filter(|r| !r.hidden) {
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
    for r in ALL.iter().filter(|r| !r.hidden) {
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
    let names = || {
        let shown = ALL.iter().filter(|r| !r.hidden);
        shown.flat_map(|r| r.names.iter().copied())
    };
    match shell {
        "bash" => Some(format!(
            "_mpiexec() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}}\n  case $word in\n    -*) COMPREPLY=($(compgen -W \
             '{}' -- \"$word\")) ;;\n    *) COMPREPLY=($(compgen -c -- \"$word\") $(compgen -f -- \"$word\")) ;;\n  \
             esac\n}}\ncomplete -o filenames -F _mpiexec mpiexec mpirun\n",
            names().collect::<Vec<_>>().join(" ")
        )),
        "fish" => Some(
            ALL.iter()
                .filter(|r| !r.hidden)
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
