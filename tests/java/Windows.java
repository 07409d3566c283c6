import java.nio.*;
import mpi.*;

/** Windows of buffers, of MPI's memory, shared and dynamic ones; every operation and synchronization. */
public class Windows {
    static final Intracomm W = MPI.COMM_WORLD;

    public static void main(String[] args) throws Exception {
        Check.chapter(args, () -> {
            int rank = W.getRank();
            int size = W.getSize();
            int next = (rank + 1) % size;
            int before = (rank + size - 1) % size;
            fence(rank, size, next, before);
            flavors();
            locks(rank, size, next);
            post(rank, size, next, before);
            shared(rank, size);
            dynamic(rank, size);
        });
    }

    static void fence(int rank, int size, int next, int before) throws Exception {
        IntBuffer memory = MPI.newIntBuffer(4);
        IntBuffer one = MPI.newIntBuffer(1);
        try (Win win = new Win(memory, 4, 1, null, W)) {
            one.put(0, rank + 1);
            win.fence(0);
            win.put(one, 1, MPI.INT, next, 2);
            win.fence(0);
            Check.equal(memory.get(2), before + 1);
            IntBuffer got = MPI.newIntBuffer(1);
            win.get(got, 1, MPI.INT, next, 2);
            win.fence(0);
            Check.equal(got.get(0), rank + 1);
            win.accumulate(one, 1, MPI.INT, 0, 3, MPI.SUM);
            win.fence(0);
            Check.equal(memory.get(3), rank == 0 ? size * (size + 1) / 2 : 0);
            win.setName("w");
            Check.equal(win.getName(), "w");
            Check.refused(MPI.ERR_BUFFER, "an array cannot be", () -> win.put(new int[1], 1, MPI.INT, next, 0));
            Check.refused(MPI.ERR_RANK, "99", () -> win.put(one, 1, MPI.INT, 99, 0));
            Check.refused(MPI.ERR_COUNT, "it has 4", () -> win.put(one, 2, MPI.INT, next, 0));
            win.fence(0);
        }
    }

    static void flavors() throws Exception {
        try (Win win = new Win(3, 1, null, W, MPI.newLongBuffer(0), Win.FLAVOR_PRIVATE)) {
            Check.equal(win.getBase().capacity(), 24);
            Check.equal(win.getAttr(MPI.WIN_DISP_UNIT), 8);
        }
        Comm host = W.splitType(Comm.TYPE_SHARED, 0, MPI.INFO_NULL);
        try (Win win = new Win(4, 1, MPI.INFO_NULL, host, null, Win.FLAVOR_SHARED)) {
            Check.equal(win.sharedQuery(0).capacity(), 4);
        }
        host.free();
        Check.refused(MPI.ERR_RMA_FLAVOR, "neither", () -> new Win(1, 1, null, W, null, 7));
    }

    static void locks(int rank, int size, int next) throws Exception {
        try (Win win = Win.allocate(16, 8, null, W)) {
            LongBuffer mine = win.getBase().asLongBuffer();
            Check.equal(win.getAttr(MPI.WIN_SIZE), 16);
            Check.equal(win.getAttr(MPI.WIN_DISP_UNIT), 8);
            Check.equal(win.getAttr(MPI.WIN_CREATE_FLAVOR), MPI.WIN_FLAVOR_ALLOCATE);
            Check.equal(win.getAttr(MPI.WIN_MODEL), MPI.WIN_UNIFIED);
            Check.equal(((ByteBuffer) win.getAttr(MPI.WIN_BASE)).capacity(), 16);
            win.lock(MPI.LOCK_EXCLUSIVE, rank, 0);
            mine.put(0, 0).put(1, 5);
            win.unlock(rank);
            W.barrier();
            LongBuffer one = MPI.newLongBuffer(1);
            LongBuffer old = MPI.newLongBuffer(1);
            one.put(0, 1);
            win.lockAll(0);
            win.fetchAndOp(one, old, MPI.LONG, 0, 0, MPI.SUM);
            win.flush(0);
            Check.that(old.get(0) >= 0 && old.get(0) < size, "a ticket");
            LongBuffer five = MPI.newLongBuffer(1);
            five.put(0, 5);
            one.put(0, 10 + rank);
            win.compareAndSwap(one, five, old, MPI.LONG, next, 1);
            win.flush(next);
            Check.equal(old.get(0), 5L);
            win.getAccumulate(one, 1, MPI.LONG, old, 1, MPI.LONG, next, 1, 1, MPI.LONG, MPI.NO_OP);
            win.flushAll();
            Check.equal(old.get(0), 10L + rank);
            Request[] all = {win.rPut(one, 1, MPI.LONG, next, 1, 1, MPI.LONG), win.rGet(old, 1, MPI.LONG, next, 1, 1, MPI.LONG)};
            Request.waitAll(all);
            win.rAccumulate(one, 1, MPI.LONG, next, 1, 1, MPI.LONG, MPI.REPLACE).waitFor();
            win.unlockAll();
            W.barrier();
            win.lock(MPI.LOCK_SHARED, 0, 0);
            win.get(old, 1, MPI.LONG, 0, 0);
            win.unlock(0);
            Check.equal(old.get(0), (long) size);
        }
    }

    static void post(int rank, int size, int next, int before) throws Exception {
        DoubleBuffer memory = MPI.newDoubleBuffer(1);
        DoubleBuffer one = MPI.newDoubleBuffer(1);
        one.put(0, rank);
        Group all = W.getGroup();
        try (Win win = new Win(memory, 1, 1, null, W); Group to = all.incl(new int[] {next}); Group from = all.incl(new int[] {before})) {
            win.post(from, 0);
            win.start(to, 0);
            win.put(one, 1, MPI.DOUBLE, next, 0);
            win.complete();
            win.waitFor();
            Check.equal(memory.get(0), (double) before);
        }
    }

    static void shared(int rank, int size) throws Exception {
        Intracomm host = W.splitType(MPI.COMM_TYPE_SHARED, 0, null);
        try (Win win = Win.allocateShared(8, 1, null, host)) {
            win.lockAll(0);
            win.getBase().putInt(0, rank);
            win.sync();
            host.barrier();
            win.sync();
            Check.equal(win.sharedQuery(host.getSize() - 1).getInt(0), host.getSize() - 1);
            Check.equal(win.sharedQuery().getInt(0), 0);
            host.barrier();
            win.unlockAll();
        }
        host.free();
    }

    static void dynamic(int rank, int size) throws Exception {
        IntBuffer memory = MPI.newIntBuffer(1);
        try (Win win = new Win((Info) null, W)) {
            long[] at = {win.attach(memory, 1)};
            W.bcast(at, 1, MPI.LONG, 0);
            IntBuffer one = MPI.newIntBuffer(1);
            one.put(0, 3);
            win.fence(0);
            if (rank == size - 1) {
                win.put(one, 1, MPI.INT, 0, at[0]);
            }
            win.fence(0);
            Check.equal(memory.get(0), rank == 0 ? 3 : 0);
            win.detach(memory);
        }
    }
}
