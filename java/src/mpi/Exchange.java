package mpi;

import java.lang.reflect.Array;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import mpi.internal.Lending;
import mpi.internal.Native;

/**
 * One call of C with the buffers of Java: checks them, gives their addresses, copies arrays to memory outside the heap and
 * back, and hands to the request of a nonblocking or persistent call what must live as long as it. Arrays are copied and
 * never pinned, so the garbage collector waits for no call.
 */
final class Exchange implements AutoCloseable {
    static final int BLOCKING = 0;
    static final int NONBLOCKING = 1;
    static final int PERSISTENT = 2;
    /** Bytes of an array from which on lending it costs less than two copies. */
    private static final long LONG = 16 << 10;

    private final Native c = MPI.library();
    private final CommCore owner;
    private final int mode;
    private final Frame frame = Frame.get();
    private final int mark = frame.mark();
    /** Lists are made when something is put in: most calls pass one or two direct buffers and wait. */
    private List<Staged> staged;
    private List<Object> kept;
    private List<Piece> pieces;
    private Object oneKept;
    private Object otherKept;
    private Op op;
    private int request = -1;
    private long first;
    /** What C has as addresses of arrays that are lent to it. */
    private long lent;
    private long alsoLent;
    private boolean lends;

    Exchange(CommCore owner, int mode) {
        this.owner = owner;
        this.mode = mode;
    }

    Frame frame() {
        return frame;
    }

    /** Notes the address of the one buffer of an operation that ends in another call. */
    void first(long address) {
        first = address;
    }

    long first() {
        return first;
    }

    /** An array whose elements lie outside the heap during a call. */
    static final class Staged {
        private final Object array;
        private final int first;
        private final int count;
        private final int width;
        private final ByteBuffer memory;
        private final int place;
        private final boolean reads;
        private final boolean writes;
        private final boolean bySize;

        Staged(Object array, int first, int count, int width, ByteBuffer memory, int place, boolean reads, boolean writes,
            boolean bySize) {
            this.array = array;
            this.first = first;
            this.count = count;
            this.width = width;
            this.memory = memory;
            this.place = place;
            this.reads = reads;
            this.writes = writes;
            this.bySize = bySize;
        }

        void copyIn() {
            if (reads) {
                Copies.in(array, first, count, memory, place);
            }
        }

        /** Copies back what came; the status says how much of a message. */
        void copyOut(Status status) {
            if (writes) {
                int n = bySize && status != null ? (int) Math.min(count, (status.bytes() + width - 1) / width) : count;
                Copies.out(array, first, n, memory, place);
            }
        }
    }

    /** Memory for a copy: on the frame for short ones of blocking calls. Gives address, buffer and place in it. */
    private record Room(ByteBuffer memory, int place, long address) {}

    private Room room(long bytes) {
        if (mode == BLOCKING && frame.has(bytes)) {
            int place = frame.push((int) bytes);
            return new Room(frame.memory(), place, frame.at(place));
        }
        Piece piece = Piece.take(bytes);
        pieces = pieces == null ? new ArrayList<>(2) : pieces;
        pieces.add(piece);
        return new Room(piece.memory(), 0, piece.address());
    }

    private static Datatype usable(Datatype type) {
        if (type == null) {
            throw MPIException.wrong(MPI.ERR_TYPE, "the datatype is null");
        }
        type.live();
        return type;
    }

    /** Address of what C reads. */
    long input(Object buffer, long offset, long count, Datatype type) {
        return span(buffer, offset, count, type, true, false, false);
    }

    /** Address of what C writes, all of it. */
    long output(Object buffer, long offset, long count, Datatype type) {
        return span(buffer, offset, count, type, !usable(type).isDense(), true, false);
    }

    /** Address of what C writes, of which a part may stay as it is. */
    long untouched(Object buffer, long offset, long count, Datatype type) {
        return span(buffer, offset, count, type, true, true, false);
    }

    /** Address of memory for a message, which may be shorter. */
    long message(Object buffer, long offset, long count, Datatype type) {
        boolean dense = usable(type).isDense();
        return span(buffer, offset, count, type, !dense, true, dense);
    }

    /** Address of a message to send; {@link #type} tells the datatype that belongs to it. */
    long given(Object buffer, long offset, long count, Datatype type) {
        long at = lend(buffer, offset, count, type, false);
        return at != 0 ? at : input(buffer, offset, count, type);
    }

    /** Address of memory for a message, which may be shorter; {@link #type} tells the datatype that belongs to it. */
    long taken(Object buffer, long offset, long count, Datatype type) {
        long at = lend(buffer, offset, count, type, true);
        return at != 0 ? at : message(buffer, offset, count, type);
    }

    /** Handle of a datatype for the last address of a message. */
    long type(Datatype type) {
        return lends ? type.lent() : type.handle;
    }

