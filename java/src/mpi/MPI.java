package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import mpi.internal.Library;
import mpi.internal.Native;

/** Start and end of MPI, its constants, and what belongs to no object. */
public final class MPI extends Constants {
    static final long SHORT_INT_HANDLE = 0x22c;
    private static final int WORLD_HANDLE = 0x101;
    private static final int BEFORE = 0;
    private static final int RUNNING = 1;
    private static final int AFTER = 2;
    private static final int WORD = 8;
    private static int state = BEFORE;
    private static int sessions;
    private static ByteBuffer attached;
    private static byte[] attachedArray;

    /** Stands for the buffer that is sent where an operation is in place. */
    public static final Object IN_PLACE = new Object();
    /** One byte. */
    public static final Datatype BYTE = new Datatype(0x240, Datatype.BASE_BYTE, 1);
    /** One char of Java, 16 bits. */
    public static final Datatype CHAR = new Datatype(0x249, Datatype.BASE_CHAR, 2);
    /** One short. */
    public static final Datatype SHORT = new Datatype(0x208, Datatype.BASE_SHORT, 2);
    /** One boolean, a byte. */
    public static final Datatype BOOLEAN = new Datatype(0x238, Datatype.BASE_BOOLEAN, 1);
    /** One int. */
    public static final Datatype INT = new Datatype(0x209, Datatype.BASE_INT, 4);
    /** One long. */
    public static final Datatype LONG = new Datatype(0x20a, Datatype.BASE_LONG, 8);
    /** One float. */
    public static final Datatype FLOAT = new Datatype(0x210, Datatype.BASE_FLOAT, 4);
    /** One double. */
    public static final Datatype DOUBLE = new Datatype(0x214, Datatype.BASE_DOUBLE, 8);
    /** Packed data. */
    public static final Datatype PACKED = new Datatype(0x207, Datatype.BASE_BYTE, 1);
    /** One object, which is serialized. */
    public static final Datatype OBJECT = new Datatype(Datatype.NULL, Datatype.BASE_OBJECT, 1);
    /** No datatype. */
    public static final Datatype DATATYPE_NULL = new Datatype(Datatype.NULL, Datatype.BASE_BYTE, 1);
    /** Two ints: a value and its place. */
    public static final Datatype INT2 = new Datatype(0x22b, Datatype.BASE_INT, 8);
    /** Two shorts: a value and its place (mpiJava). */
    public static final Datatype SHORT2 = Datatype.twice(SHORT);
    /** Two longs: a value and its place (mpiJava). */
    public static final Datatype LONG2 = Datatype.twice(LONG);
    /** In {@link Datatype#Struct}, where the type begins (mpiJava). */
    public static final Datatype LB = new Datatype(Datatype.NULL, Datatype.BASE_BYTE, 1);
    /** In {@link Datatype#Struct}, where the type ends (mpiJava). */
    public static final Datatype UB = new Datatype(Datatype.NULL, Datatype.BASE_BYTE, 1);
    /** Two floats: a value and its place. */
    public static final Datatype FLOAT2 = new Datatype(0x230, Datatype.BASE_FLOAT, 8);
    /** Two doubles: a value and its place. */
    public static final Datatype DOUBLE2 = new Datatype(0x231, Datatype.BASE_DOUBLE, 16);
    /** A complex number of two floats. */
    public static final Datatype FLOAT_COMPLEX = new Datatype(0x212, Datatype.BASE_FLOAT, 8);
    /** A complex number of two doubles. */
    public static final Datatype DOUBLE_COMPLEX = new Datatype(0x216, Datatype.BASE_DOUBLE, 16);
    /** A float and an int. */
    public static final Datatype FLOAT_INT = Datatype.pair(0x228, 8, 8);
    /** A double and an int. */
    public static final Datatype DOUBLE_INT = Datatype.pair(0x229, 12, 16);
    /** A long and an int. */
    public static final Datatype LONG_INT = Datatype.pair(0x22a, 12, 16);
    /** A short and an int. */
    public static final Datatype SHORT_INT = Datatype.pair(SHORT_INT_HANDLE, 6, 8);
    /** The struct of {@link #INT2}. */
    public static final Int2 int2 = new Int2();
    /** The struct of {@link #SHORT_INT}. */
    public static final ShortInt shortInt = new ShortInt();
    /** The struct of {@link #LONG_INT}. */
    public static final LongInt longInt = new LongInt();
    /** The struct of {@link #FLOAT_INT}. */
    public static final FloatInt floatInt = new FloatInt();
    /** The struct of {@link #DOUBLE_INT}. */
    public static final DoubleInt doubleInt = new DoubleInt();

