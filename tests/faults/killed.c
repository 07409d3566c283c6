/* The last rank is killed while the others wait for it: killed HOW. Each of them prints what its call returned, and ends
 * without a goodbye, as a rank whose errors are fatal would. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static MPI_Win win;
static MPI_Group of_last;

/* A call on a window whose last rank is dead, again and again until it fails: what leaves at once may come back without a word. */
static int on_window(const char *how, int last) {
  static long data[1000];
  int error = MPI_SUCCESS;
  MPI_Request r;
  if (!strncmp(how, "win_held", 8)) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(data, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
    return MPI_Win_unlock(0, win);
  }
  while (error == MPI_SUCCESS) {
    if (!strcmp(how, "win_unlock")) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win);
      MPI_Put(data, 1, MPI_LONG, last, 0, 1, MPI_LONG, win);
      error = MPI_Win_unlock(last, win);
    } else if (!strcmp(how, "win_fence"))
      error = MPI_Win_fence(0, win);
    else if (!strcmp(how, "win_complete")) {
      MPI_Win_start(of_last, 0, win);
      MPI_Put(data, 1, MPI_LONG, last, 0, 1, MPI_LONG, win);
      error = MPI_Win_complete(win);
    } else if (!strcmp(how, "win_wait")) {
      MPI_Win_post(of_last, 0, win);
      error = MPI_Win_wait(win);
    } else if (!strcmp(how, "win_free"))
      return MPI_Win_free(&win);
    else {
      MPI_Win_lock_all(0, win);
      if (!strcmp(how, "win_get"))
        MPI_Get(data, 1000, MPI_LONG, last, 0, 1000, MPI_LONG, win);
      else if (!strcmp(how, "win_rget")) {
        MPI_Rget(data, 1, MPI_LONG, last, 0, 1, MPI_LONG, win, &r);
        error = MPI_Wait(&r, MPI_STATUS_IGNORE);
        if (error) return error;
      } else if (!strcmp(how, "win_fetch"))
        MPI_Fetch_and_op(data, data + 1, MPI_LONG, last, 0, MPI_SUM, win);
      else
        MPI_Put(data, 1000, MPI_LONG, last, 0, 1000, MPI_LONG, win);
      error = MPI_Win_flush(last, win);
      if (!error) error = MPI_Win_unlock_all(win);
    }
  }
  return error;
}

static int wait_for(const char *how, int last) {
  if (!strncmp(how, "win_", 4)) return on_window(how, last);
  int got = 0, sum = 0, flag = 0, error = MPI_SUCCESS;
  MPI_Request r;
  if (!strcmp(how, "recv")) return MPI_Recv(&got, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!strcmp(how, "any")) return MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!strcmp(how, "ssend")) return MPI_Ssend(&got, 1, MPI_INT, last, 0, MPI_COMM_WORLD);
  if (!strcmp(how, "probe")) return MPI_Probe(last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!strcmp(how, "barrier")) return MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(how, "allreduce")) return MPI_Allreduce(&got, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Irecv(&got, 1, MPI_INT, last, 0, MPI_COMM_WORLD, &r);
  if (!strcmp(how, "wait")) return MPI_Wait(&r, MPI_STATUS_IGNORE);
  while (!flag && error == MPI_SUCCESS) error = MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
  return error;
}

int main(int argc, char **argv) {
  int rank, size, class, length;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!strncmp(argv[1], "win_", 4)) {
    static long memory[1000];
    MPI_Group all;
    /* Of memory that ranks share, each takes the lock itself: "win_held_alone", "win_held_shared". */
    if (!strncmp(argv[1], "win_held_", 9)) {
      void *base;
      MPI_Win_allocate(sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    } else
      MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, (int[]){size - 1}, &of_last);
    if (!strncmp(argv[1], "win_held", 8) && rank == size - 1) {
      long one = 1;
      MPI_Win_lock(!strcmp(argv[1], "win_held_shared") ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
      MPI_Put(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
      MPI_Win_flush(0, win);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  printf("here\n");
  fflush(stdout);
  if (rank == size - 1)
    for (;;) pause();
  int error = wait_for(argv[1], size - 1);
  MPI_Error_class(error, &class);
  MPI_Error_string(error, text, &length);
  printf("%s: %s\n", class == MPI_ERR_PROC_ABORTED ? "aborted" : class ? "another error" : "no error", text);
  fflush(stdout);
  _exit(0);
}
