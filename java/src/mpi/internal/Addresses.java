package mpi.internal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.function.ToLongFunction;

/**
 * Addresses of direct buffers without a call of C, for JNI: from the field that JNI reads itself. Of Javas without
 * java.lang.foreign only, where that is allowed; elsewhere, and if the answer is not JNI's, there is none.
 */
final class Addresses {
    private static final int FOREIGN_SINCE = 22;

    private Addresses() {}

    /** A handle from a buffer to its address, or null. */
    static MethodHandle find(ToLongFunction<Buffer> jni) {
        if (Runtime.version().feature() >= FOREIGN_SINCE) {
            return null;
        }
        try {
            MethodHandle field = field();
            ByteBuffer whole = ByteBuffer.allocateDirect(64);
            for (Buffer sample : new Buffer[] {whole, whole.slice(8, 16), whole.slice(16, 8).asDoubleBuffer()}) {
                if ((long) field.invokeExact(sample) != jni.applyAsLong(sample)) {
                    return null;
                }
            }
            return field;
        } catch (Throwable t) { // whatever this Java refuses: JNI does it
            return null;
        }
    }

    private static MethodHandle field() throws ReflectiveOperationException {
        Class<?> type = Class.forName("sun.misc.Unsafe");
        Field only = type.getDeclaredField("theUnsafe");
        only.setAccessible(true);
        Object unsafe = only.get(null);
        Field address = Buffer.class.getDeclaredField("address");
        long offset = (long) type.getMethod("objectFieldOffset", Field.class).invoke(unsafe, address);
        MethodHandle get = MethodHandles.publicLookup()
            .findVirtual(type, "getLong", MethodType.methodType(long.class, Object.class, long.class)).bindTo(unsafe);
        return MethodHandles.insertArguments(get, 1, offset).asType(MethodType.methodType(long.class, Buffer.class));
    }
}
