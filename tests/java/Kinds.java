import java.nio.ByteBuffer;
import mpi.*;

/** Derived datatypes and structs, their bounds, and messages of them from arrays and buffers. */
public class Kinds {
    static final Intracomm SELF = MPI.COMM_SELF;

    /** A field of each kind. */
    static class Particle extends Struct {
        final int kind = addByte();
        final int place = addDouble(3);
        final int count = addInt();
        final int name = addChar(4);

        @Override
        protected Data newData() {
            return new Data();
        }

        class Data extends Struct.Data {
            double place(int i) {
                return getDouble(place, i);
            }

            int count() {
                return getInt(count);
            }

            void set(byte k, double x, int n, char c) {
                putByte(kind, k);
                for (int i = 0; i < 3; i++) {
                    putDouble(place, i, x + i);
                }
                putInt(count, n);
                putChar(name, 3, c);
            }

            char last() {
                return getChar(name, 3);
            }
        }
    }

    static void self(Object out, int n, Datatype type, Object in, int m, Datatype as) {
        SELF.sendRecv(out, n, type, 0, 0, in, m, as, 0, 0);
    }

    public static void main(String[] args) throws Exception {
        Check.chapter(args, () -> {
            derived();
            structs();
            complex();
            Check.equal(MPI.SHORT_INT.getExtent(), 8);
            Check.equal(MPI.DOUBLE_INT.getSize(), 12);
            Check.equal(MPI.longInt.getExtent(), MPI.LONG_INT.getExtent());
        });
    }

    static void derived() throws Exception {
        int[] source = new int[24];
        for (int i = 0; i < 24; i++) {
            source[i] = i;
        }
        try (Datatype pair = Datatype.createContiguous(2, MPI.INT); Datatype column = Datatype.createVector(4, 1, 6, MPI.INT);
            Datatype some = Datatype.createIndexed(new int[] {1, 2}, new int[] {5, 1}, MPI.INT);
            Datatype byBytes = Datatype.createHIndexed(new int[] {1, 1}, new int[] {4, 12}, MPI.INT);
            Datatype block = Datatype.createIndexedBlock(2, new int[] {0, 4}, MPI.INT);
            Datatype square = Datatype.createSubarray(new int[] {4, 6}, new int[] {2, 2}, new int[] {1, 3}, MPI.ORDER_C, MPI.INT);
            Datatype wide = Datatype.createResized(MPI.INT, 0, 12); Datatype back = Datatype.createHVector(3, 1, -4, MPI.INT)) {
            for (Datatype t : new Datatype[] {pair, column, some, byBytes, block, square, wide, back}) {
                t.commit();
            }
            int[] in = new int[4];
            self(source, 2, pair, in, 4, MPI.INT);
            Check.equal(in, 0, 1, 2, 3);
            self(source, 1, column, in, 4, MPI.INT);
            Check.equal(in, 0, 6, 12, 18);
            self(source, 1, some, in, 3, MPI.INT);
            Check.equal(in, 5, 1, 2, 18);
            self(source, 1, byBytes, in, 2, MPI.INT);
            Check.equal(in, 1, 3, 2, 18);
            self(source, 1, block, in, 4, MPI.INT);
            Check.equal(in, 0, 1, 4, 5);
            self(source, 1, square, in, 4, MPI.INT);
            Check.equal(in, 9, 10, 15, 16);
            self(source, 3, wide, in, 3, MPI.INT);
            Check.equal(in, 0, 3, 6, 16);
            Check.equal(back.getLb(), -8);
            SELF.Sendrecv(source, 7, 1, back, 0, 0, in, 1, 3, MPI.INT, 0, 0);
            Check.equal(in, 0, 7, 6, 5);
            int[] spread = {-1, -1, -1, -1, -1, -1, -1};
            self(source, 3, MPI.INT, spread, 3, wide);
            Check.equal(spread, 0, -1, -1, 1, -1, -1, 2);
            Check.refused(MPI.ERR_COUNT, "it has 4", () -> self(source, 1, MPI.INT, new int[4], 2, column));
            Check.refused(MPI.ERR_COUNT, "elements -1", () -> SELF.Sendrecv(source, 1, 1, back, 0, 0, in, 0, 3, MPI.INT, 0, 0));
            Check.equal(column.getExtent(), 76);
            Check.equal(column.getSize(), 16);
            Datatype copy = column.dup();
            copy.setName("a column");
            Check.equal(copy.getName(), "a column");
            copy.free();
            Check.that(copy.isNull(), "freed");
        }
    }

    static void structs() throws Exception {
        Particle particle = new Particle();
        Check.equal(particle.getExtent(), 48);
        int n = 3;
        ByteBuffer out = MPI.newByteBuffer(n * particle.getExtent());
        byte[] in = new byte[n * particle.getExtent()];
        for (int i = 0; i < n; i++) {
            Particle.Data data = particle.getData(out, i);
            data.set((byte) i, i * .5, 100 * i, (char) ('a' + i));
        }
        self(out, n, particle.getType(), in, n, particle.getType());
        Particle.Data last = particle.getData(in, n - 1);
        Check.equal(last.place(2), 3.0);
        Check.equal(last.count(), 200);
        Check.equal(last.last(), 'c');
        Struct two = new Struct() {
            final int first = addStruct(particle, 2);
            final int tail = addShort();

            @Override
            protected Data newData() {
                return new Data() {};
            }
        };
        Check.equal(two.getExtent(), 104);
        Check.equal(two.getType().getExtent(), 104);
    }

    static void complex() throws Exception {
        double[] z = {1, 2, 3, 4};
        double[] sum = new double[4];
        SELF.allReduce(z, sum, 2, MPI.DOUBLE_COMPLEX, MPI.PROD);
        DoubleComplex second = DoubleComplex.get(sum, 1);
        Check.that(second.getReal() == 3 && second.getImag() == 4, "the product of one operand");
        second.putImag(9);
        Check.equal(sum[3], 9.0);
    }
}
