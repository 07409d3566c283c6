package mpi;

import java.lang.reflect.Array;
import mpi.internal.Native;

/** A communicator of one group. */
public class Intracomm extends Comm {
    private static final int MOST_ERRORS = 2048;

    Intracomm(long handle) {
        super(handle);
    }

    @Override
    Intracomm like(long other) {
        return new Intracomm(other);
    }

    @Override
    public Intracomm dup() throws MPIException {
        return (Intracomm) super.dup();
    }

    @Override
    public Intracomm clone() {
        return dup();
    }

    @Override
    public Intracomm dupWithInfo(Info info) throws MPIException {
        return (Intracomm) super.dupWithInfo(info);
    }

    @Override
    public Intracomm iDup() throws MPIException {
        return (Intracomm) super.iDup();
    }

    /** {@code MPI_Comm_split}. */
    public final Intracomm split(int color, int key) throws MPIException {
        return new Intracomm(made((c, r) -> c.MPI_Comm_split(handle, color, key, r)));
    }

    /** {@code MPI_Comm_split} (mpiJava). */
    public final Intracomm Split(int color, int key) throws MPIException {
        return split(color, key);
    }

    /** {@code MPI_Comm_split_type}. */
    public final Intracomm splitType(int type, int key, Info info) throws MPIException {
        return new Intracomm(made((c, r) -> c.MPI_Comm_split_type(handle, type, key, Info.handle(info), r)));
    }

    /** {@code MPI_Comm_create}. */
    public final Intracomm create(Group group) throws MPIException {
        return new Intracomm(made((c, r) -> c.MPI_Comm_create(handle, Group.handle(group), r)));
    }

    /** {@code MPI_Comm_create} (mpiJava). */
    public final Intracomm Create(Group group) throws MPIException {
        return create(group);
    }

    /** {@code MPI_Comm_create_group}. */
    public final Intracomm createGroup(Group group, int tag) throws MPIException {
        return new Intracomm(made((c, r) -> c.MPI_Comm_create_group(handle, Group.handle(group), tag, r)));
    }

    private static void asMany(Object a, Object b, String what) {
        if (a == null || b == null) {
            throw MPIException.wrong(MPI.ERR_ARG, what + " must not be null");
        }
        if (Array.getLength(a) != Array.getLength(b)) {
            throw MPIException.wrong(MPI.ERR_DIMS, what + " have " + Array.getLength(a) + " and " + Array.getLength(b)
                + " elements, they must be as many");
        }
    }

    private static int[] given(int[] numbers) {
        return MPIException.given(numbers, MPI.ERR_ARG, "array of neighbours");
    }

    private Cartcomm cart(int[] dims, boolean[] periods, boolean reorder) {
        asMany(dims, periods, "dimensions and periods");
        MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long d = frame.ints(dims);
            long p = frame.flags(periods);
            return new Cartcomm(made((c, r) -> c.MPI_Cart_create(handle, dims.length, d, p, reorder ? 1 : 0, r)));
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Cart_create}. */
    public final CartComm createCart(int[] dims, boolean[] periods, boolean reorder) throws MPIException {
        return cart(dims, periods, reorder);
    }

    /** {@code MPI_Cart_create} (mpiJava). */
    public final Cartcomm Create_cart(int[] dims, boolean[] periods, boolean reorder) throws MPIException {
        return cart(dims, periods, reorder);
    }

    private Graphcomm graph(int[] index, int[] edges, boolean reorder) {
        if (given(index).length > 0 && given(edges).length < index[index.length - 1]) {
            throw MPIException.wrong(MPI.ERR_TOPOLOGY, "the index ends at " + index[index.length - 1] + ", there are " + edges.length
                + " edges");
        }
        MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long i = frame.ints(index);
            long e = frame.ints(edges);
            return new Graphcomm(made((c, r) -> c.MPI_Graph_create(handle, index.length, i, e, reorder ? 1 : 0, r)));
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Graph_create}. */
    public final GraphComm createGraph(int[] index, int[] edges, boolean reorder) throws MPIException {
        return graph(index, edges, reorder);
    }

    /** {@code MPI_Graph_create} (mpiJava). */
    public final Graphcomm Create_graph(int[] index, int[] edges, boolean reorder) throws MPIException {
        return graph(index, edges, reorder);
    }

