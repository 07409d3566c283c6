import java.nio.*;
import mpi.*;

/** Every collective operation: blocking, nonblocking, persistent, in place, with arrays and direct buffers, between two groups. */
public class Collectives {
    static final Intracomm W = MPI.COMM_WORLD;

    public static void main(String[] args) throws Exception {
        Check.chapter(args, () -> {
            int rank = W.getRank();
            int size = W.getSize();
            rooted(rank, size);
            all(rank, size);
            reductions(rank, size);
            nonblocking(rank, size);
            persistent(rank, size);
            operations(rank, size);
            neighbours(rank, size);
            groups(rank, size);
        });
    }

    static int[] numbers(int n) {
        int[] a = new int[n];
        for (int i = 0; i < n; i++) {
            a[i] = i;
        }
        return a;
    }

    static int[] full(int n, int value) {
        int[] a = new int[n];
        java.util.Arrays.fill(a, value);
        return a;
    }

    static void rooted(int rank, int size) throws Exception {
        for (int root = 0; root < size; root++) {
            double[] d = {rank == root ? 2.5 : 0};
            W.bcast(d, 1, MPI.DOUBLE, root);
            Check.equal(d, 2.5);
            int[] all = new int[2 * size];
            W.gather(new int[] {rank, -rank}, 2, MPI.INT, all, 2, MPI.INT, root);
            Check.that(rank != root || all[2 * size - 1] == 1 - size, "gather");
            all = full(size, rank);
            W.gather(rank == root ? all : new int[] {rank}, 1, MPI.INT, root);
            Check.that(rank != root || java.util.Arrays.equals(all, numbers(size)), "gather in place");
            int[] mine = new int[1];
            W.scatter(numbers(size), 1, MPI.INT, mine, 1, MPI.INT, root);
            Check.equal(mine, rank);
            int[] counts = full(size, 1);
            int[] back = new int[size];
            for (int i = 0; i < size; i++) {
                back[i] = size - 1 - i;
            }
            int[] turned = new int[size];
            if (rank == root) {
                W.gatherv(mine, 1, MPI.INT, turned, counts, back, MPI.INT, root);
                Check.equal(turned, back);
                W.scatterv(turned, counts, back, MPI.INT, mine, 1, MPI.INT, root);
            } else {
                W.gatherv(mine, 1, MPI.INT, root);
                W.scatterv(mine, 1, MPI.INT, root);
            }
            Check.equal(mine, rank);
        }
    }

    static void all(int rank, int size) throws Exception {
        int[] all = new int[size];
        W.allGather(new int[] {rank}, 1, MPI.INT, all, 1, MPI.INT);
        Check.equal(all, numbers(size));
        all = full(size, rank);
        W.allGather(all, 1, MPI.INT);
        Check.equal(all, numbers(size));
        int[] sparse = full(2 * size, -1);
        int[] even = new int[size];
        for (int i = 0; i < size; i++) {
            even[i] = 2 * i;
        }
        W.allGatherv(new int[] {rank}, 1, MPI.INT, sparse, full(size, 1), even, MPI.INT);
        for (int i = 0; i < size; i++) {
            Check.that(sparse[2 * i] == i && sparse[2 * i + 1] == -1, "gaps stay as they are");
        }
        W.allToAll(full(size, rank), 1, MPI.INT, all, 1, MPI.INT);
        Check.equal(all, numbers(size));
        W.allToAllv(full(size, rank), full(size, 1), numbers(size), MPI.INT, all, full(size, 1), numbers(size), MPI.INT);
        Check.equal(all, numbers(size));
        IntBuffer from = MPI.newIntBuffer(size);
        IntBuffer to = MPI.newIntBuffer(size);
        int[] places = new int[size];
        Datatype[] types = new Datatype[size];
        for (int i = 0; i < size; i++) {
            from.put(i, 10 * rank + i);
            places[i] = 4 * i;
            types[i] = MPI.INT;
        }
        W.allToAllw(from, full(size, 1), places, types, to, full(size, 1), places, types);
        Check.equal(to.get(size - 1), 10 * (size - 1) + rank);
    }

