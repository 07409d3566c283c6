package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Memory of one thread for what C reads and writes during a call: results, statuses, arrays of counts, short messages from
 * arrays. It is a stack, so a reduction in Java that C calls may call MPI itself.
 */
final class Frame {
    private static final int BYTES = 1 << 16;
    private static final int ALIGN = 16;
    private static final int FEW = 256;
    private static final ThreadLocal<Frame> FRAMES = ThreadLocal.withInitial(Frame::new);
    private final ByteBuffer memory = ByteBuffer.allocateDirect(BYTES).order(ByteOrder.nativeOrder());
    private final long base = MPI.library().address(memory);
    private int top;

    private Frame() {}

    static Frame get() {
        return FRAMES.get();
    }

    /** Whether counts are few enough for a frame, even if calls nest. */
    static boolean fits(int[] counts) {
        return counts != null && counts.length <= FEW;
    }

    int mark() {
        return top;
    }

    void reset(int mark) {
        top = mark;
    }

    boolean has(long bytes) {
        return bytes <= BYTES - top - ALIGN;
    }

    /** Place of new memory; the caller resets the frame to its mark afterwards. */
    int push(int bytes) {
        if (!has(bytes)) {
            throw MPIException.wrong(MPI.ERR_NO_MEM, "a call nests too deeply in reductions, or has too many arguments");
        }
        int at = top;
        top += (bytes + ALIGN - 1) & -ALIGN;
        return at;
    }

    long at(int place) {
        return base + place;
    }

    ByteBuffer memory() {
        return memory;
    }

    int getInt(int place) {
        return memory.getInt(place);
    }

    long getLong(int place) {
        return memory.getLong(place);
    }

    void putInt(int place, int value) {
        memory.putInt(place, value);
    }

    void putLong(int place, long value) {
        memory.putLong(place, value);
    }

    String getText(int place, int bytes) {
        byte[] text = new byte[bytes];
        memory.get(place, text);
        return new String(text, StandardCharsets.UTF_8);
    }

    /** The text up to its end, a zero. */
    String getText(int place) {
        int length = 0;
        while (memory.get(place + length) != 0) {
            length++;
        }
        return getText(place, length);
    }

    /** Address of a text with a zero behind it. */
    long text(String text) {
        byte[] bytes = MPIException.given(text, MPI.ERR_ARG, "text").getBytes(StandardCharsets.UTF_8);
        int place = push(bytes.length + 1);
        memory.put(place, bytes);
        memory.put(place + bytes.length, (byte) 0);
        return at(place);
    }

    /** Address of numbers for C's {@code int[]}. */
    long ints(int[] values) {
        MPIException.given(values, MPI.ERR_ARG, "array of numbers");
        int place = push(4 * values.length);
        for (int i = 0; i < values.length; i++) {
            memory.putInt(place + 4 * i, values[i]);
        }
        return at(place);
    }

    /** Address of truth values for C's {@code int[]}. */
    long flags(boolean[] values) {
        MPIException.given(values, MPI.ERR_ARG, "array of flags");
        int[] numbers = new int[values.length];
        for (int i = 0; i < values.length; i++) {
            numbers[i] = values[i] ? 1 : 0;
        }
        return ints(numbers);
    }

    /** Address of numbers for C's {@code MPI_Aint[]} or an array of handles. */
    long longs(long[] values) {
        int place = push(8 * values.length);
        for (int i = 0; i < values.length; i++) {
            memory.putLong(place + 8 * i, values[i]);
        }
        return at(place);
    }

    int[] getInts(int place, int count) {
        int[] values = new int[count];
        for (int i = 0; i < count; i++) {
            values[i] = memory.getInt(place + 4 * i);
        }
        return values;
    }

    boolean[] getFlags(int place, int count) {
        boolean[] values = new boolean[count];
        for (int i = 0; i < count; i++) {
            values[i] = memory.getInt(place + 4 * i) != 0;
        }
        return values;
    }
}
