import java.nio.*;
import mpi.*;

/** What is wrong gets an exception with MPI's class and a sentence; the machine never crashes. One rank or more. */
public class Wrong {
    static final Intracomm W = MPI.COMM_WORLD;

    public static void main(String[] args) throws Exception {
        Check.refused(MPI.ERR_OTHER, "MPI.Init was not called yet", () -> MPI.COMM_WORLD.getRank());
        Check.refused(MPI.ERR_OTHER, "MPI.Init was not called yet", () -> W.send(new int[1], 1, MPI.INT, 0, 0));
        Check.refused(MPI.ERR_OTHER, "MPI.Init was not called yet", () -> Datatype.createContiguous(1, MPI.INT));
        Check.chapter(args, () -> {
            Check.refused(MPI.ERR_OTHER, "already", () -> MPI.Init(args));
            buffers();
            arguments();
            handles();
            objects();
            nulls();
        });
        Check.refused(MPI.ERR_OTHER, "MPI.Finalize was called already", () -> W.barrier());
        Check.refused(MPI.ERR_OTHER, "MPI.Finalize was called already", () -> MPI.Init(args));
    }

    static void buffers() throws Exception {
        int[] a = new int[4];
        int me = W.getRank();
        Check.refused(MPI.ERR_ARG, "elements -1", () -> W.Send(a, -1, 1, MPI.INT, me, 0));
        Check.refused(MPI.ERR_COUNT, "it has 4", () -> W.Send(a, 2, 3, MPI.INT, me, 0));
        Check.refused(MPI.ERR_ARG, "it has 4", () -> W.Send(a, Integer.MAX_VALUE, Integer.MAX_VALUE, MPI.INT, me, 0));
        Check.refused(MPI.ERR_COUNT, "negative", () -> W.send(a, -1, MPI.INT, me, 0));
        Check.refused(MPI.ERR_COUNT, "it has 4", () -> W.recv(a, 5, MPI.INT, me, 0));
        Check.refused(MPI.ERR_COUNT, "it has 4", () -> W.iRecv(a, 5, MPI.INT, me, 0));
        Check.refused(MPI.ERR_TYPE, "the array is int[], the datatype is of double", () -> W.send(a, 1, MPI.DOUBLE, me, 0));
        Check.refused(MPI.ERR_TYPE, "the array is boolean[]", () -> W.send(new boolean[1], 1, MPI.BYTE, me, 0));
        Check.refused(MPI.ERR_BUFFER, "null", () -> W.send(null, 1, MPI.INT, me, 0));
        Check.refused(MPI.ERR_BUFFER, "java.lang.String", () -> W.send("text", 1, MPI.CHAR, me, 0));
        Check.refused(MPI.ERR_BUFFER, "heap", () -> W.send(ByteBuffer.allocate(8), 1, MPI.BYTE, me, 0));
        Check.refused(MPI.ERR_BUFFER, "heap", () -> W.iRecv(IntBuffer.allocate(8), 1, MPI.INT, me, 0));
        Check.refused(MPI.ERR_BUFFER, "read-only", () -> W.recv(MPI.newByteBuffer(8).asReadOnlyBuffer(), 1, MPI.BYTE, me, 0));
        Check.refused(MPI.ERR_BUFFER, "read-only",
            () -> W.allReduce(MPI.newByteBuffer(8), MPI.newByteBuffer(8).asReadOnlyBuffer(), 1, MPI.BYTE, MPI.MAX));
        Check.refused(MPI.ERR_COUNT, "it has 8", () -> W.send(MPI.newByteBuffer(8), 3, MPI.INT, me, 0));
        Check.refused(MPI.ERR_ARG, "", () -> W.Send(MPI.newByteBuffer(8), -1, 1, MPI.INT, me, 0));
        Check.refused(MPI.ERR_COUNT, "", () -> W.send(MPI.newByteBuffer(8), Integer.MAX_VALUE, MPI.DOUBLE, me, 0));
        W.sendRecv(a, 0, MPI.INT, me, 0, null, 0, MPI.INT, me, 0);
        Check.refused(MPI.ERR_TRUNCATE, "", () -> W.sendRecv(a, 4, MPI.INT, me, 0, a, 2, MPI.INT, me, 0));
    }

    static void arguments() throws Exception {
        int[] a = new int[64];
        int size = W.getSize();
        Check.refused(MPI.ERR_RANK, "99", () -> W.send(a, 1, MPI.INT, 99, 0));
        Check.refused(MPI.ERR_TAG, "", () -> W.send(a, 1, MPI.INT, 0, -5));
        Check.refused(MPI.ERR_ROOT, "", () -> W.bcast(a, 1, MPI.INT, size));
        Check.refused(MPI.ERR_TYPE, "null", () -> W.send(a, 1, null, 0, 0));
        Check.refused(MPI.ERR_OP, "null", () -> W.allReduce(a, 1, MPI.INT, null));
        Check.refused(MPI.ERR_OP, "", () -> W.allReduce(new double[1], 1, MPI.DOUBLE, MPI.BAND));
        Check.refused(MPI.ERR_ARG, "for 1, they must be for", () -> W.gatherv(a, 1, MPI.INT, a, new int[1], new int[1], MPI.INT,
            size == 1 ? 77 : W.getRank()), size > 1);
        Check.refused(MPI.ERR_ARG, "null", () -> W.allGatherv(a, 1, MPI.INT, a, null, null, MPI.INT));
        Check.refused(MPI.ERR_TOPOLOGY, "no topology", () -> W.neighborAllGather(a, 1, MPI.INT, a, 1, MPI.INT));
        Check.refused(MPI.ERR_COUNT, "", () -> MPI.newByteBuffer(-1));
        Check.refused(MPI.ERR_KEYVAL, "", () -> W.getAttr(1 << 29));
    }

