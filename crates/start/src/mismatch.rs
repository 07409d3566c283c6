//! Why ranks do not form a job.

/// Error that ends a conversation without a result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// Settings that must be the same differ: misuse, in the words of rank 0, which has seen all
    /// records.
    #[error("{0}")]
    Disagreement(String),
    /// Error: the start of a stored value that is not a list of ranks.
    #[error(
        "'{0}' is not a list of ranks as {this} writes it; install the same Kittiwake on all hosts",
        this = kw_base::LIBRARY
    )]
    List(String),
    /// The lists of ranks do not have the right number of ranks.
    #[error("the lists of ranks have {have}, not {due}")]
    Ranks {
        /// Ranks in the lists.
        have: u64,
        /// Ranks of the job.
        due: u64,
    },
    /// The launcher does not give the host of every rank.
    #[error("{ranks} ranks are on {places} places")]
    Places {
        /// Ranks of the job.
        ranks: u64,
        /// Ranks with a host.
        places: usize,
    },
    /// A rank's CPU set cannot be parsed.
    #[error("'{0}' is not a set of CPUs")]
    Processors(String),
    /// The launcher has no value under the key of rank 0's verdict.
    #[error("'{0}' has no value")]
    NoVerdict(&'static str),
    /// Rank 0's verdict cannot be read.
    #[error("the job settings sent by rank 0 are invalid")]
    Verdict,
}
