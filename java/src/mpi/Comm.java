package mpi;

import mpi.internal.Native;

/**
 * A communicator. Methods in the style of Open MPI's bindings begin with a small letter, those of mpiJava with a capital one
 * and take an offset with each buffer.
 */
public class Comm extends CommCalls implements Freeable, Cloneable {
    /** Ranks that can share memory ({@link Intracomm#splitType}). */
    public static final int TYPE_SHARED = MPI.COMM_TYPE_SHARED;
    private static final int FALSE = 0;
    final Attributes attributes = new Attributes();
    private Request duplication;

    Comm(long handle) {
        super(handle);
    }

    /** A call that makes a communicator. */
    static long made(MPI.Number call) {
        long handle = MPI.large(call);
        if (handle != NULL) {
            check(MPI.live().MPI_Comm_set_errhandler(handle, MPI.ERRORS_RETURN.handle));
        }
        return handle;
    }

    /** The parent of a job that was spawned, or a communicator that is null. */
    public static Intercomm getParent() throws MPIException {
        return new Intercomm(MPI.large((c, r) -> c.MPI_Comm_get_parent(r)));
    }

    /** {@code MPI_Comm_rank}. */
    public final int getRank() throws MPIException {
        MPI.live();
        return localRank();
    }

    /** {@code MPI_Comm_rank} (mpiJava). */
    public int Rank() throws MPIException {
        return getRank();
    }

    /** {@code MPI_Comm_size}. */
    public final int getSize() throws MPIException {
        MPI.live();
        return localSize();
    }

    /** {@code MPI_Comm_size} (mpiJava). */
    public final int Size() throws MPIException {
        return getSize();
    }

    /** {@code MPI_Comm_compare}. */
    public static int compare(Comm a, Comm b) throws MPIException {
        return MPI.number((c, r) -> c.MPI_Comm_compare(handle(a), handle(b), r));
    }

    /** {@code MPI_Comm_compare} (mpiJava). */
    public static int Compare(Comm a, Comm b) throws MPIException {
        return compare(a, b);
    }

    /** A communicator of this kind with another handle. */
    Comm like(long handle) {
        return new Comm(handle);
    }

    /** {@code MPI_Comm_dup}. */
    public Comm dup() throws MPIException {
        Comm copy = like(made((c, r) -> c.MPI_Comm_dup(handle, r)));
        copy.attributes.copyFrom(attributes);
        return copy;
    }

    /** {@code MPI_Comm_dup}. */
    @Override
    public Comm clone() {
        return dup();
    }

    /** {@code MPI_Comm_dup_with_info}. */
    public Comm dupWithInfo(Info info) throws MPIException {
        Comm copy = like(made((c, r) -> c.MPI_Comm_dup_with_info(handle, Info.handle(info), r)));
        copy.attributes.copyFrom(attributes);
        return copy;
    }

    /** {@code MPI_Comm_idup}; the copy may be used when its request has completed. */
    public Comm iDup() throws MPIException {
        Native c = MPI.live();
        Comm copy = like(NULL);
        Piece place = Piece.take(8);
        try (Exchange x = new Exchange(this, Exchange.NONBLOCKING)) {
            check(c.MPI_Comm_idup(handle, place.address(), x.request()));
            copy.duplication = new DuplicationRequest(x, copy, place);
        }
        copy.attributes.copyFrom(attributes);
        return copy;
    }

    /** The request of {@link #iDup}. */
    public final Request getRequest() {
        return duplication;
    }

    /** Sets the handle of a copy when that is there. */
    private static final class DuplicationRequest extends Request {
        private final Comm copy;
        private final Piece place;

        DuplicationRequest(Exchange x, Comm copy, Piece place) {
            super(x.started(0).handle, Holdings.NONE);
            this.copy = copy;
            this.place = place;
        }

        @Override
        void completed(Status status) {
            if (!isNull()) {
                super.completed(status);
                copy.handle = place.memory().getLong(0);
                place.give();
            }
        }
    }

    /** {@code MPI_Comm_set_info}. */
    public final void setInfo(Info info) throws MPIException {
        check(MPI.live().MPI_Comm_set_info(handle, Info.handle(info)));
    }

    /** {@code MPI_Comm_get_info}. */
    public final Info getInfo() throws MPIException {
        return new Info(MPI.large((c, r) -> c.MPI_Comm_get_info(handle, r)));
    }

    /** {@code MPI_Comm_disconnect}. */
    public final void disconnect() throws MPIException {
        MPI.freed(handle, (c, at) -> c.MPI_Comm_disconnect(at));
        forget();
    }

