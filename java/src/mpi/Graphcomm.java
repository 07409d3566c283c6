package mpi;

/** A communicator whose ranks form a graph (mpiJava). */
public final class Graphcomm extends GraphComm {
    Graphcomm(long handle) {
        super(handle);
    }

    /** The graph. */
    public GraphParms Get() throws MPIException {
        return getDims();
    }

    /** The neighbours of a rank. */
    public int[] Neighbours(int rank) throws MPIException {
        return getNeighbors(rank);
    }

    /** The rank that this one should have in such a graph. */
    public int Map(int[] index, int[] edges) throws MPIException {
        return map(index, edges);
    }
}
