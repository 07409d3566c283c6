package mpi;

import mpi.internal.Native;

/** A communicator whose ranks form a Cartesian grid. */
public class CartComm extends Intracomm {
    private static final int UNKNOWN = -1;
    private int dimensions = UNKNOWN;

    CartComm(long handle) {
        super(handle);
    }

    private int dimensions() {
        if (dimensions == UNKNOWN) {
            dimensions = MPI.number((c, r) -> c.MPI_Cartdim_get(handle, r));
        }
        return dimensions;
    }

    /** The most even grid of this many ranks; dimensions that are not 0 stay unchanged. */
    public static void createDims(int nodes, int[] dims) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int place = frame.push(4 * MPIException.given(dims, MPI.ERR_DIMS, "array of dimensions").length + 4);
            for (int i = 0; i < dims.length; i++) {
                frame.putInt(place + 4 * i, dims[i]);
            }
            check(c.MPI_Dims_create(nodes, dims.length, frame.at(place)));
            System.arraycopy(frame.getInts(place, dims.length), 0, dims, 0, dims.length);
        } finally {
            frame.reset(mark);
        }
    }

    /** The shape of the grid and the place of this rank. */
    public final CartParms getTopo() throws MPIException {
        Native c = MPI.live();
        int n = dimensions();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int[] at = {frame.push(4 * n + 4), frame.push(4 * n + 4), frame.push(4 * n + 4)};
            check(c.MPI_Cart_get(handle, n, frame.at(at[0]), frame.at(at[1]), frame.at(at[2])));
            return new CartParms(frame.getInts(at[0], n), frame.getFlags(at[1], n), frame.getInts(at[2], n));
        } finally {
            frame.reset(mark);
        }
    }

    /** The rank at some coordinates. */
    public final int getRank(int[] coords) throws MPIException {
        if (MPIException.given(coords, MPI.ERR_ARG, "array of coordinates").length < dimensions()) {
            throw MPIException.wrong(MPI.ERR_ARG, "there are " + coords.length + " coordinates, the grid has " + dimensions()
                + " dimensions");
        }
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long at = frame.ints(coords);
            return MPI.number((c, r) -> c.MPI_Cart_rank(handle, at, r));
        } finally {
            frame.reset(mark);
        }
    }

    /** The coordinates of a rank. */
    public final int[] getCoords(int rank) throws MPIException {
        Native c = MPI.live();
        int n = dimensions();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int place = frame.push(4 * n + 4);
            check(c.MPI_Cart_coords(handle, rank, n, frame.at(place)));
            return frame.getInts(place, n);
        } finally {
            frame.reset(mark);
        }
    }

    /** The neighbours of this rank in a direction. */
    public final ShiftParms shift(int direction, int disp) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int place = frame.push(8);
            check(c.MPI_Cart_shift(handle, direction, disp, frame.at(place), frame.at(place + 4)));
            return new ShiftParms(frame.getInt(place), frame.getInt(place + 4));
        } finally {
            frame.reset(mark);
        }
    }

    final Cartcomm part(boolean[] remain) {
        if (MPIException.given(remain, MPI.ERR_ARG, "array of flags").length < dimensions()) {
            throw MPIException.wrong(MPI.ERR_DIMS, "there are " + remain.length + " flags, the grid has " + dimensions()
                + " dimensions");
        }
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long at = frame.flags(remain);
            return new Cartcomm(made((c, r) -> c.MPI_Cart_sub(handle, at, r)));
        } finally {
            frame.reset(mark);
        }
    }

    /** The grid of some dimensions that this rank is in. */
    public final CartComm sub(boolean[] remain) throws MPIException {
        return part(remain);
    }

    /** The rank that this one should have in such a grid. */
    public final int map(int[] dims, boolean[] periods) throws MPIException {
        MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long d = frame.ints(dims);
            long p = frame.flags(periods);
            return MPI.number((c, r) -> c.MPI_Cart_map(handle, dims.length, d, p, r));
        } finally {
            frame.reset(mark);
        }
    }

    @Override
    Cartcomm like(long other) {
        return new Cartcomm(other);
    }

    @Override
    public Cartcomm dup() throws MPIException {
        return (Cartcomm) super.dup();
    }

    @Override
    public Cartcomm clone() {
        return dup();
    }
}