    static void reductions(int rank, int size) throws Exception {
        int total = size * (size - 1) / 2;
        int[] sum = new int[1];
        W.reduce(new int[] {rank}, sum, 1, MPI.INT, MPI.SUM, 0);
        Check.equal(sum[0], rank == 0 ? total : 0);
        sum[0] = rank;
        W.reduce(sum, 1, MPI.INT, MPI.SUM, 0);
        Check.equal(sum[0], rank == 0 ? total : rank);
        sum[0] = rank;
        W.allReduce(sum, 1, MPI.INT, MPI.SUM);
        Check.equal(sum, total);
        byte[] bytes = {(byte) rank};
        W.allReduce(bytes, 1, MPI.BYTE, MPI.MAX);
        Check.equal(bytes[0], (byte) (size - 1));
        boolean[] flags = {rank == 0};
        W.allReduce(flags, 1, MPI.BOOLEAN, MPI.LOR);
        Check.that(flags[0], "or");
        W.reduceScatter(numbers(size), sum, full(size, 1), MPI.INT, MPI.SUM);
        Check.equal(sum, size * rank);
        W.reduceScatterBlock(numbers(size), sum, 1, MPI.INT, MPI.SUM);
        Check.equal(sum, size * rank);
        W.scan(new int[] {1}, sum, 1, MPI.INT, MPI.SUM);
        Check.equal(sum, rank + 1);
        sum[0] = -7;
        W.exScan(new int[] {1}, sum, 1, MPI.INT, MPI.SUM);
        Check.equal(sum[0], rank == 0 ? -7 : rank);
        ByteBuffer pair = MPI.newByteBuffer(MPI.doubleInt.getExtent());
        DoubleInt.Data data = MPI.doubleInt.getData(pair);
        data.putValue(rank * 1.5);
        data.putIndex(rank);
        W.allReduce(pair, 1, MPI.DOUBLE_INT, MPI.MAXLOC);
        Check.equal(data.getIndex(), size - 1);
        int[] local = {5};
        Comm.reduceLocal(new int[] {2}, local, 1, MPI.INT, MPI.PROD);
        Check.equal(local, 10);
    }

    static void nonblocking(int rank, int size) throws Exception {
        IntBuffer one = MPI.newIntBuffer(1);
        IntBuffer all = MPI.newIntBuffer(size);
        int[] array = new int[size];
        one.put(0, rank);
        Request[] some = {W.iAllGather(one, 1, MPI.INT, all, 1, MPI.INT), W.iAllReduce(new int[] {1}, array, 1, MPI.INT, MPI.SUM),
            W.iBarrier()};
        one = null;
        System.gc();
        Request.waitAll(some);
        Check.equal(array[0], size);
        Check.equal(all.get(size - 1), size - 1);
        double[] d = {rank == 0 ? 4 : 0};
        W.iBcast(d, 1, MPI.DOUBLE, 0).waitFor();
        Check.equal(d, 4);
        W.iAllToAllv(full(size, rank), full(size, 1), numbers(size), MPI.INT, array, full(size, 1), numbers(size), MPI.INT).waitFor();
        Check.equal(array, numbers(size));
        W.iReduceScatter(numbers(size), array, full(size, 1), MPI.INT, MPI.MAX).waitFor();
        Check.equal(array[0], rank);
    }

    static void persistent(int rank, int size) throws Exception {
        int[] a = new int[1];
        int[] sum = new int[1];
        try (Prequest p = W.allReduceInit(a, sum, 1, MPI.INT, MPI.SUM, null)) {
            for (int i = 0; i < 3; i++) {
                a[0] = i;
                p.start();
                p.waitFor();
                Check.equal(sum[0], i * size);
            }
        }
        DoubleBuffer d = MPI.newDoubleBuffer(1);
        try (Info info = new Info(); Prequest p = W.bcastInit(d, 1, MPI.DOUBLE, 0, info)) {
            d.put(0, rank == 0 ? 3 : 0);
            p.start();
            p.waitFor();
            Check.equal(d.get(0), 3.0);
        }
    }

