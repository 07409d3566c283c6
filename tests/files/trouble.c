/* Files in trouble: what every rank hears when the file system says no, and that a rank which ends
 * ends the job.
 *
 *     trouble full DIRECTORY HINT     DIRECTORY holds 2 MB: what was written before stays, the write that
 *                                     does not fit fails on every rank (HINT: of romio_cb_write)
 *     trouble alone DIRECTORY         the same, written independently by rank 1
 *     trouble refused DIRECTORY       nothing can be made in DIRECTORY
 *     trouble 'one host' DIRECTORY    a file can be made in DIRECTORY, but not be opened there by all
 *     trouble killed DIRECTORY HINT   rank 1 is killed while all write together behind what they have
 *                                     written before
 *
 * Every rank prints the sentence that it gets. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, BEFORE = 64, MEGABYTE = 1 << 20 };

static int rank, size;
static char path[4096];
static char *data;

static void must(int well, const char *what)
{
    if (well)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    exit(1);
}

static void ok(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length), fprintf(stderr, "%s\n", text);
    must(code == MPI_SUCCESS, what);
}

/* The call must fail with this class; says how. */
static void fails(int code, int class, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int got, length;
    must(code != MPI_SUCCESS, what);
    MPI_Error_class(code, &got);
    MPI_Error_string(code, text, &length);
    printf("%d: %s\n", rank, text);
    must(got == class, what);
}

/* Blocks of the ranks in turn. */
static MPI_File open_in_turns(const char *hint)
{
    MPI_File file;
    MPI_Info info;
    MPI_Datatype type;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", hint);
    ok(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), "MPI_File_open");
    MPI_Info_free(&info);
    MPI_Type_vector(1, BLOCK, BLOCK, MPI_BYTE, &type);
    MPI_Type_create_resized(type, 0, (MPI_Aint)BLOCK * size, &type);
    MPI_Type_commit(&type);
    ok(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL), "MPI_File_set_view");
    return file;
}

static void fill(int seed)
{
    for (int i = 0; i < 4 * MEGABYTE; i++)
        data[i] = (char)(i * 7 + rank * 31 + seed);
}

static void is_there(MPI_File file)
{
    char *back = malloc(BEFORE * BLOCK);
    ok(MPI_File_read_at_all(file, 0, back, BEFORE * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_at_all");
    fill(1);
    must(!memcmp(back, data, BEFORE * BLOCK), "what was written before is lost");
    free(back);
}

static void full(const char *hint)
{
    MPI_File file = open_in_turns(hint);
    fill(1);
    ok(MPI_File_write_all(file, data, BEFORE * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_all");
    fill(2);
    fails(MPI_File_write_all(file, data, 4 * MEGABYTE, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE, "MPI_File_write_all");
    is_there(file);
    ok(MPI_File_set_size(file, (MPI_Offset)BEFORE * BLOCK * size), "MPI_File_set_size");
    /* there is room again, and all ranks are in step */
    fill(1);
    ok(MPI_File_write_at_all(file, 0, data, BEFORE * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at_all");
    is_there(file);
    ok(MPI_File_close(&file), "MPI_File_close");
}

static void alone(void)
{
    MPI_File file = open_in_turns("automatic");
    MPI_Request request;
    fill(1);
    ok(MPI_File_write_all(file, data, BEFORE * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_all");
    if (rank == 1) {
        fails(MPI_File_write_at(file, BEFORE * BLOCK, data, 4 * MEGABYTE, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE,
              "MPI_File_write_at");
        ok(MPI_File_iwrite_at(file, BEFORE * BLOCK, data, 4 * MEGABYTE, MPI_BYTE, &request), "MPI_File_iwrite_at");
        fails(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE, "MPI_Wait");
    }
    is_there(file);
    ok(MPI_File_close(&file), "MPI_File_close");
}

static void refused(void)
{
    MPI_File file;
    fails(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), MPI_ERR_READ_ONLY,
          "MPI_File_open");
    must(file == MPI_FILE_NULL, "the handle of a file that was not opened is no MPI_FILE_NULL");
    fails(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_READ_ONLY, "MPI_File_delete");
}

static void one_host(void)
{
    MPI_File file;
    const int mode = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY;
    fails(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file), MPI_ERR_READ_ONLY, "MPI_File_open");
    must(file == MPI_FILE_NULL, "the handle of a file that was not opened is no MPI_FILE_NULL");
}

static void killed(const char *hint)
{
    MPI_File file = open_in_turns(hint);
    fill(1);
    ok(MPI_File_write_at_all(file, 0, data, BEFORE * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at_all");
    fill(2);
    for (int i = 0; i < 1000; i++) {
        if (rank == 1 && i == 5)
            raise(SIGKILL);
        MPI_File_write_at_all(file, BEFORE * BLOCK, data, MEGABYTE, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    must(0, "no rank was missing");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    must(argc > 2, "what and a directory must be said");
    snprintf(path, sizeof path, "%s/data", argv[2]);
    data = malloc(4 * MEGABYTE);
    if (!strcmp(argv[1], "full"))
        full(argv[3]);
    else if (!strcmp(argv[1], "alone"))
        alone();
    else if (!strcmp(argv[1], "refused"))
        refused();
    else if (!strcmp(argv[1], "one host"))
        one_host();
    else if (!strcmp(argv[1], "killed"))
        killed(argv[3]);
    else
        must(0, "unknown words");
    free(data);
    MPI_Finalize();
    return 0;
}
