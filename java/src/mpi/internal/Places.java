package mpi.internal;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Where the program called MPI, for queries during the call: hang reports, KW_CHECK, profiles and traces. A place is a
 * number for a method and a line (crates/base/src/place.rs). The stack is examined only for such a query.
 */
final class Places {
    private static final long FIRST = 1L << 47;
    private static final int LINES = 1 << 20;
    private static final int MODULES = 1 << 26;
    private static final String PACKAGE = "mpi";
    private static final StackWalker WALKER = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);
    private static final Map<Call, Long> KNOWN = new HashMap<>();
    private static final Map<String, Integer> NUMBERS = new HashMap<>();
    private static final List<String> NAMES = new ArrayList<>();

    private Places() {}

    /** An instruction of a method. */
    private record Call(Class<?> type, String method, String descriptor, int at) {}

    /** C asks in the thread that calls; 0 where no method of the program is below this one. */
    static long here() {
        try {
            Optional<StackWalker.StackFrame> found =
                WALKER.walk(frames -> frames.filter(f -> isOfProgram(f.getDeclaringClass())).findFirst());
            return found.isPresent() ? place(found.get()) : 0;
        } catch (Throwable t) { // nothing above could catch it; the place is not known then
            return 0;
        }
    }

    private static boolean isOfProgram(Class<?> type) {
        String name = type.getPackageName();
        return !(name.startsWith(PACKAGE) && (name.equals(PACKAGE) || name.equals("mpi.internal"))) && !name.startsWith("java.");
    }

    private static synchronized long place(StackWalker.StackFrame frame) {
        Call call = new Call(frame.getDeclaringClass(), frame.getMethodName(), frame.getDescriptor(), frame.getByteCodeIndex());
        return KNOWN.computeIfAbsent(call, c -> FIRST + (long) module(frame) * LINES + line(frame) + 1);
    }

    private static int line(StackWalker.StackFrame frame) {
        return Math.max(0, frame.getLineNumber());
    }

    private static int module(StackWalker.StackFrame frame) {
        String file = line(frame) == 0 || frame.getFileName() == null ? "" : frame.getFileName();
        String name = "java:" + file + ":" + frame.getClassName() + "." + frame.getMethodName();
        return NUMBERS.computeIfAbsent(name, n -> {
            NAMES.add(n);
            return Math.min(NAMES.size(), MODULES) - 1;
        });
    }

    /** C asks for the name of a place's method, as UTF-8. */
    static synchronized byte[] name(long place) {
        int module = (int) ((place - FIRST) / LINES);
        return (module >= 0 && module < NAMES.size() ? NAMES.get(module) : "").getBytes(StandardCharsets.UTF_8);
    }

    /** The same into memory, for java.lang.foreign; how many bytes that are. */
    static long write(long place, long address, long room) {
        byte[] name = name(place);
        int length = (int) Math.min(name.length, room);
        Linkage.memory(address, room).put(0, name, 0, length);
        return length;
    }
}
