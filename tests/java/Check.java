import mpi.MPI;
import mpi.MPIException;

/** What the programs of this directory share: a check that ends the job with its place, and the exception that a call throws. */
final class Check {
    private Check() {}

    interface Body {
        void run() throws Exception;
    }

    static void that(boolean true_, Object what) {
        if (!true_) {
            throw new AssertionError("rank " + MPI.COMM_WORLD.getRank() + ": " + what);
        }
    }

    static void equal(Object a, Object b) {
        if (a instanceof int[] numbers && b instanceof Integer one) {
            equal(numbers, new int[] {one});
            return;
        }
        if (a instanceof double[] numbers && b instanceof Number one) {
            equal(numbers, new double[] {one.doubleValue()});
            return;
        }
        if (a instanceof int[] some && b instanceof int[] others) {
            that(java.util.Arrays.equals(some, others), java.util.Arrays.toString(some) + " is not " + java.util.Arrays.toString(others));
            return;
        }
        that(a == null ? b == null : a.equals(b), a + " is not " + b);
    }

    static void equal(int[] a, int... b) {
        equal((Object) a, (Object) b);
    }

    static void equal(double[] a, double... b) {
        that(java.util.Arrays.equals(a, b), java.util.Arrays.toString(a) + " is not " + java.util.Arrays.toString(b));
    }

    /** The call throws an MPIException of a class whose sentence holds some words. */
    static void refused(int errorClass, String words, Body body) throws Exception {
        try {
            body.run();
        } catch (MPIException e) {
            that(e.getErrorClass() == errorClass && e.getMessage().contains(words),
                "class " + e.getErrorClass() + ", wanted " + errorClass + " with '" + words + "': " + e.getMessage());
            return;
        }
        throw new AssertionError("nothing was thrown where '" + words + "' should be");
    }

    /** The same where a condition holds. */
    static void refused(int errorClass, String words, Body body, boolean holds) throws Exception {
        if (holds) {
            refused(errorClass, words, body);
        }
    }

    /** Runs a chapter between Init and Finalize; rank 0 prints that all passed. */
    static void chapter(String[] args, Body body) throws Exception {
        MPI.InitThread(args, MPI.THREAD_MULTIPLE);
        body.run();
        MPI.COMM_WORLD.barrier();
        if (MPI.COMM_WORLD.getRank() == 0) {
            System.out.println("passed");
        }
        MPI.Finalize();
    }
}
