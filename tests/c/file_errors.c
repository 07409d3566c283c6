// run: n=2,3 timeout=60 paths=one
/* Error handlers of files and of MPI_FILE_NULL (MPI 5.0, 9.3.3 and 14.7), and errors of accesses: each rank of a collective
 * call hears of what went wrong on one, and no rank waits for ever. */
#include "file.h"

static int called[3], last_code;
static MPI_File last_file;

#define HANDLER(n) static void handler_##n(MPI_File *file, int *code, ...) { called[n]++, last_code = *code, last_file = *file; }
HANDLER(0)
HANDLER(1)

static int pick(int n) {
    int calls = called[n];
    called[0] = called[1] = 0;
    return calls;
}

static void handlers(void) {
    MPI_Errhandler of_none, of_file, found;
    MPI_File fh, none = MPI_FILE_NULL;
    MPI_Offset size;
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &found));
    CHECK(found == MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(handler_0, &of_none));
    OK(MPI_File_create_errhandler(handler_1, &of_file));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, of_none));
    CHECK_CLASS(MPI_File_open(check_comm, "/no/such/directory/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &none), MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(check_class(last_code), MPI_ERR_NO_SUCH_FILE);
    CHECK(last_file == MPI_FILE_NULL);
    CHECK_EQ(pick(0), 1);
    CHECK_CLASS(MPI_File_delete("/no/such/directory/file", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(pick(0), 1);
    /* A file takes over what MPI_FILE_NULL had when it was opened. */
    fh = file_open(1);
    OK(MPI_File_get_errhandler(fh, &found));
    CHECK(found == of_none);
    OK(MPI_Errhandler_free(&found));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    CHECK_CLASS(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CHECK(last_file == fh);
    CHECK_EQ(pick(0), 1);
    OK(MPI_File_set_errhandler(fh, of_file));
    OK(MPI_Errhandler_free(&of_file));
    CHECK_CLASS(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CHECK_EQ(pick(1), 1);
    OK(MPI_File_call_errhandler(fh, MPI_ERR_QUOTA));
    CHECK_EQ(last_code, MPI_ERR_QUOTA);
    CHECK_EQ(pick(1), 1);
    /* Not the communicator's, which would end the job. */
    CHECK_CLASS(MPI_File_get_size(MPI_FILE_NULL, &size), MPI_ERR_FILE);
    CHECK_EQ(called[0] + called[1], 0);
    file_close(&fh);
    OK(MPI_Errhandler_free(&of_none));
    OK(MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)(void *)handler_0, &of_none));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_File_set_errhandler(MPI_FILE_NULL, of_none), STRICT ? MPI_ERR_ERRHANDLER : MPI_ERR_ARG);
    OK(MPI_Errhandler_free(&of_none));
}

/* The fault of a nonblocking access is its file's, however the request is completed. */
static void requests(void) {
    MPI_Errhandler handler;
    MPI_Request request;
    MPI_File fh;
    int one = 1;
    OK(MPI_File_open(check_comm, file_of(2), MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &fh));
    OK(MPI_File_create_errhandler(handler_0, &handler));
    OK(MPI_File_set_errhandler(fh, handler));
    CHECK_CLASS(MPI_File_iread_at(fh, 0, &one, 1, MPI_INT, &request), MPI_ERR_ACCESS);
    CHECK(last_file == fh);
    CHECK_EQ(pick(0), 1);
    CHECK_CLASS(MPI_File_iwrite_at(fh, -1, &one, 1, MPI_INT, &request), MPI_ERR_ARG);
    CHECK_EQ(pick(0), 1);
    CHECK_CLASS(MPI_File_write_at(fh, 0, &one, -1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
    CHECK_EQ(pick(0), 1);
    CHECK_CLASS(MPI_File_write_at(fh, 0, &one, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    CHECK_EQ(pick(0), 1);
    file_close(&fh);
    OK(MPI_Errhandler_free(&handler));
}

/* One rank's argument is wrong: the others get an error, too, and the next call finds all in step. */
static void one_of_many(void) {
    int value = check_rank, back = -1;
    MPI_File fh = file_open(3);
    MPI_Offset at, bad = check_rank == 1 ? -1 : 4 * check_rank;
    CHECK(MPI_File_write_at_all(fh, bad, &value, 1, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    CHECK(MPI_File_write_all(fh, &value, check_rank == 1 ? -1 : 1, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    CHECK(MPI_File_write_ordered(fh, &value, 1, check_rank == 1 ? MPI_DATATYPE_NULL : MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    OK(MPI_File_get_position_shared(fh, &at));
    CHECK_EQ(at, 0);
    OK(MPI_File_write_at_all(fh, 4 * check_rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(fh, 4 * check_rank, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQ(back, check_rank);
    file_close(&fh);
}

/* Data behind the largest position of a file: no access may wrap around to its beginning. */
static void far(void) {
    enum { TILES = 1 << 24 };
    int value = 7, back = -1;
    MPI_Datatype sparse;
    MPI_Offset at, size;
    MPI_Request request;
    MPI_File fh = file_open(5);
    OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)1 << 40, &sparse));
    OK(MPI_Type_commit(&sparse));
    OK(MPI_File_set_view(fh, 0, MPI_INT, sparse, "native", MPI_INFO_NULL));
    CHECK_CLASS(MPI_File_write_at(fh, TILES, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_read_at(fh, TILES, &back, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_write_at_all(fh, TILES, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_get_byte_offset(fh, TILES, &at), MPI_ERR_ARG);
    OK(MPI_File_seek(fh, TILES, MPI_SEEK_SET));
    CHECK_CLASS(MPI_File_write(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    OK(MPI_File_get_position(fh, &at));
    CHECK_EQ(at, TILES);
    OK(MPI_File_seek_shared(fh, TILES, MPI_SEEK_SET));
    CHECK_CLASS(MPI_File_write_shared(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    OK(MPI_File_iwrite_shared(fh, &value, 1, MPI_INT, &request));
    CHECK_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_write_ordered(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    OK(MPI_File_get_position_shared(fh, &at));
    CHECK_EQ(at, TILES);
    OK(MPI_File_get_size(fh, &size));
    CHECK_EQ(size, 0);
    /* The data of the last rank do not fit. */
    OK(MPI_File_seek_shared(fh, TILES / 2 - check_size + 1, MPI_SEEK_SET));
    CHECK_CLASS(MPI_File_write_ordered(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    OK(MPI_File_get_position_shared(fh, &at));
    CHECK_EQ(at, TILES / 2 - check_size + 1);
    OK(MPI_File_read_ordered(fh, &value, check_rank == check_size - 1 ? 0 : 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_get_position_shared(fh, &at));
    CHECK_EQ(at, TILES / 2);
    OK(MPI_File_get_byte_offset(fh, 3, &at));
    CHECK_EQ(at, (MPI_Offset)3 << 40);
    OK(MPI_Type_free(&sparse));
    file_close(&fh);
}

/* A split operation that was begun is ended by its own function, and there is one at a time. */
static void split(void) {
    int value = check_rank, back = -1;
    MPI_File fh = file_open(4);
    CHECK(MPI_File_write_at_all_end(fh, &value, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    OK(MPI_File_write_at_all_begin(fh, 4 * check_rank, &value, 1, MPI_INT));
    CHECK(MPI_File_read_at_all_begin(fh, 4 * check_rank, &back, 1, MPI_INT) != MPI_SUCCESS);
    CHECK(MPI_File_read_at_all_end(fh, &back, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    OK(MPI_File_write_at_all_end(fh, &value, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(fh, 4 * check_rank, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQ(back, check_rank);
    file_close(&fh);
}

/* A rank that closes a file between the two parts of a split operation: all hear of it. */
static void close_too_early(void) {
    int value = check_rank;
    MPI_File fh = file_open(6), same = fh;
    OK(MPI_File_write_at_all_begin(fh, 4 * check_rank, &value, 1, MPI_INT));
    if (check_rank != 1) OK(MPI_File_write_at_all_end(fh, &value, MPI_STATUS_IGNORE));
    CHECK_CLASS(MPI_File_close(&fh), MPI_ERR_REQUEST);
    CHECK(fh == same);
    if (check_rank == 1) {
        int other = 0;
        CHECK_CLASS(MPI_File_read_at_all_begin(fh, 0, &other, 1, MPI_INT), MPI_ERR_REQUEST);
        OK(MPI_File_write_at_all_end(fh, &value, MPI_STATUS_IGNORE));
    } else {
        int other = 0;
        OK(MPI_File_read_at_all_begin(fh, 0, &other, 1, MPI_INT));
        CHECK_CLASS(MPI_File_read_at_all_end(fh, &other, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    }
    file_close(&fh);
}

/* A nonblocking call whose arguments are wrong does not wait for the other ranks. */
static void refused_at_once(void) {
    int value = check_rank, token = 0;
    MPI_Request request;
    MPI_File fh = file_open(7);
    if (check_rank == 1) {
        CHECK_CLASS(MPI_File_iwrite_at_all(fh, -1, &value, 1, MPI_INT, &request), MPI_ERR_ARG);
        OK(MPI_Send(&token, 1, MPI_INT, 0, 0, check_comm));
    } else {
        if (check_rank == 0) OK(MPI_Recv(&token, 1, MPI_INT, 1, 0, check_comm, MPI_STATUS_IGNORE));
        OK(MPI_File_iwrite_at_all(fh, 4 * check_rank, &value, 1, MPI_INT, &request));
        CHECK_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    }
    OK(MPI_File_write_at_all(fh, 4 * check_rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    file_close(&fh);
}

/* Ranks that set a view with different hints would decide differently about an exchange, and wait for each other. */
static void hints_differ(void) {
    int value = check_rank;
    MPI_Info info;
    MPI_File fh = file_open(8);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_cb_write", check_rank == 1 ? "enable" : "disable"));
    CHECK_CLASS(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", info), MPI_ERR_INFO_VALUE);
    OK(MPI_File_write_at_all(fh, 4 * check_rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_Info_free(&info));
    file_close(&fh);
}

/* Ranks that set views with different data representations: that was an error about an info. */
static void representations_differ(void) {
    MPI_File fh = file_open(9);
    const char *datarep = check_rank == 1 ? "external32" : "native";
    CHECK_CLASS(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, datarep, MPI_INFO_NULL), MPI_ERR_NOT_SAME);
    file_close(&fh);
}

/* A view without data has no place for what is written: the data were dropped without an error. */
static void nowhere(void) {
    int value = 7, count = -1;
    MPI_Datatype none;
    MPI_Status status;
    MPI_File fh = file_open(10);
    OK(MPI_Type_contiguous(0, MPI_INT, &none));
    OK(MPI_Type_commit(&none));
    OK(MPI_File_set_view(fh, 0, MPI_INT, none, "native", MPI_INFO_NULL));
    CHECK_CLASS(MPI_File_write(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_write_at_all(fh, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    OK(MPI_File_write_all(fh, &value, 0, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(fh, 0, &value, 1, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_EQ(count, 0);
    OK(MPI_Type_free(&none));
    file_close(&fh);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    handlers();
    requests();
    one_of_many();
    far();
    split();
    close_too_early();
    refused_at_once();
    hints_differ();
    representations_differ();
    nowhere();
    return check_end();
}
