// run: n=2,3 timeout=60 hosts=2 paths=one
/* Calls on a file while an operation that was started before goes on in the background. */
#include "file.h"

enum { BYTES = 1 << 16, ROUNDS = 50 };

static char mine[BYTES];
static MPI_File fh;

static void start(MPI_Request *request) { OK(MPI_File_iwrite_at_all(fh, (MPI_Offset)check_rank * BYTES, mine, BYTES, MPI_BYTE, request)); }

static void end(MPI_Request *request) {
    MPI_Status status;
    int count;
    OK(MPI_Wait(request, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK_EQ(count, BYTES);
}

/* A collective call, and one whose arguments are wrong on one rank, take their turn. */
static void collective(void) {
    fh = file_open(1);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request, other;
        MPI_Offset at;
        start(&request);
        OK(MPI_File_seek_shared(fh, i, MPI_SEEK_SET));
        OK(MPI_File_get_position_shared(fh, &at));
        CHECK_EQ(at, i);
        end(&request);
        MPI_Barrier(check_comm);
        start(&request);
        int code = MPI_File_iwrite_at_all(fh, check_rank ? 0 : -1, mine, BYTES, MPI_BYTE, &other);
        if (code == MPI_SUCCESS) code = MPI_Wait(&other, MPI_STATUS_IGNORE);
        CHECK_EQ(check_class(code), MPI_ERR_ARG);
        end(&request);
    }
    file_close(&fh);
}

/* In atomic mode, one that waits for its turn and one that asks for the shared file pointer. */
static void atomic(void) {
    fh = file_open(2);
    OK(MPI_File_set_atomicity(fh, 1));
    OK(MPI_File_seek_shared(fh, 77, MPI_SEEK_SET));
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        OK(MPI_File_iwrite_at(fh, (MPI_Offset)check_rank * BYTES, mine, BYTES, MPI_BYTE, &request));
        for (int k = 0; k < 20; k++) {
            MPI_Offset at = -1;
            OK(MPI_File_get_position_shared(fh, &at));
            CHECK_EQ(at, 77);
        }
        end(&request);
    }
    file_close(&fh);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    collective();
    atomic();
    return check_end();
}
