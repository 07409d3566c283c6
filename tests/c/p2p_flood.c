// run: n=2 timeout=120 abi=one
/* Half a million messages or more (a million in `make check-all`) to a rank that takes messages in while it computes, and receives
 * them only then: its memory grows by less than twice the payload, 64 MB and what the kernel holds when the sender pauses; all of them
 * would take more. Nothing is lost, and the counters say who was told to pause. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

#define LARGE (4 << 20)

static long peak_kb(void) {
    return check_kilobytes("VmHWM");
}

static MPI_T_pvar_session session;

static MPI_T_pvar_handle count_of_times(const char *name) {
    MPI_T_pvar_handle h;
    int index, count;
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &count));
    OK(MPI_T_pvar_start(session, h));
    return h;
}

static unsigned long long counted(MPI_T_pvar_handle h) {
    unsigned long long v = 0;
    OK(MPI_T_pvar_read(session, h, &v));
    return v;
}

/* Rank 1 goes on as soon as it receives, which lets rank 0 resume; so with our own library it computes until rank 0 has noticed that it
 * was to pause. Rank 0 waits inside MPI_Send by then, so a thread looks, and says it by a file. */
static char seen[64] = "/tmp/p2p_flood.XXXXXX";
static volatile int over;

static void *look(void *told) {
    while (!over && counted(*(MPI_T_pvar_handle *)told) == 0) usleep(10000);
    unlink(seen);
    return NULL;
}

static void compute(MPI_T_pvar_handle told) {
    int i;
    usleep(500000);
    for (i = 0; STRICT && i < 600 && (counted(told) == 0 || access(seen, F_OK) == 0); i++) usleep(100000);
}

int main(int argc, char **argv) {
    int level;
    long i, v, wrong = 0, many = check_flood_messages();
    static char large[LARGE];
    MPI_Request r = MPI_REQUEST_NULL;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level);
    MPI_T_pvar_handle told = MPI_T_PVAR_HANDLE_NULL;
    MPI_T_pvar_session_create(&session);
    if (STRICT) told = count_of_times(check_rank == 0 ? "sends_kept_back" : "pauses_sent");
    memset(large, 1, LARGE);
    meet();
    long before = peak_kb();
    pthread_t looker;
    if (check_rank == 1) close(mkstemp(seen));
    MPI_Bcast(seen, sizeof seen, MPI_CHAR, 1, check_comm);
    if (check_rank == 0 && STRICT) pthread_create(&looker, NULL, look, &told);
    if (check_rank == 0) {
        for (i = 0; i < many; i++) MPI_Send(&i, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(large, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (check_rank == 1) {
        // Something goes on, so messages are taken in while this rank computes.
        MPI_Isend(large, LARGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &r);
        compute(told);
        for (i = 0; i < many; i++) {
            MPI_Recv(&v, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            wrong += v != i;
        }
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        CHECK_EQ(wrong, 0);
        long long grew = (peak_kb() - before) * 1024LL;
        if (grew > check_flood_limit(many)) FAILED("memory grew by %lld bytes", grew);
    }
    if (STRICT) CHECK(counted(told) > 0);
    if (check_rank == 0 && STRICT) over = 1, pthread_join(looker, NULL);
    if (check_rank == 1) unlink(seen);
    meet();
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return check_end();
}
