package mpi;

/** The shape of a Cartesian grid and the place of this rank in it. */
public final class CartParms {
    /** Ranks in each dimension (mpiJava). */
    public final int[] dims;
    /** Whether a dimension is a ring (mpiJava). */
    public final boolean[] periods;
    /** Coordinates of this rank (mpiJava). */
    public final int[] coords;

    CartParms(int[] dims, boolean[] periods, int[] coords) {
        this.dims = dims;
        this.periods = periods;
        this.coords = coords;
    }

    /** Ranks in a dimension. */
    public int getDim(int i) {
        return dims[i];
    }

    /** Whether a dimension is a ring. */
    public boolean getPeriod(int i) {
        return periods[i];
    }

    /** Coordinate of this rank in a dimension. */
    public int getCoord(int i) {
        return coords[i];
    }

    /** Number of dimensions. */
    public int getDimCount() {
        return dims.length;
    }
}
