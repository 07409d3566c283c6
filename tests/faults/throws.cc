// Functions of the program that throw: the exception reaches the caller of MPI, and MPI goes on.
#include <mpi.h>
#include <cstdio>
#include <cstring>
#include <stdexcept>

struct Thrown : std::runtime_error {
    using std::runtime_error::runtime_error;
};

static void handler(MPI_Comm *, int *, ...) { throw Thrown("handler"); }
static void reduction(void *, void *, int *, MPI_Datatype *) { throw Thrown("reduction"); }
static int copying(MPI_Comm, int, void *, void *, void *, int *) { throw Thrown("copy"); }
static int deleting(MPI_Comm, int, void *, void *) { throw Thrown("delete"); }
static int asking(void *, MPI_Status *) { throw Thrown("query"); }
static int freeing(void *) { return MPI_SUCCESS; }
static int cancelling(void *, int) { throw Thrown("cancel"); }

static int wrong;

template <class F> static void wants(const char *what, F call) {
    try {
        call();
    } catch (const Thrown &e) {
        if (!std::strcmp(e.what(), what)) return;
    }
    std::fprintf(stderr, "no exception of the %s function\n", what);
    wrong = 1;
}

// The reduction of a call that has returned is made in whatever call comes next, which has no part in it.
static int background() {
    MPI_Op op;
    MPI_Request request;
    int in = 1, out = 0;
    MPI_Op_create(reduction, 1, &op);
    try {
        MPI_Iallreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } catch (const Thrown &) {
    }
    return 3;
}

// A tool hears of a message that came before its receive.
static void hearing(MPI_T_event_instance, MPI_T_event_registration, MPI_T_cb_safety, void *) { throw Thrown("event"); }

static int event() {
    int level, index;
    MPI_T_event_registration r;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_event_get_index("unexpected_message", &index);
    MPI_T_event_handle_alloc(index, nullptr, MPI_INFO_NULL, &r);
    MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, nullptr, hearing);
    try {
        MPI_Send(nullptr, 0, MPI_INT, 0, 1, MPI_COMM_SELF);
        MPI_Probe(0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Recv(nullptr, 0, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    } catch (const Thrown &) {
    }
    return 3;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc > 1) return std::strcmp(argv[1], "event") ? background() : event();
    MPI_Errhandler e;
    MPI_Comm_create_errhandler(handler, &e);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, e);
    wants("handler", [] { MPI_Send(nullptr, 0, MPI_INT, 99, 0, MPI_COMM_WORLD); });
    wants("handler", [] { MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER); });

    // the collective comes to its end on every rank, however far the reduction got
    MPI_Op op;
    MPI_Op_create(reduction, 1, &op);
    int size, in = 1, out = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 3 && size > 1; i++) {
        try {
            MPI_Allreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD);
        } catch (const Thrown &) {
        }
        try {
            MPI_Reduce(&in, &out, 1, MPI_INT, op, 0, MPI_COMM_WORLD);
        } catch (const Thrown &) {
        }
    }
    wants("reduction", [&] { MPI_Reduce_local(&in, &out, 1, MPI_INT, op); });
    MPI_Op_free(&op);
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (out != size) wrong = 1;

    int key;
    MPI_Comm copy;
    MPI_Comm_create_keyval(copying, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &wrong);
    wants("copy", [&] { MPI_Comm_dup(MPI_COMM_SELF, &copy); });
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleting, &key, nullptr);
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_set_attr(copy, key, &wrong);
    wants("delete", [&] { MPI_Comm_delete_attr(copy, key); });

    MPI_Request request;
    MPI_Grequest_start(asking, freeing, cancelling, nullptr, &request);
    wants("cancel", [&] { MPI_Cancel(&request); });
    MPI_Grequest_complete(request);
    wants("query", [&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong;
}
