// run: n=4 timeout=60 abi=one
/* Ranks that share cores and wait for each other in short turns spread over the cores, however they were piled up. Each round piles all ranks
 * on one processor, lets them go where they like, and has them wait for each other for a moment; in some round one of them must have moved. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>
#include <unistd.h>

#define ROUNDS 100
#define MOMENT 0.02 /* seconds; so 2 s until the test gives up */

static int first_of(const cpu_set_t *set) {
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, set)) return c;
    return 0;
}

static void pile_up(const cpu_set_t *usable) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first_of(usable), &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQ(sched_setaffinity(0, sizeof *usable, usable), 0);
}

/* All ranks leave the loop in the same round: it is rank 0 that looks at the clock. */
static void wait_for_each_other(void) {
    double until = MPI_Wtime() + MOMENT;
    for (int more = 1; more;) {
        for (int i = 0; i < 20; i++) MPI_Barrier(check_comm);
        more = MPI_Wtime() < until;
        MPI_Bcast(&more, 1, MPI_INT, 0, check_comm);
    }
}

static unsigned long long moves(MPI_T_pvar_session session, MPI_T_pvar_handle h) {
    unsigned long long mine = 0, all = 0;
    OK(MPI_T_pvar_read(session, h, &mine));
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, check_comm);
    return all;
}

int main(int argc, char **argv) {
    int provided, index = -1, count, round = 0;
    const char *paths = getenv("KW_PATHS");
    cpu_set_t usable, now;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle h;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    CHECK_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
    int cores = CPU_COUNT(&usable);
    /* Only Kittiwake has this counter; a core each, one core for all, or no shared memory: nothing to spread. */
    int applies = MPI_T_pvar_get_index("spread", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS && cores > 1 && cores < check_size &&
                  !(paths && !strstr(paths, "shm"));
    if (applies) {
        OK(MPI_T_pvar_session_create(&session));
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &count));
        OK(MPI_T_pvar_start(session, h));
        do {
            pile_up(&usable);
            wait_for_each_other();
        } while (moves(session, h) == 0 && ++round < ROUNDS);
        CHECK(round < ROUNDS);
        CHECK_EQ(sched_getaffinity(0, sizeof now, &now), 0);
        CHECK(CPU_EQUAL(&usable, &now)); /* as free as before */
        OK(MPI_T_pvar_handle_free(session, &h));
        OK(MPI_T_pvar_session_free(&session));
    }
    MPI_T_finalize();
    return check_end();
}
