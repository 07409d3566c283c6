package mpi;

/** A user-defined operation (mpiJava). */
public abstract class User_function {
    /** A user-defined operation. */
    protected User_function() {}

    /** Combines {@code count} elements of two arrays, from their offsets on, into the second. */
    public abstract void Call(Object invec, int inoffset, Object inoutvec, int inoutoffset, int count, Datatype datatype);
}
