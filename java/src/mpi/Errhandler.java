package mpi;

/** What happens after an error. In Java errors are thrown unless another handler is set. */
public final class Errhandler {
    final long handle;

    Errhandler(long handle) {
        this.handle = handle;
    }

    /** Handle of an error handler that a program passes. */
    static long handle(Errhandler handler) {
        return MPIException.given(handler, MPI.ERR_ARG, "error handler").handle;
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
