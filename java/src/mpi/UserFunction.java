package mpi;

import java.nio.ByteBuffer;

/** A user-defined operation: overrides one of the two methods. */
public abstract class UserFunction {
    /** A user-defined operation. */
    protected UserFunction() {}

    /** Combines {@code count} elements of two arrays into the second. */
    public void call(Object inVec, Object inOutVec, int count, Datatype datatype) throws MPIException {
        throw new UnsupportedOperationException("the user-defined operation overrides none of the methods named call");
    }

    /** Combines {@code count} elements of two direct buffers into the second; unless overridden, through arrays. */
    public void call(ByteBuffer inVec, ByteBuffer inOutVec, int count, Datatype datatype) throws MPIException {
        int elements = Op.elements(count, datatype);
        Object in = Copies.array(datatype.base, elements);
        Object inOut = Copies.array(datatype.base, elements);
        Copies.out(in, 0, elements, inVec, 0);
        Copies.out(inOut, 0, elements, inOutVec, 0);
        call(in, inOut, count, datatype);
        Copies.in(inOut, 0, elements, inOutVec, 0);
    }
}
