package mpi;

import java.nio.Buffer;
import mpi.internal.Native;
import mpi.internal.Widths;

/** Addresses of direct buffers, checked: what C gets lies within the buffer. */
final class Memory {
    private Memory() {}

    /** Address from which C reads {@code count} elements of a plain type. */
    static long input(Native c, Buffer buffer, long offset, long count, Datatype type) {
        if (count < 0) {
            throw negative(count);
        }
        return at(c, buffer, offset * type.baseSize, 0, count * type.size());
    }

    /** Address to which C writes {@code count} elements of a plain type. */
    static long output(Native c, Buffer buffer, long offset, long count, Datatype type) {
        writable(buffer);
        return input(c, buffer, offset, count, type);
    }

    static void writable(Buffer buffer) {
        if (buffer.isReadOnly()) {
            throw MPIException.wrong(MPI.ERR_BUFFER, "the buffer to receive into is read-only");
        }
    }

    static MPIException negative(long count) {
        return MPIException.wrong(MPI.ERR_COUNT, "the count is " + count + ", it must not be negative");
    }

    /** Address of the byte {@code start} of a buffer, from which the bytes {@code low} to {@code high} are used. */
    static long at(Native c, Buffer buffer, long start, long low, long high) {
        if (!buffer.isDirect()) {
            throw MPIException.wrong(MPI.ERR_BUFFER,
                "the buffer lies in Java's heap; pass an array or a direct buffer, which MPI.newByteBuffer makes");
        }
        long has = (long) buffer.capacity() << Widths.shift(buffer);
        if (start < 0 || start + low < 0 || start + high > has) {
            throw MPIException.wrong(start < 0 ? MPI.ERR_ARG : MPI.ERR_COUNT, "bytes " + (start + low) + " to " + (start + high)
                + " of the buffer are wanted, it has " + has);
        }
        return c.address(buffer) + start;
    }
}