    /** Lends a long array to a blocking call; 0 if it has to be copied, or is wrong. */
    private long lend(Object array, long offset, long count, Datatype type, boolean writes) {
        lends = false;
        if (mode != BLOCKING || type == null || !type.isPlain() || count * type.size() < LONG || Copies.base(array) != type.base
            || offset < 0 || offset + count > Array.getLength(array) || type.lent() == 0) {
            return 0;
        }
        long at = Lending.start(array, offset * type.size(), writes);
        if (lent == 0) {
            lent = at;
        } else {
            alsoLent = at;
        }
        lends = at != 0;
        return at;
    }

    /** Address of a result, which is the operand, too, where that is in place. */
    long result(Object operand, Object buffer, long offset, long count, Datatype type) {
        return operand == MPI.IN_PLACE ? untouched(buffer, offset, count, type) : output(buffer, offset, count, type);
    }

    private long span(Object buffer, long offset, long count, Datatype type, boolean reads, boolean writes, boolean bySize) {
        if (buffer == MPI.IN_PLACE) {
            return 1;
        }
        usable(type);
        if (count < 0) {
            throw Memory.negative(count);
        }
        long further = count == 0 ? 0 : (count - 1) * type.extent();
        long low = count == 0 ? 0 : type.trueLower() + Math.min(0, further);
        long high = count == 0 ? 0 : type.trueLower() + type.trueExtent() + Math.max(0, further);
        return map(buffer, offset, low, high, type, reads, writes, bySize);
    }

    /** Address of what C reads, a part for each rank. */
    long inputs(Object buffer, long offset, int[] counts, int[] displs, int ranks, Datatype type) {
        return parts(buffer, offset, counts, displs, ranks, type, false);
    }

    /** Address of what C writes, a part for each rank. */
    long outputs(Object buffer, long offset, int[] counts, int[] displs, int ranks, Datatype type) {
        return parts(buffer, offset, counts, displs, ranks, type, true);
    }

    private static void asMany(int[] values, int ranks, String what) {
        if (values == null || values.length < ranks) {
            throw MPIException.wrong(MPI.ERR_ARG, "the " + what + " are " + (values == null ? "null" : "for " + values.length)
                + ", they must be for " + ranks + " ranks");
        }
    }

    private long parts(Object buffer, long offset, int[] counts, int[] displs, int ranks, Datatype type, boolean writes) {
        if (buffer == MPI.IN_PLACE) {
            return 1;
        }
        usable(type);
        asMany(counts, ranks, "counts");
        asMany(displs, ranks, "displacements");
        long low = 0;
        long high = 0;
        for (int i = 0; i < ranks; i++) {
            if (counts[i] < 0) {
                throw Memory.negative(counts[i]);
            }
            if (counts[i] > 0) {
                long first = displs[i] * type.extent() + type.trueLower();
                long last = (displs[i] + counts[i] - 1L) * type.extent() + type.trueLower();
                low = Math.min(low, Math.min(first, last));
                high = Math.max(high, Math.max(first, last) + type.trueExtent());
            }
        }
        return map(buffer, offset, low, high, type, true, writes, false);
    }

    /** The same with a datatype for each rank; displacements are in bytes. */
    long bytes(Object buffer, long offset, int[] counts, int[] displs, int ranks, Datatype[] types, boolean writes) {
        if (buffer == MPI.IN_PLACE) {
            return 1;
        }
        asMany(counts, ranks, "counts");
        asMany(displs, ranks, "displacements");
        if (types == null || types.length < ranks) {
            throw MPIException.wrong(MPI.ERR_TYPE, "there is not a datatype for each of the " + ranks + " ranks");
        }
        long low = 0;
        long high = 0;
        for (int i = 0; i < ranks; i++) {
            Datatype type = usable(types[i]);
            if (counts[i] < 0) {
                throw Memory.negative(counts[i]);
            }
            if (counts[i] > 0) {
                long further = (counts[i] - 1) * type.extent();
                long first = displs[i] + type.trueLower();
                low = Math.min(low, first + Math.min(0, further));
                high = Math.max(high, first + Math.max(0, further) + type.trueExtent());
            }
        }
        return map(buffer, offset, low, high, ranks == 0 ? MPI.BYTE : types[0], true, writes, false);
    }

    /** Refuses an array where C uses the buffer itself, not a copy. */
    static void refuseArray(Object buffer, String what) {
        if (Copies.base(buffer) != 0) {
            throw MPIException.wrong(MPI.ERR_BUFFER, what + " a direct buffer (MPI.newByteBuffer) or a memory segment; an array would be a copy");
        }
    }

    /** Address of a buffer at an offset in elements, of which the bytes {@code low} to {@code high} are used. */
    private long map(Object buffer, long offset, long low, long high, Datatype type, boolean reads, boolean writes, boolean bySize) {
        if (buffer == null) {
            if (low == high) {
                return 0;
            }
            throw MPIException.wrong(MPI.ERR_BUFFER, "the buffer is null");
        }
        if (buffer instanceof Buffer b) {
            return direct(b, offset, low, high, type, writes);
        }
        int base = Copies.base(buffer);
        if (base != 0) {
            return stage(buffer, base, offset, low, high, type, reads, writes, bySize);
        }
        if (c.isSegment(buffer)) {
            return direct(c.segment(buffer), offset, low, high, type, writes);
        }
        throw MPIException.wrong(MPI.ERR_BUFFER, "a buffer is an array of a primitive type, a direct buffer or a memory segment, not a "
            + buffer.getClass().getName());
    }

