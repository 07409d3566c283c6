package mpi;

import java.util.List;

/** What lives as long as a request: buffers, copies of arrays, the operation and the communicator. */
record Holdings(List<Object> buffers, List<Exchange.Staged> staged, List<Piece> pieces, Op op, CommCore owner) {
    static final Holdings NONE = new Holdings(List.of(), List.of(), List.of(), null, null);

    void copyIn() {
        for (Exchange.Staged one : staged) {
            one.copyIn();
        }
    }

    boolean wantsStatus() {
        return !staged.isEmpty();
    }

    void copyOut(Status status) {
        for (Exchange.Staged one : staged) {
            one.copyOut(status);
        }
        if (op != null) {
            op.rethrow();
        }
    }

    void release() {
        for (Piece piece : pieces) {
            piece.give();
        }
    }
}
