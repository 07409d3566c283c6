import mpi.*;

/**
 * Long arrays, which C copies from and to while the garbage collector runs: every type, offsets, shorter messages, all blocking
 * calls, and threads. Two ranks.
 */
public class Lent {
    static final Intracomm W = MPI.COMM_WORLD;
    static final int[] SIZES = {2047, 2048, 8191, 20000, 131072, 400001};
    static volatile Object garbage;
    static volatile boolean over;

    public static void main(String[] args) throws Exception {
        Check.chapter(args, () -> {
            Thread collector = new Thread(Lent::collect);
            collector.start();
            int rank = W.getRank();
            for (int n : SIZES) {
                types(rank, n);
                parts(rank, n);
                calls(rank, n);
            }
            mixed(rank);
            threads(rank);
            wrong(rank);
            over = true;
            collector.join();
        });
    }

    /** Makes the collector move arrays. */
    static void collect() {
        while (!over) {
            garbage = new double[200_000];
            if (Math.random() < .02) {
                System.gc();
            }
            Thread.yield();
        }
    }

    static double[] filled(int n, double seed) {
        double[] a = new double[n];
        for (int i = 0; i < n; i++) {
            a[i] = seed + i;
        }
        return a;
    }

    static void types(int rank, int n) throws Exception {
        Object[] out = {new byte[n], new char[n], new short[n], new boolean[n], new int[n], new long[n], new float[n], new double[n]};
        Datatype[] types = {MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.BOOLEAN, MPI.INT, MPI.LONG, MPI.FLOAT, MPI.DOUBLE};
        for (int t = 0; t < types.length; t++) {
            Object[] some = {(byte) 7, 'x', (short) -3, true, 1 << 30, -1L << 40, .5f, -.25};
            for (int i = 0; i < n; i += 1 + i / 3) {
                java.lang.reflect.Array.set(out[t], i, some[t]);
            }
            if (rank == 0) {
                W.send(out[t], n, types[t], 1, t);
            } else if (rank == 1) {
                Object in = java.lang.reflect.Array.newInstance(out[t].getClass().getComponentType(), n);
                Status s = W.recv(in, n, types[t], MPI.ANY_SOURCE, t);
                Check.equal(s.getCount(types[t]), n);
                Check.that(java.util.Objects.deepEquals(new Object[] {in}, new Object[] {out[t]}), n + " of type " + t);
            }
        }
    }

    /** Offsets, and messages that are shorter than their arrays: what is beside them stays. */
    static void parts(int rank, int n) throws Exception {
        double[] a = filled(n + 20, rank);
        if (rank == 0) {
            W.Send(a, 7, n, MPI.DOUBLE, 1, 0);
            W.Send(a, 7, n / 2 + 1, MPI.DOUBLE, 1, 0);
            W.send(a, 3, MPI.DOUBLE, 1, 0);
        } else if (rank == 1) {
            for (int m : new int[] {n, n / 2 + 1, 3}) {
                double[] b = new double[n + 20];
                b[4] = b[5 + m] = -1;
                Status s = W.Recv(b, 5, n + 3, MPI.DOUBLE, 0, 0);
                Check.equal(s.getCount(MPI.DOUBLE), m);
                Check.that(b[4] == -1 && b[5 + m] == -1, "beside " + m);
                for (int i = 0; i < m; i++) {
                    Check.that(b[5 + i] == i + (m == 3 ? 0 : 7), "element " + i + " of " + m);
                }
            }
        }
    }