    private long direct(Buffer buffer, long offset, long low, long high, Datatype type, boolean writes) {
        if (writes) {
            Memory.writable(buffer);
        }
        keep(buffer);
        return Memory.at(c, buffer, offset * type.baseSize, low, high);
    }

    /** The call keeps the buffer, as does the request that it makes. */
    private void keep(Object buffer) {
        if (mode == BLOCKING && oneKept == null) {
            oneKept = buffer;
        } else if (mode == BLOCKING && otherKept == null) {
            otherKept = buffer;
        } else {
            kept = kept == null ? new ArrayList<>(2) : kept;
            kept.add(buffer);
        }
    }

    private long stage(Object array, int base, long offset, long low, long high, Datatype type, boolean reads, boolean writes,
        boolean bySize) {
        if (base != type.base && low != high) {
            throw MPIException.wrong(MPI.ERR_TYPE, "the array is " + Datatype.baseName(base) + "[], the datatype is of "
                + Datatype.baseName(type.base));
        }
        int width = type.baseSize;
        long first = offset + Math.floorDiv(low, width);
        long last = offset + Math.floorDiv(high + width - 1, width);
        int length = Array.getLength(array);
        if (offset < 0 || first < 0 || last > length) {
            throw MPIException.wrong(offset < 0 || offset > length ? MPI.ERR_ARG : MPI.ERR_COUNT, "elements " + first + " to "
                + last + " of the array are wanted, it has " + length);
        }
        int count = (int) (last - first);
        Room room = room((long) count * width);
        Staged one = new Staged(array, (int) first, count, width, room.memory, room.place, reads, writes, bySize);
        one.copyIn();
        staged = staged == null ? new ArrayList<>(2) : staged;
        staged.add(one);
        return room.address - (first - offset) * width;
    }

    /** Address of C's {@code int[]} that lives as long as the call. */
    long ints(int[] values) {
        if (values == null) {
            return 0;
        }
        Room room = room(4L * values.length);
        Copies.in(values, 0, values.length, room.memory, room.place);
        return room.address;
    }

    /** Address of an array of the handles of datatypes that lives as long as the call. */
    long types(Datatype[] types) {
        if (types == null) {
            return 0;
        }
        long[] handles = new long[types.length];
        for (int i = 0; i < handles.length; i++) {
            handles[i] = usable(types[i]).handle;
        }
        Room room = room(8L * handles.length);
        Copies.in(handles, 0, handles.length, room.memory, room.place);
        return room.address;
    }

    /** Handle of an operation on elements of a type, which the call keeps. */
    long op(Op operation, Datatype type) {
        if (operation == null) {
            throw MPIException.wrong(MPI.ERR_OP, "the operation is null");
        }
        op = type != null && type.isPairOfJava() ? operation.ofPairs() : operation;
        return op.live();
    }

    /** Address of the request that C makes. */
    long request() {
        request = frame.push(8);
        return frame.at(request);
    }

    /** Ends a call: checks its result, copies arrays back, and makes the request where there is one. */
    Request end(int rc) {
        if (mode == BLOCKING) {
            done(rc, null);
            return null;
        }
        return mode == NONBLOCKING ? started(rc) : prepared(rc);
    }

    private void done(int rc, Status status) {
        MPI.check(rc);
        if (staged != null) {
            for (Staged one : staged) {
                one.copyOut(status);
            }
        }
        if (op != null) {
            op.rethrow();
        }
    }

    /** Ends a blocking receive whose status is at a place of the frame. */
    Status received(int rc, int status) {
        MPI.check(rc);
        Status came = new Status(frame, status);
        done(rc, came);
        return came;
    }

    private Holdings holdings() {
        Holdings all = new Holdings(listed(kept), listed(staged), listed(pieces), op, owner);
        pieces = null;
        return all;
    }

    private static <T> List<T> listed(List<T> list) {
        return list == null ? List.of() : list;
    }

    /** The request of a nonblocking call. */
    Request started(int rc) {
        MPI.check(rc);
        return new Request(frame.getLong(request), holdings());
    }

    /** The request of a persistent call. */
    Prequest prepared(int rc) {
        MPI.check(rc);
        return new Prequest(frame.getLong(request), holdings());
    }

    @Override
    public void close() {
        java.lang.ref.Reference.reachabilityFence(this);
        frame.reset(mark);
        if (lent != 0) {
            Lending.stop(lent);
            if (alsoLent != 0) {
                Lending.stop(alsoLent);
            }
        }
        if (pieces != null) {
            for (Piece piece : pieces) {
                piece.give();
            }
        }
    }
}
