package mpi;

/** A communicator whose ranks form a Cartesian grid (mpiJava). */
public final class Cartcomm extends CartComm {
    Cartcomm(long handle) {
        super(handle);
    }

    /** The most even grid of this many ranks. */
    public static int[] Dims_create(int nodes, int[] dims) throws MPIException {
        createDims(nodes, dims);
        return dims;
    }

    /** The shape of the grid and the place of this rank. */
    public CartParms Get() throws MPIException {
        return getTopo();
    }

    /** The rank at some coordinates. */
    public int Rank(int[] coords) throws MPIException {
        return getRank(coords);
    }

    /** The coordinates of a rank. */
    public int[] Coords(int rank) throws MPIException {
        return getCoords(rank);
    }

    /** The neighbours of this rank in a direction. */
    public ShiftParms Shift(int direction, int disp) throws MPIException {
        return shift(direction, disp);
    }

    /** The grid of some dimensions that this rank is in. */
    public Cartcomm Sub(boolean[] remain) throws MPIException {
        return part(remain);
    }

    /** The rank that this one should have in such a grid. */
    public int Map(int[] dims, boolean[] periods) throws MPIException {
        return map(dims, periods);
    }
}