    @Override
    public void free() throws MPIException {
        MPI.freed(handle, (c, at) -> c.MPI_Comm_free(at));
        forget();
    }

    @Override
    public void close() throws MPIException {
        if (!isNull()) {
            free();
        }
    }

    /** {@code MPI_Comm_free} (mpiJava). */
    public final void Free() throws MPIException {
        free();
    }

    /** Whether this is the null communicator. */
    public final boolean isNull() {
        return handle == NULL;
    }

    /** Whether this is the null communicator (mpiJava). */
    public final boolean Is_null() {
        return isNull();
    }

    /** {@code MPI_Comm_test_inter}. */
    public final boolean isInter() throws MPIException {
        return MPI.number((c, r) -> c.MPI_Comm_test_inter(handle, r)) != FALSE;
    }

    /** {@code MPI_Comm_test_inter} (mpiJava). */
    public final boolean Test_inter() throws MPIException {
        return isInter();
    }

    /** {@code MPI_Comm_group}. */
    public final Group getGroup() throws MPIException {
        return new Group(MPI.large((c, r) -> c.MPI_Comm_group(handle, r)));
    }

    /** {@code MPI_Comm_group} (mpiJava). */
    public final Group Group() throws MPIException {
        return getGroup();
    }

    /** {@code MPI_Intercomm_create}. */
    public final Intercomm createIntercomm(Comm local, int localLeader, int remoteLeader, int tag) throws MPIException {
        return new Intercomm(made((c, r) -> c.MPI_Intercomm_create(handle(local), localLeader, handle, remoteLeader, tag, r)));
    }

    /** {@code MPI_Intercomm_create} (mpiJava). */
    public final Intercomm Create_intercomm(Comm local, int localLeader, int remoteLeader, int tag) throws MPIException {
        return createIntercomm(local, localLeader, remoteLeader, tag);
    }

    /** {@code MPI_Comm_set_name}. */
    public final void setName(String name) throws MPIException {
        MPI.named(name, (c, at) -> c.MPI_Comm_set_name(handle, at));
    }

    /** {@code MPI_Comm_get_name}. */
    public final String getName() throws MPIException {
        return MPI.name((c, text, length) -> c.MPI_Comm_get_name(handle, text, length));
    }

    /** {@code MPI_Topo_test}. */
    public final int getTopology() throws MPIException {
        return MPI.number((c, r) -> c.MPI_Topo_test(handle, r));
    }

    /** {@code MPI_Topo_test} (mpiJava). */
    public final int Topo_test() throws MPIException {
        return getTopology();
    }

    /** Ends the job. */
    public final void abort(int errorCode) throws MPIException {
        MPI.live().MPI_Abort(handle, errorCode);
    }

    /** Ends the job (mpiJava). */
    public final void Abort(int errorCode) throws MPIException {
        abort(errorCode);
    }

    /** {@code MPI_Comm_set_errhandler}. */
    public final void setErrhandler(Errhandler handler) throws MPIException {
        check(MPI.live().MPI_Comm_set_errhandler(handle, Errhandler.handle(handler)));
    }

    /** {@code MPI_Comm_set_errhandler} (mpiJava). */
    public final void Errhandler_set(Errhandler handler) throws MPIException {
        setErrhandler(handler);
    }

    /** {@code MPI_Comm_get_errhandler}. */
    public final Errhandler getErrhandler() throws MPIException {
        return Errhandler.of(MPI.large((c, r) -> c.MPI_Comm_get_errhandler(handle, r)));
    }

    /** {@code MPI_Comm_get_errhandler} (mpiJava). */
    public final Errhandler Errhandler_get() throws MPIException {
        return getErrhandler();
    }

    /** {@code MPI_Comm_call_errhandler}; throws the error where errors are thrown. */
    public final void callErrhandler(int errorCode) throws MPIException {
        Native c = MPI.live();
        check(c.MPI_Comm_call_errhandler(handle, errorCode));
        if (getErrhandler() == MPI.ERRORS_RETURN) {
            throw MPIException.of(c, errorCode);
        }
    }

    /** A new key of attributes. */
    public static int createKeyval() throws MPIException {
        return Attributes.createKeyval();
    }

    /** Frees a key of attributes. */
    public static void freeKeyval(int keyval) throws MPIException {
        Attributes.freeKeyval(keyval);
    }

    /** Sets an attribute. */
    public final void setAttr(int keyval, Object value) throws MPIException {
        attributes.set(keyval, value);
    }

