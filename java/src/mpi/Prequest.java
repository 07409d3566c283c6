package mpi;

import mpi.internal.Native;

/** A persistent operation: it is started again and again. Arrays are copied at each start. */
public class Prequest extends Request {
    private boolean started;

    Prequest(long handle, Holdings holdings) {
        super(handle, holdings);
    }

    /** Starts the operation. */
    public void start() throws MPIException {
        Native c = live();
        begin();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            MPI.check(c.MPI_Start(frame.longs(new long[] {handle})));
        } finally {
            frame.reset(mark);
        }
    }

    private void begin() {
        if (started) {
            throw MPIException.wrong(MPI.ERR_REQUEST, "the persistent request is active; wait for it before it is started again");
        }
        holdings.copyIn();
        started = true;
        hold();
    }

    /** Starts the operation (mpiJava). */
    public void Start() throws MPIException {
        start();
    }

    /** Starts all operations. */
    public static void startAll(Prequest[] requests) throws MPIException {
        for (Prequest request : MPIException.given(requests, MPI.ERR_REQUEST, "array of requests")) {
            MPIException.given(request, MPI.ERR_REQUEST, "request").start();
        }
    }

    /** Starts all operations (mpiJava). */
    public static void Startall(Prequest[] requests) throws MPIException {
        startAll(requests);
    }

    /** {@code MPI_Pready}: a partition may be sent. Any thread may say so where MPI allows it to call. */
    public void pReady(int partition) throws MPIException {
        MPI.check(live().MPI_Pready(partition, handle));
    }

    /** {@code MPI_Pready_range}: the partitions from {@code low} to {@code high} may be sent. */
    public void pReadyRange(int low, int high) throws MPIException {
        MPI.check(live().MPI_Pready_range(low, high, handle));
    }

    /** {@code MPI_Pready_list}: some partitions may be sent. */
    public void pReadyList(int[] partitions) throws MPIException {
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            MPI.check(c.MPI_Pready_list(MPIException.given(partitions, MPI.ERR_ARG, "array of partitions").length, frame.ints(partitions), handle));
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Parrived}: whether a partition has been received. */
    public boolean pArrived(int partition) throws MPIException {
        live();
        return MPI.number((c, r) -> c.MPI_Parrived(handle, partition, r)) != 0;
    }

    @Override
    void completed(Status status) {
        let();
        if (started) {
            started = false;
            holdings.copyOut(status);
        }
    }

    /** Frees the request; an operation that still goes on keeps its buffers for ever, as that of any request. */
    @Override
    public void free() throws MPIException {
        super.free();
        if (!started) {
            holdings.release();
        }
    }

    /** Waits for the operation, if it goes on, and frees the request. */
    @Override
    public void close() throws MPIException {
        if (isNull()) {
            return;
        }
        if (started) {
            waitStatus();
        }
        free();
    }
}
