import java.nio.*;
import mpi.*;

/** Messages: arrays and buffers of every type, all modes, nonblocking, persistent, probes, packing. Any number of ranks from 2 on. */
public class Point {
    static final Intracomm W = MPI.COMM_WORLD;

    public static void main(String[] args) throws Exception {
        Check.chapter(args, () -> {
            int rank = W.getRank();
            arrays(rank);
            buffers(rank);
            modes(rank);
            requests(rank);
            persistent(rank);
            partitioned(rank);
            probed(rank);
            probes(rank);
            packed();
            exchange(rank);
            large(rank);
        });
    }

    static void arrays(int rank) throws Exception {
        Object[] out = {new byte[] {1, -2}, new char[] {'a', '\u20ac'}, new short[] {3, -4}, new boolean[] {true, false},
            new int[] {5, -6}, new long[] {7, -8}, new float[] {9, -.5f}, new double[] {11, -.25}};
        Object[] in = {new byte[3], new char[3], new short[3], new boolean[3], new int[3], new long[3], new float[3], new double[3]};
        Datatype[] types = {MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.BOOLEAN, MPI.INT, MPI.LONG, MPI.FLOAT, MPI.DOUBLE};
        for (int i = 0; i < types.length; i++) {
            if (rank == 0) {
                W.send(out[i], 2, types[i], 1, i);
            } else if (rank == 1) {
                java.lang.reflect.Array.set(in[i], 2, java.lang.reflect.Array.get(out[i], 0));
                Status s = W.recv(in[i], 3, types[i], MPI.ANY_SOURCE, MPI.ANY_TAG);
                Check.equal(s.getCount(types[i]), 2);
                Check.equal(s.getTag(), i);
                for (int k = 0; k < 3; k++) { // what did not come stays
                    Check.equal(java.lang.reflect.Array.get(in[i], k), java.lang.reflect.Array.get(out[i], k % 2));
                }
            }
        }
    }

    static void buffers(int rank) throws Exception {
        DoubleBuffer d = MPI.newDoubleBuffer(4);
        LongBuffer l = MPI.newLongBuffer(4);
        CharBuffer c = MPI.newCharBuffer(4);
        ByteBuffer b = ByteBuffer.allocateDirect(32).order(ByteOrder.nativeOrder());
        if (rank == 0) {
            d.put(0, 1).put(1, 2);
            l.put(1, 1L << 40);
            c.put(0, 'x');
            b.putInt(8, 77);
            b.position(8); // a position means nothing; a slice does
            W.send(d, 2, MPI.DOUBLE, 1, 0);
            W.send(MPI.slice(l, 1), 1, MPI.LONG, 1, 0);
            W.send(c, 1, MPI.CHAR, 1, 0);
            W.send(b, 3, MPI.INT, 1, 0);
            W.send(b.asReadOnlyBuffer(), 3, MPI.INT, 1, 0);
        } else if (rank == 1) {
            W.recv(MPI.slice(d, 2), 2, MPI.DOUBLE, 0, 0);
            Check.that(d.get(2) == 1 && d.get(3) == 2, "doubles");
            W.recv(l, 1, MPI.LONG, 0, 0);
            Check.equal(l.get(0), 1L << 40);
            W.recv(c, 1, MPI.CHAR, 0, 0);
            Check.equal(c.get(0), 'x');
            for (int i = 0; i < 2; i++) {
                b.putInt(8, 0);
                W.recv(b, 3, MPI.INT, 0, 0);
                Check.equal(b.getInt(8), 77);
            }
        }
    }

    static void modes(int rank) throws Exception {
        int[] a = {4};
        if (rank == 0) {
            MPI.attachBuffer(new byte[4096]);
            W.recv(a, 1, MPI.INT, 1, 9); // the other has posted
            W.rSend(a, 1, MPI.INT, 1, 0);
            W.sSend(a, 1, MPI.INT, 1, 1);
            W.bSend(a, 1, MPI.INT, 1, 2);
            Request.waitAll(new Request[] {W.ibSend(a, 1, MPI.INT, 1, 3), W.isSend(a, 1, MPI.INT, 1, 4), W.iSend(a, 1, MPI.INT, 1, 5)});
            Check.equal(MPI.detachBuffer().length, 4096);
        } else if (rank == 1) {
            Request first = W.iRecv(a, 1, MPI.INT, 0, 0);
            W.send(new int[] {6}, 1, MPI.INT, 0, 9);
            first.waitFor();
            Check.equal(a[0], 6);
            for (int tag = 1; tag <= 5; tag++) {
                a[0] = 0;
                W.recv(a, 1, MPI.INT, 0, tag);
                Check.equal(a[0], 6);
            }
        }
    }

