package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayDeque;

/** Memory outside the heap for copies of arrays, which is reused: sizes are powers of two, and the number of kept pieces is limited. */
final class Piece {
    private static final int SMALLEST = 8;
    private static final int LARGEST = 31;
    private static final int KEPT = 64;
    private static final int KEPT_BYTES = 26;
    private static final Pool[] POOLS = new Pool[LARGEST + 1];

    static {
        for (int i = 0; i <= LARGEST; i++) {
            POOLS[i] = new Pool();
        }
    }

    private static final class Pool {
        private final ArrayDeque<Piece> free = new ArrayDeque<>();
    }

    private final int power;
    private final ByteBuffer memory;
    private final long address;

    private Piece(int power) {
        this.power = power;
        memory = ByteBuffer.allocateDirect(power == LARGEST ? Integer.MAX_VALUE : 1 << power).order(ByteOrder.nativeOrder());
        address = MPI.library().address(memory);
    }

    static Piece take(long bytes) {
        if (bytes > Integer.MAX_VALUE) {
            throw MPIException.wrong(MPI.ERR_COUNT, "an array takes " + bytes
                + " bytes, more than the 2^31 - 1 that can be copied; use a memory segment or several messages");
        }
        int power = bytes <= 1 << SMALLEST ? SMALLEST : Long.SIZE - Long.numberOfLeadingZeros(bytes - 1);
        Pool pool = POOLS[power];
        synchronized (pool) {
            Piece piece = pool.free.pollLast();
            if (piece != null) {
                return piece;
            }
        }
        return new Piece(power);
    }

    /** Gives the memory back; of large pieces fewer are kept, 64 MB of each size. */
    void give() {
        Pool pool = POOLS[power];
        int most = power >= KEPT_BYTES ? 1 : Math.min(KEPT, 1 << (KEPT_BYTES - power));
        synchronized (pool) {
            if (pool.free.size() < most) {
                pool.free.addLast(this);
            }
        }
    }

    ByteBuffer memory() {
        return memory;
    }

    long address() {
        return address;
    }
}
