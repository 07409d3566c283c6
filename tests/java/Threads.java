import java.util.ArrayList;
import java.util.List;
import mpi.*;

/** Threads of Java, virtual ones where there are, that call MPI at once while the collector runs; reductions in Java from each. */
public class Threads {
    static final Intracomm W = MPI.COMM_WORLD;
    static final int THREADS = 4;
    static final int TURNS = 200;

    static Thread start(Runnable r) throws Exception {
        if (Runtime.version().feature() >= 21) {
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, r);
        }
        Thread t = new Thread(r);
        t.start();
        return t;
    }

    static void work(Intracomm comm, int which) {
        int rank = comm.getRank();
        Op sum = new Op(new UserFunction() {
            @Override
            public void call(Object in, Object inOut, int count, Datatype type) {
                for (int i = 0; i < count; i++) {
                    ((int[]) inOut)[i] += ((int[]) in)[i];
                }
            }
        }, true);
        for (int i = 0; i < TURNS; i++) {
            int[] a = new int[1000];
            a[0] = rank + i;
            comm.sendRecvReplace(a, 1000, MPI.INT, rank ^ 1, which, rank ^ 1, which);
            Check.equal(a[0], (rank ^ 1) + i);
            int[] b = {1};
            comm.allReduce(b, 1, MPI.INT, sum);
            Check.equal(b[0], comm.getSize());
        }
        sum.free();
    }

    public static void main(String[] args) throws Exception {
        Check.chapter(args, () -> {
            List<Throwable> failed = java.util.Collections.synchronizedList(new ArrayList<>());
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                Intracomm comm = W.dup();
                int which = i;
                threads.add(start(() -> {
                    try {
                        work(comm, which);
                    } catch (Throwable t) {
                        failed.add(t);
                    }
                }));
            }
            for (Thread t : threads) {
                while (t.isAlive()) {
                    System.gc();
                    t.join(5);
                }
            }
            for (Throwable t : failed) {
                throw new AssertionError(t);
            }
        });
    }
}
