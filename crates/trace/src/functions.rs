//! Kind of a function by its name: its pattern of waits, and its colour in the page.

/// Pattern of waits in a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// All for all, without data.
    Barrier,
    /// All for all, unless the program asserts that no rank needs to wait.
    Fence,
    /// All for all.
    AllToAll,
    /// The root for the others.
    ToRoot,
    /// The others for the root.
    FromRoot,
    /// Each for lower ranks.
    Scan,
    /// Each for the ranks from which it receives in the communicator's topology.
    Neighbors,
    /// Cannot be derived from the entry times alone: some ranks wait for some, or no rank waits in
    /// this call.
    Other,
}

/// Classes of calls, by which they are coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    /// Begins a send.
    Send = 1,
    /// Begins a receive, receives, or looks for a message.
    Receive,
    /// Completes requests.
    Completion,
    /// A barrier.
    Barrier,
    /// Another collective.
    Collective,
    /// Windows.
    OneSided,
    /// Files.
    File,
    /// All others.
    Other,
}

/// The name without `MPI_` and the suffix of large counts, in lower case.
fn stem(function: &str) -> String {
    let name = function.to_ascii_lowercase();
    let name = name.strip_prefix("mpi_").unwrap_or(&name);
    name.strip_suffix("_c").unwrap_or(name).to_string()
}

/// Pattern of waits in this collective. A call that starts a nonblocking one is [`Pattern::Other`].
pub fn pattern(function: &str) -> Pattern {
    match stem(function).as_str() {
        "barrier" => Pattern::Barrier,
        "win_fence" => Pattern::Fence,
        "bcast" | "scatter" | "scatterv" => Pattern::FromRoot,
        "reduce" | "gather" | "gatherv" => Pattern::ToRoot,
        "scan" | "exscan" => Pattern::Scan,
        name if name.ends_with("_init") => Pattern::Other,
        name if name.starts_with("neighbor_") => Pattern::Neighbors,
        name if is_immediate(name) => Pattern::Other,
        _ => Pattern::AllToAll,
    }
}

/// Whether this function may return before its operation is complete.
fn is_immediate(stem: &str) -> bool {
    stem.starts_with('i')
        && !stem.starts_with("init")
        && !stem.starts_with("info")
        && !stem.starts_with("inter")
        && !stem.starts_with("is_")
        || stem == "comm_idup"
        || stem == "comm_idup_with_info"
}

/// Whether this function waits for a message without receiving it.
pub fn is_probe(function: &str) -> bool {
    matches!(stem(function).as_str(), "probe" | "mprobe")
}

/// Whether this function begins a transfer without waiting for it.
pub fn immediate(function: &str) -> bool {
    is_immediate(&stem(function)) || stem(function).starts_with("start")
}

/// The class of a function; `collective`: the call has a number among those of its communicator.
pub fn class(function: &str, collective: bool) -> Class {
    let name = stem(function);
    let plain = if is_immediate(&name) && name.len() > 1 {
        &name[1..]
    } else {
        &name
    };
    match plain {
        "barrier" => Class::Barrier,
        "sendrecv" | "sendrecv_replace" => Class::Receive,
        "start" | "startall" | "pready" | "pready_list" | "pready_range" => Class::Send,
        p if p.starts_with("win_") || p.starts_with("rput") || p.starts_with("rget") => {
            Class::OneSided
        }
        "put" | "get" | "accumulate" | "get_accumulate" | "fetch_and_op" | "compare_and_swap"
        | "raccumulate" => Class::OneSided,
        p if p.starts_with("file_") => Class::File,
        p if p.starts_with("wait") || p.starts_with("test") || p.starts_with("request_") => {
            Class::Completion
        }
        p if p.ends_with("probe") || p.ends_with("recv") || p == "parrived" => Class::Receive,
        p if p.ends_with("send") => Class::Send,
        _ if collective => Class::Collective,
        _ => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_pattern() {
        for (name, wanted) in [
            ("MPI_Barrier", Pattern::Barrier),
            ("MPI_Win_fence", Pattern::Fence),
            ("MPI_Bcast_c", Pattern::FromRoot),
            ("MPI_Reduce", Pattern::ToRoot),
            ("MPI_Reduce_scatter", Pattern::AllToAll),
            ("MPI_Allreduce", Pattern::AllToAll),
            ("MPI_Comm_split", Pattern::AllToAll),
            ("MPI_Intercomm_create", Pattern::AllToAll),
            ("MPI_Exscan", Pattern::Scan),
            ("MPI_Iallreduce", Pattern::Other),
            ("MPI_Comm_idup", Pattern::Other),
            ("MPI_Neighbor_alltoall", Pattern::Neighbors),
            ("MPI_Neighbor_alltoallv_init", Pattern::Other),
            ("MPI_Ineighbor_alltoall", Pattern::Other),
        ] {
            assert_eq!(pattern(name), wanted, "{name}");
        }
    }

    #[test]
    fn names_have_their_class() {
        for (name, wanted) in [
            ("MPI_Isend", Class::Send),
            ("MPI_Bsend_c", Class::Send),
            ("MPI_Mrecv", Class::Receive),
            ("MPI_Iprobe", Class::Receive),
            ("MPI_Sendrecv", Class::Receive),
            ("MPI_Waitall", Class::Completion),
            ("MPI_Ibarrier", Class::Barrier),
            ("MPI_Allreduce", Class::Collective),
            ("MPI_Put", Class::OneSided),
            ("MPI_File_read_all", Class::File),
            ("MPI_Init", Class::Other),
        ] {
            let collective = matches!(name, "MPI_Allreduce" | "MPI_Ibarrier");
            assert_eq!(class(name, collective), wanted, "{name}");
        }
    }
}
