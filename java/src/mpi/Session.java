package mpi;

import mpi.internal.Native;

/** A session: MPI without MPI.Init, for a library of its own. */
public final class Session implements Freeable {
    private static final long NULL = 0x120;
    private long handle;

    private Session(long handle) {
        this.handle = handle;
    }

    /** Starts a session. */
    public static Session init(Info info) throws MPIException {
        Native c = MPI.library();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int result = frame.push(8);
            MPI.check(c.MPI_Session_init(Info.handle(info), MPI.ERRORS_RETURN.handle, frame.at(result)));
            MPI.session(1);
            return new Session(frame.getLong(result));
        } finally {
            frame.reset(mark);
        }
    }

    /** Number of sets of processes. */
    public int getNumPsets() throws MPIException {
        return MPI.number((c, r) -> c.MPI_Session_get_num_psets(handle, Info.NULL, r));
    }

    /** Name of a set of processes. */
    public String getNthPset(int n) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int length = frame.push(8);
            int text = frame.push(MPI.MAX_PSET_NAME_LEN + 1);
            frame.putInt(length, MPI.MAX_PSET_NAME_LEN);
            MPI.check(c.MPI_Session_get_nth_pset(handle, Info.NULL, n, frame.at(length), frame.at(text)));
            return frame.getText(text);
        } finally {
            frame.reset(mark);
        }
    }

    /** What a session has. */
    public Info getInfo() throws MPIException {
        return new Info(MPI.large((c, r) -> c.MPI_Session_get_info(handle, r)));
    }

    /** What is known of a set of processes. */
    public Info getPsetInfo(String pset) throws MPIException {
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long name = frame.text(pset);
            return new Info(MPI.large((c, r) -> c.MPI_Session_get_pset_info(handle, name, r)));
        } finally {
            frame.reset(mark);
        }
    }

    /** The group of a set of processes, such as {@code mpi://WORLD}. */
    public Group groupFromPset(String pset) throws MPIException {
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long name = frame.text(pset);
            return new Group(MPI.large((c, r) -> c.MPI_Group_from_session_pset(handle, name, r)));
        } finally {
            frame.reset(mark);
        }
    }

    /** A communicator of a group of this session. */
    public static Intracomm createComm(Group group, String tag, Info info) throws MPIException {
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long name = frame.text(tag);
            return new Intracomm(MPI.large((c, r) -> c.MPI_Comm_create_from_group(Group.handle(group), name, Info.handle(info),
                MPI.ERRORS_RETURN.handle, r)));
        } finally {
            frame.reset(mark);
        }
    }

    /** Ends the session. */
    @Override
    public void free() throws MPIException {
        MPI.freed(handle, (c, at) -> c.MPI_Session_finalize(at));
        handle = NULL;
        MPI.session(-1);
    }

    @Override
    public void close() throws MPIException {
        if (handle != NULL) {
            free();
        }
    }
}
