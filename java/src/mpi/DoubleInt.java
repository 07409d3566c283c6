package mpi;

/** The struct of {@link MPI#DOUBLE_INT}: a double and an int, a value and its place. */
public final class DoubleInt extends Struct {
    private final int value = addDouble();
    private final int index = addInt();

    DoubleInt() {}

    @Override
    public Datatype getType() throws MPIException {
        return MPI.DOUBLE_INT;
    }

    @Override
    protected Data newData() {
        return new Data();
    }

    /** One of them in memory. */
    public final class Data extends Struct.Data {
        Data() {}

        /** The value. */
        public double getValue() {
            return getDouble(value);
        }

        /** The place. */
        public int getIndex() {
            return getInt(index);
        }

        /** Sets the value. */
        public void putValue(double v) {
            putDouble(value, v);
        }

        /** Sets the place. */
        public void putIndex(int i) {
            putInt(index, i);
        }
    }
}
