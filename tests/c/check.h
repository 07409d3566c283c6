/* Checks for the C conformance tests. A failed check prints rank, file and line and lets the test go on; the process
 * then ends with status 1. Works with any MPI library of version 4.1 or later.
 *
 * The first lines of a test may say how it is run:   // run: n=2,4 timeout=60
 */
#ifndef CHECK_H
#define CHECK_H
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int check_failed, check_rank = -1, check_size;
static MPI_Comm check_comm = MPI_COMM_NULL;

/* Some checks are made only of our own library: others have faults there, or handles that are pointers. */
#ifndef STRICT
#define STRICT 0
#endif

#define FAILED(...) do {                                                              \
        if (check_failed++ < 20) {                                                    \
            fprintf(stderr, "FAILED on rank %d, %s:%d: ", check_rank, __FILE__, __LINE__); \
            fprintf(stderr, __VA_ARGS__);                                             \
            fputc('\n', stderr);                                                      \
        }                                                                             \
    } while (0)

#define CHECK(cond) do { if (!(cond)) FAILED("%s", #cond); } while (0)

#define CHECK_EQ(got, want) do {                                                      \
        long long got_ = (long long)(got), want_ = (long long)(want);                 \
        if (got_ != want_) FAILED("%s is %lld, not %lld (%s)", #got, got_, want_, #want); \
    } while (0)

/* How often a test does what it repeats: `all` in `make check-all` (CHECK_ALL), otherwise a part that finds the same. */
static inline int check_times(int all, int part) {
    const char *set = getenv("CHECK_ALL");
    return set && *set ? all : part;
}

static inline int check_class(int code) {
    int cls = code;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &cls);
    return cls;
}

/* The call fails with this class (under MPI_ERRORS_RETURN). */
#define CHECK_CLASS(call, cls) do {                                                   \
        int got_ = check_class(call);                                                 \
        if (got_ != (cls)) FAILED("%s: class %d, not %d (%s)", #call, got_, (int)(cls), #cls); \
    } while (0)

/* The same, by another name. */
#define CHECK_FAILS(call, cls) CHECK_CLASS(call, cls)

/* The call succeeds. */
#define OK(call) CHECK_CLASS(call, MPI_SUCCESS)

static inline void check_begin(int *argc, char ***argv, int level) {
    int provided;
    MPI_Init_thread(argc, argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    if (provided < level) {
        if (check_rank == 0) printf("skipped: thread level %d is not provided\n", level);
        MPI_Finalize();
        exit(0);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &check_comm);
}

static inline int check_end(void) {
    MPI_Comm_free(&check_comm);
    MPI_Finalize();
    return check_failed != 0;
}

/* Kilobytes in the line of this name of /proc/self/status; 0 where the system does not say. */
static inline long check_kilobytes(const char *name) {
    char line[256];
    long kb = 0;
    size_t length = strlen(name);
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, length) == 0 && line[length] == ':') sscanf(line + length + 1, "%ld", &kb);
    if (f) fclose(f);
    return kb;
}

/* Bytes that the kernel takes at most for a TCP connection, from the last number of a file of /proc/sys/net/ipv4: tcp_wmem for the
 * sender, tcp_rmem for the receiver; `otherwise` where it cannot be read. */
static inline long long check_kernel_bytes(const char *name, long long otherwise) {
    char path[64];
    long long least, first, most;
    snprintf(path, sizeof path, "/proc/sys/net/ipv4/%s", name);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%lld %lld %lld", &least, &first, &most) != 3) most = otherwise;
    if (f) fclose(f);
    return most;
}

/* A flood: messages of one number that a receiver which does not run finds in the kernels of both sides when it runs again. It keeps
 * seven bytes for each of theirs, besides 64 MB. */
static inline long long check_flood_kept(void) {
    const char *paths = getenv("KW_PATHS");
    int tcp = paths && strstr(paths, "tcp") && !strstr(paths, "shm");
    return (64 << 20) + 7 * (check_kernel_bytes("tcp_wmem", 4 << 20) + (tcp ? check_kernel_bytes("tcp_rmem", 6 << 20) : 0));
}

/* Messages of a flood: a receiver that kept all of them (280 bytes each) would exceed check_flood_limit. */
static inline long check_flood_messages(void) {
    long enough = check_flood_kept() / 200, some = check_times(1000000, 500000);
    return some > enough ? some : enough;
}

/* Bytes by which the memory of a receiver may grow in a flood of `many` messages. */
static inline long long check_flood_limit(long many) { return 2 * 8ll * many + check_flood_kept(); }

/* Whether the ranks compare their calls before they do anything else. */
static inline int is_checked(void) {
    const char *check = getenv("KW_CHECK");
    return check && (*check == '1' || *check == 'y');
}

/* Everybody meets here, with point-to-point messages of their own communicator only. */
static inline void meet(void) {
    int step;
    for (step = 1; step < check_size; step *= 2)
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (check_rank + step) % check_size, 0, NULL, 0, MPI_BYTE,
                     (check_rank - step + check_size) % check_size, 0, check_comm, MPI_STATUS_IGNORE);
}

/* Random numbers that are the same everywhere. */
static inline uint64_t rnd(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Bytes that depend on a seed and on the position. */
static inline void fill(void *p, size_t n, uint64_t seed) {
    unsigned char *b = p;
    size_t i;
    for (i = 0; i < n; i++) b[i] = (unsigned char)((seed * 131 + i * 7 + (i >> 8)) ^ (i >> 16));
}

/* Position of the first byte that is not as `fill` made it, or -1. */
static inline long long differs(const void *p, size_t n, uint64_t seed) {
    const unsigned char *b = p;
    size_t i;
    for (i = 0; i < n; i++)
        if (b[i] != (unsigned char)((seed * 131 + i * 7 + (i >> 8)) ^ (i >> 16))) return (long long)i;
    return -1;
}

static inline long long count_of(MPI_Status *status, MPI_Datatype type) {
    int n = -7;
    MPI_Get_count(status, type, &n);
    return n;
}

/* For programs that call MPI_Init themselves: ends MPI; 0 when all ranks found everything right. */
static inline int check_result(void) {
    int total = 0, rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&check_failed, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0) puts(total ? "failed" : "passed");
    return total != 0;
}
#endif
