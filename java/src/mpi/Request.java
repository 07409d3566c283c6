package mpi;

import mpi.internal.Native;

/**
 * A nonblocking operation. It keeps the buffers of the operation until that has completed; a message that goes from or into an
 * array is copied when it starts and when it completes.
 */
public class Request implements Freeable {
    static final long NULL = 0x180;
    long handle;
    final Holdings holdings;
    private Active active;
    private boolean freed;

    Request(long handle, Holdings holdings) {
        this.handle = handle;
        this.holdings = holdings;
        if (!(this instanceof Prequest)) {
            hold();
        }
    }

    final void hold() {
        if (active == null && !holdings.buffers().isEmpty() | !holdings.pieces().isEmpty()) {
            active = Active.enter(this);
        }
    }

    final void let() {
        if (active != null) {
            Active.leave(active);
            active = null;
        }
    }

    final Native live() {
        if (freed) {
            throw MPIException.wrong(MPI.ERR_REQUEST, "the request was freed or closed");
        }
        return MPI.live();
    }

    /** What follows when C has completed the operation. */
    void completed(Status status) {
        let();
        if (handle != NULL) {
            handle = NULL;
            holdings.copyOut(status);
            holdings.release();
        }
    }

    private void failed() {
        handle = NULL;
        let();
    }

    /** Whether this completes only when Java does something (messages of objects). */
    boolean isJava() {
        return false;
    }

    /** Waits until the operation has completed. */
    public final void waitFor() throws MPIException {
        waitStatus();
    }

