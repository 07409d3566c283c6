package mpi;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/** Attributes of one object: Java keeps them itself, any object as a value. A duplicate gets the same values. */
final class Attributes {
    private static final AtomicInteger NEXT = new AtomicInteger(1 << 20);
    private static final Set<Integer> KEYS = new HashSet<>();
    private final Map<Integer, Object> values = new HashMap<>();

    static int createKeyval() {
        int key = NEXT.getAndIncrement();
        synchronized (KEYS) {
            KEYS.add(key);
        }
        return key;
    }

    static void freeKeyval(int key) {
        synchronized (KEYS) {
            if (!KEYS.remove(key)) {
                throw MPIException.wrong(MPI.ERR_KEYVAL, key + " is no key of attributes");
            }
        }
    }

    private static void known(int key) {
        synchronized (KEYS) {
            if (!KEYS.contains(key)) {
                throw MPIException.wrong(MPI.ERR_KEYVAL, key + " is no key of attributes");
            }
        }
    }

    synchronized void set(int key, Object value) {
        known(key);
        values.put(key, value);
    }

    synchronized Object get(int key) {
        known(key);
        return values.get(key);
    }

    synchronized void delete(int key) {
        known(key);
        values.remove(key);
    }

    synchronized void copyFrom(Attributes other) {
        synchronized (other) {
            values.putAll(other.values);
        }
    }
}
