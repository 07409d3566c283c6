package mpi;

/** A persistent send or receive of objects: a nonblocking one at each start, when the objects are serialized. */
final class ObjectPrequest extends Prequest {
    /** Starts the nonblocking operation. */
    interface Starter {
        Request start();
    }

    private final Starter starter;
    private Request going;

    ObjectPrequest(Starter starter) {
        super(NULL, Holdings.NONE);
        this.starter = starter;
    }

    @Override
    boolean isJava() {
        return true;
    }

    @Override
    public boolean isNull() {
        return going == null;
    }

    @Override
    public void start() {
        live();
        if (going != null) {
            throw MPIException.wrong(MPI.ERR_REQUEST, "the persistent request is active; wait for it before it is started again");
        }
        going = starter.start();
    }

    @Override
    public Status waitStatus() {
        live();
        return going == null ? new Status() : ended(going.waitStatus());
    }

    @Override
    public Status testStatus() {
        live();
        return going == null ? new Status() : ended(going.testStatus());
    }

    private Status ended(Status status) {
        if (status != null) {
            going = null;
        }
        return status;
    }

    @Override
    public void cancel() {
        if (going != null) {
            going.cancel();
        }
    }

    @Override
    public void close() {
        if (going != null) {
            waitStatus();
        }
        free();
    }
}
