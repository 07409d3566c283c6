/* A collective operation whose next step waits for the end of a send goes on while the program computes: no event tells that the peer's
 * kernel has acknowledged, so the event thread has to look for it (path/tcp/owing.rs). Three ranks over TCP, an Ialltoallv by `pairwise` in which
 * only rank 0 gives: a long block to rank 1, after whose end another one to rank 2. Nothing comes to rank 0 meanwhile. It computes until it
 * hears through a file that rank 2 has its block; no sleep of its event thread may have run its full second meanwhile (wakeups_lost). */
#define PROGRAM "held"
#include "outside.h"
#include <stdlib.h>
#include <string.h>

#define LONG (32 << 20)
#define SHORT 1000
#define ROUNDS 4
#define WORLD MPI_COMM_WORLD

static MPI_T_pvar_session session;

static MPI_T_pvar_handle counter(const char *name)
{
    MPI_T_pvar_handle handle;
    int index, count;
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) || MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count)
        || MPI_T_pvar_start(session, handle))
        fail("no such counter");
    return handle;
}

static unsigned long long value(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    if (MPI_T_pvar_read(session, handle, &value))
        fail("cannot read a counter");
    return value;
}

/* Only calls serve this rank from now on. */
static void without_event_thread(void)
{
    MPI_T_cvar_handle setting;
    int index, count, no = 0;
    if (MPI_T_cvar_get_index("KW_EVENT_THREAD", &index) || MPI_T_cvar_handle_alloc(index, NULL, &setting, &count) || MPI_T_cvar_write(setting, &no))
        fail("cannot switch the event thread off");
}

/* With pauses in which the kernels fill up: what rank 0 wrote last is acknowledged only after the next look, when rank 0 has nothing to write
 * any more. */
static void take_slowly(MPI_Request *r)
{
    int done = 0;
    while (!done) {
        usleep(2000);
        MPI_Test(r, &done, MPI_STATUS_IGNORE);
    }
}

/* One operation. */
static void round_of(int rank, char *data, const char *dir, int number)
{
    char left[512], came[512];
    int none[3] = {0}, gives[3] = {0, LONG, SHORT}, takes[3] = {0};
    MPI_Request r;
    snprintf(left, sizeof left, "%s/left%d", dir, number);
    snprintf(came, sizeof came, "%s/came%d", dir, number);
    takes[0] = rank == 1 ? LONG : rank == 2 ? SHORT : 0;
    memset(data, rank ? 0 : number, LONG);
    MPI_Barrier(WORLD);
    MPI_Ialltoallv(data, rank ? none : gives, none, MPI_CHAR, rank ? data : NULL, takes, none, MPI_CHAR, WORLD, &r);
    if (rank == 0) {
        tell(left);
        compute_until(came);
    } else if (rank == 1) {
        compute_until(left);
        usleep(20000);
        take_slowly(&r);
    }
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (rank == 1) /* whose next message would wake rank 0 */
        compute_until(came);
    if (rank == 2)
        tell(came);
    if (takes[0] && (data[0] != number || data[takes[0] - 1] != number))
        fail("wrong data");
    MPI_Barrier(WORLD);
}

int main(int argc, char **argv)
{
    int rank, level, missed = 0;
    char *data = malloc(LONG);
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&session);
    MPI_Comm_rank(WORLD, &rank);
    MPI_T_pvar_handle lost = counter("wakeups_lost"), takeovers = counter("event_takeovers");
    if (rank == 1)
        without_event_thread();
    /* Who stops the whole machine for a second makes one sleep long. */
    for (int number = 1; number <= ROUNDS; number++) {
        unsigned long long before[] = {value(lost), value(takeovers)};
        round_of(rank, data, argv[1], number);
        missed += value(lost) != before[0];
        if (rank == 0 && value(takeovers) == before[1])
            fail("the event thread had nothing to do with it");
    }
    if (rank == 0 && missed > 1)
        fail("the operation stood still until a sleep of a second was over");
    if (rank == 0)
        printf("held: ok\n");
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
