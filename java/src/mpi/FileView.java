package mpi;

/** What a rank sees of a file. */
public final class FileView {
    private final long disp;
    private final Datatype etype;
    private final Datatype filetype;
    private final String datarep;

    /** A view. */
    public FileView(long disp, Datatype etype, Datatype filetype, String datarep) {
        this.disp = disp;
        this.etype = etype;
        this.filetype = filetype;
        this.datarep = datarep;
    }

    /** Where it begins, in bytes. */
    public long getDisp() {
        return disp;
    }

    /** Its unit. */
    public Datatype getEType() {
        return etype;
    }

    /** Which units it has. */
    public Datatype getFileType() {
        return filetype;
    }

    /** Representation of data. */
    public String getDataRep() {
        return datarep;
    }
}
