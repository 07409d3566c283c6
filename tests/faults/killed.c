/* The last rank is killed while the others wait for it: killed HOW. Each of them prints what its call returned, and ends
 * without a goodbye, as a rank whose errors are fatal would. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wait_for(const char *how, int last) {
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
