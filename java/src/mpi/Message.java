package mpi;

import mpi.internal.Native;

/** A message that was probed so that only this handle can receive it. */
public final class Message {
    private static final long NULL = 0x128;
    private static final long NO_PROC = 0x129;
    private long handle;
    private Comm comm;
    private Status status;

    /** No message yet: {@link #mProbe(int, int, Comm)} and {@link #imProbe(int, int, Comm)} find one. */
    public Message() {
        handle = NULL;
    }

    private Message(long handle, Comm comm, Status status) {
        this.handle = handle;
        this.comm = comm;
        this.status = status;
    }

    static Message probe(Comm comm, int source, int tag, boolean wait) {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int flag = frame.push(8);
            int slot = frame.push(8);
            int place = frame.push(Status.BYTES);
            frame.putInt(flag, 1);
            MPI.check(wait ? c.MPI_Mprobe(source, tag, comm.handle, frame.at(slot), frame.at(place))
                : c.MPI_Improbe(source, tag, comm.handle, frame.at(flag), frame.at(slot), frame.at(place)));
            return frame.getInt(flag) == 0 ? null : new Message(frame.getLong(slot), comm, new Status(frame, place));
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Mprobe}: waits for a message that only this handle can receive from then on; returns its status. */
    public Status mProbe(int source, int tag, Comm comm) throws MPIException {
        return take(comm.mProbe(source, tag));
    }

    /** {@code MPI_Improbe}: the status of a message that only this handle can receive from then on, or null. */
    public Status imProbe(int source, int tag, Comm comm) throws MPIException {
        Message found = comm.imProbe(source, tag);
        return found == null ? null : take(found);
    }

    private Status take(Message found) {
        handle = found.handle;
        comm = found.comm;
        status = found.status;
        return status;
    }

    /** Source, tag and size of the message. */
    public Status getStatus() {
        return status;
    }

    /** Whether the message was received already. */
    public boolean isNull() {
        return handle == NULL;
    }

    /** Whether this is the message of no process. */
    public boolean isNoProc() {
        return handle == NO_PROC;
    }

    private void live() {
        if (handle == NULL) {
            throw MPIException.wrong(MPI.ERR_REQUEST, comm == null ? "there is no message, none was probed" : "the message was received already");
        }
    }

    /** {@code MPI_Mrecv}. */
    public Status mRecv(Object buf, int count, Datatype type) throws MPIException {
        Native c = MPI.live();
        live();
        try (Exchange x = new Exchange(comm, Exchange.BLOCKING)) {
            int slot = x.frame().push(8);
            int place = x.frame().push(Status.BYTES);
            x.frame().putLong(slot, handle);
            long at = x.taken(buf, 0, count, type);
            int rc = c.MPI_Mrecv(at, count, x.type(type), x.frame().at(slot), x.frame().at(place));
            handle = x.frame().getLong(slot);
            return x.received(rc, place);
        }
    }

    /** {@code MPI_Imrecv}. */
    public Request imRecv(Object buf, int count, Datatype type) throws MPIException {
        Native c = MPI.live();
        live();
        try (Exchange x = new Exchange(comm, Exchange.NONBLOCKING)) {
            int slot = x.frame().push(8);
            x.frame().putLong(slot, handle);
            long at = x.message(buf, 0, count, type);
            int rc = c.MPI_Imrecv(at, count, type.handle, x.frame().at(slot), x.request());
            handle = x.frame().getLong(slot);
            return x.started(rc);
        }
    }
}
