import java.nio.*;
import java.nio.file.Files;
import java.nio.file.Path;
import mpi.*;

/** Messages between two ranks, of arrays and of buffers, blocking and not: memory does not grow. The argument is how many. */
public class Soak {
    static final Intracomm W = MPI.COMM_WORLD;
    /** What the collector and the compiler may take between two looks, in KB. */
    static final long ALLOWED = 32 << 10;

    static long resident() throws Exception {
        return Files.readAllLines(Path.of("/proc/self/status")).stream().filter(l -> l.startsWith("VmRSS"))
            .mapToLong(l -> Long.parseLong(l.replaceAll("\\D", ""))).findFirst().orElseThrow();
    }

    static void turns(int rank, int n) throws Exception {
        int[] a = new int[32];
        IntBuffer b = MPI.newIntBuffer(32);
        Request[] both = new Request[2];
        for (int i = 0; i < n; i += 4) {
            a[0] = i;
            if (rank == 0) {
                W.send(a, 32, MPI.INT, 1, 0);
                W.recv(b, 32, MPI.INT, 1, 0);
            } else {
                W.recv(b, 32, MPI.INT, 0, 0);
                W.send(a, 32, MPI.INT, 0, 0);
            }
            both[0] = W.iSend(a, 32, MPI.INT, 1 - rank, 1);
            both[1] = W.iRecv(b, 32, MPI.INT, 1 - rank, 1);
            Request.waitAll(both);
            Check.that(b.get(0) == i, i);
        }
    }

    public static void main(String[] args) throws Exception {
        Check.chapter(args, () -> {
            int n = Integer.parseInt(args[0]);
            turns(W.getRank(), n / 4);
            System.gc();
            long before = resident();
            turns(W.getRank(), n);
            System.gc();
            long grown = resident() - before;
            Check.that(grown < ALLOWED, "memory has grown by " + grown + " KB");
        });
    }
}
