package mpi;

/** The struct of {@link MPI#LONG_INT}: a long and an int, a value and its place. */
public final class LongInt extends Struct {
    private final int value = addLong();
    private final int index = addInt();

    LongInt() {}

    @Override
    public Datatype getType() throws MPIException {
        return MPI.LONG_INT;
    }

    @Override
    protected Data newData() {
        return new Data();
    }

    /** One of them in memory. */
    public final class Data extends Struct.Data {
        Data() {}

        /** The value. */
        public long getValue() {
            return getLong(value);
        }

        /** The place. */
        public int getIndex() {
            return getInt(index);
        }

        /** Sets the value. */
        public void putValue(long v) {
            putLong(value, v);
        }

        /** Sets the place. */
        public void putIndex(int i) {
            putInt(index, i);
        }
    }
}
