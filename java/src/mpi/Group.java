package mpi;

import mpi.internal.Native;

/** A group of processes. */
public final class Group implements Freeable {
    static final long NULL = 0x108;
    long handle;

    Group(long handle) {
        this.handle = handle;
    }

    /** Handle of a group that a program passes. */
    static long handle(Group group) {
        return MPIException.given(group, MPI.ERR_GROUP, "group").handle;
    }

    private static <T> T given(T ranks) {
        return MPIException.given(ranks, MPI.ERR_ARG, "array of ranks");
    }

    /** {@code MPI_Group_size}. */
    public int getSize() throws MPIException {
        return MPI.number((c, r) -> c.MPI_Group_size(handle, r));
    }

    /** {@code MPI_Group_size} (mpiJava). */
    public int Size() throws MPIException {
        return getSize();
    }

    /** {@code MPI_Group_rank}. */
    public int getRank() throws MPIException {
        return MPI.number((c, r) -> c.MPI_Group_rank(handle, r));
    }

    /** {@code MPI_Group_rank} (mpiJava). */
    public int Rank() throws MPIException {
        return getRank();
    }

    /** Ranks of one group in another. */
    public static int[] translateRanks(Group a, int[] ranks, Group b) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int result = frame.push(4 * given(ranks).length + 4);
            MPI.check(c.MPI_Group_translate_ranks(handle(a), ranks.length, frame.ints(ranks), handle(b), frame.at(result)));
            return frame.getInts(result, ranks.length);
        } finally {
            frame.reset(mark);
        }
    }

    /** Ranks of one group in another (mpiJava). */
    public static int[] Translate_ranks(Group a, int[] ranks, Group b) throws MPIException {
        return translateRanks(a, ranks, b);
    }

    /** {@code MPI_Group_compare}. */
    public static int compare(Group a, Group b) throws MPIException {
        return MPI.number((c, r) -> c.MPI_Group_compare(handle(a), handle(b), r));
    }

    /** {@code MPI_Group_compare} (mpiJava). */
    public static int Compare(Group a, Group b) throws MPIException {
        return compare(a, b);
    }

    private static Group made(MPI.Number call) {
        return new Group(MPI.large(call));
    }

    /** {@code MPI_Group_union}. */
    public static Group union(Group a, Group b) throws MPIException {
        return made((c, r) -> c.MPI_Group_union(handle(a), handle(b), r));
    }

    /** {@code MPI_Group_union} (mpiJava). */
    public static Group Union(Group a, Group b) throws MPIException {
        return union(a, b);
    }

    /** {@code MPI_Group_intersection}. */
    public static Group intersection(Group a, Group b) throws MPIException {
        return made((c, r) -> c.MPI_Group_intersection(handle(a), handle(b), r));
    }

    /** {@code MPI_Group_intersection} (mpiJava). */
    public static Group Intersection(Group a, Group b) throws MPIException {
        return intersection(a, b);
    }

    /** {@code MPI_Group_difference}. */
    public static Group difference(Group a, Group b) throws MPIException {
        return made((c, r) -> c.MPI_Group_difference(handle(a), handle(b), r));
    }

    /** {@code MPI_Group_difference} (mpiJava). */
    public static Group Difference(Group a, Group b) throws MPIException {
        return difference(a, b);
    }

    private interface Selection {
        int call(Native c, long numbers, long result);
    }

    private static Group select(int[] numbers, Selection call) {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long at = frame.ints(numbers);
            return made((n, r) -> call.call(n, at, r));
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Group_incl}. */
    public Group incl(int[] ranks) throws MPIException {
        return select(ranks, (c, at, r) -> c.MPI_Group_incl(handle, ranks.length, at, r));
    }

    /** {@code MPI_Group_incl} (mpiJava). */
    public Group Incl(int[] ranks) throws MPIException {
        return incl(ranks);
    }

    /** {@code MPI_Group_excl}. */
    public Group excl(int[] ranks) throws MPIException {
        return select(ranks, (c, at, r) -> c.MPI_Group_excl(handle, ranks.length, at, r));
    }

    /** {@code MPI_Group_excl} (mpiJava). */
    public Group Excl(int[] ranks) throws MPIException {
        return excl(ranks);
    }

    private static int[] flat(int[][] ranges) {
        int[] numbers = new int[3 * given(ranges).length];
        for (int i = 0; i < ranges.length; i++) {
            if (given(ranges[i]).length != 3) {
                throw MPIException.wrong(MPI.ERR_ARG, "range " + i + " has " + ranges[i].length
                    + " numbers, it must have 3: first, last, stride");
            }
            System.arraycopy(ranges[i], 0, numbers, 3 * i, 3);
        }
        return numbers;
    }

    /** {@code MPI_Group_range_incl}. */
    public Group rangeIncl(int[][] ranges) throws MPIException {
        return select(flat(ranges), (c, at, r) -> c.MPI_Group_range_incl(handle, ranges.length, at, r));
    }

    /** {@code MPI_Group_range_incl} (mpiJava). */
    public Group Range_incl(int[][] ranges) throws MPIException {
        return rangeIncl(ranges);
    }

    /** {@code MPI_Group_range_excl}. */
    public Group rangeExcl(int[][] ranges) throws MPIException {
        return select(flat(ranges), (c, at, r) -> c.MPI_Group_range_excl(handle, ranges.length, at, r));
    }

    /** {@code MPI_Group_range_excl} (mpiJava). */
    public Group Range_excl(int[][] ranges) throws MPIException {
        return rangeExcl(ranges);
    }

    /** Whether this is the null group. */
    public boolean isNull() {
        return handle == NULL;
    }

    @Override
    public void free() throws MPIException {
        MPI.freed(handle, (c, at) -> c.MPI_Group_free(at));
        handle = NULL;
    }

    @Override
    public void close() throws MPIException {
        if (!isNull()) {
            free();
        }
    }

    /** {@code MPI_Group_free} (mpiJava). */
    public void Free() throws MPIException {
        free();
    }
}