    /** An attribute, or null; those of the standard (MPI.TAG_UB and others) are of type Integer. */
    public final Object getAttr(int keyval) throws MPIException {
        Native c = MPI.live();
        int[] standard = {MPI.TAG_UB, MPI.IO, MPI.HOST, MPI.WTIME_IS_GLOBAL, MPI.APPNUM, MPI.LASTUSEDCODE, MPI.UNIVERSE_SIZE};
        for (int key : standard) {
            if (key == keyval) {
                return standard(c, keyval);
            }
        }
        return attributes.get(keyval);
    }

    private Integer standard(Native c, int keyval) {
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int value = frame.push(8);
            int flag = frame.push(8);
            check(c.MPI_Comm_get_attr(handle, keyval, frame.at(value), frame.at(flag)));
            return frame.getInt(flag) == FALSE ? null
                : c.memory(frame.getLong(value), 4).order(java.nio.ByteOrder.nativeOrder()).getInt(0);
        } finally {
            frame.reset(mark);
        }
    }

    /** An attribute, or null (mpiJava). */
    public final Object Attr_get(int keyval) throws MPIException {
        return getAttr(keyval);
    }

    /** Removes an attribute. */
    public final void deleteAttr(int keyval) throws MPIException {
        attributes.delete(keyval);
    }

    /** {@code MPI_Recv}. The buffer is an array or a direct buffer. */
    public final Status recv(Object buf, int count, Datatype type, int source, int tag) throws MPIException {
        return Recv(buf, 0, count, type, source, tag);
    }

    /** {@code MPI_Recv} to an offset in elements. */
    public final Status Recv(Object buf, int offset, int count, Datatype type, int source, int tag) throws MPIException {
        Native c = MPI.live();
        if (buf instanceof java.nio.Buffer b && type != null && type.isPlain()) {
            return receive(c, b, Memory.output(c, b, offset, count, type), count, type, source, tag);
        }
        if (type == MPI.OBJECT) {
            return Objects.receive(this, buf, offset, count, source, tag);
        }
        try (Exchange x = new Exchange(this, Exchange.BLOCKING)) {
            int status = x.frame().push(Status.BYTES);
            long at = x.taken(buf, offset, count, type);
            return x.received(c.MPI_Recv(at, count, x.type(type), source, tag, handle, x.frame().at(status)), status);
        }
    }

    private Status receive(Native c, Object buf, long at, int count, Datatype type, int source, int tag) {
        Frame frame = Frame.get();
        int mark = frame.mark();
        int place = frame.push(Status.BYTES);
        int rc = c.MPI_Recv(at, count, type.handle, source, tag, handle, frame.at(place));
        java.lang.ref.Reference.reachabilityFence(buf);
        frame.reset(mark);
        check(rc);
        return new Status(frame, place);
    }

    /** {@code MPI_Irecv}. The request keeps the buffer; an array gets its elements when the request is waited for. */
    public final Request iRecv(Object buf, int count, Datatype type, int source, int tag) throws MPIException {
        return Irecv(buf, 0, count, type, source, tag);
    }

    /** {@code MPI_Irecv} to an offset in elements. */
    public final Request Irecv(Object buf, int offset, int count, Datatype type, int source, int tag) throws MPIException {
        Native c = MPI.live();
        if (type == MPI.OBJECT) {
            return Objects.receiveLater(this, buf, offset, count, source, tag);
        }
        try (Exchange x = new Exchange(this, Exchange.NONBLOCKING)) {
            return x.started(c.MPI_Irecv(x.message(buf, offset, count, type), count, type.handle, source, tag, handle, x.request()));
        }
    }

    /** {@code MPI_Recv_init}. */
    public final Prequest recvInit(Object buf, int count, Datatype type, int source, int tag) throws MPIException {
        return Recv_init(buf, 0, count, type, source, tag);
    }

    /** {@code MPI_Recv_init} to an offset in elements. */
    public final Prequest Recv_init(Object buf, int offset, int count, Datatype type, int source, int tag) throws MPIException {
        Native c = MPI.live();
        if (type == MPI.OBJECT) {
            return new ObjectPrequest(() -> Irecv(buf, offset, count, type, source, tag));
        }
        try (Exchange x = new Exchange(this, Exchange.PERSISTENT)) {
            long at = x.message(buf, offset, count, type);
            return x.prepared(c.MPI_Recv_init(at, count, type.handle, source, tag, handle, x.request()));
        }
    }

    /** {@code MPI_Psend_init}: {@code count} elements in each of some partitions of a direct buffer or a segment. */
    public final Prequest pSendInit(Object buf, int partitions, int count, Datatype type, int dest, int tag, Info info)
        throws MPIException {
        Native c = MPI.live();
        Exchange.refuseArray(buf, "partitions are of");
        try (Exchange x = new Exchange(this, Exchange.PERSISTENT)) {
            long at = x.input(buf, 0, (long) partitions * count, type);
            return x.prepared(c.MPI_Psend_init(at, partitions, count, type.handle, dest, tag, handle, Info.handle(info), x.request()));
        }
    }

    /** {@code MPI_Precv_init}: {@code count} elements in each of some partitions of a direct buffer or a segment. */
    public final Prequest pRecvInit(Object buf, int partitions, int count, Datatype type, int source, int tag, Info info)
        throws MPIException {
        Native c = MPI.live();
        Exchange.refuseArray(buf, "partitions are of");
        try (Exchange x = new Exchange(this, Exchange.PERSISTENT)) {
            long at = x.untouched(buf, 0, (long) partitions * count, type);
            return x.prepared(c.MPI_Precv_init(at, partitions, count, type.handle, source, tag, handle, Info.handle(info), x.request()));
        }
    }

    /** {@code MPI_Sendrecv}. */
    public final Status sendRecv(Object sendbuf, int sendcount, Datatype sendtype, int dest, int sendtag, Object recvbuf,
        int recvcount, Datatype recvtype, int source, int recvtag) throws MPIException {
        return Sendrecv(sendbuf, 0, sendcount, sendtype, dest, sendtag, recvbuf, 0, recvcount, recvtype, source, recvtag);
    }

    /** {@code MPI_Sendrecv} with offsets in elements. */
    public final Status Sendrecv(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, int dest, int sendtag,
        Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int source, int recvtag) throws MPIException {
        Native c = MPI.live();
        if (sendtype == MPI.OBJECT || recvtype == MPI.OBJECT) {
            Request sent = Isend(sendbuf, sendoffset, sendcount, sendtype, dest, sendtag);
            Status status = Recv(recvbuf, recvoffset, recvcount, recvtype, source, recvtag);
            sent.waitFor();
            return status;
        }
        try (Exchange x = new Exchange(this, Exchange.BLOCKING)) {
            int status = x.frame().push(Status.BYTES);
            long out = x.given(sendbuf, sendoffset, sendcount, sendtype);
            long outType = x.type(sendtype);
            long in = x.taken(recvbuf, recvoffset, recvcount, recvtype);
            return x.received(c.MPI_Sendrecv(out, sendcount, outType, dest, sendtag, in, recvcount, x.type(recvtype), source,
                recvtag, handle, x.frame().at(status)), status);
        }
    }

    /** {@code MPI_Sendrecv_replace}. */
    public final Status sendRecvReplace(Object buf, int count, Datatype type, int dest, int sendtag, int source, int recvtag)
        throws MPIException {
        return Sendrecv_replace(buf, 0, count, type, dest, sendtag, source, recvtag);
    }

    /** {@code MPI_Sendrecv_replace} with an offset in elements. */
    public final Status Sendrecv_replace(Object buf, int offset, int count, Datatype type, int dest, int sendtag, int source,
        int recvtag) throws MPIException {
        Native c = MPI.live();
        if (type == MPI.OBJECT) {
            return Sendrecv(buf, offset, count, type, dest, sendtag, buf, offset, count, type, source, recvtag);
        }
        try (Exchange x = new Exchange(this, Exchange.BLOCKING)) {
            int status = x.frame().push(Status.BYTES);
            long at = x.untouched(buf, offset, count, type);
            return x.received(c.MPI_Sendrecv_replace(at, count, type.handle, dest, sendtag, source, recvtag, handle,
                x.frame().at(status)), status);
        }
    }

    /** {@code MPI_Probe}. */
    public final Status probe(int source, int tag) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int place = frame.push(Status.BYTES);
            check(c.MPI_Probe(source, tag, handle, frame.at(place)));
            return new Status(frame, place);
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Probe} (mpiJava). */
    public final Status Probe(int source, int tag) throws MPIException {
        return probe(source, tag);
    }

    /** {@code MPI_Iprobe}: the status of a message that may be received, or null. */
    public final Status iProbe(int source, int tag) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int flag = frame.push(8);
            int place = frame.push(Status.BYTES);
            check(c.MPI_Iprobe(source, tag, handle, frame.at(flag), frame.at(place)));
            return frame.getInt(flag) == FALSE ? null : new Status(frame, place);
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Iprobe} (mpiJava). */
    public final Status Iprobe(int source, int tag) throws MPIException {
        return iProbe(source, tag);
    }

    /** {@code MPI_Mprobe}: a message that only its handle can receive. */
    public final Message mProbe(int source, int tag) throws MPIException {
        return Message.probe(this, source, tag, true);
    }

    /** {@code MPI_Improbe}: a message that only its handle can receive, or null. */
    public final Message imProbe(int source, int tag) throws MPIException {
        return Message.probe(this, source, tag, false);
    }

    /** Bytes that some elements take when they are packed. */
    public final int packSize(int count, Datatype type) throws MPIException {
        return MPI.number((c, r) -> c.MPI_Pack_size(count, Datatype.handle(type), handle, r));
    }

    /** Bytes that some elements take when they are packed (mpiJava). */
    public final int Pack_size(int count, Datatype type) throws MPIException {
        return packSize(count, type);
    }

    /** Packs elements into an array from a position on; the position behind them. */
    public final int pack(Object buf, int count, Datatype type, byte[] packed, int position) throws MPIException {
        return Pack(buf, 0, count, type, packed, position);
    }

    /** Packs elements from an offset on (mpiJava). */
    public final int Pack(Object buf, int offset, int count, Datatype type, byte[] packed, int position) throws MPIException {
        Native c = MPI.live();
        try (Exchange x = new Exchange(this, Exchange.BLOCKING)) {
            int place = x.frame().push(8);
            x.frame().putInt(place, position);
            long from = x.input(buf, offset, count, type);
            long to = x.untouched(packed, 0, bytes(packed), MPI.BYTE);
            x.end(c.MPI_Pack(from, count, type.handle, to, packed.length, x.frame().at(place), handle));
            return x.frame().getInt(place);
        }
    }

    private static int bytes(byte[] packed) {
        return MPIException.given(packed, MPI.ERR_BUFFER, "array of packed data").length;
    }

    /** Unpacks elements from a position of an array on; the position behind them. */
    public final int unpack(byte[] packed, int position, Object buf, int count, Datatype type) throws MPIException {
        return Unpack(packed, position, buf, 0, count, type);
    }

    /** Unpacks elements to an offset (mpiJava). */
    public final int Unpack(byte[] packed, int position, Object buf, int offset, int count, Datatype type) throws MPIException {
        Native c = MPI.live();
        try (Exchange x = new Exchange(this, Exchange.BLOCKING)) {
            int place = x.frame().push(8);
            x.frame().putInt(place, position);
            long from = x.input(packed, 0, bytes(packed), MPI.BYTE);
            long to = x.output(buf, offset, count, type);
            x.end(c.MPI_Unpack(from, packed.length, x.frame().at(place), to, count, type.handle, handle));
            return x.frame().getInt(place);
        }
    }

    /** {@code MPI_Reduce_local}. */
    public static void reduceLocal(Object in, Object inOut, int count, Datatype type, Op op) throws MPIException {
        Native c = MPI.live();
        try (Exchange x = new Exchange(MPI.COMM_SELF, Exchange.BLOCKING)) {
            long from = x.input(in, 0, count, type);
            long to = x.untouched(inOut, 0, count, type);
            x.end(c.MPI_Reduce_local(from, to, count, type.handle, x.op(op, type)));
        }
    }

    /** Neighbours of this rank in a distributed graph. */
    public final DistGraphNeighbors getDistGraphNeighbors() throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int numbers = frame.push(16);
            check(c.MPI_Dist_graph_neighbors_count(handle, frame.at(numbers), frame.at(numbers + 4), frame.at(numbers + 8)));
            int in = frame.getInt(numbers);
            int out = frame.getInt(numbers + 4);
            boolean weighted = frame.getInt(numbers + 8) != FALSE;
            int[] places = {frame.push(4 * in), frame.push(4 * in), frame.push(4 * out), frame.push(4 * out)};
            check(c.MPI_Dist_graph_neighbors(handle, in, frame.at(places[0]), frame.at(places[1]), out, frame.at(places[2]),
                frame.at(places[3])));
            return new DistGraphNeighbors(frame.getInts(places[0], in), frame.getInts(places[1], in),
                frame.getInts(places[2], out), frame.getInts(places[3], out), weighted);
        } finally {
            frame.reset(mark);
        }
    }
}
