// Writes the parts of the Java bindings whose forms repeat, from the tables in api/:
//   mpi/internal/Native.java    one abstract method per C function that the sources name
//   mpi/internal/Jni.java       the same through JNI, with kw_jni.c
//   mpi/internal/Foreign.java   the same through java.lang.foreign (Java 22 and later)
//   mpi/Constants.java          MPI's integer constants and error classes
//   mpi/CommCalls.java          the methods of communicators for messages and collectives, in both styles
//   mpi/FileCalls.java          the methods of files that read and write
// Usage: java Generate.java API SOURCES OUT (directories)

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

public final class Generate {
    private static final String NOTE = "// Generated from api/ by java/generate/Generate.java; do not edit.\n";

    /** One parameter of a C function: its name and its Java type, {@code int} or {@code long}. */
    private record Parameter(String name, String java) {}

    /** One C function: the Java type of its result and its parameters. */
    private record Function(String name, String returns, List<Parameter> parameters) {
        String declared() {
            return parameters.stream().map(p -> p.java() + " " + p.name()).collect(Collectors.joining(", "));
        }

        String passed() {
            return parameters.stream().map(Parameter::name).collect(Collectors.joining(", "));
        }
    }

    public static void main(String[] words) throws IOException {
        Path api = Path.of(words[0]);
        Path sources = Path.of(words[1]);
        Path out = Path.of(words[2]);
        Files.createDirectories(out.resolve("mpi/internal"));
        write(out.resolve("mpi/Constants.java"), constants(api));
        String calls = new CommForms(sources.resolve("../generate/collectives.txt")).source();
        write(out.resolve("mpi/CommCalls.java"), NOTE + calls);
        String files = new FileForms().source();
        write(out.resolve("mpi/FileCalls.java"), NOTE + files);
        Map<String, Function> functions = functions(api, used(sources, calls + files));
        write(out.resolve("mpi/internal/Native.java"), natives(functions));
        write(out.resolve("mpi/internal/Jni.java"), jni(functions));
        write(out.resolve("mpi/internal/Foreign.java"), foreign(functions));
        write(out.resolve("kw_jni.c"), jniC(functions));
    }

    private static void write(Path file, String text) throws IOException {
        Files.writeString(file, text);
    }

    /** The names of the C functions that the Java sources and the generated calls mention. */
    private static TreeSet<String> used(Path sources, String calls) throws IOException {
        StringBuilder text = new StringBuilder(calls);
        try (Stream<Path> files = Files.walk(sources)) {
            for (Path file : files.filter(f -> f.toString().endsWith(".java")).toList()) {
                text.append(Files.readString(file));
            }
        }
        TreeSet<String> names = new TreeSet<>();
        Matcher found = Pattern.compile("\\.(MPI_[A-Z]\\w+)\\(").matcher(text);
        while (found.find()) {
            names.add(found.group(1));
        }
        return names;
    }

    private static List<String[]> rows(Path file) throws IOException {
        return Files.readAllLines(file).stream().skip(1).map(line -> line.split("\t", -1)).toList();
    }

    private static String javaType(String c) {
        return switch (c) {
            case "int", "const int" -> "int";
            case "double" -> "double";
            default -> "long";
        };
    }

    private static Map<String, Function> functions(Path api, TreeSet<String> wanted) throws IOException {
        Map<String, Function> functions = new LinkedHashMap<>();
        for (String[] row : rows(api.resolve("functions.tsv"))) {
            if (wanted.remove(row[0])) {
                functions.put(row[0], new Function(row[0], javaType(row[1]), new ArrayList<>()));
            }
        }
        if (!wanted.isEmpty()) {
            throw new IOException("the sources call functions that api/functions.tsv does not have: " + wanted);
        }
        for (String[] row : rows(api.resolve("parameters.tsv"))) {
            Function function = functions.get(row[0]);
            if (function != null && !row[2].equals("...")) {
                String name = row[1].equals("assert") ? "assertion" : row[1];
                function.parameters().add(new Parameter(name, javaType(row[2])));
            }
        }
        return functions;
    }

