package mpi;

import java.nio.FloatBuffer;

/** A complex number of two floats in a buffer or an array. */
public final class FloatComplex {
    private final FloatBuffer buffer;
    private final int offset;

    private FloatComplex(FloatBuffer buffer, int index) {
        this.buffer = buffer;
        offset = 2 * index;
    }

    /** The first complex number of a buffer. */
    public static FloatComplex get(FloatBuffer buffer) {
        return new FloatComplex(buffer, 0);
    }

    /** A complex number of a buffer by its place. */
    public static FloatComplex get(FloatBuffer buffer, int index) {
        return new FloatComplex(buffer, index);
    }

    /** The first complex number of a buffer. */
    public static FloatComplex get(java.nio.ByteBuffer buffer) {
        return get(buffer, 0);
    }

    /** A complex number of a buffer by its place. */
    public static FloatComplex get(java.nio.ByteBuffer buffer, int index) {
        return new FloatComplex(buffer.duplicate().order(java.nio.ByteOrder.nativeOrder()).asFloatBuffer(), index);
    }

    /** The first complex number of an array. */
    public static FloatComplex get(float[] array) {
        return get(array, 0);
    }

    /** A complex number of an array by its place. */
    public static FloatComplex get(float[] array, int index) {
        return new FloatComplex(FloatBuffer.wrap(array), index);
    }

    /** The real part. */
    public float getReal() {
        return buffer.get(offset);
    }

    /** The imaginary part. */
    public float getImag() {
        return buffer.get(offset + 1);
    }

    /** Sets the real part. */
    public void putReal(float value) {
        buffer.put(offset, value);
    }

    /** Sets the imaginary part. */
    public void putImag(float value) {
        buffer.put(offset + 1, value);
    }

    /** The memory of the number. */
    public FloatBuffer getBuffer() {
        return buffer.slice(offset, 2);
    }
}
