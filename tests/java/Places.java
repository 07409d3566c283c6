import java.util.List;
import mpi.*;

/** Calls MPI from lines that profiles, traces and KW_CHECK name; with an argument, leaves a communicator. */
public class Places {
    static class Inner {
        void meet() {
            MPI.COMM_WORLD.barrier(); // inner
        }
    }

    public static void main(String[] args) {
        MPI.Init(args);
        int[] one = {1};
        MPI.COMM_WORLD.bcast(one, 1, MPI.INT, 0); // first
        for (int i = 0; i < 10; i++) {
            MPI.COMM_WORLD.bcast(one, 1, MPI.INT, 0); // second
        }
        List.of(1, 2, 3).forEach(n -> MPI.COMM_WORLD.barrier()); // lambda
        new Inner().meet();
        if (args.length > 0) {
            MPI.COMM_WORLD.dup(); // left
        }
        if (MPI.COMM_WORLD.getRank() == 0) {
            System.out.println("passed");
        }
        MPI.Finalize();
    }
}
