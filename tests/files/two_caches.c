/* two_caches DIRECTORY: what ranks of two hosts see of each other's writes, where each host keeps pages of a file (NFS, FUSE).
   Rank 0 and the last rank, which is on the other host, write in turn. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 100000, ROUNDS = 5 };

static int rank, size, failures;
static char mine[BYTES], seen[BYTES];

#define CHECK(is, ...)                                                                                                            \
    do {                                                                                                                          \
        if (!(is)) {                                                                                                              \
            failures++;                                                                                                           \
            printf("rank %d: ", rank);                                                                                            \
            printf(__VA_ARGS__);                                                                                                  \
            puts("");                                                                                                             \
        }                                                                                                                         \
    } while (0)

static MPI_File opened(const char *directory, const char *name, const char *exchange)
{
    char path[4096];
    MPI_File file;
    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "romio_cb_read", exchange);
    MPI_Info_set(hints, "romio_cb_write", exchange);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, hints, &file);
    MPI_Info_free(&hints);
    return file;
}

static int all_are(char value, MPI_Status *status)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    if (count != BYTES)
        return 0;
    for (int i = 0; i < BYTES; i++)
        if (seen[i] != value)
            return 0;
    return 1;
}

/* One rank writes again what the others have read and keep in their caches; in each round the file grows, too. */
static void rounds(MPI_File file, const char *mode, int synchronized)
{
    MPI_Status status;
    for (int round = 0; round < ROUNDS; round++) {
        int writer = round % 2 ? size - 1 : 0;
        memset(mine, 'a' + round, BYTES);
        for (int part = 0; part <= round; part++) {
            if (rank == writer)
                MPI_File_write_at(file, (MPI_Offset)part * BYTES, mine, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        }
        if (synchronized)
            MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
        if (synchronized)
            MPI_File_sync(file);
        for (int part = 0; part <= round; part++) {
            memset(seen, 0, BYTES);
            MPI_File_read_at(file, (MPI_Offset)part * BYTES, seen, BYTES, MPI_BYTE, &status);
            CHECK(all_are('a' + round, &status), "%s: part %d of round %d is not what rank %d has written", mode, part, round, writer);
        }
        MPI_Offset bytes;
        MPI_File_get_size(file, &bytes);
        CHECK(bytes == (MPI_Offset)(round + 1) * BYTES, "%s: the file has %lld bytes in round %d", mode, (long long)bytes, round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Interleaved lines of all ranks, which aggregators write for others. */
static void together(MPI_File file)
{
    enum { LINE = 100, LINES = 50 };
    MPI_Datatype lines;
    MPI_Status status;
    MPI_Type_vector(LINES, LINE, LINE * size, MPI_BYTE, &lines);
    MPI_Type_commit(&lines);
    for (int round = 0; round < ROUNDS; round++) {
        int other = (rank + size / 2) % size, count;
        memset(mine, 'a' + round + rank, LINE * LINES);
        MPI_File_set_view(file, rank * LINE, MPI_BYTE, lines, "native", MPI_INFO_NULL);
        MPI_File_write_all(file, mine, LINE * LINES, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_set_view(file, other * LINE, MPI_BYTE, lines, "native", MPI_INFO_NULL);
        MPI_File_read_all(file, seen, LINE * LINES, MPI_BYTE, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == LINE * LINES, "%d bytes were read together in round %d", count, round);
        for (int i = 0; i < LINE * LINES; i++)
            if (seen[i] != 'a' + round + other) {
                CHECK(0, "byte %d of rank %d is not that of round %d", i, other, round);
                break;
            }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_Type_free(&lines);
}

/* All ranks add a record each time, by the shared pointer; none may be lost or torn. */
static void records(MPI_File file)
{
    enum { RECORD = 1000, EACH = 20 };
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    for (int i = 0; i < EACH; i++) {
        memset(mine, 'A' + rank, RECORD);
        MPI_File_write_shared(file, mine, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    int *found = calloc(size, sizeof *found);
    for (int i = 0; i < EACH * size; i++) {
        MPI_File_read_at(file, (MPI_Offset)i * RECORD, seen, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
        int who = seen[0] - 'A';
        for (int k = 1; k < RECORD; k++)
            CHECK(seen[k] == seen[0], "record %d is torn at byte %d", i, k);
        if (who >= 0 && who < size)
            found[who]++;
    }
    for (int r = 0; r < size; r++)
        CHECK(found[r] == EACH, "%d records of rank %d are there, not %d", found[r], r, EACH);
    free(found);
}

/* Every rank adds 1 to a number again and again, by an atomic read and write in turn: each must see the last one's. */
static void turns(MPI_File file)
{
    long value = 0;
    if (rank == 0)
        MPI_File_write_at(file, 0, &value, 1, MPI_LONG, MPI_STATUS_IGNORE);
    for (int turn = 0; turn < 10 * size; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_read_at(file, 0, &value, 1, MPI_LONG, MPI_STATUS_IGNORE);
        CHECK(value == turn, "the number is %ld in turn %d", value, turn);
        MPI_Barrier(MPI_COMM_WORLD);
        value++;
        if (turn % size == rank)
            MPI_File_write_at(file, 0, &value, 1, MPI_LONG, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int k = 0; k < 2; k++) {
        const char *exchange = k ? "enable" : "disable";
        MPI_File file = opened(argv[1], "synchronized", exchange);
        rounds(file, "sync, barrier, sync", 1);
        MPI_File_close(&file);

        file = opened(argv[1], "atomic", exchange);
        MPI_File_set_atomicity(file, 1);
        rounds(file, "atomic mode", 0);
        together(file);
        turns(file);
        MPI_File_close(&file);

        file = opened(argv[1], "records", exchange);
        records(file);
        MPI_File_close(&file);
    }
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        puts(failures ? "wrong" : "right");
    MPI_Finalize();
    return failures != 0;
}