    private static String constants(Path api) throws IOException {
        StringBuilder text = new StringBuilder(NOTE + """
            package mpi;

            /** MPI's integer constants and error classes; programs name them through {@link MPI}. */
            abstract class Constants {
                Constants() {}

            """);
        for (String[] row : rows(api.resolve("constants.tsv"))) {
            boolean number = row[1].equals("int") || row[1].equals("macro");
            if (number && row[2].matches("-?(0x)?[0-9A-Fa-f]+") && !row[0].matches("MPI_(T|F)_.*")) {
                text.append("    public static final int ").append(row[0].substring(4)).append(" = ").append(row[2])
                    .append(";\n");
            }
        }
        return text.append("}\n").toString();
    }

    private static String natives(Map<String, Function> functions) {
        StringBuilder text = new StringBuilder(NOTE + """
            package mpi.internal;

            import java.nio.Buffer;
            import java.nio.ByteBuffer;

            /** C's functions as Java sees them: handles and addresses are of type long. */
            public abstract class Native {
                Native() {}

                /** Address of the first byte of a direct buffer, whatever its position. */
                public abstract long address(Buffer buffer);

                /** The memory at an address as a buffer. */
                public abstract ByteBuffer memory(long address, long bytes);

                /** Whether an object is a memory segment (Java 22 and later). */
                public abstract boolean isSegment(Object object);

                /** A memory segment as a buffer over the same memory, of which {@code writable} says how it is used. */
                public abstract ByteBuffer segment(Object object);

                /** Address of a C function that calls {@link Callbacks#reduce} with this number; 0 when none is left. */
                public abstract long reduction(int number);

                /** Number of C functions for reductions that there can be at the same time. */
                public abstract int reductions();

            """);
        for (Function f : functions.values()) {
            text.append("    public abstract ").append(f.returns()).append(' ').append(f.name()).append('(')
                .append(f.declared()).append(");\n");
        }
        return text.append("}\n").toString();
    }

    private static String jni(Map<String, Function> functions) {
        StringBuilder text = new StringBuilder(NOTE + """
            package mpi.internal;

            import java.nio.Buffer;
            import java.nio.ByteBuffer;

            /** C's functions through JNI. */
            final class Jni extends Native {
                Jni() {
                    start(Callbacks.class);
                }

                private static native void start(Class<?> callbacks);

                @Override
                public native long address(Buffer buffer);

                @Override
                public native ByteBuffer memory(long address, long bytes);

                @Override
                public boolean isSegment(Object object) {
                    return false;
                }

                @Override
                public ByteBuffer segment(Object object) {
                    throw new IllegalArgumentException("memory segments need java.lang.foreign");
                }

                @Override
                public native long reduction(int number);

                @Override
                public native int reductions();

            """);
        for (Function f : functions.values()) {
            text.append("    @Override\n    public native ").append(f.returns()).append(' ').append(f.name())
                .append('(').append(f.declared()).append(");\n\n");
        }
        return text.append("}\n").toString();
    }