    /** The sum. */
    public static final Op SUM = new Op(0x21);
    /** The smallest. */
    public static final Op MIN = new Op(0x22);
    /** The largest. */
    public static final Op MAX = new Op(0x23);
    /** The product. */
    public static final Op PROD = new Op(0x24);
    /** And, bit by bit. */
    public static final Op BAND = new Op(0x28);
    /** Or, bit by bit. */
    public static final Op BOR = new Op(0x29);
    /** Exclusive or, bit by bit. */
    public static final Op BXOR = new Op(0x2a);
    /** And. */
    public static final Op LAND = new Op(0x30);
    /** Or. */
    public static final Op LOR = new Op(0x31);
    /** Exclusive or. */
    public static final Op LXOR = new Op(0x32);
    /** The smallest and its place. */
    public static final Op MINLOC = new Op(0x38);
    /** The largest and its place. */
    public static final Op MAXLOC = new Op(0x39);
    /** The operand of the origin (windows). */
    public static final Op REPLACE = new Op(0x3c);
    /** Nothing (windows). */
    public static final Op NO_OP = new Op(0x3d);
    /** No operation. */
    public static final Op OP_NULL = new Op(0x20);

    /** Processors of this host, for programs of MPJ Express. */
    public static final int NUM_OF_PROCESSORS = Runtime.getRuntime().availableProcessors();

    /** All ranks of the job. */
    public static final Intracomm COMM_WORLD = new Intracomm(WORLD_HANDLE);
    /** This rank alone. */
    public static final Intracomm COMM_SELF = new Intracomm(0x102);
    /** No communicator. */
    public static final Intracomm COMM_NULL = new Intracomm(CommCore.NULL);
    /** The group without ranks. */
    public static final Group GROUP_EMPTY = new Group(0x109);
    /** No group. */
    public static final Group GROUP_NULL = new Group(Group.NULL);
    /** No info. */
    public static final Info INFO_NULL = new Info(Info.NULL);
    /** What mpiexec was told. */
    public static final Info INFO_ENV = new Info(0x131);
    /** No request. */
    public static final Request REQUEST_NULL = new Request(Request.NULL, Holdings.NONE);
    /** Errors end the job. */
    public static final Errhandler ERRORS_ARE_FATAL = new Errhandler(0x141);
    /** Errors end the processes of the communicator. */
    public static final Errhandler ERRORS_ABORT = new Errhandler(0x142);
    /** Errors are thrown: the default in Java. */
    public static final Errhandler ERRORS_RETURN = new Errhandler(0x143);

    private MPI() {}

    /** The way to C, opened when it is first wanted. */
    private static final class Opened {
        static final Native LIBRARY = Library.open();
    }

    static Native library() {
        return Opened.LIBRARY;
    }

    /** C's functions, for a call that needs MPI to be running. */
    static Native live() {
        if (state != RUNNING && sessions == 0) {
            throw MPIException.wrong(ERR_OTHER, state == BEFORE ? "MPI.Init was not called yet" : "MPI.Finalize was called already");
        }
        return Opened.LIBRARY;
    }

    static void check(int rc) {
        if (rc != SUCCESS) {
            throw MPIException.of(Opened.LIBRARY, rc);
        }
    }

    static synchronized void session(int more) {
        sessions += more;
    }

    /** A call that gets a number. */
    interface Number {
        int call(Native c, long result);
    }

    static int number(Number call) {
        return (int) ask(call, 4);
    }

    static long large(Number call) {
        return ask(call, WORD);
    }

