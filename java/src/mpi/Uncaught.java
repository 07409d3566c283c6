package mpi;

/** Ends the job when the thread that started MPI dies of an exception: other ranks would wait for ever. */
final class Uncaught {
    private static final int STATUS = 1;

    private Uncaught() {}

    static void watch(Thread thread) {
        Thread.UncaughtExceptionHandler before = thread.getUncaughtExceptionHandler();
        try {
            thread.setUncaughtExceptionHandler((t, e) -> {
                before.uncaughtException(t, e);
                System.out.flush();
                System.err.flush();
                if (!MPI.isFinalized()) {
                    MPI.COMM_WORLD.abort(STATUS);
                }
            });
        } catch (UnsupportedOperationException e) {
            // a virtual thread of a Java that does not allow it: its own handler stays
        }
    }
}
