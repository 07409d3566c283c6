// Writes the ways from Java to C, from the tables in api/:
//   mpi/internal/Native.java    one abstract method per C function that the sources name
//   mpi/internal/Jni.java       the same through JNI, with kw_jni.c
//   mpi/internal/Foreign.java   the same through java.lang.foreign (Java 22 and later)
// Usage: java Natives.java API SOURCES OUT (directories); OUT has what Forms.java wrote.

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

public final class Natives {
    private static final String NOTE = "// Generated from api/ by java/generate/Natives.java; do not edit.\n";

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
        Map<String, Function> functions = functions(api, used(sources, out));
        write(out.resolve("mpi/internal/Native.java"), natives(functions));
        write(out.resolve("mpi/internal/Jni.java"), jni(functions));
        write(out.resolve("mpi/internal/Foreign.java"), foreign(functions));
        write(out.resolve("kw_jni.c"), jniC(functions));
    }

    private static void write(Path file, String text) throws IOException {
        Files.writeString(file, text);
    }

    /** The names of the C functions that the Java sources call, those by hand and those that Forms.java wrote. */
    private static TreeSet<String> used(Path... directories) throws IOException {
        StringBuilder text = new StringBuilder();
        for (Path directory : directories) {
            try (Stream<Path> files = Files.walk(directory)) {
                for (Path file : files.filter(f -> f.toString().endsWith(".java")).toList()) {
                    text.append(Files.readString(file));
                }
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
        Parameters all = new Parameters(api);
        for (Function function : functions.values()) {
            for (String[] row : all.of(function.name())) {
                if (!row[2].equals("...")) {
                    String name = row[1].equals("assert") ? "assertion" : row[1];
                    function.parameters().add(new Parameter(name, javaType(row[2])));
                }
            }
        }
        return functions;
    }

    /** The parameters of every function: those in parameters.tsv, and those that follow from another function's. */
    private static final class Parameters {
        private final Map<String, List<String[]>> stored;
        private final Map<String, String[]> functions;
        private final Map<String, String[]> forms;

        Parameters(Path api) throws IOException {
            stored = rows(api.resolve("parameters.tsv")).stream().collect(Collectors.groupingBy(row -> row[0]));
            functions = byName(rows(api.resolve("functions.tsv")));
            forms = byName(rows(api.resolve("forms.tsv")));
        }

        private static Map<String, String[]> byName(List<String[]> rows) {
            return rows.stream().collect(Collectors.toMap(row -> row[0], row -> row));
        }

        /** The rules are those of crates/apigen/src/derived.rs, as far as Java's types differ by them. */
        List<String[]> of(String name) {
            String base = functions.get(name)[6];
            String[] form = forms.get(name);
            if (stored.containsKey(name) || base.equals("-") && form == null) {
                return stored.getOrDefault(name, List.of());
            }
            if (!base.equals("-")) {
                return of(base).stream().map(Parameters::widened).toList();
            }
            List<String[]> all = new ArrayList<>(of(form[2]));
            if (form[1].equals("nonblocking") || form[1].equals("persistent")) {
                all.removeIf(row -> row[3].equals("STATUS"));
                if (form[1].equals("persistent") && !functions.get(form[2])[3].equals("point-to-point")) {
                    all.add(new String[] {name, "info", "MPI_Info", "INFO"});
                }
                all.add(new String[] {name, "request", "MPI_Request *", "REQUEST"});
            }
            return all;
        }

        private static String[] widened(String[] row) {
            boolean wider = row[2].equals("int") && row[3].startsWith("POLY");
            return new String[] {row[0], row[1], wider ? "MPI_Count" : row[2], row[3]};
        }
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

            import java.lang.invoke.MethodHandle;
            import java.nio.Buffer;
            import java.nio.ByteBuffer;

            /** C's functions through JNI. */
            final class Jni extends Native {
                Jni() {
                    tellPlaces();
                }

                private static native void start(Class<?> callbacks, Class<?> places);

                /** What java.lang.foreign has of JNI, whose library is loaded. */
                static void tellPlaces() {
                    start(Callbacks.class, Places.class);
                }

                private static native long find(Buffer buffer);

                private static final class Known {
                    static final MethodHandle ADDRESS = Addresses.find(Jni::find);
                }

                @Override
                public long address(Buffer buffer) {
                    if (Known.ADDRESS == null) {
                        return find(buffer);
                    }
                    try {
                        return (long) Known.ADDRESS.invokeExact(buffer);
                    } catch (Throwable t) {
                        throw new AssertionError("reading a field does not fail", t);
                    }
                }

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
