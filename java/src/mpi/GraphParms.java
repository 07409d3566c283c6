package mpi;

/** A graph of ranks. */
public final class GraphParms {
    /** For each rank, where its edges end (mpiJava). */
    public final int[] index;
    /** Neighbours of all ranks one behind another (mpiJava). */
    public final int[] edges;

    GraphParms(int[] index, int[] edges) {
        this.index = index;
        this.edges = edges;
    }

    /** Where the edges of a rank end. */
    public int getIndex(int i) {
        return index[i];
    }

    /** A neighbour. */
    public int getEdge(int i) {
        return edges[i];
    }

    /** Number of ranks. */
    public int getIndexCount() {
        return index.length;
    }

    /** Number of edges. */
    public int getEdgeCount() {
        return edges.length;
    }
}
