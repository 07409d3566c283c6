//! This machine's name.

/// The host name as the kernel knows it (no resolver is asked).
pub fn name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
