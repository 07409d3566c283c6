package mpi;

/** An object of MPI that is freed explicitly. It works in try-with-resources, too; nothing depends on finalizers. */
public interface Freeable extends AutoCloseable {
    /** Frees the object; its handle is null afterwards. */
    void free() throws MPIException;

    @Override
    default void close() throws MPIException {
        free();
    }
}
