package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Copies between arrays of primitive types and memory outside the heap. */
final class Copies {
    private Copies() {}

    /** Base type of an array, or 0 for another object. */
    static int base(Object array) {
        if (array instanceof byte[]) {
            return Datatype.BASE_BYTE;
        } else if (array instanceof double[]) {
            return Datatype.BASE_DOUBLE;
        } else if (array instanceof int[]) {
            return Datatype.BASE_INT;
        } else if (array instanceof long[]) {
            return Datatype.BASE_LONG;
        } else if (array instanceof float[]) {
            return Datatype.BASE_FLOAT;
        } else if (array instanceof char[]) {
            return Datatype.BASE_CHAR;
        } else if (array instanceof short[]) {
            return Datatype.BASE_SHORT;
        }
        return array instanceof boolean[] ? Datatype.BASE_BOOLEAN : 0;
    }

    /** A new array of a base type. */
    static Object array(int base, int length) {
        return switch (base) {
            case Datatype.BASE_BYTE -> new byte[length];
            case Datatype.BASE_CHAR -> new char[length];
            case Datatype.BASE_SHORT -> new short[length];
            case Datatype.BASE_BOOLEAN -> new boolean[length];
            case Datatype.BASE_INT -> new int[length];
            case Datatype.BASE_LONG -> new long[length];
            case Datatype.BASE_FLOAT -> new float[length];
            case Datatype.BASE_DOUBLE -> new double[length];
            default -> throw MPIException.wrong(MPI.ERR_TYPE, "the datatype has no array type of Java");
        };
    }

    private static ByteBuffer part(ByteBuffer memory, int at, long bytes) {
        return memory.slice(at, Math.toIntExact(bytes)).order(ByteOrder.nativeOrder());
    }

    /** Copies {@code n} elements of an array from index {@code from} on into memory. */
    static void in(Object array, int from, int n, ByteBuffer memory, int at) {
        if (array instanceof byte[] a) {
            memory.put(at, a, from, n);
        } else if (array instanceof double[] a) {
            part(memory, at, 8L * n).asDoubleBuffer().put(a, from, n);
        } else if (array instanceof int[] a) {
            part(memory, at, 4L * n).asIntBuffer().put(a, from, n);
        } else if (array instanceof long[] a) {
            part(memory, at, 8L * n).asLongBuffer().put(a, from, n);
        } else if (array instanceof float[] a) {
            part(memory, at, 4L * n).asFloatBuffer().put(a, from, n);
        } else if (array instanceof char[] a) {
            part(memory, at, 2L * n).asCharBuffer().put(a, from, n);
        } else if (array instanceof short[] a) {
            part(memory, at, 2L * n).asShortBuffer().put(a, from, n);
        } else {
            boolean[] a = (boolean[]) array;
            for (int i = 0; i < n; i++) {
                memory.put(at + i, (byte) (a[from + i] ? 1 : 0));
            }
        }
    }

    /** Copies memory into {@code n} elements of an array from index {@code from} on. */
    static void out(Object array, int from, int n, ByteBuffer memory, int at) {
        if (array instanceof byte[] a) {
            memory.get(at, a, from, n);
        } else if (array instanceof double[] a) {
            part(memory, at, 8L * n).asDoubleBuffer().get(a, from, n);
        } else if (array instanceof int[] a) {
            part(memory, at, 4L * n).asIntBuffer().get(a, from, n);
        } else if (array instanceof long[] a) {
            part(memory, at, 8L * n).asLongBuffer().get(a, from, n);
        } else if (array instanceof float[] a) {
            part(memory, at, 4L * n).asFloatBuffer().get(a, from, n);
        } else if (array instanceof char[] a) {
            part(memory, at, 2L * n).asCharBuffer().get(a, from, n);
        } else if (array instanceof short[] a) {
            part(memory, at, 2L * n).asShortBuffer().get(a, from, n);
        } else {
            boolean[] a = (boolean[]) array;
            for (int i = 0; i < n; i++) {
                a[from + i] = memory.get(at + i) != 0;
            }
        }
    }
}
