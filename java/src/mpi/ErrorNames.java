package mpi;

import java.lang.reflect.Field;

/** Names of error classes, as the standard has them. */
final class ErrorNames {
    private ErrorNames() {}

    static String of(int errorClass) {
        for (Field field : Constants.class.getFields()) {
            try {
                if (field.getName().startsWith("ERR_") && field.getInt(null) == errorClass) {
                    return "MPI_" + field.getName();
                }
            } catch (IllegalAccessException e) {
                throw new IllegalStateException(e);
            }
        }
        return "error class " + errorClass;
    }
}
