//! The networks that `KW_PATHS` can name, and how each is opened. No crate below this one names a
//! network: the engine gets the result of [`open`].
#![forbid(unsafe_code)]

use kw_path::{CannotOpen, Network, Open, Opening};

/// All networks, one per line, by their word in `KW_PATHS`.
const ALL: [(&str, Open); 2] = [
    ("tcp", kw_path::tcp::open), //
    ("udp", kw_path::udp::open),
];

/// Opens the network that a rank needs; none if it needs none.
pub fn open(opening: Option<Opening<'_>>) -> Result<Option<Box<dyn Network>>, CannotOpen> {
    let Some(opening) = opening else {
        return Ok(None);
    };
    match ALL.iter().find(|(name, _)| *name == opening.name) {
        Some((_, open)) => open(opening).map(Some),
        // The test below ensures that the settings accept only these names.
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_base::settings::NETWORKS;

    #[test]
    fn every_network_that_the_settings_know_can_be_opened_and_no_other() {
        assert_eq!(ALL.map(|(name, _)| name), NETWORKS);
    }
}
