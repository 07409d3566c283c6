import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Prequest;
import mpi.Request;

/**
 * Point-to-point communication from Java: bench/p2p.c, kinds pingpong, stream, unexpected and exchange, with its options and lines.
 * {@code --buffers direct} (default) sends direct buffers, {@code array} byte[], {@code double} double[] (sizes are multiples
 * of 8 then). A cell runs for a while before it is measured, the first one for longest, so that the compiler of the machine
 * has compiled what is measured.
 */
public final class P2p {
    static final int BATCHES = 21;
    static final int FEWEST = 5;
    static final int WINDOW = 64;
    static final int ROOM = 64 << 20;
    static final int MOST = 1 << 20;
    static final int LINE = 64;
    static final double FIRST_WARM_UP_US = 2e6;
    static final double WARM_UP_US = 300e3;
    static final List<String> KINDS = List.of("pingpong", "stream", "unexpected", "exchange");
    static final List<String> MODES = List.of("send", "ssend", "bsend", "rsend", "isend", "persistent");
    static final int[] SIZES = {8, 1 << 10, 1 << 16, 1 << 20};
    static final String TOLD = "P2p: sizes are whole numbers up to 64 MB, with --buffers double multiples of 8, not";
    static final Intracomm ALL = MPI.COMM_WORLD;

    static int rank;
    static Object given;
    static Object got;
    static Object[] places;
    static int unit = 1;
    static Datatype type = MPI.BYTE;
    static final ByteBuffer TOKEN = MPI.newByteBuffer(1);
    static Prequest persistent;
    static String buffers = "direct";
    static List<String> kinds = List.of("pingpong");
    static List<String> modes = List.of("send");
    static String list;
    static boolean warm;

    private P2p() {}

    static final class Cell {
        final String kind;
        final String mode;
        final int bytes;
        int iterations;
        int batches;
        final Measure.Batches times = new Measure.Batches();

        Cell(String kind, String mode, int bytes) {
            this.kind = kind;
            this.mode = mode;
            this.bytes = bytes;
        }
    }

    static Object memory(int bytes) {
        return switch (buffers) {
            case "direct" -> MPI.newByteBuffer(Math.max(bytes, 1));
            case "array" -> new byte[Math.max(bytes, 1)];
            default -> new double[Math.max(bytes / 8, 1)];
        };
    }

    static void sendOne(String mode, int count, int to) {
        switch (mode) {
            case "send" -> ALL.send(given, count, type, to, 1);
            case "ssend" -> ALL.sSend(given, count, type, to, 1);
            case "bsend" -> ALL.bSend(given, count, type, to, 1);
            case "rsend" -> ALL.rSend(given, count, type, to, 1);
            case "isend" -> ALL.iSend(given, count, type, to, 1).waitFor();
            default -> {
                persistent.start();
                persistent.waitFor();
            }
        }
    }

    static Request startSend(String mode, int count, int to) {
        if (mode.equals("isend")) {
            return ALL.iSend(given, count, type, to, 1);
        }
        sendOne(mode, count, to);
        return MPI.REQUEST_NULL;
    }

    static void shortSend(int to) {
        ALL.send(TOKEN, 1, MPI.BYTE, to, 2);
    }

    static void shortReceive(int from) {
        ALL.recv(TOKEN, 1, MPI.BYTE, from, 2);
    }

    static int inFlight(int bytes) {
        return bytes <= ROOM / WINDOW ? WINDOW : bytes < ROOM ? ROOM / bytes : 1;
    }

    static Request[] post(int bytes, int from) {
        Request[] requests = new Request[inFlight(bytes)];
        for (int i = 0; i < requests.length; i++) {
            requests[i] = ALL.iRecv(places[i], bytes / unit, type, from, 1);
        }
        return requests;
    }

    static void pingpong(String mode, int count) {
        if (rank == 0) {
            sendOne(mode, count, 1);
            ALL.recv(got, count, type, 1, 1);
        } else {
            ALL.recv(got, count, type, 0, 1);
            sendOne(mode, count, 0);
        }
    }

    static void stream(String mode, int bytes) {
        if (rank == 0) {
            shortReceive(1);
            Request[] requests = new Request[inFlight(bytes)];
            for (int i = 0; i < requests.length; i++) {
                requests[i] = startSend(mode, bytes / unit, 1);
            }
            Request.waitAll(requests);
            shortReceive(1);
        } else {
            Request[] requests = post(bytes, 0);
            shortSend(0);
            Request.waitAll(requests);
            shortSend(0);
        }
    }

    static void unexpected(int bytes) {
        if (rank == 0) {
            Request[] requests = new Request[inFlight(bytes)];
            for (int i = 0; i < requests.length; i++) {
                requests[i] = ALL.iSend(given, bytes / unit, type, 1, 1);
            }
            shortSend(1);
            Request.waitAll(requests);
            shortReceive(1);
        } else {
            shortReceive(0);
            Request.waitAll(post(bytes, 0));
            shortSend(0);
        }
    }

    static void exchange(String mode, int count) {
        int other = 1 - rank;
        Request request = ALL.iRecv(got, count, type, other, 1);
        if (mode.equals("rsend")) {
            shortSend(other);
            shortReceive(other);
        }
        Request sent = startSend(mode.equals("send") || mode.equals("ssend") ? "isend" : mode, count, other);
        request.waitFor();
        sent.waitFor();
    }

