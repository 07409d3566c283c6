//! The launcher: `mpiexec` starts the ranks of a job on this machine or, through a helper on each,
//! on other hosts; it serves them PMI-1, passes their output on, and ends the job when one of them
//! fails. `kwinfo` prints information about the library.
//!
//! | file | what |
//! | --- | --- |
//! | [`options`] | the table of options: parser, help, manual page and shell completions read it |
//! | [`args`] | the command line as a [`args::Command`] |
//! | [`plan`] | what to start: programs found, environments made, one entry a rank |
//! | [`hosts`] | hosts by list and by file, and which rank goes where |
//! | [`slurm`] | the hosts of an allocation of Slurm |
//! | [`bind`] | which processors each rank gets |
//! | [`ranks`] | the processes of ranks on this machine |
//! | [`huge_pages`] | asks for huge pages for what ranks ask malloc for |
//! | [`join`] | one rank of a job whose others are started elsewhere |
//! | [`job`] | the event loop that runs a plan |
//! | [`remote`] | another host, as mpiexec sees it: the command that reaches it, the conversation with the helper there |
//! | [`helper`] | that helper |
//! | [`verdict`] | how the job ends: its exit status and one sentence |
//! | [`crash`] | what a rank says when a signal kills it, with the names of functions |
//! | [`ask`] | has an mpiexec that runs say where every rank is |
//! | [`inquiry`] | when ranks are asked what they wait for, and what follows |
//! | [`trace`] | what ranks do with MPI over time (`--trace`): how it is taken from them, clocks, the file |
//! | [`profile`] | what ranks call of MPI (`--profile`): where they write it, all of it, the page |
//! | `inherited_recording` | spawned jobs are traced and profiled as their parent's job is |
//! | [`sites`] | file and line of places in programs |
//! | [`outside`] | what the system says of a process that does not wait in MPI |
//! | [`elf`] | what the file of a program says: which libraries it was linked with |
//! | [`libraries`] | which library of this installation a program runs on |
//! | [`java`] | where a program in Java finds MPI's classes |
//! | [`wrap`] | commands that ranks are started under: `--wrap`, `--debug` |
//! | [`output`] | whole lines out of pipes, labels, writers |
//! | [`stdin`] | standard input for rank 0 |
//! | [`listing`] | tables on a terminal |
//! | [`choices`], [`collectives`], [`figures`], [`wanted`] | what a job would choose, by which figures, and of which job that is said |
//! | [`verify`] | times the choices by a calibration beside their alternatives |
//! | [`doctor`] | what of a machine costs programs time, or keeps them from running |
//! | [`tuning`] | what it says about settings, counters and events, and the page of them |
#![forbid(unsafe_code)]

/// Which functions of MPI 5.0 are built: what `kwinfo --coverage` prints.
pub const COVERAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/coverage.txt"));

pub mod args;
pub mod ask;
pub mod bind;
pub mod calibrate;
pub mod choices;
mod claim;
pub mod collectives;
pub mod crash;
pub mod doctor;
pub mod elf;
pub mod foreign;
pub mod helper;
pub mod hosts;
pub mod huge_pages;
mod inherited_recording;
pub mod inquiry;
pub mod java;
pub mod job;
pub mod join;
pub mod libraries;
pub mod listing;
pub mod map;
pub mod options;
pub mod output;
pub mod outside;
pub mod plan;
pub mod profile;
pub mod ranks;
pub mod remote;
pub mod sites;
pub mod slurm;
pub mod stdin;
pub mod trace;
pub mod tuning;
pub mod verdict;
pub mod verify;
pub mod wanted;
pub mod wrap;
