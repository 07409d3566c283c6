package mpi;

/**
 * The requests that C may still work on. They hold their buffers, so a program that forgets a request does not have its
 * memory taken by the garbage collector while a message arrives in it.
 */
final class Active {
    private static final Active HEAD = new Active(null);
    private final Request request;
    private Active next;
    private Active before;

    static {
        HEAD.next = HEAD;
        HEAD.before = HEAD;
    }

    private Active(Request request) {
        this.request = request;
    }

    static Active enter(Request request) {
        Active entry = new Active(request);
        synchronized (HEAD) {
            entry.next = HEAD.next;
            entry.before = HEAD;
            HEAD.next.before = entry;
            HEAD.next = entry;
        }
        return entry;
    }

    static void leave(Active entry) {
        synchronized (HEAD) {
            entry.before.next = entry.next;
            entry.next.before = entry.before;
        }
    }

    /** Number of requests that are held. */
    static int count() {
        int count = 0;
        synchronized (HEAD) {
            for (Active entry = HEAD.next; entry.request != null; entry = entry.next) {
                count++;
            }
        }
        return count;
    }
}