    private static String foreign(Map<String, Function> functions) {
        StringBuilder text = new StringBuilder(NOTE + """
            package mpi.internal;

            import java.lang.invoke.MethodHandle;
            import java.nio.Buffer;
            import java.nio.ByteBuffer;

            /** C's functions through java.lang.foreign; each is looked up when it is first called. */
            final class Foreign extends Native {
                private static final MethodHandle ADDRESS = Linkage.address();

                @Override
                public long address(Buffer buffer) {
                    try {
                        long at = (long) ADDRESS.invokeExact(buffer);
                        int position = buffer.position();
                        return position == 0 ? at : at - Linkage.bytes(buffer, position);
                    } catch (Throwable t) {
                        throw Linkage.unexpected(t);
                    }
                }

                @Override
                public ByteBuffer memory(long address, long bytes) {
                    return Linkage.memory(address, bytes);
                }

                @Override
                public boolean isSegment(Object object) {
                    return Linkage.isSegment(object);
                }

                @Override
                public ByteBuffer segment(Object object) {
                    return Linkage.segment(object);
                }

                @Override
                public long reduction(int number) {
                    return Linkage.reduction(number);
                }

                @Override
                public int reductions() {
                    return Integer.MAX_VALUE;
                }

            """);
        for (Function f : functions.values()) {
            String types = Stream.concat(Stream.of(f.returns()), f.parameters().stream().map(Parameter::java))
                .map(t -> t + ".class").collect(Collectors.joining(", "));
            text.append("    private static final class ").append(f.name()).append("_ {\n")
                .append("        static final MethodHandle CALL = Linkage.function(\"").append(f.name()).append("\", ")
                .append(types).append(");\n    }\n\n");
            text.append("    @Override\n    public ").append(f.returns()).append(' ').append(f.name()).append('(')
                .append(f.declared()).append(") {\n        try {\n            return (").append(f.returns()).append(") ")
                .append(f.name()).append("_.CALL.invokeExact(").append(f.passed()).append(");\n")
                .append("        } catch (Throwable t) {\n            throw Linkage.unexpected(t);\n        }\n    }\n\n");
        }
        return text.append("}\n").toString();
    }

    private static String jniC(Map<String, Function> functions) {
        StringBuilder text = new StringBuilder(NOTE + "#include <jni.h>\n#include <mpi.h>\n#include <stdint.h>\n\n");
        for (Function f : functions.values()) {
            String declared = f.parameters().stream().map(p -> ", j" + p.java() + " " + p.name())
                .collect(Collectors.joining());
            // MPI's own types convert from intptr_t: integers and pointers of one width
            String passed = f.parameters().stream()
                .map(p -> p.java().equals("long") ? "(intptr_t)" + p.name() : p.name())
                .collect(Collectors.joining(", "));
            String types = f.parameters().stream().map(p -> p.java().equals("long") ? "intptr_t" : "int")
                .collect(Collectors.joining(", "));
            text.append("extern j").append(f.returns()).append(" call_").append(f.name()).append('(')
                .append(types.isEmpty() ? "void" : types).append(") __asm__(\"").append(f.name()).append("\");\n");
            text.append("JNIEXPORT j").append(f.returns()).append(" JNICALL Java_mpi_internal_Jni_")
                .append(f.name().replace("_", "_1")).append("(JNIEnv *env, jobject self").append(declared)
                .append(")\n{\n    (void)env, (void)self;\n    return call_").append(f.name()).append('(').append(passed)
                .append(");\n}\n\n");
        }
        return text.toString();
    }
}

/**
 * The methods of communicators. A block of collectives.txt has a line {@code C-name name Name}, a line of parameters in C's
 * order, and lines {@code name = expression} with the addresses of its buffers; a parameter named {@code *buf} is a buffer.
 */
final class CommForms {
    private final Path table;
    private final StringBuilder text = new StringBuilder();

    CommForms(Path table) {
        this.table = table;
    }

    String source() throws IOException {
        text.append("""
            package mpi;

            import mpi.internal.Native;

            /** Messages and collective operations of communicators, in the style of Open MPI's and of mpiJava's bindings. */
            abstract class CommCalls extends CommCore {
                CommCalls(long handle) {
                    super(handle);
                }

            """);
        for (String[] mode : new String[][] {
            {"Send", "send", "iSend", "send"}, {"Bsend", "bSend", "ibSend", "bSend"},
            {"Ssend", "sSend", "isSend", "sSend"}, {"Rsend", "rSend", "irSend", "rSend"}}) {
            send(mode);
        }
        for (String block : Files.readString(table).split("\n\n+")) {
            List<String> lines = block.lines().filter(l -> !l.startsWith("#")).toList();
            if (!lines.isEmpty()) {
                collective(lines);
            }
        }
        return text.append("}\n").toString();
    }

