package mpi;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import mpi.internal.Native;
import mpi.internal.Widths;

/**
 * A window: memory that other ranks read and write. Origins and results are direct buffers or memory segments, because they
 * are used until the next synchronization; an array would be a copy.
 */
public final class Win implements Freeable {
    private static final long NULL = 0x110;
    private static final int SHARED_ANY = MPI.PROC_NULL;
    /** In a constructor: memory for each rank. */
    public static final int FLAVOR_PRIVATE = 0;
    /** In a constructor: memory that the ranks share. */
    public static final int FLAVOR_SHARED = 1;
    private long handle;
    private final CommCore comm;
    private final List<Object> memory = new ArrayList<>();
    private final List<Object> held = new ArrayList<>();
    private final Attributes attributes = new Attributes();

    private Win(long handle, Comm comm, Object memory) {
        this.handle = handle;
        this.comm = comm;
        if (memory != null) {
            this.memory.add(memory);
        }
        MPI.check(MPI.live().MPI_Win_set_errhandler(handle, MPI.ERRORS_RETURN.handle));
    }

    /** A window of a direct buffer; size and unit of displacements are in elements of the buffer. */
    public Win(Buffer base, int size, int dispUnit, Info info, Comm comm) throws MPIException {
        this(create(base, size, dispUnit, info, comm), comm, base);
    }

    /** A window to which memory is attached later. */
    public Win(Info info, Comm comm) throws MPIException {
        this(MPI.large((c, r) -> c.MPI_Win_create_dynamic(Info.handle(info), CommCore.handle(comm), r)), comm, null);
    }

    /**
     * A window with memory of MPI's, which {@link #getBase} gives, as {@link #allocate} and {@link #allocateShared} make it. The
     * buffer is not used but says of which elements size and unit of displacements are.
     */
    public Win(int size, int dispUnit, Info info, Comm comm, Buffer like, int flavor) throws MPIException {
        this(flavored(size, dispUnit, info, comm, like == null ? 0 : Widths.shift(like), flavor));
    }

    private Win(Win made) {
        handle = made.handle;
        comm = made.comm;
        memory.addAll(made.memory);
    }

    private static Win flavored(int size, int dispUnit, Info info, Comm comm, int shift, int flavor) {
        int bytes = Math.multiplyExact(size, 1 << shift);
        return switch (flavor) {
            case FLAVOR_PRIVATE -> allocate(bytes, dispUnit << shift, info, comm);
            case FLAVOR_SHARED -> allocateShared(bytes, dispUnit << shift, info, comm);
            default -> throw MPIException.wrong(MPI.ERR_RMA_FLAVOR, "the flavor is " + flavor
                + ", neither Win.FLAVOR_PRIVATE nor Win.FLAVOR_SHARED");
        };
    }

    private static long create(Buffer base, int size, int dispUnit, Info info, Comm comm) {
        Native c = MPI.live();
        if (size < 0) {
            throw MPIException.wrong(MPI.ERR_SIZE, "the size of the window is " + size);
        }
        int shift = base == null ? 0 : Widths.shift(base);
        long bytes = (long) size << shift;
        if (base == null && size > 0) {
            throw MPIException.wrong(MPI.ERR_BUFFER, "the memory of the window is null");
        }
        if (base != null) {
            Memory.writable(base);
        }
        long at = base == null ? 0 : Memory.at(c, base, 0, 0, bytes);
        return MPI.large((n, r) -> n.MPI_Win_create(at, bytes, dispUnit << shift, Info.handle(info), CommCore.handle(comm), r));
    }

    private interface Allocation {
        int call(Native c, long base, long win);
    }

