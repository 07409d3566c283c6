//! Why ranks do not form a job.

/// Why a conversation ends without what it was for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// Settings that must be the same are not: misuse, in the words of rank 0, which has seen all
    /// records.
    #[error("{0}")]
    Disagreement(String),
    /// Error: the start of a stored value that is not a list of ranks.
    #[error(
        "'{0}' is not a list of ranks as {this} writes it; install the same Kittiwake on all hosts",
        this = kw_base::LIBRARY
    )]
    List(String),
    /// The lists of ranks do not have as many as there are.
    #[error("the lists of ranks have {have}, not {due}")]
    Ranks {
        /// Ranks of the lists.
        have: u64,
        /// Ranks that there are.
        due: u64,
    },
    /// The launcher does not say of each rank where it is.
    #[error("{ranks} ranks are on {places} places")]
    Places {
        /// Ranks that there are.
        ranks: u64,
        /// Of how many the launcher says where they are.
        places: usize,
    },
    /// A rank's CPU set cannot be parsed.
    #[error("'{0}' is not a set of CPUs")]
    Processors(String),
    /// The launcher gives nothing for rank 0's verdict, which stands under this key.
    #[error("'{0}' has no value")]
    NoVerdict(&'static str),
    /// Rank 0's verdict cannot be read.
    #[error("the job settings sent by rank 0 are invalid")]
    Verdict,
}
