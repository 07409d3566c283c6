package mpi;

/** A communicator of two groups. */
public final class Intercomm extends Comm {
    Intercomm(long handle) {
        super(handle);
    }

    @Override
    boolean hasTwoGroups() {
        return true;
    }

    @Override
    Intercomm like(long other) {
        return new Intercomm(other);
    }

    @Override
    public Intercomm dup() throws MPIException {
        return (Intercomm) super.dup();
    }

    @Override
    public Intercomm clone() {
        return dup();
    }

    /** {@code MPI_Comm_remote_size}. */
    public int getRemoteSize() throws MPIException {
        MPI.live();
        return remoteSize();
    }

    /** {@code MPI_Comm_remote_size} (mpiJava). */
    public int Remote_size() throws MPIException {
        return getRemoteSize();
    }

    /** {@code MPI_Comm_remote_group}. */
    public Group getRemoteGroup() throws MPIException {
        return new Group(MPI.large((c, r) -> c.MPI_Comm_remote_group(handle, r)));
    }

    /** {@code MPI_Comm_remote_group} (mpiJava). */
    public Group Remote_group() throws MPIException {
        return getRemoteGroup();
    }

    /** {@code MPI_Intercomm_merge}. */
    public Intracomm merge(boolean high) throws MPIException {
        return new Intracomm(made((c, r) -> c.MPI_Intercomm_merge(handle, high ? 1 : 0, r)));
    }

    /** {@code MPI_Intercomm_merge} (mpiJava). */
    public Intracomm Merge(boolean high) throws MPIException {
        return merge(high);
    }
}
