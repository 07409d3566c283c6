import mpi.*;

/** Files: views, every kind of access, hints, errors. The argument is a directory. */
public class Files {
    static final Intracomm W = MPI.COMM_WORLD;

    public static void main(String[] args) throws Exception {
        Check.chapter(args, () -> {
            int rank = W.getRank();
            int size = W.getSize();
            String name = args[0] + "/data";
            int mode = MPI.MODE_CREATE | MPI.MODE_RDWR;
            try (File f = new File(W, name, mode)) {
                atOffsets(f, rank, size);
                views(f, rank, size);
                shared(f, rank, size);
                Check.equal(f.getAMode(), mode);
                f.sync();
            }
            Check.refused(MPI.ERR_NO_SUCH_FILE, "", () -> new File(MPI.COMM_SELF, args[0] + "/none", MPI.MODE_RDONLY));
            W.barrier();
            if (rank == 0) {
                File.delete(name);
            }
        });
    }

    static void atOffsets(File f, int rank, int size) throws Exception {
        f.setView(0, MPI.INT, MPI.INT, "native");
        Check.equal(f.writeAtAll(2 * rank, new int[] {rank, -rank}, 2, MPI.INT).getCount(MPI.INT), 2);
        int[] in = new int[3];
        int next = (rank + 1) % size;
        Check.equal(f.readAt(2 * next, in, 2, MPI.INT).getCount(MPI.INT), 2);
        Check.equal(in, next, -next, 0);
        Request[] both = {f.iReadAt(0, in, 1, MPI.INT)};
        Request.waitAll(both);
        Check.equal(in[0], 0);
        java.nio.IntBuffer buffer = MPI.newIntBuffer(2);
        f.iReadAtAll(2 * rank, buffer, 2, MPI.INT).waitFor();
        Check.equal(buffer.get(1), -rank);
        f.seek(2 * rank, MPI.SEEK_SET);
        f.read(in, 1, MPI.INT);
        Check.equal(in[0], rank);
        Check.equal(f.getPosition(), 2L * rank + 1);
        Check.equal(f.getByteOffset(f.getPosition()), 4 * (2L * rank + 1));
        f.readAtAllBegin(2 * next, in, 2, MPI.INT);
        Check.refused(MPI.ERR_OTHER, "has begun", () -> f.readAtAllBegin(0, new int[1], 1, MPI.INT));
        Check.equal(f.readAtAllEnd(in).getCount(MPI.INT), 2);
        Check.equal(in[1], -next);
        Check.equal(f.getSize(), 8L * size);
        Check.refused(MPI.ERR_TYPE, "the array is int[]", () -> f.writeAt(0, new int[1], 1, MPI.DOUBLE));
    }

    static void views(File f, int rank, int size) throws Exception {
        Datatype mine = Datatype.createResized(MPI.INT, 0, 4 * size);
        mine.commit();
        f.setView(4 * rank, MPI.INT, mine, "native");
        FileView view = f.getView();
        Check.equal(view.getDisp(), 4L * rank);
        Check.equal(view.getDataRep(), "native");
        f.writeAll(new int[] {rank, rank + 100}, 2, MPI.INT);
        f.setView(0, MPI.INT, MPI.INT, "native");
        int[] all = new int[2 * size];
        f.readAll(all, 2 * size, MPI.INT);
        Check.equal(all[size], 100);
        Check.equal(all[size - 1], size - 1);
        mine.free();
    }

    static void shared(File f, int rank, int size) throws Exception {
        W.barrier();
        f.seekShared(0, MPI.SEEK_SET);
        f.writeOrdered(new int[] {7 * rank}, 1, MPI.INT);
        W.barrier();
        f.seekShared(0, MPI.SEEK_SET);
        int[] in = new int[1];
        f.readOrdered(in, 1, MPI.INT);
        Check.equal(in[0], 7 * rank);
        W.barrier();
        Check.equal(f.getPositionShared(), (long) size);
    }
}
