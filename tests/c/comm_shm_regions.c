// run: n=2,4 timeout=120 abi=one paths=one
/* Hundreds of communicators that live at once have a shm region each, also after others have gone in any order, and memory stays
 * bounded: the 65th communicator of a host went by messages. */
#include "check.h"

#define MANY 200
#define LONG 8192

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle;
static double in[LONG], out[LONG];

/* How often this rank has used a shm region. */
static long used(void) {
    unsigned long long value = 0;
    if (STRICT) OK(MPI_T_pvar_read(session, handle, &value));
    return (long)value;
}

static void watch_shm_regions(void) {
    int index, count, level;
    if (!STRICT) return;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_get_index("shm_collectives", MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    OK(MPI_T_pvar_start(session, handle));
}

/* Shared memory that this rank sees, in KB. */
static long shared_kb(void) {
    return check_kilobytes("RssShmem");
}

static void allreduce(MPI_Comm comm, int count, int salt) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < count; i++) in[i] = rank + salt + i;
    OK(MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm));
    for (int i = 0; i < count; i++)
        if (out[i] != size * (salt + i) + size * (size - 1) / 2) {
            FAILED("double %d of %d is %g", i, count, out[i]);
            break;
        }
}

static void bcast(MPI_Comm comm, int count, int salt) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < count; i++) in[i] = rank == size - 1 ? salt + i : -1;
    OK(MPI_Bcast(in, count, MPI_DOUBLE, size - 1, comm));
    for (int i = 0; i < count; i++)
        if (in[i] != salt + i) {
            FAILED("double %d of %d is %g", i, count, in[i]);
            break;
        }
}

/* Uses a communicator; how many collectives went through a shm region. */
static long use(MPI_Comm comm, int salt) {
    OK(MPI_Barrier(comm)); /* The first call finds the shm region, and goes by messages. */
    long before = used();
    OK(MPI_Barrier(comm));
    for (int count = 1; count <= LONG; count *= LONG) {
        allreduce(comm, count, salt);
        bcast(comm, count, salt);
    }
    return used() - before;
}

static void make(MPI_Comm *comm, int i) {
    if (i % 2 == 0) OK(MPI_Comm_dup(check_comm, comm));
    else OK(MPI_Comm_split(check_comm, check_rank / 2, -check_rank, comm));
}

/* All of them alive at once, each used in two rounds; they go in an order in which none is the next of its neighbour, and the gaps
 * are filled in between. */
static void many(void) {
    static MPI_Comm comms[2 * MANY];
    long expected[2] = {-1, -1}, before = shared_kb(), most, after;
    for (int i = 0; i < 2 * MANY; i++) {
        make(&comms[i], i);
        long shm_regions = use(comms[i], i);
        if (expected[i % 2] < 0) expected[i % 2] = shm_regions;
        CHECK_EQ(shm_regions, expected[i % 2]);
    }
    const char *paths = getenv("KW_PATHS");
    if (STRICT && (!paths || strstr(paths, "shm")) && !getenv("KW_CHECK")) CHECK(expected[0] >= 3 && expected[1] >= 3);
    for (int i = 0; i < 2 * MANY; i++) CHECK_EQ(use(comms[i], 2 * i), expected[i % 2]);
    most = shared_kb();
    for (int i = 0; i < 2 * MANY; i += 3) OK(MPI_Comm_free(&comms[i]));
    for (int i = 0; i < 2 * MANY; i += 3) {
        make(&comms[i], i);
        CHECK_EQ(use(comms[i], 3 * i), expected[i % 2]);
    }
    for (int i = 0; i < 2 * MANY; i++) OK(MPI_Comm_free(&comms[i * 7 % (2 * MANY)]));
    meet();
    after = shared_kb();
    if (STRICT && most - before > 10000 && after - before > (most - before) / 2)
        FAILED("%ld KB of shared memory before, %ld with %d communicators, %ld without them", before, most, 2 * MANY, after);
}

/* Communicators that come and go. */
static void loop(void) {
    long early = 0, late;
    for (int i = 0; i < 2000; i++) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(check_comm, &comm));
        OK(MPI_Barrier(comm));
        allreduce(comm, LONG, i);
        OK(MPI_Comm_free(&comm));
        if (i == 200) early = shared_kb();
    }
    late = shared_kb();
    if (STRICT && late > early + 4096) FAILED("%ld KB of shared memory after 200 communicators, %ld after 2000", early, late);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    watch_shm_regions();
    many();
    loop();
    if (STRICT) {
        OK(MPI_T_pvar_session_free(&session));
        OK(MPI_T_finalize());
    }
    return check_end();
}
