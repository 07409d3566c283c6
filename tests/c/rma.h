/* Windows for tests. */
#ifndef RMA_H
#define RMA_H
#include "check.h"

/* A window of `bytes` bytes on each rank of a communicator, counted in units of `unit` bytes; its errors come back. */
static inline MPI_Win win_of(MPI_Comm comm, void *base, size_t bytes, int unit) {
    MPI_Win win = MPI_WIN_NULL;
    OK(MPI_Win_create(base, (MPI_Aint)bytes, unit, MPI_INFO_NULL, comm, &win));
    CHECK(win != MPI_WIN_NULL);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

/* The same of memory that MPI allocates. */
static inline MPI_Win win_allocated(MPI_Comm comm, void *place, size_t bytes, int unit) {
    MPI_Win win = MPI_WIN_NULL;
    OK(MPI_Win_allocate((MPI_Aint)bytes, unit, MPI_INFO_NULL, comm, place, &win));
    CHECK(win != MPI_WIN_NULL);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

static inline void win_free(MPI_Win *win) {
    OK(MPI_Win_free(win));
    CHECK(*win == MPI_WIN_NULL);
}

/* The group of one rank of a communicator, or of two. */
static inline MPI_Group group_of(MPI_Comm comm, int a, int b) {
    MPI_Group all, made;
    int ranks[2] = {a, b};
    OK(MPI_Comm_group(comm, &all));
    OK(MPI_Group_incl(all, a == b ? 1 : 2, ranks, &made));
    OK(MPI_Group_free(&all));
    return made;
}
#endif
