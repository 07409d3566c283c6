package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import mpi.internal.Callbacks;
import mpi.internal.Native;

/** An operation of reductions: one of the standard or the user's. */
public final class Op implements Freeable {
    private static final long NULL = 0x20;
    private static final int NONE = -1;
    private long handle;
    private static Op smallest;
    private static Op largest;
    private final User_function objects;
    private final boolean commute;
    private int number = NONE;
    private volatile Throwable failure;

    Op(long handle) {
        this.handle = handle;
        objects = null;
        commute = true;
    }

    /** An operation by a function of the user. */
    public Op(UserFunction function, boolean commute) throws MPIException {
        MPIException.given(function, MPI.ERR_ARG, "function");
        this.commute = commute;
        objects = new User_function() {
            @Override
            public void Call(Object in, int inAt, Object inOut, int inOutAt, int count, Datatype type) {
                function.call(in, inOut, count, type);
            }
        };
        create((in, inOut, count, type) -> {
            Datatype datatype = Datatype.known(type);
            function.call(part(in, count, datatype), part(inOut, count, datatype), count, datatype);
        });
    }

    /** An operation by a function of the user (mpiJava). */
    public Op(User_function function, boolean commute) throws MPIException {
        this.commute = commute;
        objects = MPIException.given(function, MPI.ERR_ARG, "function");
        UserFunction arrays = new UserFunction() {
            @Override
            public void call(Object in, Object inOut, int count, Datatype type) {
                function.Call(in, 0, inOut, 0, count, type);
            }
        };
        create((in, inOut, count, type) -> {
            Datatype datatype = Datatype.known(type);
            arrays.call(part(in, count, datatype), part(inOut, count, datatype), count, datatype);
        });
    }

    /** This operation for pairs that C has no MINLOC and MAXLOC for (MPI.SHORT2, MPI.LONG2). */
    Op ofPairs() {
        synchronized (Op.class) {
            if (this == MPI.MINLOC) {
                smallest = smallest == null ? pick(-1) : smallest;
                return smallest;
            }
            if (this == MPI.MAXLOC) {
                largest = largest == null ? pick(1) : largest;
                return largest;
            }
            return this;
        }
    }

    /** Handle of an operation that a program passes. */
    static long handle(Op op) {
        return MPIException.given(op, MPI.ERR_OP, "operation").live();
    }

    /** Whether C has it of its own. */
    boolean isStandard() {
        return objects == null;
    }

    static synchronized void freePairs() {
        for (Op op : new Op[] {smallest, largest}) {
            if (op != null) {
                op.free();
            }
        }
        smallest = null;
        largest = null;
    }

    /** Of two values that one whose comparison with the other has this sign, and of equal ones that of the lower place. */
    private static Op pick(int sign) {
        return new Op(new UserFunction() {
            @Override
            public void call(ByteBuffer a, ByteBuffer b, int count, Datatype type) {
                int width = type.baseSize;
                for (int at = 0; at < 2 * width * count; at += 2 * width) {
                    int order = sign * Long.compare(number(a, at, width), number(b, at, width));
                    if (order > 0 || order == 0 && number(a, at + width, width) < number(b, at + width, width)) {
                        b.put(at, a, at, 2 * width);
                    }
                }
            }
        }, true);
    }

    private static long number(ByteBuffer from, int at, int width) {
        return width == Short.BYTES ? from.getShort(at) : from.getLong(at);
    }

    private void create(Callbacks.Reduction function) {
        Native c = MPI.live();
        number = Callbacks.enter((in, inOut, count, type) -> guarded(function, in, inOut, count, type), c.reductions());
        if (number == NONE) {
            throw MPIException.wrong(MPI.ERR_OP, "there are " + c.reductions()
                + " user-defined operations, as many as JNI allows; free one, or use Java 22 or later");
        }
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int result = frame.push(8);
            MPI.check(c.MPI_Op_create(c.reduction(number), commute ? 1 : 0, frame.at(result)));
            handle = frame.getLong(result);
        } finally {
            frame.reset(mark);
        }
    }

    /** Nothing above a function that C calls can catch; what it throws is thrown again when the call of MPI ends. */
    private void guarded(Callbacks.Reduction function, long in, long inOut, int count, long type) {
        try {
            function.reduce(in, inOut, count, type);
        } catch (Throwable t) {
            failure = t;
        }
    }

    void rethrow() {
        Throwable t = failure;
        if (t != null) {
            failure = null;
            MPIException thrown = MPIException.wrong(MPI.ERR_OP, "the user-defined operation threw " + t);
            thrown.initCause(t);
            throw thrown;
        }
    }

    /** Elements of the base type that {@code count} elements of a datatype take in memory. */
    static int elements(int count, Datatype type) {
        return count == 0 ? 0 : Math.toIntExact(((count - 1) * type.extent() + type.trueLower() + type.trueExtent()) / type.baseSize);
    }

    private static ByteBuffer part(long address, int count, Datatype type) {
        long bytes = (long) elements(count, type) * type.baseSize;
        return MPI.library().memory(address, bytes).order(ByteOrder.nativeOrder());
    }

    long live() {
        if (handle == NULL) {
            throw MPIException.wrong(MPI.ERR_OP, "the operation is null or was freed");
        }
        return handle;
    }

    /** Combines two parts of arrays of objects. */
    void combine(Object[] in, Object[] inOut, int count) {
        if (objects == null) {
            throw MPIException.wrong(MPI.ERR_OP, "an operation of the standard does not combine objects; make one with new Op(...)");
        }
        objects.Call(in, 0, inOut, 0, count, MPI.OBJECT);
    }

    /** Whether the order of operands does not matter. */
    public boolean isCommutative() throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int flag = frame.push(8);
            MPI.check(c.MPI_Op_commutative(live(), frame.at(flag)));
            return frame.getInt(flag) != 0;
        } finally {
            frame.reset(mark);
        }
    }

    /** Whether this is the null operation: it was freed. */
    public boolean isNull() {
        return handle == NULL;
    }

    @Override
    public void free() throws MPIException {
        if (number == NONE) {
            throw MPIException.wrong(MPI.ERR_OP, isNull() ? "the operation was freed" : "an operation of the standard cannot be freed");
        }
        MPI.freed(live(), (c, at) -> c.MPI_Op_free(at));
        handle = NULL;
        Callbacks.leave(number);
        number = NONE;
    }

    @Override
    public void close() throws MPIException {
        if (number != NONE) {
            free();
        }
    }

    /** Frees the operation (mpiJava). */
    public void Free() throws MPIException {
        free();
    }

    /** Frees the operation (mpiJava). */
    public void Finalize() throws MPIException {
        free();
    }
}
