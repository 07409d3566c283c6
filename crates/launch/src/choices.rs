//! Choices of a job started here for its messages, with reasons: `kwinfo --choices`. The same
//! functions choose in a rank; there `KW_LOG=debug` logs for each peer the choice with the round
//! trip and the rate of its connection.

use crate::listing::Listing;
use crate::wanted::{Job, has_path};
use kw_base::Calibration;
use kw_base::calibration::{Figure, Part};
use kw_base::settings::{Id, Settings};
use kw_proto::p2p::prices::{self, Network};
use kw_proto::p2p::table::{Choice, Lines, Room};

/// Sizes of the jobs that are shown.
const RANKS: [u32; 3] = [2, 16, 128];
/// Networks that are shown: name, round trip in microseconds, and gigabits per second.
const NETWORKS: [(&str, f64, f64); 3] = [
    ("tcp, 1 Gb/s, 100 us", 100.0, 1.0),
    ("tcp, 10 Gb/s, 40 us", 40.0, 10.0),
    ("tcp, 100 Gb/s, 15 us", 15.0, 100.0),
];

/// Upper limit of message lengths.
const NEVER: u64 = 1 << 40;

/// A path, its costs, and the setting for its largest eager message.
struct Shown {
    path: &'static str,
    lines: Lines,
    setting: Id,
}

fn shown(c: &Calibration, settings: &Settings) -> Vec<Shown> {
    let row = |path, lines, setting| Shown {
        path,
        lines,
        setting,
    };
    let near = Network::default();
    let mut all = vec![
        row(
            "shm",
            prices::shared_memory(c, settings.flag(Id::SingleCopy), true),
            Id::EagerShm,
        ),
        row("tcp within a host", prices::tcp(c, &near), Id::EagerTcp),
        row("udp", prices::udp(c, &near), Id::EagerUdp),
    ];
    let networks = NETWORKS.into_iter().map(|(path, micros, gigabits)| {
        let network = Network {
            round_trip: micros * 1e3,
            byte: 8.0 / gigabits,
        };
        row(path, prices::tcp(c, &network), Id::EagerTcp)
    });
    all.extend(networks);
    all
}

/// The paths of a job among those that the settings allow.
fn paths_of(job: &Job, c: &Calibration, settings: &Settings) -> Vec<(String, Shown)> {
    let mut all = Vec::new();
    let mut add = |name: &str, path, lines, setting| {
        all.push((
            name.into(),
            Shown {
                path,
                lines,
                setting,
            },
        ));
    };
    let (shm, near) = (has_path(settings, "shm"), Network::default());
    if job.per_host > 1 && shm {
        let single_copy = settings.flag(Id::SingleCopy);
        let lines = prices::shared_memory(c, single_copy, !job.oversubscribed);
        add("shm within a host", "shm", lines, Id::EagerShm);
    }
    let lines = |by_udp, network: &Network| match by_udp {
        true => (prices::udp(c, network), Id::EagerUdp),
        false => (prices::tcp(c, network), Id::EagerTcp),
    };
    if let Some((path, by_udp)) = network_of(settings) {
        if job.per_host > 1 && !shm {
            let (lines, setting) = lines(by_udp, &near);
            add(&format!("{path} within a host"), path, lines, setting);
        }
        if job.hosts > 1 {
            let network = Network {
                round_trip: c.get_or_start(Figure::NetTrip),
                byte: c.get_or_start(Figure::NetByte),
            };
            let known = match c.has(Part::Network) {
                true => "measured",
                false => "assumed until its connections have measured it",
            };
            let name = format!(
                "{path} between hosts, {:.1} us, {:.1} Gb/s ({known})",
                network.round_trip / 1e3,
                8.0 / network.byte
            );
            let (lines, setting) = lines(by_udp, &network);
            add(&name, path, lines, setting);
        }
    }
    all
}

/// The network path in use, and whether it is UDP's.
fn network_of(settings: &Settings) -> Option<(&'static str, bool)> {
    let mut names = settings.text(Id::Paths).split(',').map(str::trim);
    names.find_map(|p| match p {
        "tcp" => Some(("tcp", false)),
        "udp" => Some(("udp", true)),
        _ => None,
    })
}

/// The choice on a path in a job of this many ranks, and its reason.
fn chosen(s: &Shown, ranks: u32, settings: &Settings) -> (Choice, &'static str) {
    let room = Room {
        mark: settings.number(Id::Unexpected).unwrap_or(0),
        peers: ranks.saturating_sub(1),
    };
    let setting = settings.number(s.setting);
    let choice = Choice::from_lines(&s.lines, room, setting, settings.flag(Id::Write));
    (choice, choice.reason(room, setting).sentence())
}

/// The shortest message that the receiver reads, as it is shown.
fn fetched_from(choice: &Choice, shown: impl Fn(u64) -> String) -> String {
    match choice.get_min {
        n if n > NEVER => "-".into(),
        n => shown(n),
    }
}

