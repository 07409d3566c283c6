package mpi;

import java.nio.DoubleBuffer;

/** A complex number of two doubles in a buffer or an array. */
public final class DoubleComplex {
    private final DoubleBuffer buffer;
    private final int offset;

    private DoubleComplex(DoubleBuffer buffer, int index) {
        this.buffer = buffer;
        offset = 2 * index;
    }

    /** The first complex number of a buffer. */
    public static DoubleComplex get(DoubleBuffer buffer) {
        return new DoubleComplex(buffer, 0);
    }

    /** A complex number of a buffer by its place. */
    public static DoubleComplex get(DoubleBuffer buffer, int index) {
        return new DoubleComplex(buffer, index);
    }

    /** The first complex number of a buffer. */
    public static DoubleComplex get(java.nio.ByteBuffer buffer) {
        return get(buffer, 0);
    }

    /** A complex number of a buffer by its place. */
    public static DoubleComplex get(java.nio.ByteBuffer buffer, int index) {
        return new DoubleComplex(buffer.duplicate().order(java.nio.ByteOrder.nativeOrder()).asDoubleBuffer(), index);
    }

    /** The first complex number of an array. */
    public static DoubleComplex get(double[] array) {
        return get(array, 0);
    }

    /** A complex number of an array by its place. */
    public static DoubleComplex get(double[] array, int index) {
        return new DoubleComplex(DoubleBuffer.wrap(array), index);
    }

    /** The real part. */
    public double getReal() {
        return buffer.get(offset);
    }

    /** The imaginary part. */
    public double getImag() {
        return buffer.get(offset + 1);
    }

    /** Sets the real part. */
    public void putReal(double value) {
        buffer.put(offset, value);
    }

    /** Sets the imaginary part. */
    public void putImag(double value) {
        buffer.put(offset + 1, value);
    }

    /** The memory of the number. */
    public DoubleBuffer getBuffer() {
        return buffer.slice(offset, 2);
    }
}
