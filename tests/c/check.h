/* Checks for the C programs of this folder. They run under any MPI library. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;

/* Says what is wrong and goes on. */
#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            check_failures++;                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
        }                                                                      \
    } while (0)

/* Two integers that must be equal. */
#define CHECK_EQ(a, b)                                                         \
    do {                                                                       \
        long long check_a = (long long)(a), check_b = (long long)(b);          \
        if (check_a != check_b) {                                              \
            check_failures++;                                                  \
            fprintf(stderr, "%s:%d: %s is %lld, but %s is %lld\n", __FILE__,   \
                    __LINE__, #a, check_a, #b, check_b);                       \
        }                                                                      \
    } while (0)

/* A call that must fail with an error class. */
#define CHECK_FAILS(call, error_class)                                         \
    do {                                                                       \
        int check_code = (call), check_class = MPI_SUCCESS;                    \
        MPI_Error_class(check_code, &check_class);                             \
        CHECK_EQ(check_class, error_class);                                    \
    } while (0)

/* The program's result: 0 when all ranks found everything right. */
static inline int check_result(void)
{
    int total = 0, rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&check_failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        puts(total ? "failed" : "passed");
    return total != 0;
}

#endif
