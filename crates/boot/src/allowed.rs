//! Paths allowed by `KW_PATHS`. The same on all ranks.

use super::Misuse;
use kw_base::settings::{Id, NETWORKS, Settings};

/// The value of `KW_PATHS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowed {
    /// Ranks of a host share memory.
    pub shm: bool,
    /// The path to other hosts: the first network that was named.
    pub network: Option<&'static str>,
}

impl Allowed {
    /// Reads the setting.
    pub fn read(settings: &Settings) -> Result<Allowed, Misuse> {
        let text = settings.text(Id::Paths);
        let mut allowed = Allowed {
            shm: false,
            network: None,
        };
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match (word, NETWORKS.iter().find(|name| **name == word)) {
                ("self", _) => {}
                ("shm", _) => allowed.shm = true,
                (_, Some(name)) => allowed.network = allowed.network.or(Some(name)),
                (_, None) => {
                    return Err(Misuse::NoPath {
                        text: text.into(),
                        word: word.into(),
                    });
                }
            }
        }
        Ok(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Allowed, Misuse> {
        let mut settings = Settings::defaults();
        settings.set(Id::Paths, text).unwrap();
        Allowed::read(&settings)
    }

    #[test]
    fn the_first_network_that_is_named_counts() {
        let network = |text| read(text).unwrap().network;
        assert_eq!(network("self,shm"), None);
        assert_eq!(network("self,udp,shm, tcp"), Some("udp"));
        assert_eq!(network("tcp,udp"), Some("tcp"));
        assert!(read("self,shm").unwrap().shm && !read("tcp").unwrap().shm);
    }

    #[test]
    fn a_word_that_names_no_path_is_refused_with_those_that_do() {
        let why = read("self,ib").unwrap_err().to_string();
        let want =
            "KW_PATHS is 'self,ib', but 'ib' is not a transport; known are self, shm, tcp, udp";
        assert_eq!(why, want);
    }
}
