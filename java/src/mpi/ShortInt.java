package mpi;

/** The struct of {@link MPI#SHORT_INT}: a short and an int, a value and its place. */
public final class ShortInt extends Struct {
    private final int value = addShort();
    private final int index = addInt();

    ShortInt() {}

    @Override
    public Datatype getType() throws MPIException {
        return MPI.SHORT_INT;
    }

    @Override
    protected Data newData() {
        return new Data();
    }

    /** One of them in memory. */
    public final class Data extends Struct.Data {
        Data() {}

        /** The value. */
        public short getValue() {
            return getShort(value);
        }

        /** The place. */
        public int getIndex() {
            return getInt(index);
        }

        /** Sets the value. */
        public void putValue(short v) {
            putShort(value, v);
        }

        /** Sets the place. */
        public void putIndex(int i) {
            putInt(index, i);
        }
    }
}
