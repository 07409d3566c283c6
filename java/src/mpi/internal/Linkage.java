package mpi.internal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The way to C through java.lang.foreign, which is named by reflection so that one class file serves Java 17 and later.
 * Reflection is for setting up only: a call is a constant method handle on integers, because the System V ABI passes an
 * address as it passes an integer of 64 bits.
 */
final class Linkage {
    private static final String PACKAGE = "java.lang.foreign.";
    private static final Class<?> SEGMENT = named("MemorySegment");
    private static final Class<?> DESCRIPTOR = named("FunctionDescriptor");
    private static final Class<?> LAYOUT = named("MemoryLayout");
    private static final Class<?> ARENA = named("Arena");
    private static final Class<?> LOOKUP = named("SymbolLookup");
    private static final Class<?> LINKER = named("Linker");
    private static final Class<?> OPTIONS = named("Linker$Option").arrayType();
    private static final Object NATIVE = call(LINKER, "nativeLinker", null);
    private static final Object GLOBAL = call(ARENA, "global", null);
    private static final Object NO_OPTIONS = Array.newInstance(OPTIONS.componentType(), 0);
    private static final ConcurrentHashMap<Integer, Long> STUBS = new ConcurrentHashMap<>();
    private static Object library;
    private static MethodHandle preloaded;

    private Linkage() {}

    /** Loads libmpi_abi; throws the exception of java.lang.foreign if the file is missing or not a library. */
    static void open(String path) {
        library = call(LOOKUP, "libraryLookup", null, new Class<?>[] {String.class, ARENA}, path, GLOBAL);
        Object standard = call(LINKER, "defaultLookup", NATIVE);
        Object dlsym = find(standard, "dlsym").orElseThrow();
        preloaded = handle(dlsym, long.class, long.class, long.class);
    }

    /** Tells the library how to ask where the program called. */
    static void tellPlaces() {
        find(library, "kw_MPI_Language").ifPresent(Linkage::tellPlaces);
    }