    private static Win allocated(int bytes, Comm comm, Allocation call) {
        Native c = MPI.live();
        if (bytes < 0) {
            throw MPIException.wrong(MPI.ERR_SIZE, "the size of the window is " + bytes);
        }
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int base = frame.push(8);
            int result = frame.push(8);
            MPI.check(call.call(c, frame.at(base), frame.at(result)));
            ByteBuffer memory = c.memory(frame.getLong(base), bytes).order(ByteOrder.nativeOrder());
            return new Win(frame.getLong(result), comm, memory);
        } finally {
            frame.reset(mark);
        }
    }

    /** A window with memory of MPI's, of which {@link #getBase} is this rank's. */
    public static Win allocate(int bytes, int dispUnit, Info info, Comm comm) throws MPIException {
        return allocated(bytes, comm, (c, base, win) -> c.MPI_Win_allocate(bytes, dispUnit, Info.handle(info), CommCore.handle(comm), base, win));
    }

    /** A window with memory that all ranks of the communicator share. */
    public static Win allocateShared(int bytes, int dispUnit, Info info, Comm comm) throws MPIException {
        return allocated(bytes, comm, (c, base, win) ->
            c.MPI_Win_allocate_shared(bytes, dispUnit, Info.handle(info), CommCore.handle(comm), base, win));
    }

    /** The memory of this rank; it must not be used after the window is freed. */
    public ByteBuffer getBase() throws MPIException {
        live();
        if (memory.isEmpty() || !(memory.get(0) instanceof ByteBuffer b)) {
            throw MPIException.wrong(MPI.ERR_RMA_FLAVOR, "the window has no memory of MPI's");
        }
        return b;
    }

    /** The memory of another rank in a shared window. */
    public ByteBuffer sharedQuery(int rank) throws MPIException {
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int size = frame.push(8);
            int unit = frame.push(8);
            int base = frame.push(8);
            MPI.check(c.MPI_Win_shared_query(handle, rank, frame.at(size), frame.at(unit), frame.at(base)));
            return c.memory(frame.getLong(base), frame.getLong(size)).order(ByteOrder.nativeOrder());
        } finally {
            frame.reset(mark);
        }
    }

    /** The memory of the first rank that has some in a shared window. */
    public ByteBuffer sharedQuery() throws MPIException {
        return sharedQuery(SHARED_ANY);
    }

    /** Attaches memory, in elements of the buffer; its address, as others name it. */
    public long attach(Buffer base, int size) throws MPIException {
        Native c = live();
        Memory.writable(base);
        long bytes = (long) size << Widths.shift(base);
        long at = Memory.at(c, base, 0, 0, bytes);
        MPI.check(c.MPI_Win_attach(handle, at, bytes));
        memory.add(base);
        return at;
    }

    /** Detaches memory. */
    public void detach(Buffer base) throws MPIException {
        Native c = live();
        MPI.check(c.MPI_Win_detach(handle, Memory.at(c, base, 0, 0, 0)));
        memory.removeIf(m -> m == base);
    }

    private Native live() {
        Native c = MPI.live();
        if (handle == NULL) {
            throw MPIException.wrong(MPI.ERR_WIN, "the window was freed");
        }
        return c;
    }

    /** Checks a buffer that is used until the next synchronization. */
    private long origin(Exchange x, Object buf, long count, Datatype type, boolean writes) {
        if (buf != null && Copies.base(buf) != 0) {
            throw MPIException.wrong(MPI.ERR_BUFFER,
                "an array cannot be the origin or the result of an operation on a window; use a direct buffer (MPI.newByteBuffer)");
        }
        long at = writes ? x.output(buf, 0, count, type) : x.input(buf, 0, count, type);
        synchronized (held) {
            held.add(buf);
        }
        return at;
    }

    private void settled() {
        synchronized (held) {
            held.clear();
        }
    }

    /** Writes to a rank. */
    public void put(Object origin, int count, Datatype type, int targetRank, long targetDisp) throws MPIException {
        put(origin, count, type, targetRank, targetDisp, count, type);
    }

    /** Writes to a rank. */
    public void put(Object origin, int count, Datatype type, int targetRank, long targetDisp, int targetCount, Datatype targetType)
        throws MPIException {
        Native c = live();
        try (Exchange x = new Exchange(comm, Exchange.BLOCKING)) {
            long at = origin(x, origin, count, type, false);
            MPI.check(c.MPI_Put(at, count, Datatype.handle(type), targetRank, targetDisp, targetCount, Datatype.handle(targetType), handle));
        }
    }

    /** Writes to a rank; the request says when the origin may be used again. */
    public Request rPut(Object origin, int count, Datatype type, int targetRank, long targetDisp, int targetCount,
        Datatype targetType) throws MPIException {
        Native c = live();
        try (Exchange x = new Exchange(comm, Exchange.NONBLOCKING)) {
            long at = origin(x, origin, count, type, false);
            return x.started(c.MPI_Rput(at, count, Datatype.handle(type), targetRank, targetDisp, targetCount, Datatype.handle(targetType), handle,
                x.request()));
        }
    }

    /** Reads from a rank. */
    public void get(Object result, int count, Datatype type, int targetRank, long targetDisp) throws MPIException {
        get(result, count, type, targetRank, targetDisp, count, type);
    }

    /** Reads from a rank. */
    public void get(Object result, int count, Datatype type, int targetRank, long targetDisp, int targetCount, Datatype targetType)
        throws MPIException {
        Native c = live();
        try (Exchange x = new Exchange(comm, Exchange.BLOCKING)) {
            long at = origin(x, result, count, type, true);
            MPI.check(c.MPI_Get(at, count, Datatype.handle(type), targetRank, targetDisp, targetCount, Datatype.handle(targetType), handle));
        }
    }

    /** Reads from a rank; the request says when the result is there. */
    public Request rGet(Object result, int count, Datatype type, int targetRank, long targetDisp, int targetCount,
        Datatype targetType) throws MPIException {
        Native c = live();
        try (Exchange x = new Exchange(comm, Exchange.NONBLOCKING)) {
            long at = origin(x, result, count, type, true);
            return x.started(c.MPI_Rget(at, count, Datatype.handle(type), targetRank, targetDisp, targetCount, Datatype.handle(targetType), handle,
                x.request()));
        }
    }

    /** Combines with the memory of a rank. */
    public void accumulate(Object origin, int count, Datatype type, int targetRank, long targetDisp, Op op) throws MPIException {
        accumulate(origin, count, type, targetRank, targetDisp, count, type, op);
    }

    /** Combines with the memory of a rank. */
    public void accumulate(Object origin, int count, Datatype type, int targetRank, long targetDisp, int targetCount,
        Datatype targetType, Op op) throws MPIException {
        Native c = live();
        try (Exchange x = new Exchange(comm, Exchange.BLOCKING)) {
            long at = origin(x, origin, count, type, false);
            MPI.check(c.MPI_Accumulate(at, count, Datatype.handle(type), targetRank, targetDisp, targetCount, Datatype.handle(targetType), Op.handle(op),
                handle));
        }
    }

    /** Combines with the memory of a rank; the request says when the origin may be used again. */
    public Request rAccumulate(Object origin, int count, Datatype type, int targetRank, long targetDisp, int targetCount,
        Datatype targetType, Op op) throws MPIException {
        Native c = live();
        try (Exchange x = new Exchange(comm, Exchange.NONBLOCKING)) {
            long at = origin(x, origin, count, type, false);
            return x.started(c.MPI_Raccumulate(at, count, Datatype.handle(type), targetRank, targetDisp, targetCount, Datatype.handle(targetType),
                Op.handle(op), handle, x.request()));
        }
    }

    /** Combines with the memory of a rank and gives what was there. */
    public void getAccumulate(Object origin, int count, Datatype type, Object result, int resultCount, Datatype resultType,
        int targetRank, long targetDisp, int targetCount, Datatype targetType, Op op) throws MPIException {
        Native c = live();
        try (Exchange x = new Exchange(comm, Exchange.BLOCKING)) {
            long from = origin(x, origin, count, type, false);
            long to = origin(x, result, resultCount, resultType, true);
            MPI.check(c.MPI_Get_accumulate(from, count, Datatype.handle(type), to, resultCount, Datatype.handle(resultType), targetRank, targetDisp,
                targetCount, Datatype.handle(targetType), Op.handle(op), handle));
        }
    }

    /** Combines with the memory of a rank and gives what was there; the request says when. */
    public Request rGetAccumulate(Object origin, int count, Datatype type, Object result, int resultCount, Datatype resultType,
        int targetRank, long targetDisp, int targetCount, Datatype targetType, Op op) throws MPIException {
        Native c = live();
        try (Exchange x = new Exchange(comm, Exchange.NONBLOCKING)) {
            long from = origin(x, origin, count, type, false);
            long to = origin(x, result, resultCount, resultType, true);
            return x.started(c.MPI_Rget_accumulate(from, count, Datatype.handle(type), to, resultCount, Datatype.handle(resultType), targetRank,
                targetDisp, targetCount, Datatype.handle(targetType), Op.handle(op), handle, x.request()));
        }
    }

    /** Combines one element with the memory of a rank and gives what was there. */
    public void fetchAndOp(Object origin, Object result, Datatype type, int targetRank, long targetDisp, Op op) throws MPIException {
        Native c = live();
        try (Exchange x = new Exchange(comm, Exchange.BLOCKING)) {
            long from = origin(x, origin, 1, type, false);
            long to = origin(x, result, 1, type, true);
            MPI.check(c.MPI_Fetch_and_op(from, to, Datatype.handle(type), targetRank, targetDisp, Op.handle(op), handle));
        }
    }

    /** Replaces one element of a rank where it equals another; gives what was there. */
    public void compareAndSwap(Object origin, Object compare, Object result, Datatype type, int targetRank, long targetDisp)
        throws MPIException {
        Native c = live();
        try (Exchange x = new Exchange(comm, Exchange.BLOCKING)) {
            long from = origin(x, origin, 1, type, false);
            long with = origin(x, compare, 1, type, false);
            long to = origin(x, result, 1, type, true);
            MPI.check(c.MPI_Compare_and_swap(from, with, to, Datatype.handle(type), targetRank, targetDisp, handle));
        }
    }

    /** {@code MPI_Win_fence}. */
    public void fence(int assertion) throws MPIException {
        MPI.check(live().MPI_Win_fence(assertion, handle));
        settled();
    }

    /** {@code MPI_Win_start}. */
    public void start(Group group, int assertion) throws MPIException {
        MPI.check(live().MPI_Win_start(Group.handle(group), assertion, handle));
    }

    /** {@code MPI_Win_complete}. */
    public void complete() throws MPIException {
        MPI.check(live().MPI_Win_complete(handle));
        settled();
    }

    /** {@code MPI_Win_post}. */
    public void post(Group group, int assertion) throws MPIException {
        MPI.check(live().MPI_Win_post(Group.handle(group), assertion, handle));
    }

    /** {@code MPI_Win_wait}. */
    public void waitFor() throws MPIException {
        MPI.check(live().MPI_Win_wait(handle));
    }

    /** {@code MPI_Win_test}. */
    public boolean test() throws MPIException {
        live();
        return MPI.number((c, r) -> c.MPI_Win_test(handle, r)) != 0;
    }

    /** {@code MPI_Win_lock}. */
    public void lock(int lockType, int rank, int assertion) throws MPIException {
        MPI.check(live().MPI_Win_lock(lockType, rank, assertion, handle));
    }

    /** {@code MPI_Win_unlock}. */
    public void unlock(int rank) throws MPIException {
        MPI.check(live().MPI_Win_unlock(rank, handle));
    }

    /** {@code MPI_Win_lock_all}. */
    public void lockAll(int assertion) throws MPIException {
        MPI.check(live().MPI_Win_lock_all(assertion, handle));
    }

    /** {@code MPI_Win_unlock_all}. */
    public void unlockAll() throws MPIException {
        MPI.check(live().MPI_Win_unlock_all(handle));
        settled();
    }

    /** {@code MPI_Win_flush}. */
    public void flush(int rank) throws MPIException {
        MPI.check(live().MPI_Win_flush(rank, handle));
    }

    /** {@code MPI_Win_flush_all}. */
    public void flushAll() throws MPIException {
        MPI.check(live().MPI_Win_flush_all(handle));
        settled();
    }

    /** {@code MPI_Win_flush_local}. */
    public void flushLocal(int rank) throws MPIException {
        MPI.check(live().MPI_Win_flush_local(rank, handle));
    }

    /** {@code MPI_Win_flush_local_all}. */
    public void flushLocalAll() throws MPIException {
        MPI.check(live().MPI_Win_flush_local_all(handle));
        settled();
    }

    /** {@code MPI_Win_sync}. */
    public void sync() throws MPIException {
        MPI.check(live().MPI_Win_sync(handle));
    }

    /** The group of the window. */
    public Group getGroup() throws MPIException {
        live();
        return new Group(MPI.large((c, r) -> c.MPI_Win_get_group(handle, r)));
    }

    /** Sets hints. */
    public void setInfo(Info info) throws MPIException {
        MPI.check(live().MPI_Win_set_info(handle, Info.handle(info)));
    }

    /** Hints that are in use. */
    public Info getInfo() throws MPIException {
        live();
        return new Info(MPI.large((c, r) -> c.MPI_Win_get_info(handle, r)));
    }

    /** {@code MPI_Win_set_name}. */
    public void setName(String name) throws MPIException {
        live();
        MPI.named(name, (c, at) -> c.MPI_Win_set_name(handle, at));
    }

    /** {@code MPI_Win_get_name}. */
    public String getName() throws MPIException {
        live();
        return MPI.name((c, text, length) -> c.MPI_Win_get_name(handle, text, length));
    }

    /** {@code MPI_Win_set_errhandler}. */
    public void setErrhandler(Errhandler handler) throws MPIException {
        MPI.check(live().MPI_Win_set_errhandler(handle, Errhandler.handle(handler)));
    }

    /** {@code MPI_Win_get_errhandler}. */
    public Errhandler getErrhandler() throws MPIException {
        live();
        return Errhandler.of(MPI.large((c, r) -> c.MPI_Win_get_errhandler(handle, r)));
    }

    /** {@code MPI_Win_call_errhandler}. */
    public void callErrhandler(int errorCode) throws MPIException {
        MPI.check(live().MPI_Win_call_errhandler(handle, errorCode));
    }

    /** A new key of attributes. */
    public static int createKeyval() throws MPIException {
        return Attributes.createKeyval();
    }

    /** Frees a key of attributes. */
    public static void freeKeyval(int keyval) throws MPIException {
        Attributes.freeKeyval(keyval);
    }

    /** Sets an attribute. */
    public void setAttr(int keyval, Object value) throws MPIException {
        attributes.set(keyval, value);
    }

    /**
     * An attribute, or null. Of those of the standard, MPI.WIN_BASE is the memory, a ByteBuffer; MPI.WIN_SIZE,
     * WIN_DISP_UNIT, WIN_CREATE_FLAVOR and WIN_MODEL are of type Integer.
     */
    public Object getAttr(int keyval) throws MPIException {
        Native c = live();
        return switch (keyval) {
            case MPI.WIN_BASE -> c.memory(standard(c, keyval), (int) getAttr(MPI.WIN_SIZE)).order(ByteOrder.nativeOrder());
            case MPI.WIN_SIZE -> Math.toIntExact(number(c, keyval, Long.BYTES).getLong(0));
            case MPI.WIN_DISP_UNIT, MPI.WIN_CREATE_FLAVOR, MPI.WIN_MODEL -> number(c, keyval, Integer.BYTES).getInt(0);
            default -> attributes.get(keyval);
        };
    }

    private ByteBuffer number(Native c, int keyval, int bytes) {
        return c.memory(standard(c, keyval), bytes).order(ByteOrder.nativeOrder());
    }

    /** What C's value of an attribute of the standard points to. */
    private long standard(Native c, int keyval) {
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int value = frame.push(8);
            MPI.check(c.MPI_Win_get_attr(handle, keyval, frame.at(value), frame.at(frame.push(8))));
            return frame.getLong(value);
        } finally {
            frame.reset(mark);
        }
    }

    /** Removes an attribute. */
    public void deleteAttr(int keyval) throws MPIException {
        attributes.delete(keyval);
    }

    /** Whether the window was freed. */
    public boolean isNull() {
        return handle == NULL;
    }

    @Override
    public void free() throws MPIException {
        live();
        MPI.freed(handle, (c, at) -> c.MPI_Win_free(at));
        handle = NULL;
        settled();
        memory.clear();
    }

    @Override
    public void close() throws MPIException {
        if (handle != NULL) {
            free();
        }
    }
}
