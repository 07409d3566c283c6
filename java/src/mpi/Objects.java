package mpi;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.util.Arrays;

/**
 * Messages of objects (MPI.OBJECT): a message is the serialized objects. A receive probes, because only the message says how
 * long it is; a nonblocking receive therefore matches when it is waited for.
 */
final class Objects {
    private Objects() {}

    private static Object[] array(Object buf) {
        if (buf instanceof Object[] a) {
            return a;
        }
        throw MPIException.wrong(MPI.ERR_TYPE, "MPI.OBJECT needs an array of objects, not "
            + (buf == null ? "null" : "a " + buf.getClass().getTypeName()));
    }

    private static void range(Object[] a, int offset, int count) {
        if (count < 0) {
            throw Memory.negative(count);
        }
        if (offset < 0 || (long) offset + count > a.length) {
            throw MPIException.wrong(offset < 0 ? MPI.ERR_ARG : MPI.ERR_COUNT, "elements " + offset + " to " + ((long) offset + count)
                + " of the array are wanted, it has " + a.length);
        }
    }

    /** Some objects of an array as bytes. */
    static byte[] bytes(Object buf, int offset, int count) {
        Object[] a = array(buf);
        range(a, offset, count);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeInt(count);
            for (int i = 0; i < count; i++) {
                out.writeObject(a[offset + i]);
            }
        } catch (IOException e) {
            throw failed("an object cannot be serialized: " + e, e);
        }
        return bytes.toByteArray();
    }

    private static MPIException failed(String sentence, Exception cause) {
        MPIException thrown = MPIException.wrong(MPI.ERR_TYPE, sentence);
        thrown.initCause(cause);
        return thrown;
    }

    /** Finds classes as the program does, also where MPI's own loader does not see them. */
    private static final class In extends ObjectInputStream {
        In(byte[] bytes, int from, int length) throws IOException {
            super(new ByteArrayInputStream(bytes, from, length));
        }

        @Override
        protected Class<?> resolveClass(ObjectStreamClass description) throws IOException, ClassNotFoundException {
            ClassLoader loader = Thread.currentThread().getContextClassLoader();
            try {
                return Class.forName(description.getName(), false, loader);
            } catch (ClassNotFoundException e) {
                return super.resolveClass(description);
            }
        }
    }

    /** Puts the objects of a message into an array; how many they are. */
    private static int put(byte[] bytes, int from, int length, Object buf, int offset, int count) {
        Object[] a = array(buf);
        range(a, offset, count);
        try (In in = new In(bytes, from, length)) {
            int came = in.readInt();
            if (came > count) {
                throw MPIException.wrong(MPI.ERR_TRUNCATE, "the message has " + came + " objects, the receive wants at most " + count);
            }
            for (int i = 0; i < came; i++) {
                a[offset + i] = in.readObject();
            }
            return came;
        } catch (IOException | ClassNotFoundException e) {
            throw failed("the message is not of objects that this program knows: " + e, e);
        } catch (ArrayStoreException e) {
            throw failed("the array is " + a.getClass().getTypeName() + ", the message has a " + e.getMessage(), e);
        }
    }

    static Status receive(Comm comm, Object buf, int offset, int count, int source, int tag) {
        range(array(buf), offset, count);
        if (source == MPI.PROC_NULL) {
            return comm.recv(new byte[0], 0, MPI.BYTE, source, tag).ofObjects(0);
        }
        return take(comm.mProbe(source, tag), buf, offset, count);
    }

    private static Status take(Message message, Object buf, int offset, int count) {
        byte[] bytes = new byte[message.getStatus().getCount(MPI.BYTE)];
        Status status = message.mRecv(bytes, bytes.length, MPI.BYTE);
        return status.ofObjects(put(bytes, 0, bytes.length, buf, offset, count));
    }

    static Request receiveLater(Comm comm, Object buf, int offset, int count, int source, int tag) {
        range(array(buf), offset, count);
        return new Later(comm, buf, offset, count, source, tag);
    }

    /** A nonblocking receive of objects. */
    private static final class Later extends Request {
        private final Comm comm;
        private final Object buf;
        private final int offset;
        private final int count;
        private final int source;
        private final int tag;
        private boolean pending = true;

        Later(Comm comm, Object buf, int offset, int count, int source, int tag) {
            super(NULL, Holdings.NONE);
            this.comm = comm;
            this.buf = buf;
            this.offset = offset;
            this.count = count;
            this.source = source;
            this.tag = tag;
        }

        @Override
        boolean isJava() {
            return true;
        }

        @Override
        public boolean isNull() {
            return !pending;
        }

        @Override
        public Status waitStatus() {
            live();
            if (!pending) {
                return new Status();
            }
            pending = false;
            return receive(comm, buf, offset, count, source, tag);
        }

        @Override
        public Status testStatus() {
            live();
            if (!pending) {
                return new Status();
            }
            Message message = comm.imProbe(source, tag);
            if (message == null) {
                return null;
            }
            pending = false;
            return take(message, buf, offset, count);
        }

        @Override
        public void cancel() {
            pending = false;
        }

        @Override
        public void close() {
            pending = false;
        }
    }

    private static void blocking(int mode) {
        if (mode != Exchange.BLOCKING) {
            throw MPIException.wrong(MPI.ERR_TYPE, "collective operations on MPI.OBJECT are blocking ones");
        }
    }

    private static int[] starts(int[] lengths) {
        int[] starts = new int[lengths.length];
        for (int i = 1; i < lengths.length; i++) {
            starts[i] = Math.addExact(starts[i - 1], lengths[i - 1]);
        }
        return starts;
    }

    private static int total(int[] lengths) {
        return Math.toIntExact(CommCore.sum(lengths));
    }

    private static int[] times(int[] unit, int count) {
        int[] all = new int[unit.length];
        Arrays.fill(all, count);
        return all;
    }

    private static int[] places(int n, int stride) {
        int[] all = new int[n];
        for (int i = 0; i < n; i++) {
            all[i] = i * stride;
        }
        return all;
    }

    static Request bcast(CommCalls comm, int mode, Object buf, int offset, int count, int root) {
        blocking(mode);
        boolean sends = comm.isRoot(root);
        byte[] bytes = sends ? bytes(buf, offset, count) : null;
        int[] length = {sends ? bytes.length : 0};
        comm.bcast(length, 1, MPI.INT, root);
        if (!sends) {
            bytes = new byte[length[0]];
        }
        comm.bcast(bytes, length[0], MPI.BYTE, root);
        if (!sends && root != MPI.PROC_NULL) {
            put(bytes, 0, bytes.length, buf, offset, count);
        }
        return null;
    }

    static Request gather(CommCalls comm, int mode, Object sendbuf, int sendoffset, int sendcount, Object recvbuf, int recvoffset,
        int recvcount, int root) {
        int n = comm.peers();
        return gatherv(comm, mode, sendbuf, sendoffset, sendcount, recvbuf, recvoffset, times(new int[n], recvcount),
            places(n, recvcount), root);
    }

    static Request gatherv(CommCalls comm, int mode, Object sendbuf, int sendoffset, int sendcount, Object recvbuf, int recvoffset,
        int[] recvcounts, int[] displs, int root) {
        blocking(mode);
        boolean gets = comm.isRoot(root);
        if (sendbuf == MPI.IN_PLACE) {
            return null;
        }
        byte[] mine = comm.sendsTo(root) ? bytes(sendbuf, sendoffset, sendcount) : new byte[0];
        int[] lengths = new int[gets ? comm.peers() : 0];
        comm.gather(new int[] {mine.length}, 1, MPI.INT, lengths, 1, MPI.INT, root);
        byte[] all = new byte[total(lengths)];
        int[] starts = starts(lengths);
        comm.gatherv(mine, mine.length, MPI.BYTE, all, lengths, starts, MPI.BYTE, root);
        for (int i = 0; gets && i < lengths.length; i++) {
            put(all, starts[i], lengths[i], recvbuf, recvoffset + displs[i], recvcounts[i]);
        }
        return null;
    }

    static Request scatter(CommCalls comm, int mode, Object sendbuf, int sendoffset, int sendcount, Object recvbuf, int recvoffset,
        int recvcount, int root) {
        int n = comm.peers();
        return scatterv(comm, mode, sendbuf, sendoffset, times(new int[n], sendcount), places(n, sendcount), recvbuf, recvoffset,
            recvcount, root);
    }

    /** The parts of an array for each rank, one behind another, and their lengths. */
    private static byte[] parts(Object buf, int offset, int[] counts, int[] displs, int[] lengths) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (int i = 0; i < lengths.length; i++) {
            byte[] one = bytes(buf, offset + displs[i], counts[i]);
            lengths[i] = one.length;
            all.writeBytes(one);
        }
        return all.toByteArray();
    }

    static Request scatterv(CommCalls comm, int mode, Object sendbuf, int sendoffset, int[] sendcounts, int[] displs, Object recvbuf,
        int recvoffset, int recvcount, int root) {
        blocking(mode);
        boolean gives = comm.isRoot(root);
        int[] lengths = new int[gives ? comm.peers() : 0];
        byte[] all = gives ? parts(sendbuf, sendoffset, sendcounts, displs, lengths) : new byte[0];
        int[] length = new int[1];
        comm.scatter(lengths, 1, MPI.INT, length, 1, MPI.INT, root);
        byte[] mine = new byte[length[0]];
        comm.scatterv(all, lengths, starts(lengths), MPI.BYTE, mine, mine.length, MPI.BYTE, root);
        if (comm.sendsTo(root) && recvbuf != MPI.IN_PLACE) {
            put(mine, 0, mine.length, recvbuf, recvoffset, recvcount);
        }
        return null;
    }

    static Request allgather(CommCalls comm, int mode, Object sendbuf, int sendoffset, int sendcount, Object recvbuf, int recvoffset,
        int recvcount) {
        int n = comm.peers();
        return allgatherv(comm, mode, sendbuf, sendoffset, sendcount, recvbuf, recvoffset, times(new int[n], recvcount),
            places(n, recvcount));
    }

    static Request allgatherv(CommCalls comm, int mode, Object sendbuf, int sendoffset, int sendcount, Object recvbuf, int recvoffset,
        int[] recvcounts, int[] displs) {
        blocking(mode);
        boolean inPlace = sendbuf == MPI.IN_PLACE;
        int own = inPlace ? comm.localRank() : 0;
        byte[] mine = inPlace ? bytes(recvbuf, recvoffset + displs[own], recvcounts[own]) : bytes(sendbuf, sendoffset, sendcount);
        int[] lengths = new int[comm.peers()];
        comm.allGather(new int[] {mine.length}, 1, MPI.INT, lengths, 1, MPI.INT);
        byte[] all = new byte[total(lengths)];
        int[] starts = starts(lengths);
        comm.allGatherv(mine, mine.length, MPI.BYTE, all, lengths, starts, MPI.BYTE);
        for (int i = 0; i < lengths.length; i++) {
            put(all, starts[i], lengths[i], recvbuf, recvoffset + displs[i], recvcounts[i]);
        }
        return null;
    }

    static Request alltoall(CommCalls comm, int mode, Object sendbuf, int sendoffset, int sendcount, Object recvbuf, int recvoffset,
        int recvcount) {
        int n = comm.peers();
        return alltoallv(comm, mode, sendbuf, sendoffset, times(new int[n], sendcount), places(n, sendcount), recvbuf, recvoffset,
            times(new int[n], recvcount), places(n, recvcount));
    }

    static Request alltoallv(CommCalls comm, int mode, Object sendbuf, int sendoffset, int[] sendcounts, int[] sdispls, Object recvbuf,
        int recvoffset, int[] recvcounts, int[] rdispls) {
        blocking(mode);
        int[] out = new int[comm.peers()];
        int[] in = new int[comm.peers()];
        Object from = sendbuf == MPI.IN_PLACE ? recvbuf : sendbuf;
        byte[] mine = sendbuf == MPI.IN_PLACE ? parts(from, recvoffset, recvcounts, rdispls, out)
            : parts(from, sendoffset, sendcounts, sdispls, out);
        comm.allToAll(out, 1, MPI.INT, in, 1, MPI.INT);
        byte[] all = new byte[total(in)];
        int[] starts = starts(in);
        comm.allToAllv(mine, out, starts(out), MPI.BYTE, all, in, starts, MPI.BYTE);
        for (int i = 0; i < in.length; i++) {
            put(all, starts[i], in[i], recvbuf, recvoffset + rdispls[i], recvcounts[i]);
        }
        return null;
    }

    /** The operands of ranks 0 to {@code last}, combined in the order of ranks. */
    private static Object[] combined(Object[] all, int count, int last, Op op) {
        Object[] right = Arrays.copyOfRange(all, last * count, (last + 1) * count);
        for (int rank = last - 1; rank >= 0; rank--) {
            op.combine(Arrays.copyOfRange(all, rank * count, (rank + 1) * count), right, count);
        }
        return right;
    }

    private static Object[] everywhere(CommCalls comm, Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count) {
        boolean inPlace = sendbuf == MPI.IN_PLACE;
        Object[] all = new Object[comm.peers() * count];
        allgather(comm, Exchange.BLOCKING, inPlace ? recvbuf : sendbuf, inPlace ? recvoffset : sendoffset, count, all, 0, count);
        return all;
    }

    private static void store(Object[] values, Object recvbuf, int recvoffset, int count) {
        range(array(recvbuf), recvoffset, count);
        System.arraycopy(values, 0, array(recvbuf), recvoffset, count);
    }

    static Request reduce(CommCalls comm, int mode, Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Op op,
        int root) {
        blocking(mode);
        boolean gets = comm.isRoot(root);
        boolean inPlace = sendbuf == MPI.IN_PLACE;
        Object[] all = new Object[gets ? comm.peers() * count : 0];
        gather(comm, mode, inPlace ? recvbuf : sendbuf, inPlace ? recvoffset : sendoffset, count, all, 0, count, root);
        if (gets) {
            store(combined(all, count, comm.peers() - 1, op), recvbuf, recvoffset, count);
        }
        return null;
    }

    static Request allreduce(CommCalls comm, int mode, Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count,
        Op op) {
        blocking(mode);
        Object[] all = everywhere(comm, sendbuf, sendoffset, recvbuf, recvoffset, count);
        store(combined(all, count, comm.peers() - 1, op), recvbuf, recvoffset, count);
        return null;
    }

    static Request reduceScatter(CommCalls comm, int mode, Object sendbuf, int sendoffset, Object recvbuf, int recvoffset,
        int[] recvcounts, Op op) {
        blocking(mode);
        int count = total(recvcounts);
        Object[] all = everywhere(comm, sendbuf, sendoffset, recvbuf, recvoffset, count);
        Object[] result = combined(all, count, comm.peers() - 1, op);
        int own = comm.localRank();
        int start = starts(recvcounts)[own];
        store(Arrays.copyOfRange(result, start, start + recvcounts[own]), recvbuf, recvoffset, recvcounts[own]);
        return null;
    }

    static Request scan(CommCalls comm, int mode, Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Op op) {
        blocking(mode);
        Object[] all = everywhere(comm, sendbuf, sendoffset, recvbuf, recvoffset, count);
        store(combined(all, count, comm.localRank(), op), recvbuf, recvoffset, count);
        return null;
    }
}
