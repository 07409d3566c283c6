package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** A struct of C as a datatype: a subclass adds its fields, and a subclass of {@link Data} reads and writes them. */
public abstract class Struct {
    private int extent;
    private int align = 1;
    private final List<Integer> offsets = new ArrayList<>();
    private final List<Integer> lengths = new ArrayList<>();
    private final List<Datatype> types = new ArrayList<>();
    private Datatype type;

    /** A struct without fields yet. */
    protected Struct() {}

    /** Puts the next field at an offset in bytes; this struct, of which the field may be added at once. */
    public final Struct setOffset(int offset) {
        extent = offset;
        return this;
    }

    /** Sets the extent in bytes. */
    public final void setExtent(int extent) {
        this.extent = extent;
        align = 1;
    }

    /** Bytes of a struct, with what aligns the next one. */
    public final int getExtent() throws MPIException {
        return (extent + align - 1) / align * align;
    }

    /** The datatype, committed. */
    public Datatype getType() throws MPIException {
        if (type == null) {
            int n = types.size();
            int[] blocks = lengths.stream().mapToInt(Integer::intValue).toArray();
            int[] places = offsets.stream().mapToInt(Integer::intValue).toArray();
            try (Datatype packed = Datatype.createStruct(blocks, places, types.toArray(new Datatype[n]))) {
                type = Datatype.createResized(packed, 0, getExtent()).ofBytes();
            }
            type.commit();
        }
        return type;
    }

    private int add(Datatype of, int width, int count) {
        return add(of, width, width, count);
    }

    private int add(Datatype of, int width, int alignment, int count) {
        if (type != null) {
            throw MPIException.wrong(MPI.ERR_TYPE, "the datatype of the struct is made, fields cannot be added any more");
        }
        int offset = (extent + alignment - 1) / alignment * alignment;
        offsets.add(offset);
        lengths.add(count);
        types.add(of);
        extent = offset + width * count;
        align = Math.max(align, alignment);
        return offset;
    }

    /** Adds a byte. */
    public final int addByte() throws MPIException {
        return addByte(1);
    }

    /** Adds bytes. */
    public final int addByte(int length) throws MPIException {
        return add(MPI.BYTE, 1, length);
    }

    /** Adds a char. */
    public final int addChar() throws MPIException {
        return addChar(1);
    }

    /** Adds chars. */
    public final int addChar(int length) throws MPIException {
        return add(MPI.CHAR, 2, length);
    }

    /** Adds a short. */
    public final int addShort() throws MPIException {
        return addShort(1);
    }

    /** Adds shorts. */
    public final int addShort(int length) throws MPIException {
        return add(MPI.SHORT, 2, length);
    }

    /** Adds an int. */
    public final int addInt() throws MPIException {
        return addInt(1);
    }

    /** Adds ints. */
    public final int addInt(int length) throws MPIException {
        return add(MPI.INT, 4, length);
    }

    /** Adds a long. */
    public final int addLong() throws MPIException {
        return addLong(1);
    }

    /** Adds longs. */
    public final int addLong(int length) throws MPIException {
        return add(MPI.LONG, 8, length);
    }

    /** Adds a float. */
    public final int addFloat() throws MPIException {
        return addFloat(1);
    }

    /** Adds floats. */
    public final int addFloat(int length) throws MPIException {
        return add(MPI.FLOAT, 4, length);
    }

    /** Adds a double. */
    public final int addDouble() throws MPIException {
        return addDouble(1);
    }

    /** Adds doubles. */
    public final int addDouble(int length) throws MPIException {
        return add(MPI.DOUBLE, 8, length);
    }

    /** Adds another struct. */
    public final int addStruct(Struct struct) throws MPIException {
        return addStruct(struct, 1);
    }

    /** Adds other structs. */
    public final int addStruct(Struct struct, int length) throws MPIException {
        return add(struct.getType(), struct.getExtent(), struct.align, length);
    }

    /** Adds data of a datatype. */
    public final int addData(Datatype of) throws MPIException {
        return addData(of, 1);
    }

    /** Adds data of a datatype. */
    public final int addData(Datatype of, int length) throws MPIException {
        return add(of, of.getExtent(), of.baseSize, length);
    }

    /** A new view of a struct, of the subclass's own kind. */
    protected abstract Data newData();

    @SuppressWarnings("unchecked")
    private <T extends Data> T view(ByteBuffer buffer, int offset) {
        Data data = newData();
        data.buffer = buffer.duplicate().order(ByteOrder.nativeOrder());
        data.offset = offset;
        return (T) data;
    }

    /** The first struct of a buffer. */
    public final <T extends Data> T getData(ByteBuffer buffer) throws MPIException {
        return view(buffer, 0);
    }

