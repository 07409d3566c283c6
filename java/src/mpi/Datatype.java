package mpi;

import java.lang.reflect.Array;
import java.util.concurrent.ConcurrentHashMap;
import mpi.internal.Lending;
import mpi.internal.Native;

/** A datatype. Every datatype has a base type, the type of the Java array that its messages lie in. */
public class Datatype implements Freeable, Cloneable {
    static final int BASE_BYTE = 1;
    static final int BASE_CHAR = 2;
    static final int BASE_SHORT = 3;
    static final int BASE_BOOLEAN = 4;
    static final int BASE_INT = 5;
    static final int BASE_LONG = 6;
    static final int BASE_FLOAT = 7;
    static final int BASE_DOUBLE = 8;
    static final int BASE_OBJECT = 9;
    static final long NULL = 0x200;
    private static final long UNKNOWN = -1;
    private static final int[] WIDTHS = {1, 1, 2, 2, 1, 4, 8, 4, 8, 1};
    private static final String[] NAMES = {"", "byte", "char", "short", "boolean", "int", "long", "float", "double", "Object"};
    private static final ConcurrentHashMap<Long, Datatype> KNOWN = new ConcurrentHashMap<>();

    int base;
    int baseSize;
    volatile long handle;
    private final boolean predefined;
    private final Datatype single;
    private final boolean plain;
    private long size;
    private long lower;
    private long extent;
    private long trueLower;
    private long trueExtent;
    private final Attributes attributes = new Attributes();
    /** The datatype of arrays that are lent to C; 0 if there is none. */
    private long lent = UNKNOWN;

    /** A type of the standard whose elements lie one behind another. */
    Datatype(long handle, int base, int size) {
        this.handle = handle;
        this.base = base;
        this.size = size;
        this.extent = size;
        this.trueExtent = size;
        baseSize = WIDTHS[base];
        predefined = true;
        single = null;
        plain = base != BASE_OBJECT;
        KNOWN.put(handle, this);
    }

    private Datatype(long handle, int base) {
        this.handle = handle;
        this.base = base;
        predefined = false;
        single = null;
        baseSize = WIDTHS[base];
        plain = false;
        measure();
        KNOWN.put(handle, this);
    }

    /** The struct types of the standard (MPI_SHORT_INT and others), whose base type is byte. */
    static Datatype pair(long handle, int size, int extent) {
        return new Datatype(handle, size, extent, handle == MPI.SHORT_INT_HANDLE ? extent : size);
    }

    private Datatype(long handle, long size, long extent, long trueExtent) {
        this.handle = handle;
        base = BASE_BYTE;
        baseSize = 1;
        predefined = true;
        single = null;
        plain = false;
        this.size = size;
        this.extent = extent;
        this.trueExtent = trueExtent;
        KNOWN.put(handle, this);
    }

    /** Two elements of a type, which C does not have by itself: made when it is first used. */
    private Datatype(Datatype single) {
        handle = NULL;
        this.single = single;
        base = single.base;
        baseSize = single.baseSize;
        predefined = true;
        plain = false;
        size = 2 * single.size;
        extent = size;
        trueExtent = size;
    }

    static Datatype twice(Datatype single) {
        return new Datatype(single);
    }

    /** Whether C has no operations for this pair of a value and its place. */
    boolean isPairOfJava() {
        return single != null;
    }

    private synchronized void make() {
        if (handle == NULL) {
            Datatype made = createContiguous(2, single);
            made.commit();
            KNOWN.put(made.handle, this);
            handle = made.handle;
        }
    }

    static Datatype derived(long handle, int base) {
        return new Datatype(handle, base);
    }

    /** Makes byte the base type: the array of such messages is {@code byte[]}. */
    Datatype ofBytes() {
        base = BASE_BYTE;
        baseSize = 1;
        return this;
    }

