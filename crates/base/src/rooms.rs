//! What knobs, counters and events belong to: the groups in which `kwinfo`, the documentation and
//! the categories of MPI_T show them.

macro_rules! rooms {
    ($($id:ident = $name:literal, $help:literal;)*) => {
        /// Names a room.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Room { $($id),* }
        /// Every room, in the order they are shown.
        pub const ALL: &[Room] = &[$(Room::$id),*];
        impl Room {
            /// One word.
            pub fn name(self) -> &'static str {
                match self { $(Room::$id => $name),* }
            }
            /// One sentence.
            pub fn help(self) -> &'static str {
                match self { $(Room::$id => $help),* }
            }
        }
    };
}

rooms! {
    Start = "start", "How processes become a job, and how programs are made.";
    Protocols = "protocols", "How messages travel: eager, rendezvous, get and write.";
    Matching = "matching", "Messages and the receives they wait for.";
    Paths = "paths", "What carries frames between two ranks: memory of this process, shared memory, TCP, UDP.";
    Progress = "progress", "Who polls, who sleeps, and what the event thread does.";
    Collectives = "collectives", "Algorithms of collective operations.";
    Files = "files", "Access to files.";
    Reports = "reports", "What the library says of itself.";
}
