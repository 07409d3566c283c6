/* One of two coupled programs: the air above a sea (coupled_sea.f90), each on its own number of
 * processes. The air starts the sea, and both exchange their surface temperatures every step:
 *
 *     mpicc -O2 -o coupled_air coupled_air.c && mpifort -O2 -o coupled_sea coupled_sea.f90
 *     mpiexec -n 2 ./coupled_air ./coupled_sea [SEA_PROCESSES [STEPS]]
 *
 * Each is one column of CELLS cells, divided among its processes. Heat flows from the warmer surface
 * to the colder one; the total is conserved. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 24 };

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Comm sea;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int seas = argc > 2 ? atoi(argv[2]) : 2, steps = argc > 3 ? atoi(argv[3]) : 50;
    if (argc < 2 || CELLS % size || seas < 1 || CELLS % seas || steps < 0) {
        fprintf(stderr, "usage: coupled_air SEA_PROGRAM [SEA_PROCESSES [STEPS]]; both numbers of processes must divide %d\n", CELLS);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int mine = CELLS / size;
    double *air = malloc(mine * sizeof *air), all[CELLS];
    for (int i = 0; i < mine; i++)
        air[i] = 10.0;
    MPI_Comm_spawn(argv[1], MPI_ARGV_NULL, seas, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &sea, MPI_ERRCODES_IGNORE);
    MPI_Bcast(&steps, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, sea);
    for (int step = 0; step < steps; step++) {
        /* all of one side get the cells of the other */
        MPI_Allgather(air, mine, MPI_DOUBLE, all, CELLS / seas, MPI_DOUBLE, sea);
        for (int i = 0; i < mine; i++)
            air[i] += 0.1 * (all[rank * mine + i] - air[i]);
    }
    double sum = 0, total = 0, of_sea = 0;
    for (int i = 0; i < mine; i++)
        sum += air[i];
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(&of_sea, 1, MPI_DOUBLE, 0, 0, sea, MPI_STATUS_IGNORE);
        printf("after %d steps the air has %.3f degrees, the sea %.3f\n", steps, total / CELLS, of_sea / CELLS);
    }
    MPI_Comm_disconnect(&sea);
    free(air);
    MPI_Finalize();
    return 0;
}