    private static void tellPlaces(Object function) {
        MethodHandle tell = handle(function, int.class, long.class, long.class);
        long here = upcall(Places.class, "here", null, long.class);
        long write = upcall(Places.class, "write", null, long.class, long.class, long.class, long.class);
        try {
            int rc = (int) tell.invokeExact(here, write);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    private static Class<?> named(String name) {
        try {
            return Class.forName(PACKAGE + name);
        } catch (ClassNotFoundException e) {
            throw new UnsupportedOperationException("this Java has no " + PACKAGE + name, e);
        }
    }

    private static Object call(Class<?> type, String name, Object self, Class<?>[] types, Object... values) {
        try {
            return type.getMethod(name, types).invoke(self, values);
        } catch (ReflectiveOperationException e) {
            throw new UnsupportedOperationException(type.getName() + "." + name + ": " + e.getCause(), e);
        }
    }

    private static Object call(Class<?> type, String name, Object self) {
        return call(type, name, self, new Class<?>[0]);
    }

    private static Optional<?> find(Object lookup, String name) {
        return (Optional<?>) call(LOOKUP, "find", lookup, new Class<?>[] {String.class}, name);
    }

    private static Object segmentAt(long address) {
        return call(SEGMENT, "ofAddress", null, new Class<?>[] {long.class}, address);
    }

    private static Object layout(Class<?> type) {
        String name = "JAVA_" + type.getName().toUpperCase(java.util.Locale.ROOT);
        try {
            return named("ValueLayout").getField(name).get(null);
        } catch (ReflectiveOperationException e) {
            throw new UnsupportedOperationException(name, e);
        }
    }

    private static Object descriptor(Class<?> returns, Class<?>... parameters) {
        Object layouts = Array.newInstance(LAYOUT, parameters.length);
        for (int i = 0; i < parameters.length; i++) {
            Array.set(layouts, i, layout(parameters[i]));
        }
        Class<?> array = LAYOUT.arrayType();
        return returns == void.class
            ? call(DESCRIPTOR, "ofVoid", null, new Class<?>[] {array}, layouts)
            : call(DESCRIPTOR, "of", null, new Class<?>[] {LAYOUT, array}, layout(returns), layouts);
    }

    private static MethodHandle handle(Object symbol, Class<?> returns, Class<?>... parameters) {
        return (MethodHandle) call(LINKER, "downcallHandle", NATIVE, new Class<?>[] {SEGMENT, DESCRIPTOR, OPTIONS}, symbol,
            descriptor(returns, parameters), NO_OPTIONS);
    }

    /** A C function: first as libraries before MPI's have it (the recorder of mpiexec's --profile), as a linker would. */
    static MethodHandle function(String name, Class<?> returns, Class<?>... parameters) {
        long before = 0;
        ByteBuffer word = ByteBuffer.allocateDirect(name.length() + 1);
        word.put(name.getBytes(java.nio.charset.StandardCharsets.US_ASCII)).put((byte) 0).flip();
        try {
            before = (long) preloaded.invokeExact(0L, (long) address().invokeExact((Buffer) word));
        } catch (Throwable t) {
            throw unexpected(t);
        }
        Object symbol = before != 0 ? segmentAt(before) : find(library, name)
            .orElseThrow(() -> new UnsatisfiedLinkError("the MPI library has no function " + name));
        return handle(symbol, returns, parameters);
    }

    /** Address of a direct buffer at its position. */
    static MethodHandle address() {
        try {
            MethodHandles.Lookup lookup = MethodHandles.publicLookup();
            MethodHandle of = lookup.findStatic(SEGMENT, "ofBuffer", MethodType.methodType(SEGMENT, Buffer.class));
            MethodHandle at = lookup.findVirtual(SEGMENT, "address", MethodType.methodType(long.class));
            return MethodHandles.filterReturnValue(of, at);
        } catch (ReflectiveOperationException e) {
            throw new UnsupportedOperationException("java.lang.foreign.MemorySegment", e);
        }
    }

    /** Bytes that {@code elements} of a buffer take. */
    static long bytes(Buffer buffer, int elements) {
        return (long) elements << Widths.shift(buffer);
    }

    static ByteBuffer memory(long address, long bytes) {
        Object segment = call(SEGMENT, "reinterpret", segmentAt(address), new Class<?>[] {long.class}, bytes);
        return (ByteBuffer) call(SEGMENT, "asByteBuffer", segment);
    }

    static boolean isSegment(Object object) {
        return SEGMENT.isInstance(object);
    }

    static ByteBuffer segment(Object object) {
        return (ByteBuffer) call(SEGMENT, "asByteBuffer", object);
    }

    /** One function of C for each number, made when it is first wanted. */
    static long reduction(int number) {
        return STUBS.computeIfAbsent(number, Linkage::stub);
    }

    private static long stub(int number) {
        return upcall(Linkage.class, "reduce", number, void.class, long.class, long.class, long.class, long.class);
    }

    /** Address of a function of C that calls a static method, with a first argument of its own unless that is null. */
    private static long upcall(Class<?> type, String name, Integer first, Class<?> returns, Class<?>... words) {
        try {
            MethodType called = MethodType.methodType(returns, words);
            MethodHandle target = MethodHandles.lookup().findStatic(type, name,
                first == null ? called : called.insertParameterTypes(0, int.class));
            Object segment = call(LINKER, "upcallStub", NATIVE, new Class<?>[] {MethodHandle.class, DESCRIPTOR, ARENA, OPTIONS},
                first == null ? target : MethodHandles.insertArguments(target, 0, first), descriptor(returns, words), GLOBAL,
                NO_OPTIONS);
            return (long) call(SEGMENT, "address", segment);
        } catch (ReflectiveOperationException e) {
            throw new UnsupportedOperationException("no function for C", e);
        }
    }

    private static void reduce(int number, long in, long inOut, long count, long type) {
        Callbacks.reduce(number, in, inOut, memory(count, 4).order(java.nio.ByteOrder.nativeOrder()).getInt(0),
            memory(type, 8).order(java.nio.ByteOrder.nativeOrder()).getLong(0));
    }

    /** What a call of C throws: errors as they are; nothing else can come. */
    static RuntimeException unexpected(Throwable t) {
        if (t instanceof Error e) {
            throw e;
        }
        return t instanceof RuntimeException e ? e : new IllegalStateException(Arrays.toString(t.getStackTrace()), t);
    }
}
