import mpi.*;

/** Ends badly in the way that its argument names: throws, null (a null pointer, which the machine catches by SIGSEGV), deep (the
 * same with the stack), hangs, or status. */
public class Dies {
    static int deep(int n) {
        return deep(n + 1) + 1;
    }

    static int length(Object[] a) {
        return a.length;
    }

    public static void main(String[] args) throws Exception {
        MPI.Init(args);
        int rank = MPI.COMM_WORLD.getRank();
        Thread left = new Thread(() -> {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException e) {
                return;
            }
        });
        switch (args[0]) {
            case "throws":
                left.start(); // a thread that is left does not keep the job alive
                if (rank == 1) {
                    throw new IllegalStateException("on purpose");
                }
                MPI.COMM_WORLD.recv(new int[1], 1, MPI.INT, 1, 0);
                break;
            case "null":
                int caught = 0;
                for (int i = 0; i < 20000; i++) {
                    try {
                        caught += length(i % 2 == 0 ? null : new Object[1]);
                    } catch (NullPointerException e) {
                        caught++;
                    }
                }
                try {
                    deep(0);
                } catch (StackOverflowError e) {
                    caught++;
                }
                MPI.COMM_WORLD.barrier();
                System.out.println("caught " + caught);
                MPI.Finalize();
                break;
            case "hangs":
                MPI.COMM_WORLD.recv(new int[1], 1, MPI.INT, 1 - rank, 0);
                break;
            default:
                if (rank == 1) {
                    System.exit(Integer.parseInt(args[0]));
                }
                MPI.COMM_WORLD.recv(new int[1], 1, MPI.INT, 1, 0);
        }
    }
}
