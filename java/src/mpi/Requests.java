package mpi;

import mpi.internal.Native;

/** Completion of several requests: C's functions for those of C, in turns with those that Java completes (objects). */
final class Requests {
    private static final int MOST = 1024;

    private Requests() {}

    private static boolean hasJava(Request[] requests) {
        MPIException.given(requests, MPI.ERR_REQUEST, "array of requests");
        for (Request request : requests) {
            if (request != null && request.isJava()) {
                return true;
            }
        }
        return false;
    }

    private static long[] handles(Request[] requests) {
        long[] handles = new long[requests.length];
        for (int i = 0; i < handles.length; i++) {
            if (requests[i] == null) {
                throw MPIException.wrong(MPI.ERR_REQUEST, "request " + i + " of the array is null");
            }
            requests[i].live();
            handles[i] = requests[i].isJava() ? Request.NULL : requests[i].handle;
        }
        return handles;
    }

    /** The outcome of all; null if the call does not wait and not all have completed. */
    static Status[] all(Request[] requests, boolean wait) {
        if (hasJava(requests) || requests.length > MOST) {
            return oneByOne(requests, wait);
        }
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int n = requests.length;
            long slots = frame.longs(handles(requests));
            int flag = frame.push(8);
            int statuses = frame.push(Status.BYTES * Math.max(n, 1));
            frame.putInt(flag, 1);
            int rc = wait ? c.MPI_Waitall(n, slots, frame.at(statuses))
                : c.MPI_Testall(n, slots, frame.at(flag), frame.at(statuses));
            if (rc != 0) {
                throw failure(c, rc, requests, frame, statuses);
            }
            return frame.getInt(flag) == 0 ? null : completed(requests, frame, statuses);
        } finally {
            frame.reset(mark);
        }
    }

    /** Of requests that completed together, the error of the first that failed; the others have completed. */
    private static MPIException failure(Native c, int rc, Request[] requests, Frame frame, int statuses) {
        MPIException first = null;
        for (int i = 0; i < requests.length; i++) {
            Status status = new Status(frame, statuses + i * Status.BYTES);
            int error = status.getError();
            if (error == 0) {
                requests[i].completed(status);
            } else if (error != MPI.ERR_PENDING && first == null) {
                first = MPIException.of(c, error);
            }
        }
        return first == null ? MPIException.of(c, rc) : first;
    }

    private static Status[] completed(Request[] requests, Frame frame, int statuses) {
        Status[] all = new Status[requests.length];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Status(frame, statuses + i * Status.BYTES).at(i);
            requests[i].completed(all[i]);
        }
        return all;
    }

    private static Status[] oneByOne(Request[] requests, boolean wait) {
        if (wait) {
            return inTurns(requests);
        }
        Status[] all = new Status[requests.length];
        for (int i = 0; i < all.length; i++) {
            if (requests[i].testStatus() == null) {
                return null;
            }
            all[i] = requests[i].waitStatus().at(i);
        }
        return all;
    }

    /** Waits for none before the others: a receive of objects matches only when it is asked, which a send may wait for. */
    private static Status[] inTurns(Request[] requests) {
        Status[] all = new Status[requests.length];
        for (int left = all.length; left > 0; Thread.onSpinWait()) {
            for (int i = 0; i < all.length; i++) {
                Status status = all[i] == null ? requests[i].testStatus() : null;
                if (status != null) {
                    all[i] = status.at(i);
                    left--;
                }
            }
        }
        return all;
    }

    /** The outcome of one of them, with its index; null if the call does not wait and none has completed. */
    static Status any(Request[] requests, boolean wait) {
        if (!hasJava(requests)) {
            return anyOfC(requests, wait);
        }
        do {
            boolean left = false;
            for (int i = 0; i < requests.length; i++) {
                left |= !requests[i].isNull();
                Status status = requests[i].isNull() ? null : requests[i].testStatus();
                if (status != null) {
                    return status.at(i);
                }
            }
            if (!left) {
                return new Status().at(MPI.UNDEFINED);
            }
            Thread.onSpinWait();
        } while (wait);
        return null;
    }

    private static Status anyOfC(Request[] requests, boolean wait) {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long slots = frame.longs(handles(requests));
            int index = frame.push(8);
            int flag = frame.push(8);
            int place = frame.push(Status.BYTES);
            frame.putInt(flag, 1);
            MPI.check(wait ? c.MPI_Waitany(requests.length, slots, frame.at(index), frame.at(place))
                : c.MPI_Testany(requests.length, slots, frame.at(index), frame.at(flag), frame.at(place)));
            if (frame.getInt(flag) == 0) {
                return null;
            }
            Status status = new Status(frame, place).at(frame.getInt(index));
            if (status.getIndex() != MPI.UNDEFINED) {
                requests[status.getIndex()].completed(status);
            }
            return status;
        } finally {
            frame.reset(mark);
        }
    }

    /** The outcomes of all that have completed; null if none is active. */
    static Status[] some(Request[] requests, boolean wait) {
        if (hasJava(requests)) {
            Status one = any(requests, wait);
            return one == null ? new Status[0] : one.getIndex() == MPI.UNDEFINED ? null : new Status[] {one};
        }
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int n = requests.length;
            long slots = frame.longs(handles(requests));
            int number = frame.push(8);
            int places = frame.push(4 * Math.max(n, 1));
            int statuses = frame.push(Status.BYTES * Math.max(n, 1));
            MPI.check(wait ? c.MPI_Waitsome(n, slots, frame.at(number), frame.at(places), frame.at(statuses))
                : c.MPI_Testsome(n, slots, frame.at(number), frame.at(places), frame.at(statuses)));
            int came = frame.getInt(number);
            if (came == MPI.UNDEFINED) {
                return null;
            }
            int[] which = frame.getInts(places, came);
            Status[] some = new Status[came];
            for (int i = 0; i < came; i++) {
                some[i] = new Status(frame, statuses + i * Status.BYTES).at(which[i]);
                requests[which[i]].completed(some[i]);
            }
            return some;
        } finally {
            frame.reset(mark);
        }
    }

    static int[] places(Status[] statuses) {
        if (statuses == null) {
            return null;
        }
        int[] places = new int[statuses.length];
        for (int i = 0; i < places.length; i++) {
            places[i] = statuses[i].getIndex();
        }
        return places;
    }
}
