package mpi;

/** What is known of a message that was received or probed. */
public final class Status {
    static final int BYTES = 32;
    private static final int WORDS = BYTES / 4;
    private static final int NOT_OBJECTS = -1;

    /** Rank of the sender (mpiJava). */
    public int source;
    /** Tag of the message (mpiJava). */
    public int tag;
    /** Place in the array of requests of the one that completed (mpiJava). */
    public int index;
    private int error;
    private final int[] words = new int[WORDS - 3];
    private int objects = NOT_OBJECTS;

    Status() {
        source = MPI.ANY_SOURCE;
        tag = MPI.ANY_TAG;
    }

    /** The status at a place of a frame. */
    Status(Frame frame, int place) {
        source = frame.getInt(place);
        tag = frame.getInt(place + 4);
        error = frame.getInt(place + 8);
        for (int i = 0; i < words.length; i++) {
            words[i] = frame.getInt(place + 12 + 4 * i);
        }
    }

    private int put(Frame frame) {
        int place = frame.push(BYTES);
        frame.putInt(place, source);
        frame.putInt(place + 4, tag);
        frame.putInt(place + 8, error);
        for (int i = 0; i < words.length; i++) {
            frame.putInt(place + 12 + 4 * i, words[i]);
        }
        return place;
    }

    private void take(Frame frame, int place) {
        for (int i = 0; i < words.length; i++) {
            words[i] = frame.getInt(place + 12 + 4 * i);
        }
    }

    Status ofObjects(int count) {
        objects = count;
        return this;
    }

    Status at(int place) {
        index = place;
        return this;
    }

    /** Rank of the sender. */
    public int getSource() {
        return source;
    }

    /** Tag of the message. */
    public int getTag() {
        return tag;
    }

    /** Error code of the operation, where several completed together. */
    public int getError() {
        return error;
    }

    /** Place in the array of requests of the one that completed. */
    public int getIndex() {
        return index;
    }

    private interface Query {
        int call(mpi.internal.Native c, long status, long result);
    }

    private long ask(Query query, int bytes) {
        mpi.internal.Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int place = put(frame);
            int result = frame.push(8);
            MPI.check(query.call(c, frame.at(place), frame.at(result)));
            return bytes == 4 ? frame.getInt(result) : frame.getLong(result);
        } finally {
            frame.reset(mark);
        }
    }

    /** Number of elements of a datatype that came; {@code MPI.UNDEFINED} when they are not whole ones. */
    public int getCount(Datatype type) throws MPIException {
        if (type == MPI.OBJECT) {
            return objects == NOT_OBJECTS ? MPI.UNDEFINED : objects;
        }
        return (int) ask((c, s, r) -> c.MPI_Get_count(s, Datatype.handle(type), r), 4);
    }

    /** Number of elements of a datatype that came (mpiJava). */
    public int Get_count(Datatype type) throws MPIException {
        return getCount(type);
    }

    /** Number of basic elements that came. */
    public int getElements(Datatype type) throws MPIException {
        return type == MPI.OBJECT ? getCount(type) : (int) ask((c, s, r) -> c.MPI_Get_elements(s, Datatype.handle(type), r), 4);
    }

    /** Number of basic elements that came (mpiJava). */
    public int Get_elements(Datatype type) throws MPIException {
        return getElements(type);
    }

    /** Number of basic elements that came, of any size. */
    public Count getElementsX(Datatype type) throws MPIException {
        return new Count(ask((c, s, r) -> c.MPI_Get_elements_c(s, Datatype.handle(type), r), 8));
    }

    /** Bytes that came. */
    long bytes() {
        return ask((c, s, r) -> c.MPI_Get_count_c(s, MPI.BYTE.handle, r), 8);
    }

    /** Sets the number of elements. */
    public void setElements(Datatype type, int count) throws MPIException {
        setElementsX(type, new Count(count));
    }

    /** Sets the number of elements, of any size. */
    public void setElementsX(Datatype type, Count count) throws MPIException {
        mpi.internal.Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int place = put(frame);
            MPI.check(c.MPI_Status_set_elements_c(frame.at(place), Datatype.handle(type), count.getValue()));
            take(frame, place);
        } finally {
            frame.reset(mark);
        }
    }

    /** Whether the operation was cancelled. */
    public boolean isCancelled() throws MPIException {
        return ask((c, s, r) -> c.MPI_Test_cancelled(s, r), 4) != 0;
    }

    /** Whether the operation was cancelled (mpiJava). */
    public boolean Test_cancelled() throws MPIException {
        return isCancelled();
    }

    /** Says whether the operation was cancelled. */
    public void setCancelled(boolean flag) throws MPIException {
        mpi.internal.Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int place = put(frame);
            MPI.check(c.MPI_Status_set_cancelled(frame.at(place), flag ? 1 : 0));
            take(frame, place);
        } finally {
            frame.reset(mark);
        }
    }
}
