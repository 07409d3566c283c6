//! How a path's costs become crossing points of the protocols: by the host's calibration and the
//! current settings of the protocols.

use super::Route;
use crate::settings::mark;
use kw_base::Calibration;
use kw_base::settings::{Id, Settings};
use kw_proto::p2p::table::{Choice, Lines, Reason, Room};

/// See the module.
#[derive(Debug)]
pub(super) struct Prices {
    /// Basis of the paths' prices.
    pub host: Calibration,
    /// Largest eager message in bytes, if a setting sets it: through memory, and over the network.
    eager: (Option<u64>, Option<u64>),
    single_copy: bool,
    write: bool,
    room: Room,
}

impl Prices {
    /// `network`: the setting of the network's largest eager message; `ranks`: those of the job.
    pub fn read(
        host: &Calibration,
        settings: &Settings,
        network: Option<Id>,
        ranks: u32,
    ) -> Prices {
        Prices {
            host: *host,
            eager: (
                settings.number(Id::EagerShm),
                network.and_then(|id| settings.number(id)),
            ),
            single_copy: settings.flag(Id::SingleCopy),
            write: settings.flag(Id::Write),
            room: Room {
                mark: mark(settings),
                peers: ranks.saturating_sub(1),
            },
        }
    }

    /// Crossing points of the protocols of a path with these costs, and the reasons for them.
    pub fn choose(&self, route: Route, mut lines: Lines) -> (Choice, Lines, Reason) {
        let eager = match route {
            Route::Net => self.eager.1,
            _ => self.eager.0,
        };
        lines.get = lines.get.filter(|_| self.single_copy);
        lines.shared_get = lines.shared_get.filter(|_| self.single_copy);
        let choice = Choice::from_lines(&lines, self.room, eager, self.write);
        (choice, lines, choice.reason(self.room, eager))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_base::calibration::Line;

    #[test]
    fn a_setting_of_one_path_leaves_the_others_alone() {
        let mut settings = Settings::defaults();
        let host = Calibration::START;
        let line = Line {
            t0: 1000.0,
            tb: 0.1,
        };
        let lines = Lines {
            stream: line,
            copy: line,
            control: line,
            get: Some(line),
            shared_get: None,
        };
        let prices = Prices::read(&host, &settings, Some(Id::EagerTcp), 2);
        assert!(prices.choose(Route::Shm, lines).1.get.is_some());
        let before = prices.choose(Route::Shm, lines).0;
        settings.set(Id::EagerTcp, "77").unwrap();
        settings.set(Id::SingleCopy, "no").unwrap();
        let prices = Prices::read(&host, &settings, Some(Id::EagerTcp), 2);
        assert_eq!(prices.choose(Route::Net, lines).0.eager_max, 77);
        let (after, lines, _) = prices.choose(Route::Shm, lines);
        assert_eq!(after.eager_max, before.eager_max);
        assert!(lines.get.is_none());
    }
}