    static void requests(int rank) throws Exception {
        int n = 8;
        Request[] all = new Request[n];
        int[][] arrays = new int[n][2];
        if (rank == 0) {
            W.barrier();
            for (int i = n - 1; i >= 0; i--) {
                all[i] = W.iSend(new int[] {i, i * i}, 2, MPI.INT, 1, i);
            }
            System.gc();
            Request.waitAll(all);
            Check.that(all[0].isNull(), "a completed request is null");
            Check.equal(Request.waitAny(all), MPI.UNDEFINED);
            Check.that(Request.waitSome(all) == null, "no request is active");
        } else if (rank == 1) {
            for (int i = 0; i < n; i++) {
                all[i] = W.iRecv(arrays[i], 2, MPI.INT, 0, i);
            }
            Check.that(!all[0].test(), "nothing was sent yet");
            Check.that(all[0].getStatus() == null, "nothing was sent yet");
            W.barrier();
            Status any = Request.waitAnyStatus(all);
            Check.equal(any.getTag(), any.getIndex());
            int done = 1;
            while (done < n - 1) {
                Status[] some = Request.waitSomeStatus(all);
                for (Status s : some) {
                    Check.equal(s.getTag(), s.getIndex());
                }
                done += some.length;
            }
            Status[] rest = Request.waitAllStatus(all);
            Check.equal(rest.length, n);
            for (int i = 0; i < n; i++) {
                Check.equal(arrays[i], i, i * i);
            }
            Request never = W.iRecv(arrays[0], 1, MPI.INT, 0, 99);
            never.cancel();
            Check.that(never.waitStatus().isCancelled(), "a receive that nobody sends to is cancelled");
        } else {
            W.barrier();
        }
        try (Request closed = W.iSend(new int[1], 1, MPI.INT, MPI.PROC_NULL, 0)) {
            Check.that(closed != null, "a request closes itself");
        }
    }

    static void persistent(int rank) throws Exception {
        int[] a = new int[1];
        if (rank > 1) {
            return;
        }
        try (Prequest p = rank == 0 ? W.sendInit(a, 1, MPI.INT, 1, 3) : W.recvInit(a, 1, MPI.INT, 0, 3)) {
            for (int i = 0; i < 5; i++) {
                a[0] = rank == 0 ? i : -1;
                p.start();
                p.waitFor();
                Check.equal(a[0], i);
            }
            Prequest.startAll(new Prequest[] {p});
            Request.waitAll(new Request[] {p});
        }
        Prequest dropped = W.recvInit(new int[1], 1, MPI.INT, 1 - rank, 4);
        dropped.start();
        dropped.free(); // does not wait for the message, which the other rank sends afterwards
        W.send(a, 1, MPI.INT, 1 - rank, 4);
    }

    /** Open MPI's forms of probes, with a message that is made before. */
    static void probed(int rank) throws Exception {
        if (rank == 0) {
            W.send(new int[] {5}, 1, MPI.INT, 1, 8);
            W.send(new int[] {6}, 1, MPI.INT, 1, 9);
        } else if (rank == 1) {
            int[] got = new int[1];
            Message message = new Message();
            Check.refused(MPI.ERR_REQUEST, "none was probed", () -> message.mRecv(new int[1], 1, MPI.INT));
            Check.equal(message.mProbe(0, 8, W).getCount(MPI.INT), 1);
            message.mRecv(got, 1, MPI.INT);
            Check.equal(got[0], 5);
            Status status = null;
            while (status == null) {
                status = message.imProbe(0, 9, W);
            }
            message.imRecv(got, 1, MPI.INT).waitFor();
            Check.equal(got[0], 6);
        }
    }