    private static long weights(Frame frame, int[] weights) {
        return weights == null ? MPI_UNWEIGHTED : frame.ints(weights);
    }

    private static final long MPI_UNWEIGHTED = 10;

    /** {@code MPI_Dist_graph_create}; weights may be null. */
    public final GraphComm createDistGraph(int[] sources, int[] degrees, int[] destinations, int[] weights, Info info,
        boolean reorder) throws MPIException {
        asMany(sources, degrees, "sources and degrees");
        if (sum(degrees) > given(destinations).length || weights != null && sum(degrees) > weights.length) {
            throw MPIException.wrong(MPI.ERR_TOPOLOGY, "the degrees add up to " + sum(degrees) + ", there are "
                + destinations.length + " destinations");
        }
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long s = frame.ints(sources);
            long d = frame.ints(degrees);
            long to = frame.ints(destinations);
            long w = weights(frame, weights);
            return new Graphcomm(made((c, r) -> c.MPI_Dist_graph_create(handle, sources.length, s, d, to, w, Info.handle(info),
                reorder ? 1 : 0, r)));
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Dist_graph_create} without weights. */
    public final GraphComm createDistGraph(int[] sources, int[] degrees, int[] destinations, Info info, boolean reorder)
        throws MPIException {
        return createDistGraph(sources, degrees, destinations, null, info, reorder);
    }