    private void line(String format, Object... values) {
        text.append(format.formatted(values)).append('\n');
    }

    private void send(String[] mode) {
        String c = mode[0];
        String immediate = "I" + c.substring(0, 1).toLowerCase() + c.substring(1);
        String plain = "Object buf, int count, Datatype type, int dest, int tag";
        String offset = "Object buf, int offset, int count, Datatype type, int dest, int tag";
        line("    /** {@code MPI_%s}. The buffer is an array or a direct buffer. */", c);
        line("    public final void %s(%s) throws MPIException {", mode[1], plain);
        line("        %s(buf, 0, count, type, dest, tag);\n    }\n", c);
        line("    /** {@code MPI_%s} from an offset in elements. */", c);
        line("    public final void %s(%s) throws MPIException {", c, offset);
        line("        Native c = MPI.live();");
        line("        if (buf instanceof java.nio.Buffer b && type != null && type.isPlain()) {");
        line("            check(c.MPI_%s(Memory.input(c, b, offset, count, type), count, type.handle, dest, tag, handle));", c);
        line("            java.lang.ref.Reference.reachabilityFence(buf);\n            return;\n        }");
        line("        if (type == MPI.OBJECT) {");
        line("            byte[] bytes = Objects.bytes(buf, offset, count);");
        line("            %s(bytes, 0, bytes.length, MPI.BYTE, dest, tag);\n            return;\n        }", c);
        line("        try (Exchange x = new Exchange(this, Exchange.BLOCKING)) {");
        line("            x.end(c.MPI_%s(x.input(buf, offset, count, type), count, type.handle, dest, tag, handle));", c);
        line("        }\n    }\n");
        for (String[] form : new String[][] {
            {immediate, mode[2], "NONBLOCKING", "Request"}, {c + "_init", mode[3] + "Init", "PERSISTENT", "Prequest"}}) {
            line("    /** {@code MPI_%s}. The request keeps the buffer; an array is copied. */", form[0]);
            line("    public final %s %s(%s) throws MPIException {", form[3], form[1], plain);
            line("        return %s(buf, 0, count, type, dest, tag);\n    }\n", form[0]);
            line("    /** {@code MPI_%s} from an offset in elements. */", form[0]);
            line("    public final %s %s(%s) throws MPIException {", form[3], form[0], offset);
            line("        Native c = MPI.live();");
            if (form[2].equals("NONBLOCKING")) {
                line("        if (type == MPI.OBJECT) {");
                line("            byte[] bytes = Objects.bytes(buf, offset, count);");
                line("            return %s(bytes, 0, bytes.length, MPI.BYTE, dest, tag);\n        }", form[0]);
            }
            line("        try (Exchange x = new Exchange(this, Exchange.%s)) {", form[2]);
            line("            long at = x.input(buf, offset, count, type);");
            line("            int rc = c.MPI_%s(at, count, type.handle, dest, tag, handle, x.request());", form[0]);
            line("            return x.%s(rc);", form[3].equals("Request") ? "started" : "prepared");
            line("        }\n    }\n");
        }
    }

    private static String capital(String name) {
        return Character.toUpperCase(name.charAt(0)) + name.substring(1);
    }

