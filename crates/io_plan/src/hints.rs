//! Info keys that influence how files are accessed (MPI 5.0, 14.2.8), under the names that ROMIO's
//! users know. An unknown key, or an invalid value, changes nothing.

/// When something is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Switch {
    /// If it pays.
    #[default]
    Automatic,
    /// Always.
    Enable,
    /// Never.
    Disable,
}

impl Switch {
    fn parse(value: &str) -> Option<Switch> {
        match value.to_ascii_lowercase().as_str() {
            "automatic" => Some(Switch::Automatic),
            "enable" | "true" => Some(Switch::Enable),
            "disable" | "false" => Some(Switch::Disable),
            _ => None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Switch::Automatic => "automatic",
            Switch::Enable => "enable",
            Switch::Disable => "disable",
        }
    }
}

/// The hints of one open file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hints {
    /// `cb_nodes`: number of ranks that access the file for others; by default up to four of each
    /// host.
    pub aggregators: Option<u32>,
    /// `cb_buffer_size`: bytes that an aggregator accesses at once.
    pub buffer: u64,
    /// `striping_unit`: the domains of aggregators start at multiples of this many bytes.
    pub alignment: u64,
    /// `striping_factor`: reported as given; the file systems here have no stripes to choose.
    pub stripes: Option<u32>,
    /// `romio_cb_read`: whether collective reads exchange data.
    pub exchange_reads: Switch,
    /// `romio_cb_write`: whether collective writes exchange data.
    pub exchange_writes: Switch,
    /// `romio_ds_read`: whether gaps between pieces are read together with them.
    pub sieve_reads: Switch,
    /// `ind_rd_buffer_size`: bytes that are read at once if gaps are included.
    pub sieve: u64,
    /// `file_perm`: permissions of a new file in the notation of chmod; by default 0666 without the
    /// process's umask.
    pub permissions: Option<u32>,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            aggregators: None,
            buffer: 4 << 20,
            alignment: 4096,
            stripes: None,
            exchange_reads: Switch::Automatic,
            exchange_writes: Switch::Automatic,
            sieve_reads: Switch::Automatic,
            sieve: 4 << 20,
            permissions: None,
        }
    }
}

/// The largest buffer that a hint can request, in bytes.
const MOST_BUFFER: u64 = 1 << 30;

impl Hints {
    /// Takes one key and its value; returns whether it has a meaning here.
    pub fn set(&mut self, key: &str, value: &str) -> bool {
        let value = value.trim();
        let number = || value.parse::<u64>().ok().filter(|&n| n > 0);
        let size = || number().map(|n| n.min(MOST_BUFFER));
        let count = || number().and_then(|n| u32::try_from(n).ok());
        fn store<T>(place: &mut T, value: Option<T>) -> bool {
            value.map(|v| *place = v).is_some()
        }
        match key {
            "cb_nodes" => store(&mut self.aggregators, count().map(Some)),
            "cb_buffer_size" => store(&mut self.buffer, size()),
            "striping_unit" | "cb_block_size" => store(&mut self.alignment, size()),
            "striping_factor" => store(&mut self.stripes, count().map(Some)),
            "romio_cb_read" => store(&mut self.exchange_reads, Switch::parse(value)),
            "romio_cb_write" => store(&mut self.exchange_writes, Switch::parse(value)),
            "romio_ds_read" => store(&mut self.sieve_reads, Switch::parse(value)),
            "ind_rd_buffer_size" => store(&mut self.sieve, size()),
            "collective_buffering" => {
                let switch = Switch::parse(value);
                store(&mut self.exchange_reads, switch) && store(&mut self.exchange_writes, switch)
            }
            "file_perm" => {
                let bits = u32::from_str_radix(value, 8).ok();
                store(
                    &mut self.permissions,
                    bits.filter(|b| *b <= 0o777).map(Some),
                )
            }
            _ => false,
        }
    }

    /// The hints in use, for MPI_File_get_info.
    pub fn list(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("cb_buffer_size", self.buffer.to_string()),
            ("romio_cb_read", self.exchange_reads.text().to_string()),
            ("romio_cb_write", self.exchange_writes.text().to_string()),
            ("romio_ds_read", self.sieve_reads.text().to_string()),
            ("ind_rd_buffer_size", self.sieve.to_string()),
            ("striping_unit", self.alignment.to_string()),
        ];
        let optional = [
            ("cb_nodes", self.aggregators.map(|n| n.to_string())),
            ("striping_factor", self.stripes.map(|n| n.to_string())),
            ("file_perm", self.permissions.map(|n| format!("{n:04o}"))),
        ];
        all.extend(optional.into_iter().filter_map(|(k, v)| Some((k, v?))));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_that_make_sense_are_taken_and_reported() {
        let mut hints = Hints::default();
        assert!(hints.set("cb_nodes", "3"));
        assert!(hints.set("cb_buffer_size", " 65536 "));
        assert!(hints.set("collective_buffering", "false"));
        assert!(hints.set("file_perm", "0640"));
        for (key, value) in [
            ("cb_nodes", "-3"),
            ("cb_buffer_size", "0"),
            ("romio_cb_read", "perhaps"),
            ("file_perm", "9"),
            ("unknown", "1"),
        ] {
            let before = hints.clone();
            assert!(!hints.set(key, value), "{key}={value}");
            assert_eq!(hints, before);
        }
        let list = hints.list();
        let of = |key| {
            list.iter()
                .find(|(k, _)| *k == key)
                .map(|(_, v)| v.as_str())
        };
        assert_eq!(of("cb_nodes"), Some("3"));
        assert_eq!(of("cb_buffer_size"), Some("65536"));
        assert_eq!(of("romio_cb_write"), Some("disable"));
        assert_eq!(of("file_perm"), Some("0640"));
    }
}
