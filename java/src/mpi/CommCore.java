package mpi;

import mpi.internal.Native;

/** A communicator's handle and what its calls want to know of it. */
abstract class CommCore {
    static final int NULL = 0x100;
    private static final int UNKNOWN = -1;
    long handle;
    private int rank = UNKNOWN;
    private int size = UNKNOWN;
    private int remoteSize = UNKNOWN;
    private int sources = UNKNOWN;
    private int destinations = UNKNOWN;

    CommCore(long handle) {
        this.handle = handle;
    }

    /** Handle of a communicator that a program passes. */
    static long handle(CommCore comm) {
        return MPIException.given(comm, MPI.ERR_COMM, "communicator").handle;
    }

    static void check(int rc) {
        if (rc != MPI.SUCCESS) {
            throw MPIException.of(MPI.library(), rc);
        }
    }

    final void forget() {
        handle = NULL;
        rank = UNKNOWN;
        size = UNKNOWN;
        remoteSize = UNKNOWN;
        sources = UNKNOWN;
        destinations = UNKNOWN;
    }

    /** Whether the communicator connects two groups. */
    boolean hasTwoGroups() {
        return false;
    }

    final int localRank() {
        if (rank == UNKNOWN) {
            rank = MPI.number((c, r) -> c.MPI_Comm_rank(handle, r));
        }
        return rank;
    }

    final int localSize() {
        if (size == UNKNOWN) {
            size = MPI.number((c, r) -> c.MPI_Comm_size(handle, r));
        }
        return size;
    }

    final int remoteSize() {
        if (remoteSize == UNKNOWN) {
            remoteSize = MPI.number((c, r) -> c.MPI_Comm_remote_size(handle, r));
        }
        return remoteSize;
    }

    /** Number of ranks whose parts a buffer of a collective operation has. */
    final int peers() {
        return hasTwoGroups() ? remoteSize() : localSize();
    }

    /** Whether this rank is the root. */
    final boolean isRoot(int root) {
        return hasTwoGroups() ? root == MPI.ROOT : root == localRank();
    }

    /** Whether this rank has a part of its own in a rooted operation. */
    final boolean sendsTo(int root) {
        return !hasTwoGroups() || root >= 0;
    }

    final int sources() {
        neighbours();
        return sources;
    }

    final int destinations() {
        neighbours();
        return destinations;
    }

    private void neighbours() {
        if (sources == UNKNOWN) {
            Native c = MPI.live();
            int topology = MPI.number((n, r) -> n.MPI_Topo_test(handle, r));
            if (topology == MPI.CART) {
                destinations = 2 * MPI.number((n, r) -> n.MPI_Cartdim_get(handle, r));
                sources = destinations;
            } else if (topology == MPI.GRAPH) {
                destinations = MPI.number((n, r) -> n.MPI_Graph_neighbors_count(handle, localRank(), r));
                sources = destinations;
            } else if (topology == MPI.DIST_GRAPH) {
                distributed(c);
            } else {
                throw MPIException.wrong(MPI.ERR_TOPOLOGY, "the communicator has no topology, so ranks have no neighbours in it");
            }
        }
    }

    private void distributed(Native c) {
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int numbers = frame.push(16);
            check(c.MPI_Dist_graph_neighbors_count(handle, frame.at(numbers), frame.at(numbers + 4), frame.at(numbers + 8)));
            destinations = frame.getInt(numbers + 4);
            sources = frame.getInt(numbers);
        } finally {
            frame.reset(mark);
        }
    }

    static long sum(int[] counts) {
        if (counts == null) {
            throw MPIException.wrong(MPI.ERR_ARG, "the counts are null");
        }
        long sum = 0;
        for (int count : counts) {
            if (count < 0) {
                throw Memory.negative(count);
            }
            sum += count;
        }
        return sum;
    }

    /** The count of this rank. */
    final int own(int[] counts) {
        if (counts.length < localSize()) {
            throw MPIException.wrong(MPI.ERR_ARG, "the counts are for " + counts.length + ", they must be for " + localSize() + " ranks");
        }
        return counts[localRank()];
    }

    static long handle(Datatype type) {
        return type == null ? Datatype.NULL : type.handle;
    }
}
