import mpi.*;

/** Spawns two processes of itself and talks to them; then as a server and a client that meet at a port. */
public class Spawns {
    public static void main(String[] args) throws Exception {
        MPI.Init(args);
        Intercomm parent = Comm.getParent();
        if (!parent.isNull()) {
            child(parent);
        } else {
            parent(args);
        }
        MPI.Finalize();
    }

    static void child(Intercomm parent) throws Exception {
        int[] a = new int[1];
        parent.bcast(a, 1, MPI.INT, 0);
        Intracomm all = parent.merge(true);
        a[0]++;
        all.allReduce(a, 1, MPI.INT, MPI.SUM);
        all.free();
        parent.disconnect();
    }

    static void parent(String[] args) throws Exception {
        Intracomm w = MPI.COMM_WORLD;
        int rank = w.getRank();
        int[] codes = new int[2];
        Intercomm children = w.spawn(args[0], new String[] {"-cp", args[1], "Spawns"}, 2, null, 0, codes);
        Check.equal(codes, 0, 0);
        Check.equal(children.getRemoteSize(), 2);
        int[] a = {40};
        children.bcast(a, 1, MPI.INT, rank == 0 ? MPI.ROOT : MPI.PROC_NULL);
        Intracomm all = children.merge(false);
        a[0] = 0;
        all.allReduce(a, 1, MPI.INT, MPI.SUM);
        Check.equal(a[0], 82);
        all.free();
        children.disconnect();
        String port = rank == 0 ? Intracomm.openPort() : null;
        Intracomm half = w.split(rank == 0 ? 0 : 1, 0);
        byte[] name = new byte[MPI.MAX_PORT_NAME];
        if (rank == 0) {
            System.arraycopy(port.getBytes(), 0, name, 0, port.length());
        }
        w.bcast(name, name.length, MPI.BYTE, 0);
        Intercomm met = rank == 0 ? half.accept(port, 0) : half.connect(new String(name).trim(), 0);
        Check.equal(met.getRemoteSize(), rank == 0 ? w.getSize() - 1 : 1);
        met.disconnect();
        if (rank == 0) {
            Intracomm.closePort(port);
            System.out.println("passed");
        }
    }
}
