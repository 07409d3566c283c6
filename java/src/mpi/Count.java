package mpi;

/** A number that may be larger than an int ({@code MPI_Count}). */
public final class Count implements Comparable<Count> {
    private final long value;

    /** A count with a value. */
    public Count(long value) {
        this.value = value;
    }

    /** The value. */
    public long getCount() {
        return value;
    }

    long getValue() {
        return value;
    }

    @Override
    public int compareTo(Count other) {
        return Long.compare(value, other.value);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Count c && c.value == value;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(value);
    }

    @Override
    public String toString() {
        return Long.toString(value);
    }
}