    private void collective(List<String> lines) {
        String[] names = lines.get(0).split(" ");
        List<String[]> parameters = Stream.of(lines.get(1).split(", *")).filter(p -> !p.equals("-")).map(p -> p.split(" ")).toList();
        Map<String, String> places = new LinkedHashMap<>();
        List<String> objects = new ArrayList<>();
        for (String l : lines.subList(2, lines.size())) {
            if (l.startsWith("objects ")) {
                objects.add(l.substring(8));
            } else {
                String[] parts = l.split(" = ", 2);
                places.put(parts[0], parts[1]);
            }
        }
        String c = names[0];
        String immediate = "I" + c.substring(0, 1).toLowerCase() + c.substring(1);
        form(names[1], c, "void", "BLOCKING", "", parameters);
        form("i" + capital(names[1]), immediate, "Request", "NONBLOCKING", "", parameters);
        form(names[1] + "Init", c + "_init", "Prequest", "PERSISTENT", "info", parameters);
        if (names.length > 2) {
            line("    /** {@code MPI_%s} with offsets in elements. */", c);
            line("    public final void %s(%s) throws MPIException {", names[2], declared(parameters, true));
            line("        %s(Exchange.BLOCKING, null%s);\n    }\n", core(c), passed(parameters, true));
        }
        for (String l : inPlace(names[1])) {
            text.append(l);
        }
        body(c, immediate, parameters, places, objects);
    }

    private static String core(String c) {
        return "do" + c.replace("_", "");
    }

    private static boolean isBuffer(String[] p) {
        return p[0].equals("Object");
    }

    private static String declared(List<String[]> parameters, boolean offsets) {
        return parameters.stream()
            .map(p -> p[0] + " " + p[1] + (offsets && isBuffer(p) ? ", int " + p[1] + "Offset" : ""))
            .collect(Collectors.joining(", "));
    }

    private static String passed(List<String[]> parameters, boolean offsets) {
        return parameters.stream().map(p -> ", " + p[1] + (isBuffer(p) ? offsets ? ", " + p[1] + "Offset" : ", 0" : ""))
            .collect(Collectors.joining());
    }

    private void form(String name, String c, String returns, String mode, String info, List<String[]> parameters) {
        String declared = declared(parameters, false);
        line("    /** {@code MPI_%s}. */", c);
        String more = info.isEmpty() ? "" : (declared.isEmpty() ? "" : ", ") + "Info info";
        line("    public final %s %s(%s%s) throws MPIException {", returns, name, declared, more);
        String cast = returns.equals("void") ? "" : "return " + (returns.equals("Prequest") ? "(Prequest) " : "");
        String bare = c.replaceFirst("_init$", "");
        if (mode.equals("NONBLOCKING")) {
            bare = capital(bare.substring(1));
        }
        line("        %s%s(Exchange.%s, %s%s);\n    }\n", cast, core(bare), mode, info.isEmpty() ? "null" : info,
            passed(parameters, false));
    }

    private void body(String c, String immediate, List<String[]> parameters, Map<String, String> places, List<String> objects) {
        String declared = declared(parameters, true);
        line("    private Request %s(int mode, Info info%s) throws MPIException {", core(c),
            declared.isEmpty() ? "" : ", " + declared);
        line("        Native c = MPI.live();");
        for (String o : objects) {
            line("        %s", o);
        }
        line("        try (Exchange x = new Exchange(this, mode)) {");
        places.forEach((name, expression) -> line("            long %sAt = %s;", name, expression));
        String args = parameters.stream().map(p -> switch (p[0]) {
            case "Object" -> p[1] + "At";
            case "int[]" -> "x.ints(" + p[1] + ")";
            case "Datatype" -> "handle(" + p[1] + ")";
            case "Datatype[]" -> "x.types(" + p[1] + ")";
            case "Op" -> "x.op(" + p[1] + ")";
            default -> p[1];
        } + ", ").collect(Collectors.joining());
        line("            return x.end(switch (mode) {");
        line("                case Exchange.BLOCKING -> c.MPI_%s(%shandle);", c, args);
        line("                case Exchange.NONBLOCKING -> c.MPI_%s(%shandle, x.request());", immediate, args);
        line("                default -> c.MPI_%s_init(%shandle, Info.handle(info), x.request());", c, args);
        line("            });\n        }\n    }\n");
    }

