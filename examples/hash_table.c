/* hash_table: a hash table shared by all ranks, which access it without the help of its owners.

   mpicc -O2 -o hash_table hash_table.c && mpiexec -n 4 ./hash_table

   Every rank holds a part of the table in a window. A rank that counts a key computes its owner, claims a slot there
   with MPI_Compare_and_swap and increments it with MPI_Accumulate, while the owner continues to compute. The program
   counts how often each number was drawn and compares the table with counts that every rank makes alone. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 4096, DRAWS = 5000, NUMBERS = 1000 };

/* A slot is free while its key is 0. */
struct slot {
    int64_t key, count;
};

static int rank, size;
static MPI_Win table;

static uint64_t scrambled(uint64_t key)
{
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
    key = (key ^ key >> 27) * 0x94d049bb133111eb;
    return key ^ key >> 31;
}

static int home(int64_t key) { return (int)(scrambled(key) % size); }

/* Displacements count words of 8 bytes. */
static MPI_Aint key_at(uint64_t slot) { return 2 * (MPI_Aint)(slot % SLOTS); }
static MPI_Aint count_at(uint64_t slot) { return key_at(slot) + 1; }

/* Adds to the count of a key, wherever it is. */
static void add(int64_t key, int64_t more)
{
    const int64_t unused = 0;
    int where = home(key);
    uint64_t slot = scrambled(key) / size;
    for (int tries = 0; tries < SLOTS; tries++, slot++) {
        int64_t found;
        MPI_Compare_and_swap(&key, &unused, &found, MPI_INT64_T, where, key_at(slot), table);
        MPI_Win_flush(where, table); /* now `found` is what was there */
        if (found == unused || found == key) {
            MPI_Accumulate(&more, 1, MPI_INT64_T, where, count_at(slot), 1, MPI_INT64_T, MPI_SUM, table);
            MPI_Win_flush_local(where, table); /* `more` may go; it arrives in its own time */
            return;
        }
    }
    fprintf(stderr, "hash_table: the part of rank %d is full\n", where);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The count of a key; 0 if it was never counted. */
static int64_t get(int64_t key)
{
    int where = home(key);
    uint64_t slot = scrambled(key) / size;
    for (int tries = 0; tries < SLOTS; tries++, slot++) {
        struct slot found;
        MPI_Get(&found, 2, MPI_INT64_T, where, key_at(slot), 2, MPI_INT64_T, table);
        MPI_Win_flush(where, table);
        if (found.key == key) return found.count;
        if (found.key == 0) return 0;
    }
    return 0;
}

/* The numbers that a rank draws: small ones come more often. */
static int64_t drawn(int who, int i) { return 1 + scrambled(who * 1000003ull + i) % (1 + scrambled(i) % NUMBERS); }

int main(int argc, char **argv)
{
    struct slot *mine;
    static int64_t expected[NUMBERS + 1];
    int wrong = 0, distinct = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(SLOTS * sizeof *mine, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &table);
    for (int i = 0; i < SLOTS; i++) mine[i] = (struct slot){0, 0};
    MPI_Barrier(MPI_COMM_WORLD); /* no rank counts before all slots are free */

    /* One epoch for everything: each operation is ended by a flush where somebody needs its result. */
    MPI_Win_lock_all(0, table);
    double start = MPI_Wtime();
    for (int i = 0; i < DRAWS; i++) add(drawn(rank, i), 1);
    MPI_Win_flush_all(table);
    double took = MPI_Wtime() - start;
    MPI_Barrier(MPI_COMM_WORLD); /* everybody has counted everything */

    for (int who = 0; who < size; who++)
        for (int i = 0; i < DRAWS; i++) expected[drawn(who, i)]++;
    for (int key = 1; key <= NUMBERS; key++) {
        wrong += get(key) != expected[key];
        distinct += expected[key] != 0;
    }
    MPI_Win_unlock_all(table);
    MPI_Win_free(&table);

    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks counted %d draws of %d numbers, %.2f us each; %s\n", size, size * DRAWS, distinct,
               took / DRAWS * 1e6, wrong ? "the counts are wrong" : "the counts are right");
    MPI_Finalize();
    return wrong != 0;
}
