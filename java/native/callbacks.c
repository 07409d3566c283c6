/* What JNI needs beside the calls of C's functions (kw_jni.c): addresses of buffers, and functions of C that call Java:
   reductions, and where the program called. */
#include <jni.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

static JavaVM *machine;
static jclass callbacks;
static jclass places;
static jmethodID reduce;
static jmethodID here;
static jmethodID name;

/* Kittiwake's own (crates/abi/src/bindings.rs): it asks where the program called, and what that place is named. */
extern int kw_MPI_Language(uint64_t (*place)(void), size_t (*name)(uint64_t, char *, size_t)) __attribute__((weak));

/* What Java calls C with in this thread, where that can be called now. */
static JNIEnv *calling(void)
{
    JNIEnv *env;
    int calls = (*machine)->GetEnv(machine, (void **)&env, JNI_VERSION_10) == JNI_OK && !(*env)->ExceptionCheck(env);
    return calls ? env : NULL;
}

static uint64_t place(void)
{
    JNIEnv *env = calling();
    return env ? (uint64_t)(*env)->CallStaticLongMethod(env, places, here) : 0;
}

static size_t place_name(uint64_t place, char *to, size_t room)
{
    JNIEnv *env = calling();
    jbyteArray found = env ? (*env)->CallStaticObjectMethod(env, places, name, (jlong)place) : NULL;
    if (env && (*env)->ExceptionCheck(env)) (*env)->ExceptionClear(env);
    if (!found) return 0;
    size_t length = (*env)->GetArrayLength(env, found);
    if (length > room) length = room;
    (*env)->GetByteArrayRegion(env, found, 0, length, (jbyte *)to);
    (*env)->DeleteLocalRef(env, found);
    return length;
}

/* A thread that Java does not know (MPI's progress thread) is attached for the length of one call. */
static void call_java(int number, void *in, void *in_out, int *count, MPI_Datatype *type)
{
    JNIEnv *env;
    int attached = (*machine)->GetEnv(machine, (void **)&env, JNI_VERSION_10) == JNI_OK;
    if (!attached && (*machine)->AttachCurrentThreadAsDaemon(machine, (void **)&env, NULL) != JNI_OK) return;
    (*env)->CallStaticVoidMethod(env, callbacks, reduce, (jint)number, (jlong)(intptr_t)in, (jlong)(intptr_t)in_out,
                                 (jint)*count, (jlong)(intptr_t)*type);
    if (!attached) (*machine)->DetachCurrentThread(machine);
}

/* MPI passes a reduction nothing by which it would know itself: each has a function of its own. */
#define ONE(n) \
    static void reduction_##n(void *a, void *b, int *count, MPI_Datatype *type) { call_java(0x##n, a, b, count, type); }
#define SIXTEEN(n) \
    ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) \
    ONE(n##8) ONE(n##9) ONE(n##a) ONE(n##b) ONE(n##c) ONE(n##d) ONE(n##e) ONE(n##f)
SIXTEEN(0) SIXTEEN(1) SIXTEEN(2) SIXTEEN(3) SIXTEEN(4) SIXTEEN(5) SIXTEEN(6) SIXTEEN(7)
#define NAME(n) reduction_##n,
#define NAMES(n) \
    NAME(n##0) NAME(n##1) NAME(n##2) NAME(n##3) NAME(n##4) NAME(n##5) NAME(n##6) NAME(n##7) \
    NAME(n##8) NAME(n##9) NAME(n##a) NAME(n##b) NAME(n##c) NAME(n##d) NAME(n##e) NAME(n##f)
static MPI_User_function *const reductions[] = {
    NAMES(0) NAMES(1) NAMES(2) NAMES(3) NAMES(4) NAMES(5) NAMES(6) NAMES(7)
};
enum { REDUCTIONS = sizeof reductions / sizeof *reductions };

JNIEXPORT void JNICALL Java_mpi_internal_Jni_start(JNIEnv *env, jclass self, jclass to, jclass of_places)
{
    (void)self;
    (*env)->GetJavaVM(env, &machine);
    callbacks = (*env)->NewGlobalRef(env, to);
    reduce = (*env)->GetStaticMethodID(env, to, "reduce", "(IJJIJ)V");
    places = (*env)->NewGlobalRef(env, of_places);
    here = (*env)->GetStaticMethodID(env, of_places, "here", "()J");
    name = (*env)->GetStaticMethodID(env, of_places, "name", "(J)[B");
    if (kw_MPI_Language) kw_MPI_Language(place, place_name);
}

JNIEXPORT jlong JNICALL Java_mpi_internal_Jni_find(JNIEnv *env, jclass self, jobject buffer)
{
    (void)self;
    return (jlong)(intptr_t)(*env)->GetDirectBufferAddress(env, buffer);
}

JNIEXPORT jobject JNICALL Java_mpi_internal_Jni_memory(JNIEnv *env, jobject self, jlong address, jlong bytes)
{
    (void)self;
    return (*env)->NewDirectByteBuffer(env, (void *)(intptr_t)address, bytes);
}

JNIEXPORT jlong JNICALL Java_mpi_internal_Jni_reduction(JNIEnv *env, jobject self, jint number)
{
    (void)env, (void)self;
    return number < REDUCTIONS ? (jlong)(intptr_t)reductions[number] : 0;
}

JNIEXPORT jint JNICALL Java_mpi_internal_Jni_reductions(JNIEnv *env, jobject self)
{
    (void)env, (void)self;
    return REDUCTIONS;
}