    /** The overloads of Open MPI's bindings whose one buffer is sent and received. */
    private static List<String> inPlace(String name) {
        List<String> out = new ArrayList<>();
        String[][] forms = switch (name) {
            case "gather" -> rooted("gather", "Object buf, int count, Datatype type, int root", "MPI.IN_PLACE, 0, type, buf, count, type, root",
                "buf, count, type, null, 0, type, root");
            case "scatter" -> rooted("scatter", "Object buf, int count, Datatype type, int root", "buf, count, type, MPI.IN_PLACE, 0, type, root",
                "null, 0, type, buf, count, type, root");
            case "gatherv" -> new String[][] {
                {"gatherv", "Object recvbuf, int[] recvcounts, int[] displs, Datatype recvtype, int root",
                    "MPI.IN_PLACE, 0, recvtype, recvbuf, recvcounts, displs, recvtype, root"},
                {"gatherv", "Object sendbuf, int sendcount, Datatype sendtype, int root",
                    "sendbuf, sendcount, sendtype, null, null, null, sendtype, root"}};
            case "scatterv" -> new String[][] {
                {"scatterv", "Object sendbuf, int[] sendcounts, int[] displs, Datatype sendtype, int root",
                    "sendbuf, sendcounts, displs, sendtype, MPI.IN_PLACE, 0, sendtype, root"},
                {"scatterv", "Object recvbuf, int recvcount, Datatype recvtype, int root",
                    "null, null, null, recvtype, recvbuf, recvcount, recvtype, root"}};
            case "allGather" -> new String[][] {{"allGather", "Object buf, int count, Datatype type",
                "MPI.IN_PLACE, 0, type, buf, count, type"}};
            case "allGatherv" -> new String[][] {{"allGatherv", "Object recvbuf, int[] recvcounts, int[] displs, Datatype recvtype",
                "MPI.IN_PLACE, 0, recvtype, recvbuf, recvcounts, displs, recvtype"}};
            case "reduce" -> rooted("reduce", "Object buf, int count, Datatype type, Op op, int root",
                "MPI.IN_PLACE, buf, count, type, op, root", "buf, null, count, type, op, root");
            case "allReduce", "reduceScatterBlock", "scan", "exScan" -> new String[][] {{name,
                "Object buf, int count, Datatype type, Op op", "MPI.IN_PLACE, buf, count, type, op"}};
            case "reduceScatter" -> new String[][] {{name,
                "Object buf, int[] recvcounts, Datatype type, Op op", "MPI.IN_PLACE, buf, recvcounts, type, op"}};
            default -> new String[0][];
        };
        for (String[] form : forms) {
            out.add(overload(form[0], "void", form));
            out.add(overload("i" + capital(form[0]), "Request", form));
        }
        return out;
    }

    private static String[][] rooted(String name, String declared, String atRoot, String elsewhere) {
        return new String[][] {{name, declared, atRoot, elsewhere}};
    }

    private static String overload(String name, String returns, String[] form) {
        String back = returns.equals("void") ? "" : "return ";
        String head = "    /** The same with one buffer, in place where the standard has it. */\n    public final %s %s(%s) throws MPIException {\n"
            .formatted(returns, name, form[1]);
        if (form.length == 3) {
            return head + "        %s%s(%s);\n    }\n\n".formatted(back, name, form[2]);
        }
        String other = returns.equals("void") ? "        } else {\n            %s(%s);\n        }\n" : "        }\n        return %s(%s);\n";
        return head + "        if (isRoot(root)) {\n            %s%s(%s);\n".formatted(back, name, form[2])
            + other.formatted(name, form[3]) + "    }\n\n";
    }
}

/** The methods of files that read and write: at an offset or not, of one rank or all, blocking, nonblocking and split. */
final class FileForms {
    private final StringBuilder text = new StringBuilder();

