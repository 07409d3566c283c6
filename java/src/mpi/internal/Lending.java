package mpi.internal;

/**
 * Arrays that C copies from and to during a call, without a copy outside the heap (java/native/lending.c). It needs the
 * library for JNI, also where java.lang.foreign calls C.
 */
public final class Lending {
    private static volatile boolean loaded;

    private Lending() {}

    /** The library for JNI is there. */
    static void enable() {
        loaded = true;
    }

    /** The datatype of lent arrays of this type; 0 if they cannot be lent. */
    public static long typeOf(long datatype) {
        return loaded ? type(datatype) : 0;
    }

    /** Lends an array from a byte on: what C takes as its address, until {@link #stop}; 0 if there is no memory. */
    public static native long start(Object array, long offset, boolean writes);

    /** Ends it. */
    public static native void stop(long lent);

    private static native long type(long datatype);
}
