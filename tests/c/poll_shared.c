// run: n=4 timeout=120 abi=one
/* Ranks that share one processor and poll in every way there is, while one of them works: they leave it the processor. A token goes
 * round; the rank that has it works for a while, the others poll for it. How often they poll without success is counted, not how long it takes. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

#define HOPS 50
#define WORK 50000
#define MOST 10000 /* unsuccessful polls for each time the token is passed on: some hundred are needed, a rank that gives nothing away makes 100000 */

static long in_vain;
static volatile double sink;

static void work(void) {
    double x = 1;
    int i;
    for (i = 0; i < WORK; i++) x = x * 1.0000001 + 1e-9;
    sink = x;
}

static int token;

static int by_iprobe(int from) {
    int flag;
    MPI_Iprobe(from, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (flag) MPI_Recv(&token, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return flag;
}

static int by_improbe(int from) {
    int flag;
    MPI_Message m;
    MPI_Improbe(from, 1, MPI_COMM_WORLD, &flag, &m, MPI_STATUS_IGNORE);
    if (flag) MPI_Mrecv(&token, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
    return flag;
}

static MPI_Request r = MPI_REQUEST_NULL;

static void post(int from) {
    if (r == MPI_REQUEST_NULL) MPI_Irecv(&token, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &r);
}

static int by_test(int from) {
    int flag;
    post(from);
    MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    return flag;
}

static int by_testall(int from) {
    int flag;
    post(from);
    MPI_Testall(1, &r, &flag, MPI_STATUSES_IGNORE);
    return flag;
}

static int by_testany(int from) {
    int flag, index;
    post(from);
    MPI_Testany(1, &r, &index, &flag, MPI_STATUS_IGNORE);
    return flag;
}

static int by_testsome(int from) {
    int n, index;
    post(from);
    MPI_Testsome(1, &r, &n, &index, MPI_STATUSES_IGNORE);
    return n;
}

static int by_status(int from) {
    int flag;
    post(from);
    MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE);
    if (flag) MPI_Wait(&r, MPI_STATUS_IGNORE);
    return flag;
}

static void go_round(const char *name, int (*look)(int)) {
    int i, from = (check_rank + check_size - 1) % check_size, to = (check_rank + 1) % check_size;
    long all;
    in_vain = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = 0; i < HOPS; i++) {
        if (i > 0 || check_rank > 0)
            while (!look(from)) in_vain++;
        work();
        MPI_Send(&i, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    }
    if (check_rank == 0)
        while (!look(from)) in_vain++;
    MPI_Reduce(&in_vain, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (check_rank > 0) return;
    if (getenv("VERBOSE")) printf("%s: %ld unsuccessful polls for each pass\n", name, all / HOPS / check_size);
    if (STRICT && all / HOPS / check_size > MOST) FAILED("%s: %ld unsuccessful polls for each pass", name, all / HOPS / check_size);
}

static void share_one_processor(void) {
    cpu_set_t set;
    int c = 0;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set)) return;
    while (c < CPU_SETSIZE - 1 && !CPU_ISSET(c, &set)) c++;
    CPU_ZERO(&set);
    CPU_SET(c, &set);
    sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv) {
    share_one_processor();
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    go_round("MPI_Iprobe", by_iprobe);
    go_round("MPI_Improbe", by_improbe);
    go_round("MPI_Test", by_test);
    go_round("MPI_Testall", by_testall);
    go_round("MPI_Testany", by_testany);
    go_round("MPI_Testsome", by_testsome);
    go_round("MPI_Request_get_status", by_status);
    return check_end();
}
