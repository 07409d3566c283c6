/* Arrays of Java in messages: MPI copies straight from and to them. It asks for the address of an array for one piece at a
   time (crates/sys/src/buf/moving.rs), so the garbage collector waits for a copy of some microseconds and never for a call. */
#include <jni.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

/* Kittiwake's own (crates/abi/src/bindings.rs). */
extern int kw_MPI_Type_moving(MPI_Datatype datatype, MPI_Datatype *moving) __attribute__((weak));

/* What MPI gets as the address of a buffer. */
struct lent {
    void *(*hold)(struct lent *);
    void (*release)(struct lent *, void *);
    JavaVM *machine;
    jarray array;
    /* of the first byte in the array */
    size_t offset;
    /* what JNI has to do when MPI releases it */
    jint mode;
    /* whether the thread that holds it is to be detached */
    int attached;
};

static void *hold(struct lent *lent)
{
    JNIEnv *env;
    lent->attached = (*lent->machine)->GetEnv(lent->machine, (void **)&env, JNI_VERSION_10) != JNI_OK;
    if (lent->attached && (*lent->machine)->AttachCurrentThreadAsDaemon(lent->machine, (void **)&env, NULL) != JNI_OK) abort();
    char *first = (*env)->GetPrimitiveArrayCritical(env, lent->array, NULL);
    if (!first) (*env)->FatalError(env, "Java has no memory for an array that MPI sends or receives");
    return first + lent->offset;
}

static void release(struct lent *lent, void *first)
{
    JNIEnv *env;
    (*lent->machine)->GetEnv(lent->machine, (void **)&env, JNI_VERSION_10);
    (*env)->ReleasePrimitiveArrayCritical(env, lent->array, (char *)first - lent->offset, lent->mode);
    if (lent->attached) (*lent->machine)->DetachCurrentThread(lent->machine);
}

JNIEXPORT jlong JNICALL Java_mpi_internal_Lending_start(JNIEnv *env, jclass self, jarray array, jlong offset, jboolean writes)
{
    (void)self;
    struct lent *lent = malloc(sizeof *lent);
    if (!lent) return 0;
    *lent = (struct lent){hold, release, NULL, (*env)->NewGlobalRef(env, array), offset, writes ? 0 : JNI_ABORT, 0};
    (*env)->GetJavaVM(env, &lent->machine);
    if (lent->array) return (jlong)(intptr_t)lent;
    free(lent);
    return 0;
}

JNIEXPORT void JNICALL Java_mpi_internal_Lending_stop(JNIEnv *env, jclass self, jlong at)
{
    (void)self;
    struct lent *lent = (struct lent *)(intptr_t)at;
    (*env)->DeleteGlobalRef(env, lent->array);
    free(lent);
}

JNIEXPORT jlong JNICALL Java_mpi_internal_Lending_type(JNIEnv *env, jclass self, jlong datatype)
{
    (void)env, (void)self;
    MPI_Datatype moving;
    int rc = kw_MPI_Type_moving ? kw_MPI_Type_moving((MPI_Datatype)(intptr_t)datatype, &moving) : MPI_ERR_OTHER;
    return rc == MPI_SUCCESS ? (jlong)(intptr_t)moving : 0;
}