    /** A struct of a buffer by its place. */
    public final <T extends Data> T getData(ByteBuffer buffer, int index) throws MPIException {
        return view(buffer, index * getExtent());
    }

    /** The first struct of an array. */
    public final <T extends Data> T getData(byte[] array) throws MPIException {
        return view(ByteBuffer.wrap(array), 0);
    }

    /** A struct of an array by its place. */
    public final <T extends Data> T getData(byte[] array, int index) throws MPIException {
        return view(ByteBuffer.wrap(array), index * getExtent());
    }

    /** A struct in memory: reads and writes its fields, which the methods {@code add...} of Struct number. */
    public abstract class Data {
        private ByteBuffer buffer;
        private int offset;

        /** A view that gets its memory from {@link Struct#getData}. */
        protected Data() {}

        /** A byte. */
        protected final byte getByte(int field) {
            return getByte(field, 0);
        }

        /** A byte of several. */
        protected final byte getByte(int field, int index) {
            return buffer.get(offset + field + index);
        }

        /** A char. */
        protected final char getChar(int field) {
            return getChar(field, 0);
        }

        /** A char of several. */
        protected final char getChar(int field, int index) {
            return buffer.getChar(offset + field + 2 * index);
        }

        /** A short. */
        protected final short getShort(int field) {
            return getShort(field, 0);
        }

        /** A short of several. */
        protected final short getShort(int field, int index) {
            return buffer.getShort(offset + field + 2 * index);
        }

        /** An int. */
        protected final int getInt(int field) {
            return getInt(field, 0);
        }

        /** An int of several. */
        protected final int getInt(int field, int index) {
            return buffer.getInt(offset + field + 4 * index);
        }

        /** A long. */
        protected final long getLong(int field) {
            return getLong(field, 0);
        }

        /** A long of several. */
        protected final long getLong(int field, int index) {
            return buffer.getLong(offset + field + 8 * index);
        }

        /** A float. */
        protected final float getFloat(int field) {
            return getFloat(field, 0);
        }

        /** A float of several. */
        protected final float getFloat(int field, int index) {
            return buffer.getFloat(offset + field + 4 * index);
        }

        /** A double. */
        protected final double getDouble(int field) {
            return getDouble(field, 0);
        }

        /** A double of several. */
        protected final double getDouble(int field, int index) {
            return buffer.getDouble(offset + field + 8 * index);
        }

        /** A struct. */
        protected final <T extends Data> T getData(Struct struct, int field) {
            return getData(struct, field, 0);
        }

        /** A struct of several. */
        protected final <T extends Data> T getData(Struct struct, int field, int index) {
            return struct.view(buffer, offset + field + index * struct.getExtent());
        }

        /** The memory from a field on. */
        protected final ByteBuffer getBuffer(Datatype type, int field) {
            return getBuffer(type, field, 0);
        }

        /** The memory from a field of several on. */
        protected final ByteBuffer getBuffer(Datatype type, int field, int index) {
            return MPI.slice(buffer, offset + field + index * type.getExtent());
        }

        /** Sets a byte. */
        protected final void putByte(int field, byte value) {
            putByte(field, 0, value);
        }

        /** Sets a byte of several. */
        protected final void putByte(int field, int index, byte value) {
            buffer.put(offset + field + index, value);
        }

        /** Sets a char. */
        protected final void putChar(int field, char value) {
            putChar(field, 0, value);
        }

        /** Sets a char of several. */
        protected final void putChar(int field, int index, char value) {
            buffer.putChar(offset + field + 2 * index, value);
        }

        /** Sets a short. */
        protected final void putShort(int field, short value) {
            putShort(field, 0, value);
        }

        /** Sets a short of several. */
        protected final void putShort(int field, int index, short value) {
            buffer.putShort(offset + field + 2 * index, value);
        }

        /** Sets an int. */
        protected final void putInt(int field, int value) {
            putInt(field, 0, value);
        }

        /** Sets an int of several. */
        protected final void putInt(int field, int index, int value) {
            buffer.putInt(offset + field + 4 * index, value);
        }

        /** Sets a long. */
        protected final void putLong(int field, long value) {
            putLong(field, 0, value);
        }

        /** Sets a long of several. */
        protected final void putLong(int field, int index, long value) {
            buffer.putLong(offset + field + 8 * index, value);
        }

        /** Sets a float. */
        protected final void putFloat(int field, float value) {
            putFloat(field, 0, value);
        }

        /** Sets a float of several. */
        protected final void putFloat(int field, int index, float value) {
            buffer.putFloat(offset + field + 4 * index, value);
        }

        /** Sets a double. */
        protected final void putDouble(int field, double value) {
            putDouble(field, 0, value);
        }

        /** Sets a double of several. */
        protected final void putDouble(int field, int index, double value) {
            buffer.putDouble(offset + field + 8 * index, value);
        }
    }
}
