// run: n=1 timeout=60
// Generalized requests: the functions are called when and as the standard says, from any completion call; a waiting
// thread is woken when another one completes the request.
#include "check.h"
#include <pthread.h>

static int queried, freed, cancelled;

static int query(void *extra, MPI_Status *s) {
    queried++;
    MPI_Status_set_elements(s, MPI_INT, *(int *)extra);
    MPI_Status_set_cancelled(s, 0);
    s->MPI_SOURCE = 42;
    s->MPI_TAG = 43;
    return MPI_SUCCESS;
}
static int query_fails(void *extra, MPI_Status *s) { (void)extra; (void)s; queried++; return MPI_ERR_OTHER; }
static int release(void *extra) { (void)extra; freed++; return MPI_SUCCESS; }
static int cancel(void *extra, int complete) { (void)extra; cancelled += complete ? 100 : 1; return MPI_SUCCESS; }

static int seven = 7;

static void ended(MPI_Status *s) {
    CHECK(s->MPI_SOURCE == 42 && s->MPI_TAG == 43 && count_of(s, MPI_INT) == 7);
    CHECK(queried == 1 && freed == 1);
    queried = freed = 0;
}

static void *complete_later(void *arg) {
    MPI_Request *r = arg;
    struct timespec t = {0, 30000000};
    nanosleep(&t, NULL);
    MPI_Grequest_complete(*r);
    return NULL;
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Request r, q[2];
    MPI_Status s, ss[2];
    int flag, index, n, idx[2], form;
    for (form = 0; form < 6; form++) {
        OK(MPI_Grequest_start(query, release, cancel, &seven, &r));
        OK(MPI_Test(&r, &flag, &s));
        CHECK(!flag && queried == 0);
        OK(MPI_Cancel(&r));
        CHECK_EQ(cancelled, 1);
        OK(MPI_Grequest_complete(r));
        OK(MPI_Cancel(&r));
        CHECK_EQ(cancelled, 101);
        cancelled = 0;
        q[0] = MPI_REQUEST_NULL, q[1] = r;
        if (form == 0) { OK(MPI_Wait(&r, &s)); CHECK(r == MPI_REQUEST_NULL); }
        if (form == 1) { OK(MPI_Test(&r, &flag, &s)); CHECK(flag); }
        if (form == 2) { OK(MPI_Waitall(2, q, ss)); s = ss[1]; CHECK(q[1] == MPI_REQUEST_NULL); }
        if (form == 3) { OK(MPI_Waitany(2, q, &index, &s)); CHECK_EQ(index, 1); }
        if (form == 4) { OK(MPI_Waitsome(2, q, &n, idx, ss)); CHECK(n == 1 && idx[0] == 1); s = ss[0]; }
        if (form == 5) {
            OK(MPI_Request_get_status(r, &flag, &s));
            CHECK(flag && queried == 1 && freed == 0 && s.MPI_SOURCE == 42);
            queried = 0;
            OK(MPI_Wait(&r, &s));
        }
        ended(&s);
    }
    // Freed before it is complete: its free function is called on completion, and no query.
    OK(MPI_Grequest_start(query, release, cancel, &seven, &r));
    MPI_Request copy = r;
    OK(MPI_Request_free(&r));
    CHECK(r == MPI_REQUEST_NULL && freed == 0);
    OK(MPI_Grequest_complete(copy));
    CHECK(freed == 1 && queried == 0);
    freed = 0;
    // The query function's error is the call's.
    OK(MPI_Grequest_start(query_fails, release, cancel, &seven, &r));
    OK(MPI_Grequest_complete(r));
    CHECK_CLASS(MPI_Wait(&r, &s), MPI_ERR_OTHER);
    CHECK(freed == 1);
    queried = freed = 0;
    // Another thread completes it while this one waits.
    for (form = 0; form < 3; form++) {
        pthread_t th;
        OK(MPI_Grequest_start(query, release, cancel, &seven, &r));
        copy = r;
        q[0] = MPI_REQUEST_NULL, q[1] = r;
        pthread_create(&th, NULL, complete_later, &copy);
        if (form == 0) OK(MPI_Wait(&r, &s));
        if (form == 1) OK(MPI_Waitany(2, q, &index, &s));
        if (form == 2) { OK(MPI_Waitall(2, q, ss)); s = ss[1]; }
        pthread_join(th, NULL);
        ended(&s);
    }
    return check_end();
}