    /** {@code MPI_Dist_graph_create_adjacent}; weights may be null. */
    public final GraphComm createDistGraphAdjacent(int[] sources, int[] sourceWeights, int[] destinations, int[] destWeights,
        Info info, boolean reorder) throws MPIException {
        if (sourceWeights != null) {
            asMany(sources, sourceWeights, "sources and their weights");
        }
        if (destWeights != null) {
            asMany(destinations, destWeights, "destinations and their weights");
        }
        given(sources);
        given(destinations);
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long s = frame.ints(sources);
            long sw = weights(frame, sourceWeights);
            long d = frame.ints(destinations);
            long dw = weights(frame, destWeights);
            return new Graphcomm(made((c, r) -> c.MPI_Dist_graph_create_adjacent(handle, sources.length, s, sw,
                destinations.length, d, dw, Info.handle(info), reorder ? 1 : 0, r)));
        } finally {
            frame.reset(mark);
        }
    }

    /** {@code MPI_Dist_graph_create_adjacent} without weights. */
    public final GraphComm createDistGraphAdjacent(int[] sources, int[] destinations, Info info, boolean reorder)
        throws MPIException {
        return createDistGraphAdjacent(sources, null, destinations, null, info, reorder);
    }

    /** A port that others can connect to. */
    public static String openPort() throws MPIException {
        return openPort(null);
    }

    /** A port that others can connect to. */
    public static String openPort(Info info) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int name = frame.push(MPI.MAX_PORT_NAME + 1);
            check(c.MPI_Open_port(Info.handle(info), frame.at(name)));
            return frame.getText(name);
        } finally {
            frame.reset(mark);
        }
    }

    /** Closes a port. */
    public static void closePort(String name) throws MPIException {
        MPI.named(name, (c, at) -> c.MPI_Close_port(at));
    }

    private static void two(String service, String port, Info info, boolean publish) {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long a = frame.text(service);
            long b = frame.text(port);
            check(publish ? c.MPI_Publish_name(a, Info.handle(info), b) : c.MPI_Unpublish_name(a, Info.handle(info), b));
        } finally {
            frame.reset(mark);
        }
    }

    /** Publishes a port under a name. */
    public static void publishName(String service, String port) throws MPIException {
        two(service, port, null, true);
    }

    /** Publishes a port under a name. */
    public static void publishName(String service, Info info, String port) throws MPIException {
        two(service, port, info, true);
    }

    /** Withdraws a published name. */
    public static void unpublishName(String service, String port) throws MPIException {
        two(service, port, null, false);
    }

    /** Withdraws a published name. */
    public static void unpublishName(String service, Info info, String port) throws MPIException {
        two(service, port, info, false);
    }

    /** The port of a published name. */
    public static String lookupName(String service) throws MPIException {
        return lookupName(service, null);
    }

    /** The port of a published name. */
    public static String lookupName(String service, Info info) throws MPIException {
        Native c = MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            int name = frame.push(MPI.MAX_PORT_NAME + 1);
            check(c.MPI_Lookup_name(frame.text(service), Info.handle(info), frame.at(name)));
            return frame.getText(name);
        } finally {
            frame.reset(mark);
        }
    }

    private Intercomm joined(String port, Info info, int root, boolean accept) {
        MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long at = frame.text(port == null ? "" : port);
            return new Intercomm(made((c, r) -> accept ? c.MPI_Comm_accept(at, Info.handle(info), root, handle, r)
                : c.MPI_Comm_connect(at, Info.handle(info), root, handle, r)));
        } finally {
            frame.reset(mark);
        }
    }

    /** Waits for others to connect; the port matters at the root. */
    public final Intercomm accept(String port, int root) throws MPIException {
        return joined(port, null, root, true);
    }

    /** Waits for others to connect; the port matters at the root. */
    public final Intercomm accept(String port, Info info, int root) throws MPIException {
        return joined(port, info, root, true);
    }

    /** Connects to others; the port matters at the root. */
    public final Intercomm connect(String port, int root) throws MPIException {
        return joined(port, null, root, false);
    }

    /** Connects to others; the port matters at the root. */
    public final Intercomm connect(String port, Info info, int root) throws MPIException {
        return joined(port, info, root, false);
    }

    private static long words(Frame frame, String[] words) {
        if (words == null) {
            return 0;
        }
        long[] at = new long[words.length + 1];
        for (int i = 0; i < words.length; i++) {
            at[i] = frame.text(words[i]);
        }
        return frame.longs(at);
    }

    /** Starts processes; error codes may be null. All but root may pass null for what matters at the root. */
    public final Intercomm spawn(String command, String[] argv, int maxprocs, Info info, int root, int[] errcodes)
        throws MPIException {
        MPI.live();
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long name = command == null ? 0 : frame.text(command);
            long arguments = words(frame, argv);
            int errors = frame.push(4 * Math.min(MOST_ERRORS, Math.max(1, maxprocs)));
            boolean told = errcodes != null && maxprocs <= MOST_ERRORS;
            Intercomm made = new Intercomm(made((c, r) -> c.MPI_Comm_spawn(name, arguments, maxprocs, Info.handle(info), root,
                handle, r, told ? frame.at(errors) : 0)));
            copyErrors(frame, errors, told ? errcodes : null);
            return made;
        } finally {
            frame.reset(mark);
        }
    }

    private static void copyErrors(Frame frame, int place, int[] errcodes) {
        if (errcodes != null) {
            System.arraycopy(frame.getInts(place, errcodes.length), 0, errcodes, 0, errcodes.length);
        }
    }

    /** Starts processes of several programs. */
    public final Intercomm spawnMultiple(String[] commands, String[][] argv, int[] maxprocs, Info[] info, int root,
        int[] errcodes) throws MPIException {
        MPI.live();
        asMany(commands, maxprocs, "commands and process counts");
        asMany(commands, info, "commands and infos");
        Frame frame = Frame.get();
        int mark = frame.mark();
        try {
            long[] names = new long[commands.length];
            long[] arguments = new long[commands.length];
            long[] infos = new long[commands.length];
            for (int i = 0; i < names.length; i++) {
                names[i] = frame.text(commands[i]);
                arguments[i] = words(frame, argv == null || argv[i] == null ? new String[0] : argv[i]);
                infos[i] = Info.handle(info[i]);
            }
            long n = frame.longs(names);
            long a = frame.longs(arguments);
            long p = frame.ints(maxprocs);
            long f = frame.longs(infos);
            int errors = frame.push(4 * Math.max(1, errcodes == null ? 1 : errcodes.length));
            boolean told = errcodes != null && errcodes.length >= sum(maxprocs);
            Intercomm made = new Intercomm(made((c, r) -> c.MPI_Comm_spawn_multiple(names.length, n, a, p, f, root, handle, r,
                told ? frame.at(errors) : 0)));
            copyErrors(frame, errors, told ? errcodes : null);
            return made;
        } finally {
            frame.reset(mark);
        }
    }
}
