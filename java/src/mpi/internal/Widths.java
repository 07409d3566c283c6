package mpi.internal;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/** Widths of the elements of buffers. */
public final class Widths {
    private Widths() {}

    /** Logarithm to base 2 of the bytes of an element. */
    public static int shift(Buffer buffer) {
        if (buffer instanceof ByteBuffer) {
            return 0;
        }
        if (buffer instanceof DoubleBuffer || buffer instanceof LongBuffer) {
            return 3;
        }
        if (buffer instanceof IntBuffer || buffer instanceof FloatBuffer) {
            return 2;
        }
        return buffer instanceof ShortBuffer || buffer instanceof CharBuffer ? 1 : 0;
    }
}
