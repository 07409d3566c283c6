import java.lang.reflect.Method;
import mpi.*;

/** Memory segments as buffers (Java 22 and later); by reflection, because the compiler of the tests may be older. */
public class Segments {
    public static void main(String[] args) throws Exception {
        Check.chapter(args, () -> {
            Class<?> arena = Class.forName("java.lang.foreign.Arena");
            Class<?> segment = Class.forName("java.lang.foreign.MemorySegment");
            Object global = arena.getMethod("global").invoke(null);
            Method allocate = arena.getMethod("allocate", long.class, long.class);
            Object a = allocate.invoke(global, 64L, 8L);
            Object b = allocate.invoke(global, 64L, 8L);
            java.nio.ByteBuffer in = ((java.nio.ByteBuffer) segment.getMethod("asByteBuffer").invoke(a)).order(java.nio.ByteOrder.nativeOrder());
            java.nio.ByteBuffer out = ((java.nio.ByteBuffer) segment.getMethod("asByteBuffer").invoke(b)).order(java.nio.ByteOrder.nativeOrder());
            in.putDouble(8, 4.5);
            MPI.COMM_SELF.sendRecv(a, 8, MPI.DOUBLE, 0, 0, b, 8, MPI.DOUBLE, 0, 0);
            Check.equal(out.getDouble(8), 4.5);
            Request r = MPI.COMM_SELF.iRecv(b, 1, MPI.DOUBLE, 0, 0);
            MPI.COMM_SELF.Send(a, 1, 1, MPI.DOUBLE, 0, 0);
            r.waitFor();
            Check.equal(out.getDouble(0), 4.5);
            Object heap = segment.getMethod("ofArray", byte[].class).invoke(null, (Object) new byte[64]);
            Object read = segment.getMethod("asReadOnly").invoke(b);
            Check.refused(MPI.ERR_BUFFER, "heap", () -> MPI.COMM_SELF.send(heap, 1, MPI.BYTE, 0, 0));
            Check.refused(MPI.ERR_BUFFER, "read-only", () -> MPI.COMM_SELF.recv(read, 1, MPI.BYTE, 0, 0));
            Check.refused(MPI.ERR_COUNT, "it has 64", () -> MPI.COMM_SELF.send(a, 9, MPI.DOUBLE, 0, 0));
        });
    }
}
