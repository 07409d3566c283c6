package mpi;

/** The struct of {@link MPI#INT2}: two ints, a value and its place. */
public final class Int2 extends Struct {
    private final int value = addInt();
    private final int index = addInt();

    Int2() {}

    @Override
    public Datatype getType() throws MPIException {
        return MPI.INT2;
    }

    @Override
    protected Data newData() {
        return new Data();
    }

    /** One of them in memory. */
    public final class Data extends Struct.Data {
        Data() {}

        /** The value. */
        public int getValue() {
            return getInt(value);
        }

        /** The place. */
        public int getIndex() {
            return getInt(index);
        }

        /** Sets the value. */
        public void putValue(int v) {
            putInt(value, v);
        }

        /** Sets the place. */
        public void putIndex(int i) {
            putInt(index, i);
        }
    }
}
