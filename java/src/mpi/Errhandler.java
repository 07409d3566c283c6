package mpi;

/** What happens after an error. In Java errors are thrown unless another handler is set. */
public final class Errhandler {
    final long handle;

    Errhandler(long handle) {
        this.handle = handle;
    }

    static Errhandler of(long handle) {
        for (Errhandler known : new Errhandler[] {MPI.ERRORS_RETURN, MPI.ERRORS_ARE_FATAL, MPI.ERRORS_ABORT}) {
            if (known.handle == handle) {
                return known;
            }
        }
        return new Errhandler(handle);
    }
}
