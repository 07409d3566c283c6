package mpi.internal;

import java.io.File;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;

/**
 * Finds MPI's libraries beside the jar (share/java/mpi.jar: ../../lib), in the directory of the property {@code mpi.lib}, or
 * in java.library.path, and chooses the way to C: java.lang.foreign from Java 22 on, JNI before. The property
 * {@code mpi.native} (jni or foreign) chooses otherwise.
 */
public final class Library {
    private static final int FOREIGN_SINCE = 22;
    private static final String MPI = "libmpi_abi.so.1";
    private static final String JNI = "libmpi_java.so";

    private Library() {}

    /** The functions of C. Throws UnsatisfiedLinkError, which says where it looked. */
    public static Native open() {
        String wanted = System.getProperty("mpi.native", Runtime.version().feature() >= FOREIGN_SINCE ? "foreign" : "jni");
        return switch (wanted) {
            case "foreign" -> foreign();
            case "jni" -> jni();
            default -> throw new UnsatisfiedLinkError("-Dmpi.native=" + wanted + " is neither jni nor foreign");
        };
    }

    private static Native foreign() {
        if (Runtime.version().feature() < FOREIGN_SINCE) {
            throw new UnsatisfiedLinkError("-Dmpi.native=foreign needs Java " + FOREIGN_SINCE + " or later, this is Java "
                + Runtime.version().feature());
        }
        Linkage.open(find(MPI));
        tellPlaces();
        return new Foreign();
    }

    /**
     * Says where the program calls: through JNI if its library is there, because to make a function of C through
     * java.lang.foreign takes some hundredths of a second.
     */
    private static void tellPlaces() {
        try {
            System.load(find(JNI));
            Jni.tellPlaces();
            Lending.enable();
        } catch (UnsatisfiedLinkError e) {
            Linkage.tellPlaces();
        }
    }

    private static Native jni() {
        System.load(find(JNI));
        Lending.enable();
        return new Jni();
    }

    private static String find(String name) {
        StringBuilder tried = new StringBuilder();
        for (String directory : directories()) {
            File file = new File(directory, name);
            if (file.exists()) {
                return file.getAbsolutePath();
            }
            tried.append(' ').append(directory);
        }
        throw new UnsatisfiedLinkError("MPI's library " + name + " is in none of" + tried
            + "; name its directory with -Dmpi.lib=DIRECTORY, or use the mpi.jar of an installation of Kittiwake");
    }

    private static java.util.List<String> directories() {
        java.util.List<String> found = new java.util.ArrayList<>();
        if (System.getProperty("mpi.lib") != null) {
            found.add(System.getProperty("mpi.lib"));
        }
        File jar = jar();
        if (jar != null) {
            found.add(new File(jar.getParentFile(), "../../lib").getPath());
            found.add(jar.getParent());
        }
        for (String directory : System.getProperty("java.library.path", "").split(File.pathSeparator)) {
            if (!directory.isEmpty()) {
                found.add(directory);
            }
        }
        return found;
    }

    /** The jar that this class is in, on any of Java's class paths; null if it is in none. */
    private static File jar() {
        URL place = Library.class.getResource("Library.class");
        String text = place == null ? "" : place.toString();
        int end = text.indexOf("!/");
        if (!text.startsWith("jar:file:") || end < 0) {
            return null;
        }
        try {
            return new File(new URI(text.substring("jar:".length(), end)));
        } catch (URISyntaxException | IllegalArgumentException e) {
            return null;
        }
    }
}
