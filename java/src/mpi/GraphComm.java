package mpi;

import mpi.internal.Native;

/** A communicator whose ranks form a graph. */
public class GraphComm extends Intracomm {
    GraphComm(long handle) {
        super(handle);
    }

    /** The graph. */
    public final GraphParms getDims() throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int sizes = frame.push(8);
            check(c.MPI_Graphdims_get(handle, frame.at(sizes), frame.at(sizes + 4)));
            int nodes = frame.getInt(sizes);
            int edges = frame.getInt(sizes + 4);
            int[] at = {frame.push(4 * nodes + 4), frame.push(4 * edges + 4)};
            check(c.MPI_Graph_get(handle, nodes, edges, frame.at(at[0]), frame.at(at[1])));
            return new GraphParms(frame.getInts(at[0], nodes), frame.getInts(at[1], edges));
        } finally {
            frame.reset(mark);
        }
    }

    /** The neighbours of a rank. */
    public final int[] getNeighbors(int rank) throws MPIException {
        Native c = MPI.live();
        int n = MPI.number((l, r) -> l.MPI_Graph_neighbors_count(handle, rank, r));
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int place = frame.push(4 * n + 4);
            check(c.MPI_Graph_neighbors(handle, rank, n, frame.at(place)));
            return frame.getInts(place, n);
        } finally {
            frame.reset(mark);
        }
    }

    /** The rank that this one should have in such a graph. */
    public final int map(int[] index, int[] edges) throws MPIException {
        MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long i = frame.ints(index);
            long e = frame.ints(edges);
            return MPI.number((c, r) -> c.MPI_Graph_map(handle, index.length, i, e, r));
        } finally {
            frame.reset(mark);
        }
    }

    @Override
    Graphcomm like(long other) {
        return new Graphcomm(other);
    }

    @Override
    public Graphcomm dup() throws MPIException {
        return (Graphcomm) super.dup();
    }

    @Override
    public Graphcomm clone() {
        return dup();
    }
}
