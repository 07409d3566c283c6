package mpi.internal;

import java.util.ArrayList;
import java.util.List;

/** The Java functions that C calls, by number. A number is used again when its function is not needed any more. */
public final class Callbacks {
    /** A user-defined operation of C: combines {@code count} elements at two addresses into the second. */
    public interface Reduction {
        void reduce(long in, long inOut, int count, long type);
    }

    private static final List<Reduction> REDUCTIONS = new ArrayList<>();

    private Callbacks() {}

    /** Adds a function; returns its number, which is below {@code limit}, or -1 if all numbers are in use. */
    public static synchronized int enter(Reduction reduction, int limit) {
        int free = REDUCTIONS.indexOf(null);
        if (free >= 0) {
            REDUCTIONS.set(free, reduction);
            return free;
        }
        if (REDUCTIONS.size() == limit) {
            return -1;
        }
        REDUCTIONS.add(reduction);
        return REDUCTIONS.size() - 1;
    }

    /** Frees the number of a function that C does not call any more. */
    public static synchronized void leave(int number) {
        REDUCTIONS.set(number, null);
    }

    private static synchronized Reduction find(int number) {
        return REDUCTIONS.get(number);
    }

    /** C calls this from any thread; it throws nothing, because nothing above it could catch that. */
    static void reduce(int number, long in, long inOut, int count, long type) {
        find(number).reduce(in, inOut, count, type);
    }
}
