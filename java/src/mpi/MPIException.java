package mpi;

import mpi.internal.Native;

/**
 * An error of MPI. It is unchecked, so programs written for bindings where it is checked and for those where it is not
 * compile alike.
 */
public final class MPIException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final int errorCode;
    private final int errorClass;

    /** An error with a code, its class and a sentence. */
    public MPIException(int errorCode, int errorClass, String message) {
        super(message);
        this.errorCode = errorCode;
        this.errorClass = errorClass;
    }

    /** An error of class {@code MPI.ERR_OTHER} with a sentence. */
    public MPIException(String message) {
        this(MPI.ERR_OTHER, MPI.ERR_OTHER, message);
    }

    /** An error that has another as its cause. */
    public MPIException(String message, Throwable cause) {
        this(message);
        initCause(cause);
    }

    /** The error that a function of C returned. */
    static MPIException of(Native c, int code) {
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int text = frame.push(MPI.MAX_ERROR_STRING + 8);
            int number = frame.push(8);
            c.MPI_Error_class(code, frame.at(number));
            int errorClass = frame.getInt(number);
            c.MPI_Error_string(code, frame.at(text), frame.at(number));
            return new MPIException(code, errorClass, frame.getText(text, frame.getInt(number)));
        } finally {
            frame.reset(mark);
        }
    }

    /** An error that these bindings found. */
    static MPIException wrong(int errorClass, String message) {
        return new MPIException(errorClass, errorClass, ErrorNames.of(errorClass) + ": " + message);
    }

    /** A value that must not be null. */
    static <T> T given(T value, int errorClass, String what) {
        if (value == null) {
            throw wrong(errorClass, "the " + what + " is null");
        }
        return value;
    }

    /** The error code that MPI gave. */
    public int getErrorCode() {
        return errorCode;
    }

    /** The error class, one of {@code MPI.ERR_*}. */
    public int getErrorClass() {
        return errorClass;
    }
}
