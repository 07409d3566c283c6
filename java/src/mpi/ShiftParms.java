package mpi;

/** The neighbours of a rank in one direction of a grid. */
public final class ShiftParms {
    /** Rank to receive from (mpiJava). */
    public final int rank_source;
    /** Rank to send to (mpiJava). */
    public final int rank_dest;

    ShiftParms(int source, int dest) {
        rank_source = source;
        rank_dest = dest;
    }

    /** Rank to receive from. */
    public int getRankSource() {
        return rank_source;
    }

    /** Rank to send to. */
    public int getRankDest() {
        return rank_dest;
    }
}
