package mpi;

import mpi.internal.Native;

/** Pairs of keys and values: hints for the library. */
public final class Info implements Freeable {
    static final long NULL = 0x130;
    private long handle;

    Info(long handle) {
        this.handle = handle;
    }

    /** An info without pairs. */
    public Info() throws MPIException {
        handle = MPI.large((c, r) -> c.MPI_Info_create(r));
    }

    static long handle(Info info) {
        return info == null ? NULL : info.handle;
    }

    /** Sets the value of a key. */
    public void set(String key, String value) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            MPI.check(c.MPI_Info_set(handle, frame.text(key), frame.text(value)));
        } finally {
            frame.reset(mark);
        }
    }

    /** The value of a key, or null. */
    public String get(String key) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int length = frame.push(8);
            int flag = frame.push(8);
            int value = frame.push(MPI.MAX_INFO_VAL + 1);
            frame.putInt(length, MPI.MAX_INFO_VAL + 1);
            MPI.check(c.MPI_Info_get_string(handle, frame.text(key), frame.at(length), frame.at(value), frame.at(flag)));
            return frame.getInt(flag) == 0 ? null : frame.getText(value);
        } finally {
            frame.reset(mark);
        }
    }

    /** Removes a key. */
    public void delete(String key) throws MPIException {
        MPI.named(key, (c, at) -> c.MPI_Info_delete(handle, at));
    }

    /** Number of keys. */
    public int size() throws MPIException {
        return MPI.number((c, r) -> c.MPI_Info_get_nkeys(handle, r));
    }

    /** A key by its place. */
    public String getKey(int i) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int key = frame.push(MPI.MAX_INFO_KEY + 1);
            MPI.check(c.MPI_Info_get_nthkey(handle, i, frame.at(key)));
            return frame.getText(key);
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Info_dup}. */
    public Info dup() throws MPIException {
        return new Info(MPI.large((c, r) -> c.MPI_Info_dup(handle, r)));
    }

    /** Whether this is the null info object. */
    public boolean isNull() {
        return handle == NULL;
    }

    @Override
    public void free() throws MPIException {
        MPI.freed(handle, (c, at) -> c.MPI_Info_free(at));
        handle = NULL;
    }

    @Override
    public void close() throws MPIException {
        if (!isNull()) {
            free();
        }
    }
}
