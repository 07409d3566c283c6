/* A file for a test: one name on all ranks, in the directory for temporary files. */
#ifndef FILE_H
#define FILE_H
#include "check.h"
#include <unistd.h>

static char file_name[600];

/* The name of this test's file number `number`; nothing has it. Collective. */
static inline const char *file_of(int number) {
    const char *dir = getenv("TMPDIR");
    int pid = (int)getpid();
    MPI_Bcast(&pid, 1, MPI_INT, 0, check_comm);
    snprintf(file_name, sizeof file_name, "%s/kw-file-%d-%d", dir && *dir ? dir : "/tmp", pid, number);
    if (check_rank == 0) unlink(file_name);
    MPI_Barrier(check_comm);
    return file_name;
}

/* Opened on all ranks for reading and writing, with one name, and deleted when it is closed. */
static inline MPI_File file_open(int number) {
    MPI_File fh = MPI_FILE_NULL;
    int amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    OK(MPI_File_open(check_comm, file_of(number), amode, MPI_INFO_NULL, &fh));
    CHECK(fh != MPI_FILE_NULL);
    return fh;
}

static inline void file_close(MPI_File *fh) {
    OK(MPI_File_close(fh));
    CHECK(*fh == MPI_FILE_NULL);
}

/* `n` bytes of the file from `at` on, read without MPI, after all ranks have synchronised it. */
static inline size_t file_raw(MPI_File fh, const char *name, long at, void *to, size_t n) {
    size_t came = 0;
    FILE *f;
    OK(MPI_File_sync(fh));
    MPI_Barrier(check_comm);
    if ((f = fopen(name, "rb"))) {
        if (fseek(f, at, SEEK_SET) == 0) came = fread(to, 1, n, f);
        fclose(f);
    }
    return came;
}
#endif