    private void measure() {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int a = frame.push(16);
            int b = frame.push(16);
            MPI.check(c.MPI_Type_get_extent(handle, frame.at(a), frame.at(a + 8)));
            lower = frame.getLong(a);
            extent = frame.getLong(a + 8);
            MPI.check(c.MPI_Type_get_true_extent(handle, frame.at(b), frame.at(b + 8)));
            trueLower = frame.getLong(b);
            trueExtent = frame.getLong(b + 8);
            MPI.check(c.MPI_Type_size_c(handle, frame.at(a)));
            size = frame.getLong(a);
        } finally {
            frame.reset(mark);
        }
    }

    /** The datatype of Java with a handle that C passes. */
    static Datatype known(long handle) {
        Datatype type = KNOWN.get(handle);
        if (type == null) {
            throw MPIException.wrong(MPI.ERR_TYPE, "C passes a datatype that Java has not made");
        }
        return type;
    }

    /** Handle of a datatype that a program passes. */
    static long handle(Datatype type) {
        return given(type).live();
    }

    static String baseName(int base) {
        return NAMES[base];
    }

    boolean isPlain() {
        return plain;
    }

    /** Handle of this type for arrays that are lent to C (Lending); 0 if they are copied. Only for what {@link #isPlain} says. */
    long lent() {
        if (lent == UNKNOWN) {
            // C takes any byte, Java's boolean only 0 and 1
            lent = plain && base != BASE_BOOLEAN ? Lending.typeOf(handle) : 0;
        }
        return lent;
    }

    /** Whether elements lie one behind another without gaps. */
    boolean isDense() {
        return size == extent && trueLower == 0 && trueExtent == size;
    }

    long size() {
        return size;
    }

    long extent() {
        return extent;
    }

    long trueLower() {
        return trueLower;
    }

    long trueExtent() {
        return trueExtent;
    }

    long live() {
        if (handle == NULL && single != null) {
            make();
        }
        if (handle == NULL) {
            throw MPIException.wrong(MPI.ERR_TYPE, base == BASE_OBJECT ? "this call does not pass objects"
                : "the datatype is null or was freed");
        }
        return handle;
    }

    private int number(long value, String what) {
        if (value != (int) value) {
            throw MPIException.wrong(MPI.ERR_VALUE_TOO_LARGE, what + " is " + value + ", more than an int holds");
        }
        return (int) value;
    }

    /** Bytes from the lower to the upper bound. */
    public int getExtent() throws MPIException {
        live();
        return number(extent, "the extent");
    }

    /** Lower bound in bytes. */
    public int getLb() throws MPIException {
        live();
        return number(lower, "the lower bound");
    }

    /** Bytes from the first to the last byte of data. */
    public int getTrueExtent() throws MPIException {
        live();
        return number(trueExtent, "the true extent");
    }

    /** Place of the first byte of data. */
    public int getTrueLb() throws MPIException {
        live();
        return number(trueLower, "the true lower bound");
    }

    /** Bytes of data of an element in a message. */
    public int getSize() throws MPIException {
        live();
        return number(size, "the size");
    }

    /** Extent in elements of the base type (mpiJava). */
    public int Extent() throws MPIException {
        return getExtent() / baseSize;
    }

    /** Size in elements of the base type (mpiJava). */
    public int Size() throws MPIException {
        return getSize() / baseSize;
    }

    /** Lower bound in elements of the base type (mpiJava). */
    public int Lb() throws MPIException {
        return getLb() / baseSize;
    }

    /** Upper bound in elements of the base type (mpiJava). */
    public int Ub() throws MPIException {
        return (int) ((lower + extent) / baseSize);
    }

    private interface Creation {
        int call(Native c, Frame frame, long result);
    }

    private static Datatype create(int base, Creation creation) {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int result = frame.push(8);
            MPI.check(creation.call(c, frame, frame.at(result)));
            return derived(frame.getLong(result), base);
        } finally {
            frame.reset(mark);
        }
    }

    private static long[] handles(Datatype[] types) {
        long[] handles = new long[types.length];
        for (int i = 0; i < types.length; i++) {
            handles[i] = types[i].live();
        }
        return handles;
    }

    private static void same(Object a, Object b, String what) {
        if (a == null || b == null) {
            throw MPIException.wrong(MPI.ERR_ARG, what + " must not be null");
        }
        if (Array.getLength(a) != Array.getLength(b)) {
            throw MPIException.wrong(MPI.ERR_ARG, what + " have " + Array.getLength(a) + " and " + Array.getLength(b)
                + " elements, they must be as many");
        }
    }

    private static Datatype given(Datatype type) {
        return MPIException.given(type, MPI.ERR_TYPE, "datatype");
    }

    private static <T> T numbers(T array) {
        return MPIException.given(array, MPI.ERR_ARG, "array of block lengths, displacements or types");
    }

    private static long[] times(int[] values, int factor) {
        long[] bytes = new long[numbers(values).length];
        for (int i = 0; i < values.length; i++) {
            bytes[i] = (long) values[i] * factor;
        }
        return bytes;
    }

    /** {@code MPI_Type_contiguous}. */
    public static Datatype createContiguous(int count, Datatype old) throws MPIException {
        return create(given(old).base, (c, f, r) -> c.MPI_Type_contiguous(count, old.live(), r));
    }

    /** {@code MPI_Type_vector}; the stride is in elements of {@code old}. */
    public static Datatype createVector(int count, int blockLength, int stride, Datatype old) throws MPIException {
        return create(given(old).base, (c, f, r) -> c.MPI_Type_vector(count, blockLength, stride, old.live(), r));
    }

    /** {@code MPI_Type_create_hvector}; the stride is in bytes. */
    public static Datatype createHVector(int count, int blockLength, int stride, Datatype old) throws MPIException {
        return create(given(old).base, (c, f, r) -> c.MPI_Type_create_hvector(count, blockLength, stride, old.live(), r));
    }

    /** {@code MPI_Type_indexed}; displacements are in elements of {@code old}. */
    public static Datatype createIndexed(int[] blockLengths, int[] displacements, Datatype old) throws MPIException {
        same(blockLengths, displacements, "block lengths and displacements");
        return create(given(old).base, (c, f, r) ->
            c.MPI_Type_indexed(blockLengths.length, f.ints(blockLengths), f.ints(displacements), old.live(), r));
    }

    /** {@code MPI_Type_create_hindexed}; displacements are in bytes. */
    public static Datatype createHIndexed(int[] blockLengths, int[] displacements, Datatype old) throws MPIException {
        return indexed(blockLengths, times(displacements, 1), old);
    }

    private static Datatype indexed(int[] blockLengths, long[] displacements, Datatype old) {
        same(blockLengths, displacements, "block lengths and displacements");
        return create(given(old).base, (c, f, r) ->
            c.MPI_Type_create_hindexed(blockLengths.length, f.ints(blockLengths), f.longs(displacements), old.live(), r));
    }

    /** {@code MPI_Type_create_indexed_block}; displacements are in elements of {@code old}. */
    public static Datatype createIndexedBlock(int blockLength, int[] displacements, Datatype old) throws MPIException {
        numbers(displacements);
        return create(given(old).base, (c, f, r) ->
            c.MPI_Type_create_indexed_block(displacements.length, blockLength, f.ints(displacements), old.live(), r));
    }

    /** {@code MPI_Type_create_struct}; displacements are in bytes. All types have one base type, or the base is byte. */
    public static Datatype createStruct(int[] blockLengths, int[] displacements, Datatype[] types) throws MPIException {
        return struct(blockLengths, times(displacements, 1), types);
    }

    private static Datatype struct(int[] blockLengths, long[] displacements, Datatype[] types) {
        same(blockLengths, displacements, "block lengths and displacements");
        same(blockLengths, types, "block lengths and types");
        int base = types.length == 0 ? BASE_BYTE : given(types[0]).base;
        for (Datatype type : types) {
            if (given(type).base != base) {
                base = BASE_BYTE;
            }
        }
        return create(base, (c, f, r) -> c.MPI_Type_create_struct(types.length, f.ints(blockLengths), f.longs(displacements),
            f.longs(handles(types)), r));
    }

    /** {@code MPI_Type_create_subarray}. */
    public static Datatype createSubarray(int[] sizes, int[] subsizes, int[] starts, int order, Datatype old) throws MPIException {
        same(sizes, subsizes, "sizes and subsizes");
        same(sizes, starts, "sizes and starts");
        return create(given(old).base, (c, f, r) -> c.MPI_Type_create_subarray(sizes.length, f.ints(sizes), f.ints(subsizes),
            f.ints(starts), order, old.live(), r));
    }

    /** {@code MPI_Type_create_darray}. */
    public static Datatype createDarray(int size, int rank, int[] gsizes, int[] distribs, int[] dargs, int[] psizes, int order,
        Datatype old) throws MPIException {
        same(gsizes, distribs, "sizes and distributions");
        same(gsizes, dargs, "sizes and distribution arguments");
        same(gsizes, psizes, "sizes and process counts");
        return create(given(old).base, (c, f, r) -> c.MPI_Type_create_darray(size, rank, gsizes.length, f.ints(gsizes),
            f.ints(distribs), f.ints(dargs), f.ints(psizes), order, old.live(), r));
    }

    /** {@code MPI_Type_create_resized}; bounds are in bytes. */
    public static Datatype createResized(Datatype old, int lb, int extent) throws MPIException {
        return create(given(old).base, (c, f, r) -> c.MPI_Type_create_resized(old.live(), lb, extent, r));
    }

    /** {@code MPI_Type_contiguous} (mpiJava). */
    public static Datatype Contiguous(int count, Datatype old) throws MPIException {
        return createContiguous(count, old);
    }

    /** {@code MPI_Type_vector} (mpiJava). */
    public static Datatype Vector(int count, int blockLength, int stride, Datatype old) throws MPIException {
        return createVector(count, blockLength, stride, old);
    }

    /** {@code MPI_Type_create_hvector} (mpiJava); the stride is in elements of the base type. */
    public static Datatype Hvector(int count, int blockLength, int stride, Datatype old) throws MPIException {
        return createHVector(count, blockLength, stride * old.baseSize, old);
    }

    /** {@code MPI_Type_indexed} (mpiJava). */
    public static Datatype Indexed(int[] blockLengths, int[] displacements, Datatype old) throws MPIException {
        return createIndexed(blockLengths, displacements, old);
    }

    /** {@code MPI_Type_create_hindexed} (mpiJava); displacements are in elements of the base type. */
    public static Datatype Hindexed(int[] blockLengths, int[] displacements, Datatype old) throws MPIException {
        return indexed(blockLengths, times(displacements, given(old).baseSize), old);
    }

    /** {@code MPI_Type_create_struct} (mpiJava); displacements are in elements of the one base type. */
    public static Datatype Struct(int[] blockLengths, int[] displacements, Datatype[] types) throws MPIException {
        if (java.util.Arrays.stream(numbers(types)).anyMatch(t -> t == MPI.LB || t == MPI.UB)) {
            return bounded(blockLengths, displacements, types);
        }
        for (Datatype type : types) {
            if (given(type).base != given(types[0]).base) {
                throw MPIException.wrong(MPI.ERR_TYPE, "the types of a struct have the base types " + baseName(types[0].base)
                    + " and " + baseName(type.base) + ", an array has only one");
            }
        }
        return struct(blockLengths, times(displacements, types.length == 0 ? 1 : types[0].baseSize), types);
    }

    /** A struct of mpiJava whose bounds are given among its types. */
    private static Datatype bounded(int[] blockLengths, int[] displacements, Datatype[] types) {
        int[] places = java.util.stream.IntStream.range(0, types.length)
            .filter(i -> types[i] != MPI.LB && types[i] != MPI.UB).toArray();
        Datatype inner = Struct(at(blockLengths, places), at(displacements, places),
            java.util.Arrays.stream(places).mapToObj(i -> types[i]).toArray(Datatype[]::new));
        long lower = inner.lower;
        long upper = inner.lower + inner.extent;
        for (int i = 0; i < types.length; i++) {
            long bound = (long) displacements[i] * inner.baseSize;
            lower = types[i] == MPI.LB ? bound : lower;
            upper = types[i] == MPI.UB ? bound : upper;
        }
        Datatype result = createResized(inner, Math.toIntExact(lower), Math.toIntExact(upper - lower));
        inner.free();
        return result;
    }

    private static int[] at(int[] values, int[] places) {
        return java.util.Arrays.stream(places).map(i -> values[i]).toArray();
    }

    /** {@code MPI_Type_commit}. */
    public void commit() throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            MPI.check(c.MPI_Type_commit(frame.longs(new long[] {live()})));
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Type_commit} (mpiJava). */
    public void Commit() throws MPIException {
        commit();
    }

    /** {@code MPI_Type_dup}. */
    public Datatype dup() throws MPIException {
        Datatype copy = create(base, (c, f, r) -> c.MPI_Type_dup(live(), r));
        copy.attributes.copyFrom(attributes);
        return copy;
    }

    /** {@code MPI_Type_dup}. */
    @Override
    public Datatype clone() {
        return dup();
    }

    @Override
    public void free() throws MPIException {
        if (predefined) {
            throw MPIException.wrong(MPI.ERR_TYPE, "a datatype of the standard cannot be freed");
        }
        long old = live();
        MPI.freed(old, (c, at) -> c.MPI_Type_free(at));
        KNOWN.remove(old);
        handle = NULL;
    }

    @Override
    public void close() throws MPIException {
        if (handle == NULL) {
            return;
        }
        if (single != null) {
            KNOWN.remove(handle);
            MPI.freed(handle, (c, at) -> c.MPI_Type_free(at));
            handle = NULL;
        } else if (!predefined) {
            free();
        }
    }

    /** {@code MPI_Type_free} (mpiJava). */
    public void Free() throws MPIException {
        free();
    }

    /** Whether this is the null datatype: it was freed. */
    public boolean isNull() {
        return handle == NULL && base != BASE_OBJECT && single == null;
    }

    /** {@code MPI_Type_set_name}. */
    public void setName(String name) throws MPIException {
        MPI.named(name, (c, at) -> c.MPI_Type_set_name(live(), at));
    }

    /** {@code MPI_Type_get_name}. */
    public String getName() throws MPIException {
        return MPI.name((c, at, length) -> c.MPI_Type_get_name(live(), at, length));
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

    /** An attribute, or null. */
    public Object getAttr(int keyval) throws MPIException {
        return attributes.get(keyval);
    }

    /** Removes an attribute. */
    public void deleteAttr(int keyval) throws MPIException {
        attributes.delete(keyval);
    }
}