    /** Waits until the operation has completed; its status. */
    public Status waitStatus() throws MPIException {
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int slot = frame.push(8);
            int place = frame.push(Status.BYTES);
            frame.putLong(slot, handle);
            int rc = c.MPI_Wait(frame.at(slot), frame.at(place));
            return ended(rc, frame, slot, place);
        } finally {
            frame.reset(mark);
        }
    }

    private Status ended(int rc, Frame frame, int slot, int place) {
        if (rc != 0) {
            failed();
            throw MPIException.of(MPI.library(), rc);
        }
        Status status = new Status(frame, place);
        completed(status);
        return status;
    }

    /** Waits until the operation has completed; its status (mpiJava). */
    public final Status Wait() throws MPIException {
        return waitStatus();
    }

    /** Whether the operation has completed. */
    public final boolean test() throws MPIException {
        return testStatus() != null;
    }

    /** The status of the operation if it has completed, else null. */
    public Status testStatus() throws MPIException {
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int slot = frame.push(8);
            int flag = frame.push(8);
            int place = frame.push(Status.BYTES);
            frame.putLong(slot, handle);
            int rc = c.MPI_Test(frame.at(slot), frame.at(flag), frame.at(place));
            return rc == 0 && frame.getInt(flag) == 0 ? null : ended(rc, frame, slot, place);
        } finally {
            frame.reset(mark);
        }
    }

    /** The status of the operation if it has completed, else null (mpiJava). */
    public final Status Test() throws MPIException {
        return testStatus();
    }

    /** The status if the operation has completed, which remains to be waited for; else null. */
    public Status getStatus() throws MPIException {
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int flag = frame.push(8);
            int place = frame.push(Status.BYTES);
            MPI.check(c.MPI_Request_get_status(handle, frame.at(flag), frame.at(place)));
            return frame.getInt(flag) == 0 ? null : new Status(frame, place);
        } finally {
            frame.reset(mark);
        }
    }

    /** Asks for the operation to be cancelled; it completes all the same. */
    public void cancel() throws MPIException {
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            MPI.check(c.MPI_Cancel(frame.longs(new long[] {handle})));
        } finally {
            frame.reset(mark);
        }
    }

    /** Asks for the operation to be cancelled (mpiJava). */
    public final void Cancel() throws MPIException {
        cancel();
    }

    /** Frees the request; a pending operation keeps its buffers for ever, because its end is not reported. */
    @Override
    public void free() throws MPIException {
        live();
        if (handle != NULL) {
            MPI.freed(handle, (c, at) -> c.MPI_Request_free(at));
            handle = NULL;
        }
        freed = true;
    }

    /** Waits for the operation, if it goes on, and closes the request. */
    @Override
    public void close() throws MPIException {
        if (!freed) {
            if (handle != NULL) {
                waitStatus();
            }
            freed = true;
        }
    }

    /** Frees the request (mpiJava). */
    public final void Free() throws MPIException {
        free();
    }

    /** Whether there is no operation: it has completed or was freed. */
    public boolean isNull() {
        return handle == NULL;
    }

    /** Whether there is no operation (mpiJava). */
    public final boolean Is_null() {
        return isNull();
    }

    /** Waits for one of some requests; its place, or {@code MPI.UNDEFINED}. */
    public static int waitAny(Request[] requests) throws MPIException {
        return waitAnyStatus(requests).getIndex();
    }

    /** Waits for one of some requests; its status with its place. */
    public static Status waitAnyStatus(Request[] requests) throws MPIException {
        return Requests.any(requests, true);
    }

    /** The place of one of some requests that has completed, or {@code MPI.UNDEFINED}. */
    public static int testAny(Request[] requests) throws MPIException {
        Status status = testAnyStatus(requests);
        return status == null ? MPI.UNDEFINED : status.getIndex();
    }

    /** The status of one of some requests that has completed, or null. */
    public static Status testAnyStatus(Request[] requests) throws MPIException {
        return Requests.any(requests, false);
    }

    /** Waits for all requests. */
    public static void waitAll(Request[] requests) throws MPIException {
        Requests.all(requests, true);
    }

    /** Waits for all requests; their statuses. */
    public static Status[] waitAllStatus(Request[] requests) throws MPIException {
        return Requests.all(requests, true);
    }

    /** Whether all requests have completed. */
    public static boolean testAll(Request[] requests) throws MPIException {
        return Requests.all(requests, false) != null;
    }

    /** The statuses of all requests if all have completed, else null. */
    public static Status[] testAllStatus(Request[] requests) throws MPIException {
        return Requests.all(requests, false);
    }

    /** Waits for at least one of some requests; the places of all that have completed, or null if none is active. */
    public static int[] waitSome(Request[] requests) throws MPIException {
        return Requests.places(Requests.some(requests, true));
    }

    /** Waits for at least one of some requests; the statuses of all that have completed, or null if none is active. */
    public static Status[] waitSomeStatus(Request[] requests) throws MPIException {
        return Requests.some(requests, true);
    }

    /** The places of all requests that have completed, or null if none is active. */
    public static int[] testSome(Request[] requests) throws MPIException {
        return Requests.places(Requests.some(requests, false));
    }

    /** The statuses of all requests that have completed, or null if none is active. */
    public static Status[] testSomeStatus(Request[] requests) throws MPIException {
        return Requests.some(requests, false);
    }

    /** Waits for one of some requests (mpiJava). */
    public static Status Waitany(Request[] requests) throws MPIException {
        return waitAnyStatus(requests);
    }

    /** One of some requests that has completed, or null (mpiJava). */
    public static Status Testany(Request[] requests) throws MPIException {
        return testAnyStatus(requests);
    }

    /** Waits for all requests (mpiJava). */
    public static Status[] Waitall(Request[] requests) throws MPIException {
        return waitAllStatus(requests);
    }

    /** The statuses of all requests if all have completed, else null (mpiJava). */
    public static Status[] Testall(Request[] requests) throws MPIException {
        return testAllStatus(requests);
    }

    /** Waits for at least one of some requests (mpiJava). */
    public static Status[] Waitsome(Request[] requests) throws MPIException {
        return waitSomeStatus(requests);
    }

    /** The statuses of all requests that have completed (mpiJava). */
    public static Status[] Testsome(Request[] requests) throws MPIException {
        return testSomeStatus(requests);
    }
}