    String source() {
        text.append("""
            package mpi;

            import mpi.internal.Native;

            /** What reads and writes files. Offsets are in elements of the view's etype. */
            abstract class FileCalls {
                long handle;
                private Exchange split;

                FileCalls(long handle) {
                    this.handle = handle;
                }

                private void begun(Exchange x, int rc) {
                    if (split != null) {
                        x.close();
                        throw MPIException.wrong(MPI.ERR_OTHER, "a split operation on the file has begun, it must end first");
                    }
                    MPI.check(rc);
                    split = x;
                }

                private Exchange ending() {
                    if (split == null) {
                        throw MPIException.wrong(MPI.ERR_OTHER, "no split operation on the file has begun");
                    }
                    Exchange x = split;
                    split = null;
                    return x;
                }

            """);
        for (String verb : new String[] {"read", "write"}) {
            for (String[] form : new String[][] {
                {"_at", "At", "i"}, {"_at_all", "AtAll", "i"}, {"", "", "i"}, {"_all", "All", "i"},
                {"_shared", "Shared", "i"}, {"_ordered", "Ordered", ""}}) {
                boolean at = form[0].startsWith("_at");
                blocking(verb, form[0], form[1], at);
                if (!form[2].isEmpty()) {
                    immediate(verb, form[0], form[1], at);
                }
                if (form[0].endsWith("all") || form[0].equals("_ordered")) {
                    split(verb, form[0], form[1], at);
                }
            }
        }
        return text.append("}\n").toString();
    }

    private void line(String format, Object... values) {
        text.append(format.formatted(values)).append('\n');
    }

    private static String address(String verb) {
        return verb.equals("read") ? "x.message(buf, 0, count, type)" : "x.input(buf, 0, count, type)";
    }

    private static String parameters(boolean at) {
        return (at ? "long fileOffset, " : "") + "Object buf, int count, Datatype type";
    }

    private void blocking(String verb, String c, String java, boolean at) {
        line("    /** {@code MPI_File_%s%s}. */", verb, c);
        line("    public final Status %s%s(%s) throws MPIException {", verb, java, parameters(at));
        line("        Native c = MPI.live();\n        try (Exchange x = new Exchange(null, Exchange.BLOCKING)) {");
        line("            int status = x.frame().push(Status.BYTES);\n            long at = %s;", address(verb));
        line("            return x.received(c.MPI_File_%s%s(handle, %sat, count, type.handle, x.frame().at(status)), status);",
            verb, c, at ? "fileOffset, " : "");
        line("        }\n    }\n");
    }

    private void immediate(String verb, String c, String java, boolean at) {
        String name = Character.toUpperCase(verb.charAt(0)) + verb.substring(1) + java;
        line("    /** {@code MPI_File_i%s%s}. */", verb, c);
        line("    public final Request i%s(%s) throws MPIException {", name, parameters(at));
        line("        Native c = MPI.live();\n        try (Exchange x = new Exchange(null, Exchange.NONBLOCKING)) {");
        line("            long at = %s;", address(verb));
        line("            return x.started(c.MPI_File_i%s%s(handle, %sat, count, type.handle, x.request()));", verb, c,
            at ? "fileOffset, " : "");
        line("        }\n    }\n");
    }

    private void split(String verb, String c, String java, boolean at) {
        line("    /** {@code MPI_File_%s%s_begin}. */", verb, c);
        line("    public final void %s%sBegin(%s) throws MPIException {", verb, java, parameters(at));
        line("        Native c = MPI.live();\n        Exchange x = new Exchange(null, Exchange.NONBLOCKING);");
        line("        x.first(%s);", address(verb));
        line("        begun(x, c.MPI_File_%s%s_begin(handle, %sx.first(), count, type.handle));\n    }\n", verb, c,
            at ? "fileOffset, " : "");
        line("    /** {@code MPI_File_%s%s_end}. */", verb, c);
        line("    public final Status %s%sEnd(Object buf) throws MPIException {", verb, java);
        line("        Native c = MPI.live();\n        try (Exchange x = ending()) {");
        line("            int status = x.frame().push(Status.BYTES);");
        line("            return x.received(c.MPI_File_%s%s_end(handle, x.first(), x.frame().at(status)), status);\n        }\n    }\n",
            verb, c);
    }
}