    static void handles() throws Exception {
        Request r = W.iSend(new int[1], 1, MPI.INT, MPI.PROC_NULL, 0);
        r.close();
        Check.refused(MPI.ERR_REQUEST, "freed or closed", () -> r.waitFor());
        Check.refused(MPI.ERR_REQUEST, "freed or closed", () -> Request.waitAll(new Request[] {r}));
        Check.refused(MPI.ERR_REQUEST, "request 0 of the array is null", () -> Request.waitAll(new Request[1]));
        Prequest p = W.recvInit(new int[1], 1, MPI.INT, W.getRank(), 77);
        p.start();
        Check.refused(MPI.ERR_REQUEST, "active", () -> p.start());
        p.cancel();
        p.waitFor();
        p.free();
        Check.refused(MPI.ERR_REQUEST, "freed", () -> p.start());
        Datatype t = Datatype.createContiguous(2, MPI.INT);
        Check.refused(MPI.ERR_TYPE, "", () -> W.send(new int[2], 1, t, W.getRank(), 0));
        t.free();
        Check.refused(MPI.ERR_TYPE, "freed", () -> W.send(new int[2], 1, t, 0, 0));
        Check.refused(MPI.ERR_TYPE, "freed", () -> t.free());
        Check.refused(MPI.ERR_TYPE, "standard", () -> MPI.INT.free());
        Check.refused(MPI.ERR_OP, "standard", () -> MPI.SUM.free());
        Check.refused(MPI.ERR_COMM, "", () -> MPI.COMM_NULL.getSize());
        Win win = Win.allocate(8, 1, null, W);
        win.free();
        Check.refused(MPI.ERR_WIN, "freed", () -> win.fence(0));
        Check.refused(MPI.ERR_WIN, "freed", () -> win.getBase());
    }

    static void objects() throws Exception {
        int me = W.getRank();
        Check.refused(MPI.ERR_TYPE, "cannot be serialized", () -> W.Send(new Object[] {new Object()}, 0, 1, MPI.OBJECT, me, 0));
        Check.refused(MPI.ERR_TYPE, "array of objects", () -> W.Send(new int[1], 0, 1, MPI.OBJECT, me, 0));
        Check.refused(MPI.ERR_COUNT, "it has 1", () -> W.Send(new Object[1], 0, 2, MPI.OBJECT, me, 0));
        Check.refused(MPI.ERR_TYPE, "blocking", () -> W.iBcast(new Object[1], 1, MPI.OBJECT, 0));
        byte[] nonsense = {1, 2, 3};
        Request sent = W.iSend(nonsense, 3, MPI.BYTE, me, 0);
        Check.refused(MPI.ERR_TYPE, "not of objects", () -> W.Recv(new Object[1], 0, 1, MPI.OBJECT, me, 0));
        sent.waitFor();
        sent = W.Isend(new Object[] {1, 2}, 0, 2, MPI.OBJECT, me, 0);
        Check.refused(MPI.ERR_TRUNCATE, "2 objects", () -> W.Recv(new Object[1], 0, 1, MPI.OBJECT, me, 0));
        sent.waitFor();
        sent = W.Isend(new Object[] {1}, 0, 1, MPI.OBJECT, me, 0);
        Check.refused(MPI.ERR_TYPE, "String[]", () -> W.Recv(new String[1], 0, 1, MPI.OBJECT, me, 0));
        sent.waitFor();
        Check.refused(MPI.ERR_OP, "does not combine objects",
            () -> W.Allreduce(new Object[1], 0, new Object[1], 0, 1, MPI.OBJECT, MPI.SUM), W.getSize() > 1);
    }

    static void nulls() throws Exception {
        int[] a = new int[4];
        Check.refused(MPI.ERR_REQUEST, "null", () -> Request.waitAll(null));
        Check.refused(MPI.ERR_REQUEST, "null", () -> Prequest.startAll(null));
        Check.refused(MPI.ERR_TYPE, "null", () -> Datatype.createVector(1, 1, 1, null));
        Check.refused(MPI.ERR_ARG, "null", () -> Datatype.createIndexed(null, a, MPI.INT));
        Check.refused(MPI.ERR_TYPE, "null", () -> Datatype.createStruct(a, a, new Datatype[4]));
        Check.refused(MPI.ERR_ARG, "null", () -> new Info().set(null, "x"));
        Check.refused(MPI.ERR_ARG, "null", () -> W.getGroup().incl(null));
        Check.refused(MPI.ERR_GROUP, "null", () -> W.create(null));
        Check.refused(MPI.ERR_GROUP, "null", () -> Group.union(W.getGroup(), null));
        Check.refused(MPI.ERR_COMM, "null", () -> Comm.compare(W, null));
        Check.refused(MPI.ERR_ARG, "null", () -> W.createCart(null, null, false));
        Check.refused(MPI.ERR_ARG, "null", () -> W.createGraph(null, a, false));
        Check.refused(MPI.ERR_ARG, "null", () -> W.setErrhandler(null));
        Check.refused(MPI.ERR_ARG, "null", () -> new Op((UserFunction) null, true));
        Check.refused(MPI.ERR_BUFFER, "null", () -> W.pack(a, 1, MPI.INT, null, 0));
        Check.refused(MPI.ERR_BUFFER, "null", () -> MPI.attachBuffer((ByteBuffer) null));
        Check.refused(MPI.ERR_BUFFER, "null", () -> MPI.slice((IntBuffer) null, 0));
        Check.refused(MPI.ERR_ARG, "the offset is 9", () -> MPI.slice(MPI.newIntBuffer(8), 9));
    }
}
