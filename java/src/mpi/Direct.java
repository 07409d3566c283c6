package mpi;

import java.nio.Buffer;
import mpi.internal.Native;

/** Addresses for blocking calls whose buffers are all direct and of plain types: such calls keep and copy nothing. */
final class Direct {
    private Direct() {}

    /** Whether a buffer with this datatype needs no {@link Exchange}. */
    static boolean is(Object buffer, Datatype type) {
        return (buffer instanceof Buffer || buffer == MPI.IN_PLACE) && type != null && type.isPlain();
    }

    /** Address of what C reads. */
    static long input(Native c, Object buffer, long offset, long count, Datatype type) {
        return buffer instanceof Buffer b ? Memory.input(c, b, offset, count, type) : 1;
    }

    /** Address of what C writes. */
    static long output(Native c, Object buffer, long offset, long count, Datatype type) {
        return buffer instanceof Buffer b ? Memory.output(c, b, offset, count, type) : 1;
    }

    /** Address of what C writes, of which a part may stay as it is. */
    static long untouched(Native c, Object buffer, long offset, long count, Datatype type) {
        return output(c, buffer, offset, count, type);
    }

    /** Address of a result, which is the operand, too, where that is in place. */
    static long result(Native c, Object operand, Object buffer, long offset, long count, Datatype type) {
        return output(c, buffer, offset, count, type);
    }
}