/// The choices for messages by these figures and settings.
pub fn messages(c: &Calibration, settings: &Settings) -> Listing {
    let row = |s: Shown| {
        let all = RANKS.map(|ranks| chosen(&s, ranks, settings));
        let eager = all.map(|(choice, _)| bytes(choice.eager_max)).join(" / ");
        let fetched = fetched_from(&all[0].0, bytes);
        let mut why: Vec<&str> = all.iter().map(|(_, why)| *why).collect();
        why.dedup();
        let why = why.join("; with more ranks: ");
        vec![s.path.into(), eager, fetched, why]
    };
    Listing {
        head: vec![
            "Path",
            "Eager up to (2 / 16 / 128 ranks)",
            "Read from",
            "Reason",
        ],
        rows: shown(c, settings).into_iter().map(row).collect(),
    }
}

/// The choices for the messages of one job.
pub fn of_job(job: &Job, c: &Calibration, settings: &Settings) -> Listing {
    let row = |(name, s): (String, Shown)| {
        let (choice, why) = chosen(&s, job.ranks, settings);
        let announced = match choice.announces() {
            true => bytes(choice.announce_min),
            false => "-".into(),
        };
        vec![
            name,
            bytes(choice.eager_max),
            fetched_from(&choice, bytes),
            announced,
            why.into(),
        ]
    };
    Listing {
        head: vec![
            "Path",
            "Eager up to",
            "Read from",
            "Announced from",
            "Reason for eager limit",
        ],
        rows: paths_of(job, c, settings).into_iter().map(row).collect(),
    }
}

/// The table for programs (`calibrate::choices_for_programs`).
pub fn job_rows(job: &Job, c: &Calibration, settings: &Settings) -> Vec<Vec<String>> {
    let all = paths_of(job, c, settings).into_iter();
    all.map(|(_, s)| words(&s, job.ranks, settings)).collect()
}

/// The table for programs (`calibrate::choices_for_programs`).
pub fn message_rows(c: &Calibration, settings: &Settings) -> Vec<Vec<String>> {
    let all = shown(c, settings).into_iter();
    let of = |s: Shown| RANKS.map(|ranks| words(&s, ranks, settings));
    all.flat_map(of).collect()
}

fn words(s: &Shown, ranks: u32, settings: &Settings) -> Vec<String> {
    let (choice, why) = chosen(s, ranks, settings);
    vec![
        "messages".into(),
        s.path.into(),
        ranks.to_string(),
        choice.eager_max.to_string(),
        fetched_from(&choice, |n| n.to_string()),
        why.into(),
    ]
}

fn bytes(n: u64) -> String {
    match n {
        0..10_240 => format!("{n}"),
        10_240..10_485_760 => format!("{}K", n >> 10),
        _ => format!("{}M", n >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eager(settings: &Settings) -> Vec<String> {
        let list = messages(&Calibration::START, settings);
        list.rows.iter().map(|row| row[1].clone()).collect()
    }

    #[test]
    fn a_setting_is_shown_as_the_reason() {
        let mut settings = Settings::defaults();
        let before = eager(&settings);
        settings.set(Id::EagerTcp, "8M").unwrap();
        let after = eager(&settings);
        assert_eq!(
            before[0], after[0],
            "shared memory has a setting of its own"
        );
        assert_eq!(after[1], "8192K / 8192K / 8192K");
        let list = messages(&Calibration::START, &settings);
        assert!(list.rows[1][3].contains("KW_EAGER"), "{:?}", list.rows[1]);
    }

    #[test]
    fn a_job_is_shown_the_paths_that_it_has() {
        let c = Calibration::START.with_network(100_000_000, 8_192_000);
        let paths = |ranks, per_host, allowed: &str| {
            let mut settings = Settings::defaults();
            settings.set(Id::Paths, allowed).unwrap();
            let rows = of_job(&Job::plain(ranks, per_host), &c, &settings).rows;
            rows.into_iter().map(|r| r[0].clone()).collect::<Vec<_>>()
        };
        let between = "between hosts, 100.0 us, 1.0 Gb/s (measured)";
        assert_eq!(paths(4, 4, "self,shm,tcp"), ["shm within a host"]);
        assert_eq!(paths(4, 4, "self,tcp"), ["tcp within a host"]);
        assert_eq!(paths(4, 1, "self,shm,udp,tcp"), [format!("udp {between}")]);
        let both = ["shm within a host".into(), format!("tcp {between}")];
        assert_eq!(paths(4, 2, "self,shm,tcp"), both);
        assert!(paths(1, 1, "self").is_empty());
    }

    #[test]
    fn a_slow_network_is_bounded_by_memory_alone() {
        let list = messages(&Calibration::START, &Settings::defaults());
        let slow = list.rows.iter().find(|row| row[0].contains("1 Gb/s"));
        assert!(slow.is_some_and(|row| row[3].contains("KW_UNEXPECTED")));
    }
}
