import mpi.*;

/** A program in mpiJava's style: capital names, offsets, objects. Any number of ranks from 2 on. */
public class Capital {
    static class Box implements java.io.Serializable {
        final String text;
        final int[] numbers;

        Box(String text, int... numbers) {
            this.text = text;
            this.numbers = numbers;
        }
    }

    static class Longest extends User_function {
        public void Call(Object invec, int inoffset, Object inoutvec, int inoutoffset, int count, Datatype datatype) {
            if (datatype == MPI.OBJECT) {
                Object[] in = (Object[]) invec;
                Object[] inout = (Object[]) inoutvec;
                for (int i = 0; i < count; i++) {
                    inout[inoutoffset + i] = (String) in[inoffset + i] + inout[inoutoffset + i];
                }
            } else {
                int[] in = (int[]) invec;
                int[] inout = (int[]) inoutvec;
                for (int i = 0; i < count; i++) {
                    inout[inoutoffset + i] = in[inoffset + i] * 10 + inout[inoutoffset + i];
                }
            }
        }
    }

    public static void main(String[] args) throws MPIException {
        String[] rest = MPI.Init(args);
        int rank = MPI.COMM_WORLD.Rank();
        int size = MPI.COMM_WORLD.Size();
        Check.equal(rest.length, args.length);
        char[] message = new char[20];
        if (rank == 0) {
            char[] text = "Hello, there".toCharArray();
            MPI.COMM_WORLD.Send(text, 0, text.length, MPI.CHAR, 1, 99);
            MPI.COMM_WORLD.Send(new Object[] {new Box("x", 1, 2), null, "s"}, 0, 3, MPI.OBJECT, 1, 98);
            MPI.COMM_WORLD.Isend(new Object[] {"later"}, 0, 1, MPI.OBJECT, 1, 97).Wait();
            Object[] again = new Object[1];
            Prequest request = MPI.COMM_WORLD.Send_init(again, 0, 1, MPI.OBJECT, 1, 96);
            for (int i = 0; i < 2; i++) {
                again[0] = "turn " + i;
                request.Start();
                request.Wait();
            }
            request.Free();
        } else if (rank == 1) {
            Status status = MPI.COMM_WORLD.Recv(message, 3, 17, MPI.CHAR, 0, 99);
            Check.equal(new String(message, 3, status.Get_count(MPI.CHAR)), "Hello, there");
            Check.equal(status.source, 0);
            Check.equal(status.tag, 99);
            Object[] objects = new Object[4];
            Prequest request = MPI.COMM_WORLD.Recv_init(objects, 1, 1, MPI.OBJECT, 0, 96);
            Request later = MPI.COMM_WORLD.Irecv(objects, 3, 1, MPI.OBJECT, 0, 97);
            status = MPI.COMM_WORLD.Recv(objects, 0, 3, MPI.OBJECT, 0, 98);
            Check.equal(status.Get_count(MPI.OBJECT), 3);
            Box box = (Box) objects[0];
            Check.equal(box.text, "x");
            Check.equal(box.numbers, 1, 2);
            Check.equal(objects[2], "s");
            Check.equal(Request.Waitany(new Request[] {later}).index, 0);
            Check.equal(objects[3], "later");
            for (int i = 0; i < 2; i++) {
                Prequest.Startall(new Prequest[] {request});
                Check.equal(Request.Waitall(new Request[] {request})[0].Get_count(MPI.OBJECT), 1);
                Check.equal(objects[1], "turn " + i);
            }
            request.Free();
        }
        collectives(rank, size);
        objects(rank, size);
        types(rank);
        topology(rank, size);
        Prequest p = MPI.COMM_WORLD.Send_init(new int[1], 0, 1, MPI.INT, MPI.PROC_NULL, 0);
        p.Start();
        p.Wait();
        p.Free();
        MPI.COMM_WORLD.Barrier();
        if (rank == 0) {
            System.out.println("passed");
        }
        MPI.Finalize();
    }

    static void collectives(int rank, int size) throws MPIException {
        int[] a = {-1, rank == 0 ? 7 : 0};
        MPI.COMM_WORLD.Bcast(a, 1, 1, MPI.INT, 0);
        Check.equal(a, -1, 7);
        int[] all = new int[size + 1];
        MPI.COMM_WORLD.Gather(new int[] {0, rank}, 1, 1, MPI.INT, all, 1, 1, MPI.INT, size - 1);
        for (int i = 0; rank == size - 1 && i < size; i++) {
            Check.equal(all[i + 1], i);
        }
        double[] sum = new double[3];
        MPI.COMM_WORLD.Reduce(new double[] {0, 1, rank}, 1, sum, 1, 2, MPI.DOUBLE, MPI.SUM, 0);
        if (rank == 0) {
            Check.equal(sum, 0, size, size * (size - 1) / 2);
        }
        MPI.COMM_WORLD.Allreduce(new double[] {rank}, 0, sum, 2, 1, MPI.DOUBLE, MPI.MAX);
        Check.equal(sum[2], (double) size - 1);
        int[] pair = new int[2];
        MPI.COMM_WORLD.Allreduce(new int[] {rank == 1 ? 50 : 3, rank}, 0, pair, 0, 1, MPI.INT2, MPI.MAXLOC);
        long[] longs = new long[5];
        MPI.COMM_WORLD.Allreduce(new long[] {9, -rank, rank, 1L << 40, rank}, 1, longs, 1, 2, MPI.LONG2, MPI.MINLOC);
        Check.that(java.util.Arrays.equals(longs, new long[] {0, 1 - size, size - 1, 1L << 40, 0}), java.util.Arrays.toString(longs));
        short[] shorts = new short[2];
        MPI.COMM_WORLD.Allreduce(new short[] {(short) (rank % 2), (short) rank}, 0, shorts, 0, 1, MPI.SHORT2, MPI.MAXLOC);
        Check.that(shorts[0] == 1 && shorts[1] == 1, "the first of equal ones");
        Check.equal(pair, 50, 1);
        int[] scan = new int[1];
        MPI.COMM_WORLD.Scan(new int[] {rank}, 0, scan, 0, 1, MPI.INT, MPI.SUM);
        Check.equal(scan[0], rank * (rank + 1) / 2);
        Op digits = new Op(new Longest(), false);
        int[] number = new int[1];
        MPI.COMM_WORLD.Allreduce(new int[] {1}, 0, number, 0, 1, MPI.INT, digits);
        Check.that(number[0] % 10 == 1, "a user-defined operation ran: " + number[0]);
        digits.Free();
    }

