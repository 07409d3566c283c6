package mpi;

import mpi.internal.Native;

/** A file that the ranks of a communicator have opened together. */
public final class File extends FileCalls implements Freeable {
    private static final long NULL = 0x118;
    private Datatype etype = MPI.BYTE;
    private Datatype filetype = MPI.BYTE;

    /** Opens a file. */
    public File(Comm comm, String filename, int amode) throws MPIException {
        this(comm, filename, amode, null);
    }

    /** Opens a file with hints. */
    public File(Comm comm, String filename, int amode, Info info) throws MPIException {
        super(open(comm, filename, amode, info));
    }

    private static long open(Comm comm, String filename, int amode, Info info) {
        MPI.live();
        if (filename == null) {
            throw MPIException.wrong(MPI.ERR_BAD_FILE, "the name of the file is null");
        }
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long name = frame.text(filename);
            return MPI.large((c, r) -> c.MPI_File_open(CommCore.handle(comm), name, amode, Info.handle(info), r));
        } finally {
            frame.reset(mark);
        }
    }

    /** Closes the file. */
    @Override
    public void close() throws MPIException {
        if (handle != NULL) {
            MPI.freed(handle, (c, at) -> c.MPI_File_close(at));
            handle = NULL;
        }
    }

    @Override
    public void free() throws MPIException {
        close();
    }

    /** Removes a file. */
    public static void delete(String filename) throws MPIException {
        delete(filename, null);
    }

    /** Removes a file. */
    public static void delete(String filename, Info info) throws MPIException {
        MPI.named(filename, (c, at) -> c.MPI_File_delete(at, Info.handle(info)));
    }

    /** Sets the size in bytes. */
    public void setSize(long size) throws MPIException {
        MPI.check(MPI.live().MPI_File_set_size(handle, size));
    }

    /** Reserves room for this many bytes. */
    public void preallocate(long size) throws MPIException {
        MPI.check(MPI.live().MPI_File_preallocate(handle, size));
    }

    /** Size in bytes. */
    public long getSize() throws MPIException {
        return MPI.large((c, r) -> c.MPI_File_get_size(handle, r));
    }

    /** The group that opened the file. */
    public Group getGroup() throws MPIException {
        return new Group(MPI.large((c, r) -> c.MPI_File_get_group(handle, r)));
    }

    /** The access mode. */
    public int getAMode() throws MPIException {
        return MPI.number((c, r) -> c.MPI_File_get_amode(handle, r));
    }

    /** Sets hints. */
    public void setInfo(Info info) throws MPIException {
        MPI.check(MPI.live().MPI_File_set_info(handle, Info.handle(info)));
    }

    /** Hints that are in use. */
    public Info getInfo() throws MPIException {
        return new Info(MPI.large((c, r) -> c.MPI_File_get_info(handle, r)));
    }

    /** Sets what this rank sees of the file. */
    public void setView(long disp, Datatype newEtype, Datatype newFiletype, String datarep) throws MPIException {
        setView(disp, newEtype, newFiletype, datarep, null);
    }

    /** Sets what this rank sees of the file, with hints. */
    public void setView(long disp, Datatype newEtype, Datatype newFiletype, String datarep, Info info) throws MPIException {
        MPI.named(datarep, (c, at) ->
            c.MPI_File_set_view(handle, disp, Datatype.handle(newEtype), Datatype.handle(newFiletype), at, Info.handle(info)));
        etype = newEtype;
        filetype = newFiletype;
    }

    /** What this rank sees of the file. */
    public FileView getView() throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int disp = frame.push(8);
            int types = frame.push(16);
            int text = frame.push(MPI.MAX_DATAREP_STRING + 1);
            MPI.check(c.MPI_File_get_view(handle, frame.at(disp), frame.at(types), frame.at(types + 8), frame.at(text)));
            return new FileView(frame.getLong(disp), etype, filetype, frame.getText(text));
        } finally {
            frame.reset(mark);
        }
    }

    /** Moves the pointer of this rank. */
    public void seek(long offset, int whence) throws MPIException {
        MPI.check(MPI.live().MPI_File_seek(handle, offset, whence));
    }

    /** The pointer of this rank. */
    public long getPosition() throws MPIException {
        return MPI.large((c, r) -> c.MPI_File_get_position(handle, r));
    }

    /** The byte of the file at an offset of the view. */
    public long getByteOffset(long offset) throws MPIException {
        return MPI.large((c, r) -> c.MPI_File_get_byte_offset(handle, offset, r));
    }

    /** Moves the shared pointer. */
    public void seekShared(long offset, int whence) throws MPIException {
        MPI.check(MPI.live().MPI_File_seek_shared(handle, offset, whence));
    }

    /** The shared pointer. */
    public long getPositionShared() throws MPIException {
        return MPI.large((c, r) -> c.MPI_File_get_position_shared(handle, r));
    }

    /** Extent of a datatype in the file, in bytes. */
    public int getTypeExtent(Datatype type) throws MPIException {
        return (int) MPI.large((c, r) -> c.MPI_File_get_type_extent(handle, Datatype.handle(type), r));
    }

    /** Says whether each access is atomic. */
    public void setAtomicity(boolean atomicity) throws MPIException {
        MPI.check(MPI.live().MPI_File_set_atomicity(handle, atomicity ? 1 : 0));
    }

    /** Whether each access is atomic. */
    public boolean getAtomicity() throws MPIException {
        return MPI.number((c, r) -> c.MPI_File_get_atomicity(handle, r)) != 0;
    }

    /** Writes to the device what was written. */
    public void sync() throws MPIException {
        MPI.check(MPI.live().MPI_File_sync(handle));
    }

    /** {@code MPI_File_set_errhandler}. */
    public void setErrhandler(Errhandler handler) throws MPIException {
        MPI.check(MPI.live().MPI_File_set_errhandler(handle, Errhandler.handle(handler)));
    }

    /** {@code MPI_File_get_errhandler}. */
    public Errhandler getErrhandler() throws MPIException {
        return Errhandler.of(MPI.large((c, r) -> c.MPI_File_get_errhandler(handle, r)));
    }

    /** {@code MPI_File_call_errhandler}. */
    public void callErrhandler(int errorCode) throws MPIException {
        MPI.check(MPI.live().MPI_File_call_errhandler(handle, errorCode));
    }
}