    private static long ask(Number call, int bytes) {
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int result = frame.push(WORD);
            check(call.call(c, frame.at(result)));
            return bytes == 4 ? frame.getInt(result) : frame.getLong(result);
        } finally {
            frame.reset(mark);
        }
    }

    /** Passes a handle to one of C's functions that set it to null. */
    static void freed(long handle, Number call) {
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            check(call.call(c, frame.longs(new long[] {handle})));
        } finally {
            frame.reset(mark);
        }
    }

    /** A call that gets a text and its length. */
    interface Text {
        int call(Native c, long text, long length);
    }

    static String name(Text call) {
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int text = frame.push(MAX_LIBRARY_VERSION_STRING + 1);
            int length = frame.push(WORD);
            check(call.call(c, frame.at(text), frame.at(length)));
            return frame.getText(text, frame.getInt(length));
        } finally {
            frame.reset(mark);
        }
    }

    /** Passes a text to C. */
    static void named(String name, Number call) {
        if (name == null) {
            throw MPIException.wrong(ERR_ARG, "the name is null");
        }
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            check(call.call(c, frame.text(name)));
        } finally {
            frame.reset(mark);
        }
    }

    /** Starts MPI; gives the arguments back. */
    public static String[] Init(String[] args) throws MPIException {
        InitThread(args, THREAD_SINGLE);
        return args;
    }

    /** Starts MPI for threads; what they may do. */
    public static int InitThread(String[] args, int required) throws MPIException {
        if (state != BEFORE) {
            throw MPIException.wrong(ERR_OTHER, state == RUNNING ? "MPI.Init was called already" : "MPI.Finalize was called already");
        }
        Native c = Opened.LIBRARY;
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int provided = frame.push(WORD);
            check(c.MPI_Init_thread(0, 0, required, frame.at(provided)));
            state = RUNNING;
            COMM_WORLD.setErrhandler(ERRORS_RETURN);
            COMM_SELF.setErrhandler(ERRORS_RETURN);
            Uncaught.watch(Thread.currentThread());
            return frame.getInt(provided);
        } finally {
            frame.reset(mark);
        }
    }

    /** Ends MPI. */
    public static void Finalize() throws MPIException {
        Native c = live();
        Op.freePairs();
        SHORT2.close();
        LONG2.close();
        check(c.MPI_Finalize());
        state = AFTER;
    }

    /** Whether MPI.Init was called. */
    public static boolean isInitialized() throws MPIException {
        return state != BEFORE;
    }

    /** Whether MPI.Init was called (mpiJava). */
    public static boolean Initialized() throws MPIException {
        return isInitialized();
    }

    /** Whether MPI.Finalize was called. */
    public static boolean isFinalized() throws MPIException {
        return state == AFTER;
    }

    /** Whether MPI.Finalize was called (mpiJava). */
    public static boolean Finalized() throws MPIException {
        return isFinalized();
    }

    /** What threads may do. */
    public static int queryThread() throws MPIException {
        return number((c, r) -> c.MPI_Query_thread(r));
    }

    /** Whether this thread called MPI.Init. */
    public static boolean isThreadMain() throws MPIException {
        return number((c, r) -> c.MPI_Is_thread_main(r)) != 0;
    }

    /** Seconds since a time in the past. */
    public static double wtime() throws MPIException {
        return Opened.LIBRARY.MPI_Wtime();
    }

    /** Seconds since a time in the past (mpiJava). */
    public static double Wtime() throws MPIException {
        return wtime();
    }

    /** Resolution of the clock in seconds. */
    public static double wtick() throws MPIException {
        return Opened.LIBRARY.MPI_Wtick();
    }

    /** Resolution of the clock in seconds (mpiJava). */
    public static double Wtick() throws MPIException {
        return wtick();
    }

    /** Name of this host. */
    public static String getProcessorName() throws MPIException {
        return name((c, text, length) -> c.MPI_Get_processor_name(text, length));
    }

    /** Name of this host (mpiJava). */
    public static String Get_processor_name() throws MPIException {
        return getProcessorName();
    }

    /** Version of the standard. */
    public static Version getVersion() {
        return new Version(VERSION, SUBVERSION);
    }

    /** Name and version of the library. */
    public static String getLibVersion() throws MPIException {
        Native c = Opened.LIBRARY;
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int text = frame.push(MAX_LIBRARY_VERSION_STRING + 1);
            int length = frame.push(WORD);
            check(c.MPI_Get_library_version(frame.at(text), frame.at(length)));
            return frame.getText(text, frame.getInt(length));
        } finally {
            frame.reset(mark);
        }
    }

    /** Whether calls go through JNI or java.lang.foreign. */
    public static String getNative() {
        return Opened.LIBRARY.getClass().getSimpleName().toLowerCase(java.util.Locale.ROOT);
    }

    /** Says how much of what follows a profiler sees. */
    public static void pControl(int level, Object more) throws MPIException {
        check(live().MPI_Pcontrol(level));
    }

    /** Gives memory for buffered sends. */
    public static synchronized void attachBuffer(ByteBuffer buffer) throws MPIException {
        Native c = live();
        check(c.MPI_Buffer_attach(Memory.at(c, given(buffer), 0, 0, buffer.capacity()), buffer.capacity()));
        attached = buffer;
    }

    /** Says how much memory buffered sends need; MPI has memory of its own. */
    public static synchronized void attachBuffer(byte[] buffer) throws MPIException {
        attachBuffer(newByteBuffer(given(buffer).length));
        attachedArray = buffer;
    }

    /** Waits until buffered sends have left; the array that was attached, or null. */
    public static synchronized byte[] detachBuffer() throws MPIException {
        Native c = live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            check(c.MPI_Buffer_detach(frame.at(frame.push(WORD)), frame.at(frame.push(WORD))));
        } finally {
            frame.reset(mark);
        }
        byte[] array = attachedArray;
        attached = null;
        attachedArray = null;
        return array;
    }

    /** Says how much memory buffered sends need (mpiJava). */
    public static void Buffer_attach(byte[] buffer) throws MPIException {
        attachBuffer(buffer);
    }

    /** Says how much memory buffered sends need, for programs that pass a buffer, be it in the heap. */
    public static void Buffer_attach(ByteBuffer buffer) throws MPIException {
        attachBuffer(newByteBuffer(given(buffer).capacity()));
    }

    /** Waits until buffered sends have left (mpiJava). */
    public static byte[] Buffer_detach() throws MPIException {
        return detachBuffer();
    }

    /** A direct buffer of bytes in the machine's order. */
    public static ByteBuffer newByteBuffer(int capacity) {
        if (capacity < 0) {
            throw MPIException.wrong(ERR_COUNT, "a buffer of " + capacity + " elements is wanted");
        }
        return ByteBuffer.allocateDirect(capacity).order(ByteOrder.nativeOrder());
    }

    private static ByteBuffer wide(int capacity, int width) {
        return newByteBuffer(Math.multiplyExact(capacity, width));
    }

    /** A direct buffer of chars. */
    public static CharBuffer newCharBuffer(int capacity) {
        return wide(capacity, 2).asCharBuffer();
    }

    /** A direct buffer of shorts. */
    public static ShortBuffer newShortBuffer(int capacity) {
        return wide(capacity, 2).asShortBuffer();
    }

    /** A direct buffer of ints. */
    public static IntBuffer newIntBuffer(int capacity) {
        return wide(capacity, 4).asIntBuffer();
    }

    /** A direct buffer of longs. */
    public static LongBuffer newLongBuffer(int capacity) {
        return wide(capacity, 8).asLongBuffer();
    }

    /** A direct buffer of floats. */
    public static FloatBuffer newFloatBuffer(int capacity) {
        return wide(capacity, 4).asFloatBuffer();
    }

    /** A direct buffer of doubles. */
    public static DoubleBuffer newDoubleBuffer(int capacity) {
        return wide(capacity, 8).asDoubleBuffer();
    }

    private static <T> T given(T buffer) {
        return MPIException.given(buffer, ERR_BUFFER, "buffer");
    }

    private static <T extends java.nio.Buffer> T from(T copy, int offset) {
        copy.clear();
        if (offset < 0 || offset > copy.limit()) {
            throw MPIException.wrong(ERR_ARG, "the offset is " + offset + ", the buffer has " + copy.limit() + " elements");
        }
        copy.position(offset);
        return copy;
    }

    /** The part of a buffer from an offset on. */
    public static ByteBuffer slice(ByteBuffer buf, int offset) {
        return from(given(buf).duplicate(), offset).slice().order(ByteOrder.nativeOrder());
    }

    /** The part of a buffer from an offset on. */
    public static CharBuffer slice(CharBuffer buf, int offset) {
        return from(given(buf).duplicate(), offset).slice();
    }

    /** The part of a buffer from an offset on. */
    public static ShortBuffer slice(ShortBuffer buf, int offset) {
        return from(given(buf).duplicate(), offset).slice();
    }

    /** The part of a buffer from an offset on. */
    public static IntBuffer slice(IntBuffer buf, int offset) {
        return from(given(buf).duplicate(), offset).slice();
    }

    /** The part of a buffer from an offset on. */
    public static LongBuffer slice(LongBuffer buf, int offset) {
        return from(given(buf).duplicate(), offset).slice();
    }

    /** The part of a buffer from an offset on. */
    public static FloatBuffer slice(FloatBuffer buf, int offset) {
        return from(given(buf).duplicate(), offset).slice();
    }

    /** The part of a buffer from an offset on. */
    public static DoubleBuffer slice(DoubleBuffer buf, int offset) {
        return from(given(buf).duplicate(), offset).slice();
    }
}
