package mpi;

/** The struct of {@link MPI#FLOAT_INT}: a float and an int, a value and its place. */
public final class FloatInt extends Struct {
    private final int value = addFloat();
    private final int index = addInt();

    FloatInt() {}

    @Override
    public Datatype getType() throws MPIException {
        return MPI.FLOAT_INT;
    }

    @Override
    protected Data newData() {
        return new Data();
    }

    /** One of them in memory. */
    public final class Data extends Struct.Data {
        Data() {}

        /** The value. */
        public float getValue() {
            return getFloat(value);
        }

        /** The place. */
        public int getIndex() {
            return getInt(index);
        }

        /** Sets the value. */
        public void putValue(float v) {
            putFloat(value, v);
        }

        /** Sets the place. */
        public void putIndex(int i) {
            putInt(index, i);
        }
    }
}