    static void partitioned(int rank) throws Exception {
        final int parts = 5;
        IntBuffer buf = MPI.newIntBuffer(2 * parts);
        Check.refused(MPI.ERR_BUFFER, "an array would be a copy", () -> W.pSendInit(new int[2], 1, 2, MPI.INT, 0, 0, null));
        if (rank > 1) {
            return;
        }
        try (Prequest request = rank == 0 ? W.pSendInit(buf, parts, 2, MPI.INT, 1, 3, MPI.INFO_NULL)
            : W.pRecvInit(buf, parts, 2, MPI.INT, 0, 3, null)) {
            for (int turn = 0; turn < 2; turn++) {
                for (int i = 0; i < 2 * parts; i++) {
                    buf.put(i, rank == 0 ? 100 * turn + i : -1);
                }
                request.start();
                if (rank == 0) {
                    request.pReady(4);
                    request.pReadyRange(0, 1);
                    request.pReadyList(new int[] {3, 2});
                } else {
                    while (!request.pArrived(4)) {
                        Thread.onSpinWait();
                    }
                    Check.equal(buf.get(9), 100 * turn + 9);
                }
                request.waitFor();
                Check.equal(buf.get(5), 100 * turn + 5);
            }
        }
    }

    static void probes(int rank) throws Exception {
        if (rank == 0) {
            W.send(new int[] {1, 2, 3}, 3, MPI.INT, 1, 4);
            W.send(new int[] {4, 5}, 2, MPI.INT, 1, 5);
            W.send(new int[] {6}, 1, MPI.INT, 1, 6);
        } else if (rank == 1) {
            Status s = W.probe(0, MPI.ANY_TAG);
            int[] a = new int[s.getCount(MPI.INT)];
            W.recv(a, a.length, MPI.INT, s.getSource(), s.getTag());
            Check.equal(a, 1, 2, 3);
            Message m = W.mProbe(0, 5);
            a = new int[m.getStatus().getCount(MPI.INT)];
            m.mRecv(a, a.length, MPI.INT);
            Check.equal(a, 4, 5);
            Check.that(m.isNull(), "a message is received once");
            Message later;
            do {
                later = W.imProbe(0, 6);
            } while (later == null);
            later.imRecv(a, 1, MPI.INT).waitFor();
            Check.equal(a, 6, 5);
            Check.that(W.iProbe(0, 6) == null, "no message is left");
        }
    }

    static void packed() throws Exception {
        byte[] bytes = new byte[W.packSize(3, MPI.INT) + W.packSize(1, MPI.DOUBLE)];
        int at = W.pack(new int[] {1, 2, 3}, 3, MPI.INT, bytes, 0);
        at = W.pack(new double[] {.5}, 1, MPI.DOUBLE, bytes, at);
        Check.equal(at, 20);
        int[] a = new int[3];
        double[] d = new double[1];
        at = W.unpack(bytes, 0, a, 3, MPI.INT);
        W.unpack(bytes, at, d, 1, MPI.DOUBLE);
        Check.equal(a, 1, 2, 3);
        Check.equal(d, .5);
    }

    static void exchange(int rank) throws Exception {
        int n = W.getSize();
        int[] in = {-1};
        Status s = W.sendRecv(new int[] {rank}, 1, MPI.INT, (rank + 1) % n, 0, in, 1, MPI.INT, (rank + n - 1) % n, 0);
        Check.equal(in[0], (rank + n - 1) % n);
        Check.equal(s.getSource(), in[0]);
        W.sendRecvReplace(in, 1, MPI.INT, (rank + n - 1) % n, 0, (rank + 1) % n, 0);
        Check.equal(in[0], rank);
    }

    static void large(int rank) throws Exception {
        double[] a = new double[1 << 20];
        if (rank == 0) {
            for (int i = 0; i < a.length; i++) {
                a[i] = i;
            }
            W.send(a, a.length, MPI.DOUBLE, 1, 0);
        } else if (rank == 1) {
            W.recv(a, a.length, MPI.DOUBLE, 0, 0);
            for (int i = 0; i < a.length; i++) {
                Check.that(a[i] == i, "element " + i);
            }
        }
    }
}