    static void objects(int rank, int size) throws MPIException {
        Object[] one = {rank == 0 ? "from 0" : null};
        MPI.COMM_WORLD.Bcast(one, 0, 1, MPI.OBJECT, 0);
        Check.equal(one[0], "from 0");
        String[] all = new String[size];
        MPI.COMM_WORLD.Allgather(new String[] {"r" + rank}, 0, 1, MPI.OBJECT, all, 0, 1, MPI.OBJECT);
        Check.equal(all[size - 1], "r" + (size - 1));
        String[] mine = new String[1];
        MPI.COMM_WORLD.Scatter(all, 0, 1, MPI.OBJECT, mine, 0, 1, MPI.OBJECT, 0);
        Check.equal(mine[0], "r" + rank);
        String[] turned = new String[size];
        MPI.COMM_WORLD.Alltoall(all, 0, 1, MPI.OBJECT, turned, 0, 1, MPI.OBJECT);
        Check.equal(turned[0], "r" + rank);
        Op concat = new Op(new Longest(), false);
        String[] joined = new String[1];
        MPI.COMM_WORLD.Reduce(mine, 0, joined, 0, 1, MPI.OBJECT, concat, 0);
        Check.that(rank != 0 || joined[0].equals(String.join("", all)), "objects are combined in the order of ranks: " + joined[0]);
        MPI.COMM_WORLD.Scan(mine, 0, joined, 0, 1, MPI.OBJECT, concat);
        Check.that(joined[0].endsWith("r" + rank) && joined[0].startsWith("r0"), joined[0]);
        concat.Finalize();
    }

    static void types(int rank) throws MPIException {
        Datatype column = Datatype.Vector(3, 1, 4, MPI.INT);
        column.Commit();
        Check.equal(column.Size(), 3);
        Check.equal(column.Extent(), 9);
        int[] matrix = new int[12];
        if (rank == 0) {
            for (int i = 0; i < 12; i++) {
                matrix[i] = i;
            }
            MPI.COMM_WORLD.Send(matrix, 1, 1, column, 1, 0);
        } else if (rank == 1) {
            MPI.COMM_WORLD.Recv(matrix, 2, 1, column, 0, 0);
            Check.equal(matrix, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 9, 0);
        }
        column.Free();
        Datatype bounded = Datatype.Struct(new int[] {1, 2, 1}, new int[] {-1, 0, 4}, new Datatype[] {MPI.LB, MPI.INT, MPI.UB});
        Check.equal(bounded.Lb(), -1);
        Check.equal(bounded.Extent(), 5);
        Check.equal(bounded.Size(), 2);
        bounded.Free();
        Datatype struct = Datatype.Struct(new int[] {1, 2}, new int[] {3, 0}, new Datatype[] {MPI.INT, MPI.INT});
        struct.Commit();
        int[] out = new int[3];
        MPI.COMM_WORLD.Sendrecv(new int[] {1, 2, 0, 4}, 0, 1, struct, rank, 0, out, 0, 3, MPI.INT, rank, 0);
        Check.equal(out, 4, 1, 2);
    }

    static void topology(int rank, int size) throws MPIException {
        int[] dims = Cartcomm.Dims_create(size, new int[1]);
        Cartcomm ring = MPI.COMM_WORLD.Create_cart(dims, new boolean[] {true}, false);
        ShiftParms shift = ring.Shift(0, 1);
        Check.equal(shift.rank_dest, (rank + 1) % size);
        Check.equal(ring.Coords(rank)[0], ring.Rank());
        CartParms parms = ring.Get();
        Check.equal(parms.dims[0], size);
        Check.that(parms.periods[0], "a ring");
        Intracomm copy = (Intracomm) ring.clone();
        Check.equal(Comm.Compare(copy, ring), MPI.CONGRUENT);
        Group group = MPI.COMM_WORLD.Group();
        Group last = group.Incl(new int[] {size - 1});
        Check.equal(last.Rank(), rank == size - 1 ? 0 : MPI.UNDEFINED);
        Intracomm half = MPI.COMM_WORLD.Split(rank % 2, rank);
        Check.equal(half.Rank(), rank / 2);
        half.Free();
        ring.Free();
    }
}