    static void operations(int rank, int size) throws Exception {
        Op first = new Op(new UserFunction() {
            @Override
            public void call(Object in, Object inOut, int count, Datatype type) {
                double[] a = (double[]) in;
                double[] b = (double[]) inOut;
                for (int i = 0; i < count; i++) {
                    b[i] = a[i];
                }
            }
        }, false);
        double[] d = {rank + 10, rank};
        W.allReduce(d, 2, MPI.DOUBLE, first);
        Check.equal(d, 10, 0);
        Check.that(!first.isCommutative(), "as it was made");
        first.free();
        Op buffers = new Op(new UserFunction() {
            @Override
            public void call(ByteBuffer in, ByteBuffer inOut, int count, Datatype type) {
                for (int i = 0; i < count; i++) {
                    inOut.putInt(4 * i, inOut.getInt(4 * i) + in.getInt(4 * i));
                }
            }
        }, true);
        IntBuffer sum = MPI.newIntBuffer(1);
        sum.put(0, rank);
        W.iAllReduce(sum, 1, MPI.INT, buffers).waitFor();
        Check.equal(sum.get(0), size * (size - 1) / 2);
        buffers.close();
        Op fails = new Op(new UserFunction() {
            @Override
            public void call(Object in, Object inOut, int count, Datatype type) {
                throw new IllegalStateException("mine");
            }
        }, true);
        try {
            Comm.reduceLocal(new int[1], new int[1], 1, MPI.INT, fails);
            Check.that(false, "what an operation throws is thrown");
        } catch (MPIException e) {
            Check.equal(e.getErrorClass(), MPI.ERR_OP);
            Check.equal(e.getCause().getMessage(), "mine");
        }
        fails.free();
        for (int i = 0; i < 1000; i++) { // a number is free again
            new Op(new UserFunction() {}, true).free();
        }
    }

    static void neighbours(int rank, int size) throws Exception {
        CartComm ring = W.createCart(new int[] {size}, new boolean[] {true}, false);
        int left = (rank + size - 1) % size;
        int right = (rank + 1) % size;
        int[] two = new int[2];
        ring.neighborAllGather(new int[] {rank}, 1, MPI.INT, two, 1, MPI.INT);
        Check.equal(two, left, right);
        ring.neighborAllToAll(new int[] {10 * rank, 10 * rank + 1}, 1, MPI.INT, two, 1, MPI.INT);
        Check.equal(two, 10 * left + 1, 10 * right);
        ring.iNeighborAllGatherv(new int[] {rank}, 1, MPI.INT, two, new int[] {1, 1}, new int[] {1, 0}, MPI.INT).waitFor();
        Check.equal(two, right, left);
        ring.neighborAllToAllv(new int[] {rank, rank}, new int[] {1, 1}, new int[] {0, 1}, MPI.INT, two, new int[] {1, 1},
            new int[] {0, 1}, MPI.INT);
        Check.equal(two, left, right);
        GraphComm star = W.createDistGraphAdjacent(rank == 0 ? numbers(size) : new int[0], new int[] {0}, null, false);
        int[] all = new int[size];
        star.neighborAllGather(new int[] {rank}, 1, MPI.INT, all, 1, MPI.INT);
        Check.that(rank != 0 || java.util.Arrays.equals(all, numbers(size)), "a star");
        star.free();
        ring.free();
    }

    static void groups(int rank, int size) throws Exception {
        boolean low = rank < size / 2;
        Intracomm half = W.split(low ? 0 : 1, rank);
        Intercomm both = W.createIntercomm(half, 0, low ? size / 2 : 0, 5);
        Check.that(both.isInter(), "two groups");
        int others = both.getRemoteSize();
        Check.equal(others, low ? size - size / 2 : size / 2);
        int[] all = new int[others];
        both.allGather(new int[] {rank}, 1, MPI.INT, all, 1, MPI.INT);
        Check.equal(all[0], low ? size / 2 : 0);
        int[] one = {rank == 0 ? 6 : -1};
        both.bcast(one, 1, MPI.INT, !low ? 0 : rank == 0 ? MPI.ROOT : MPI.PROC_NULL);
        Check.equal(one[0], rank == 0 || !low ? 6 : -1);
        both.gather(one, 1, MPI.INT, all, 1, MPI.INT, low ? 0 : half.getRank() == 0 ? MPI.ROOT : MPI.PROC_NULL);
        Check.that(low || half.getRank() != 0 || all[0] == 6, "gather from the other group");
        if (half.getRank() == 0) {
            both.send(new int[] {rank}, 1, MPI.INT, 0, 0);
            both.recv(one, 1, MPI.INT, 0, 0);
            Check.equal(one[0], low ? size / 2 : 0);
        }
        Intracomm merged = both.merge(low);
        Check.equal(merged.getSize(), size);
        Check.that((merged.getRank() >= size - size / 2) == low, "those that said high come last");
        merged.free();
        both.free();
        half.free();
    }
}
