//! Tags of the messages that create communicators.

/// Purpose of a message, which determines its tag in the contexts for creating communicators. User
/// tags, which MPI_Comm_create_group and MPI_Intercomm_create pass, are nonnegative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Within one group.
    Local,
    /// Between the leaders of two groups.
    Leaders,
    /// Agreeing on a shm region.
    ShmRegion,
    /// With a tag of the user.
    User(i32),
}

impl Purpose {
    /// The tag.
    pub fn tag(self) -> i32 {
        match self {
            Purpose::Local => -1001,
            Purpose::Leaders => -1002,
            Purpose::ShmRegion => -1004,
            Purpose::User(tag) => tag,
        }
    }
}
