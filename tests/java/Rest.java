import mpi.*;

/** Communicators, groups, topologies, infos, attributes, sessions, names, versions, and what Open MPI's programs ask. */
public class Rest {
    static final Intracomm W = MPI.COMM_WORLD;

    public static void main(String[] args) throws Exception {
        try (Session session = Session.init(null)) {
            Group group = session.groupFromPset("mpi://WORLD");
            Intracomm comm = Session.createComm(group, "rest", null);
            int[] sum = {1};
            comm.allReduce(sum, 1, MPI.INT, MPI.SUM);
            if (sum[0] != comm.getSize() || session.getNumPsets() < 2 || !session.getNthPset(0).contains("mpi://")) {
                throw new AssertionError("a session");
            }
            comm.free();
            group.free();
        }
        Check.chapter(args, () -> {
            int rank = W.getRank();
            int size = W.getSize();
            communicators(rank, size);
            groups(rank, size);
            grids(rank, size);
            infos();
            generalized(rank);
            Check.equal(MPI.getVersion().toString(), "5.0");
            Check.that(MPI.getLibVersion().contains("Kittiwake"), MPI.getLibVersion());
            Check.that(MPI.wtime() <= MPI.wtime() && MPI.wtick() > 0 && !MPI.getProcessorName().isEmpty(), "environment");
            Check.that(MPI.isInitialized() && !MPI.isFinalized() && MPI.isThreadMain(), "state");
            Check.equal(MPI.queryThread(), MPI.THREAD_MULTIPLE);
            Check.that(Comm.getParent().isNull(), "nobody spawned this");
        });
    }

    static void communicators(int rank, int size) throws Exception {
        int key = Comm.createKeyval();
        W.setAttr(key, "mine");
        Intracomm copy = W.dup();
        Check.equal(copy.getAttr(key), "mine");
        copy.deleteAttr(key);
        Check.that(copy.getAttr(key) == null && W.getAttr(key) != null, "of one communicator");
        Comm.freeKeyval(key);
        Check.that((Integer) W.getAttr(MPI.TAG_UB) >= 32767, "the largest tag");
        Check.equal(Comm.compare(W, copy), MPI.CONGRUENT);
        copy.setName("copy");
        Check.equal(copy.getName(), "copy");
        Check.equal(copy.getErrhandler(), MPI.ERRORS_RETURN);
        Intracomm later = copy.iDup();
        later.getRequest().waitFor();
        Check.equal(later.getSize(), size);
        later.barrier();
        later.free();
        Intracomm none = W.split(rank == 0 ? MPI.UNDEFINED : 0, 0);
        Check.equal(none.isNull(), rank == 0);
        none.close();
        copy.close();
        Check.that(copy.isNull(), "closed");
        Check.refused(MPI.ERR_COMM, "", () -> copy.barrier());
    }

    static void groups(int rank, int size) throws Exception {
        Group all = W.getGroup();
        Group first = all.incl(new int[] {0});
        Group others = all.excl(new int[] {0});
        Check.equal(Group.compare(Group.union(first, others), all), MPI.IDENT);
        Check.equal(Group.intersection(first, others).getSize(), 0);
        Check.equal(Group.difference(all, first).getSize(), size - 1);
        Check.equal(all.rangeIncl(new int[][] {{size - 1, 0, -1}}).getRank(), size - 1 - rank);
        Check.equal(Group.translateRanks(all, new int[] {0}, others), MPI.UNDEFINED);
        Intracomm part = W.create(others);
        Check.equal(part.isNull(), rank == 0);
        if (rank > 0) {
            Check.equal(W.createGroup(others, 3).getSize(), size - 1);
        }
        Check.refused(MPI.ERR_RANK, "", () -> all.incl(new int[] {size}));
    }

    static void grids(int rank, int size) throws Exception {
        int[] dims = {0, 1};
        CartComm.createDims(size, dims);
        CartComm grid = W.createCart(dims, new boolean[] {false, true}, false);
        CartParms topo = grid.getTopo();
        Check.equal(topo.getDimCount(), 2);
        Check.equal(topo.getDim(0), size);
        Check.equal(grid.getRank(grid.getCoords(rank)), rank);
        Check.equal(grid.shift(0, 1).getRankDest(), rank == size - 1 ? MPI.PROC_NULL : rank + 1);
        Check.equal(grid.getTopology(), MPI.CART);
        CartComm row = grid.sub(new boolean[] {true, false});
        Check.equal(row.getSize(), size);
        Check.refused(MPI.ERR_DIMS, "1 flags", () -> grid.sub(new boolean[1]));
        int[] index = new int[size];
        int[] edges = new int[2 * (size - 1)];
        for (int i = 0; i < size; i++) {
            index[i] = size - 1 + i;
            if (i > 0) {
                edges[i - 1] = i;
            }
        }
        GraphComm star = W.createGraph(index, edges, false);
        Check.equal(star.getNeighbors(0).length, size - 1);
        Check.equal(star.getDims().getEdgeCount(), 2 * (size - 1));
        GraphComm ring = W.createDistGraphAdjacent(new int[] {rank}, new int[] {5}, new int[] {rank}, new int[] {6}, null, false);
        DistGraphNeighbors near = ring.getDistGraphNeighbors();
        Check.that(near.isWeighted() && near.getSourceWeight(0) == 5 && near.getDestinationWeight(0) == 6, "weights");
    }

    static void generalized(int rank) throws Exception {
        StringBuilder told = new StringBuilder();
        Grequest.Operation operation = new Grequest.Operation() {
            @Override
            public void query(Status status) {
                told.append("query ");
                status.setElements(MPI.INT, 3);
                status.setCancelled(false);
            }

            @Override
            public void free() {
                told.append("free ");
            }

            @Override
            public void cancel(boolean completed) {
                told.append("cancel ").append(completed).append(' ');
            }
        };
        Grequest request = new Grequest(operation);
        Check.that(!request.test() && request.getStatus() == null && !request.isNull(), "not yet");
        request.cancel();
        Thread worker = new Thread(request::complete);
        worker.start();
        Status[] all = Request.waitAllStatus(new Request[] {request, MPI.COMM_SELF.iSend(new int[1], 0, MPI.INT, MPI.PROC_NULL, 0)});
        worker.join();
        Check.equal(all[0].getCount(MPI.INT), 3);
        Check.equal(told.toString(), "cancel false query free ");
        Check.that(request.isNull(), "complete");
        Check.refused(MPI.ERR_REQUEST, "completed already", request::complete);
        Grequest freed = new Grequest(operation);
        freed.free();
        freed.complete();
        Check.equal(told.toString(), "cancel false query free free ");
        Grequest early = new Grequest(operation);
        early.complete();
        Check.equal(Request.waitAny(new Request[] {MPI.REQUEST_NULL, early}), 1);
        early.close();
    }

    static void infos() throws Exception {
        try (Info info = new Info()) {
            info.set("a", "1");
            info.set("b", "two");
            Check.equal(info.get("b"), "two");
            Check.that(info.get("c") == null, "no such key");
            Check.equal(info.size(), 2);
            Info copy = info.dup();
            copy.delete(copy.getKey(0));
            Check.equal(copy.size(), 1);
            Check.refused(MPI.ERR_INFO_NOKEY, "", () -> copy.delete("none"));
            copy.free();
        }
    }
}