    static int messages(Cell c) {
        return c.kind.equals("pingpong") ? 2 : c.kind.equals("exchange") ? 1 : inFlight(c.bytes);
    }

    /** Microseconds of a message on this rank. */
    static double batch(Cell c, int iterations) {
        ALL.barrier();
        if (rank > 1) {
            return 0;
        }
        int count = c.bytes / unit;
        double start = MPI.wtime();
        switch (c.kind) {
            case "pingpong" -> {
                for (int i = 0; i < iterations; i++) {
                    pingpong(c.mode, count);
                }
            }
            case "stream" -> {
                for (int i = 0; i < iterations; i++) {
                    stream(c.mode, c.bytes);
                }
            }
            case "unexpected" -> {
                for (int i = 0; i < iterations; i++) {
                    unexpected(c.bytes);
                }
            }
            default -> {
                for (int i = 0; i < iterations; i++) {
                    exchange(c.mode, count);
                }
            }
        }
        return (MPI.wtime() - start) * 1e6 / iterations / messages(c);
    }

    static void calibrate(Cell c) {
        double wanted = Measure.budget / BATCHES;
        double spent = 0;
        double enough = warm ? Math.min(WARM_UP_US, 3 * Measure.budget) : Math.min(FIRST_WARM_UP_US, 30 * Measure.budget);
        for (int n = 1; spent < enough; n = Math.min(2 * n, 4096)) {
            spent += Measure.largest(batch(c, n) * n * messages(c));
        }
        warm = true;
        double took = 0;
        int n = 1;
        int telling = 0;
        while (true) {
            took = Measure.largest(batch(c, n) * n * messages(c));
            telling = took >= Measure.budget ? 2 : took * 2 >= wanted || n >= MOST ? telling + 1 : 0;
            if (telling == 2) {
                break;
            }
            n = Math.min(2 * n, MOST);
        }
        took /= n;
        c.batches = took <= wanted ? BATCHES : took * FEWEST >= Measure.budget ? FEWEST : (int) (Measure.budget / took);
        c.iterations = took < wanted ? (int) (wanted / took) : 1;
    }

    static void visit(Cell c, int turn) {
        if (c.mode.equals("persistent") && rank < 2) {
            persistent = ALL.sendInit(given, c.bytes / unit, type, 1 - rank, 1);
        }
        if (turn == 0) {
            calibrate(c);
        } else {
            batch(c, 1);
        }
        for (int b = 0; b < (c.batches + Measure.turns - 1) / Measure.turns; b++) {
            c.times.add(batch(c, c.iterations));
        }
        if (persistent != null) {
            persistent.free();
            persistent = null;
        }
    }

    static void print(Cell c) {
        c.times.slowest();
        if (rank == 0) {
            System.out.println("{\"bench\": \"p2p\", \"op\": \"" + c.kind + "\", \"mode\": \"" + c.mode + "\", \"bytes\": " + c.bytes
                + ", \"ranks\": " + ALL.getSize() + ", \"iterations\": " + c.iterations + ", " + c.times.line("us") + "}");
        }
    }

    static List<String> words(String list, List<String> known) {
        List<String> words = Arrays.asList(list.split(","));
        for (String word : words) {
            if (!known.contains(word)) {
                Measure.giveUp("P2p: there is no kind or mode", word);
            }
        }
        return words;
    }

    static boolean takes(String option, String value) {
        switch (option) {
            case "--kinds" -> kinds = words(value, KINDS);
            case "--modes" -> modes = words(value, MODES);
            case "--sizes" -> list = value;
            case "--buffers" -> buffers = words(value, List.of("direct", "array", "double")).get(0);
            default -> {
                return false;
            }
        }
        return true;
    }

    public static void main(String[] args) {
        MPI.Init(args);
        rank = ALL.getRank();
        Measure.options("P2p", args, P2p::takes);
        if (buffers.equals("double")) {
            unit = 8;
            type = MPI.DOUBLE;
        }
        int[] sizes = list == null ? SIZES : Measure.sizes(list, unit, 0, ROOM, TOLD);
        int largest = Arrays.stream(sizes).max().orElse(8);
        given = memory(largest);
        got = memory(largest);
        places = new Object[WINDOW];
        boolean windows = kinds.contains("stream") || kinds.contains("unexpected");
        for (int i = 0; windows && i < WINDOW && (long) i * largest < ROOM; i++) {
            places[i] = memory(largest);
        }
        if (modes.contains("bsend")) {
            MPI.attachBuffer(MPI.newByteBuffer(Math.min(2 * ROOM, (largest + 1024) * (WINDOW + 1))));
        }
        List<Cell> cells = new ArrayList<>();
        for (String kind : kinds) {
            for (String mode : modes) {
                if (!mode.equals("rsend") || kind.equals("stream") || kind.equals("exchange")) {
                    for (int bytes : sizes) {
                        cells.add(new Cell(kind, mode, bytes));
                    }
                }
            }
        }
        for (int turn = 0; turn < Measure.turns; turn++) {
            for (Cell c : cells) {
                visit(c, turn);
                if (turn + 1 == Measure.turns) {
                    print(c);
                }
            }
            if (turn + 1 < Measure.turns) {
                Measure.tellTurn(turn);
            }
        }
        MPI.Finalize();
    }
}