    static void calls(int rank, int n) throws Exception {
        double[] a = filled(n, rank);
        double[] b = new double[n];
        int other = 1 - rank;
        W.sendRecv(a, n, MPI.DOUBLE, other, 1, b, n, MPI.DOUBLE, other, 1);
        same(b, other);
        W.sendRecv(a, n, MPI.DOUBLE, rank, 1, b, n, MPI.DOUBLE, rank, 1); // to itself
        same(b, rank);
        W.sendRecvReplace(b, n, MPI.DOUBLE, other, 2, other, 2);
        same(b, other);
        MPI.attachBuffer(MPI.newByteBuffer(8 * n + 1000));
        W.bSend(a, n, MPI.DOUBLE, other, 3);
        W.recv(b, n, MPI.DOUBLE, other, 3);
        MPI.detachBuffer();
        same(b, other);
        if (rank == 0) {
            W.sSend(a, n, MPI.DOUBLE, 1, 4);
            W.send(a, n, MPI.DOUBLE, 1, 5); // unexpected if it is short enough
            W.barrier();
        } else {
            java.util.Arrays.fill(b, 0);
            Message m = W.mProbe(0, 4);
            m.mRecv(b, n, MPI.DOUBLE);
            same(b, 0);
            Request r = W.iRecv(b, n, MPI.DOUBLE, 0, 5);
            r.waitFor();
            same(b, 0);
            W.barrier();
        }
        W.send(a, n, MPI.DOUBLE, MPI.PROC_NULL, 0);
    }

    static void same(double[] a, double seed) {
        for (int i = 0; i < a.length; i++) {
            Check.that(a[i] == seed + i, "element " + i + " of " + a.length + " is " + a[i]);
        }
    }

    /** Arrays on one side; direct buffers and derived datatypes on the other. */
    static void mixed(int rank) throws Exception {
        int n = 50_000;
        java.nio.DoubleBuffer d = MPI.newDoubleBuffer(n);
        Datatype pairs = Datatype.createVector(n / 2, 1, 2, MPI.DOUBLE);
        pairs.commit();
        if (rank == 0) {
            W.send(filled(n, 3), n, MPI.DOUBLE, 1, 0);
            W.recv(new double[n], n, MPI.DOUBLE, 1, 1);
            W.send(filled(n / 2, 5), n / 2, MPI.DOUBLE, 1, 2);
        } else {
            W.recv(d, n, MPI.DOUBLE, 0, 0);
            W.send(d, n, MPI.DOUBLE, 0, 1);
            double[] spread = new double[n];
            W.recv(spread, 1, pairs, 0, 2);
            for (int i = 0; i < n; i++) {
                Check.that(d.get(i) == 3 + i && spread[i] == (i % 2 == 0 ? 5 + i / 2 : 0), "element " + i);
            }
        }
        pairs.free();
    }

    static void threads(int rank) throws Exception {
        Thread[] all = new Thread[3];
        Throwable[] failed = new Throwable[1];
        for (int t = 0; t < all.length; t++) {
            int tag = t;
            all[t] = new Thread(() -> {
                double[] b = new double[30_000 + 10_000 * tag];
                double[] a = filled(b.length, rank + 10 * tag);
                try {
                    for (int k = 0; k < 20; k++) {
                        W.sendRecv(a, a.length, MPI.DOUBLE, 1 - rank, tag, b, b.length, MPI.DOUBLE, 1 - rank, tag);
                        same(b, 1 - rank + 10 * tag);
                    }
                } catch (Throwable e) {
                    failed[0] = e;
                }
            });
            all[t].start();
        }
        for (Thread one : all) {
            one.join();
        }
        if (failed[0] != null) {
            throw new AssertionError(failed[0]);
        }
    }

    static void wrong(int rank) throws Exception {
        double[] a = new double[10_000];
        Check.refused(MPI.ERR_COUNT, "it has 10000", () -> W.send(a, 10_001, MPI.DOUBLE, rank, 0));
        Check.refused(MPI.ERR_COUNT, "it has 10000", () -> W.Recv(a, 1, 10_000, MPI.DOUBLE, rank, 0));
        Check.refused(MPI.ERR_ARG, "elements -1", () -> W.Send(a, -1, 9_000, MPI.DOUBLE, rank, 0));
        Check.refused(MPI.ERR_TYPE, "the array is double[]", () -> W.send(a, 10_000, MPI.LONG, rank, 0));
        Check.refused(MPI.ERR_RANK, "99", () -> W.send(a, 10_000, MPI.DOUBLE, 99, 0));
        Check.refused(MPI.ERR_TAG, "", () -> W.send(a, 10_000, MPI.DOUBLE, 0, -5));
        Check.refused(MPI.ERR_TRUNCATE, "",
            () -> W.sendRecv(a, 10_000, MPI.DOUBLE, rank, 0, new double[9_000], 9_000, MPI.DOUBLE, rank, 0));
    }
}
