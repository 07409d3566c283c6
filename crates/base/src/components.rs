//! Groups of settings, counters and events in `kwinfo`, the documentation and MPI_T's categories.

macro_rules! components {
    ($($id:ident = $name:literal, $help:literal;)*) => {
        /// A group.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Component { $($id),* }
        /// Every group, in display order.
        pub const ALL: &[Component] = &[$(Component::$id),*];
        impl Component {
            /// One word.
            pub fn name(self) -> &'static str {
                match self { $(Component::$id => $name),* }
            }
            /// One sentence.
            pub fn help(self) -> &'static str {
                match self { $(Component::$id => $help),* }
            }
        }
    };
}

components! {
    Start = "start", "Starting jobs and compiling programs.";
    Protocols = "protocols", "Message protocols: eager, rendezvous, get and write.";
    Matching = "matching", "Matching of messages and receives.";
    Paths = "paths", "Transports between two ranks: self, shared memory, TCP, UDP.";
    Progress = "progress", "Polling, sleeping and the progress thread.";
    Collectives = "collectives", "Algorithms of collective operations.";
    Files = "files", "Access to files.";
    Windows = "windows", "One-sided communication.";
    Reports = "reports", "Diagnostics, logs and traces.";
}
