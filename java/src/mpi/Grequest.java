package mpi;

import mpi.internal.Native;

/**
 * A generalized request: an operation of the program's own, waited for like those of MPI ({@code MPI_Grequest_start}). Some
 * thread of the program carries it out and calls {@link #complete}.
 */
public final class Grequest extends Request {
    private static final long PAUSE_MS = 1;
    private final Operation operation;
    private boolean done;
    private boolean active = true;
    private boolean freed;

    /** What the program says of its operation. */
    public interface Operation {
        /** Fills in the status of the operation, which has completed. */
        default void query(Status status) throws MPIException {}

        /** The request is gone: called once, after the last query. */
        default void free() throws MPIException {}

        /** The operation is to be cancelled; {@code completed} says whether it has completed already. */
        default void cancel(boolean completed) throws MPIException {}
    }

    /** Starts an operation. */
    public Grequest(Operation operation) throws MPIException {
        super(NULL, Holdings.NONE);
        MPI.live();
        if (operation == null) {
            throw MPIException.wrong(MPI.ERR_ARG, "the operation is null");
        }
        this.operation = operation;
    }

    /** {@code MPI_Grequest_complete}: the operation has completed. */
    public synchronized void complete() throws MPIException {
        if (done) {
            throw MPIException.wrong(MPI.ERR_REQUEST, "the operation has completed already");
        }
        done = true;
        notifyAll();
        if (freed) {
            operation.free();
        }
    }

    @Override
    boolean isJava() {
        return true;
    }

    @Override
    public synchronized boolean isNull() {
        return !active;
    }

    @Override
    public Status waitStatus() throws MPIException {
        Native c = live();
        while (!ended()) {
            progress(c);
        }
        return ending();
    }

    private synchronized boolean ended() {
        try {
            if (!done && active) {
                wait(PAUSE_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return done || !active;
    }

    /** A thread that waits in MPI also serves the requests of other processes. */
    private static void progress(Native c) {
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            MPI.check(c.MPI_Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG, MPI.COMM_SELF.handle, frame.at(frame.push(8)),
                frame.at(frame.push(Status.BYTES))));
        } finally {
            frame.reset(mark);
        }
    }

    private Status ending() {
        Status status = new Status();
        synchronized (this) {
            if (!active) {
                return status;
            }
            active = false;
        }
        operation.query(status);
        operation.free();
        return status;
    }

    @Override
    public Status testStatus() throws MPIException {
        Native c = live();
        progress(c);
        synchronized (this) {
            if (!done && active) {
                return null;
            }
        }
        return ending();
    }

    @Override
    public Status getStatus() throws MPIException {
        live();
        synchronized (this) {
            if (!done && active) {
                return null;
            }
        }
        Status status = new Status();
        if (!isNull()) {
            operation.query(status);
        }
        return status;
    }

    @Override
    public void cancel() throws MPIException {
        live();
        boolean completed;
        synchronized (this) {
            completed = done;
        }
        operation.cancel(completed);
    }

    @Override
    public void free() throws MPIException {
        super.free();
        synchronized (this) {
            if (!active) {
                return;
            }
            active = false;
            freed = true;
            if (!done) {
                return;
            }
        }
        operation.free();
    }

    /** Waits for the operation, if it goes on, and closes the request. */
    @Override
    public void close() throws MPIException {
        if (!isNull()) {
            waitStatus();
        }
        super.close();
    }
}
