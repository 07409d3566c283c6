/* A library to be loaded before a program (LD_PRELOAD): ends the job when a receive is posted into
 * memory that another receive, which is still pending, is to fill. It sees MPI_Irecv and what
 * completes requests, and says at the end how many receives it has watched. */
#include <mpi.h>
#include <stdio.h>

#define MOST 1024

static struct { char *begin, *end; MPI_Request request; } pending[MOST];
static int count, watched;

static void begin(char *buffer, int n, MPI_Datatype type, MPI_Request request)
{
    int size;
    PMPI_Type_size(type, &size);
    char *end = buffer + (long)n * size;
    for (int i = 0; i < count; i++)
        if (buffer < pending[i].end && pending[i].begin < end) {
            fprintf(stderr, "two receives into the same memory: %ld bytes are pending, %ld are posted\n", (long)(pending[i].end - pending[i].begin), (long)(end - buffer));
            PMPI_Abort(MPI_COMM_WORLD, 9);
        }
    if (count == MOST) {
        fprintf(stderr, "more receives than can be watched\n");
        PMPI_Abort(MPI_COMM_WORLD, 9);
    }
    watched++;
    pending[count].begin = buffer, pending[count].end = end, pending[count++].request = request;
}

static void done(MPI_Request request)
{
    for (int i = 0; i < count; i++)
        if (pending[i].request == request) {
            pending[i] = pending[--count];
            return;
        }
}

int MPI_Irecv(void *buffer, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    int code = PMPI_Irecv(buffer, n, type, from, tag, comm, request);
    begin(buffer, n, type, *request);
    return code;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    done(*request);
    return PMPI_Wait(request, status);
}

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    for (int i = 0; i < n; i++)
        done(requests[i]);
    return PMPI_Waitall(n, requests, statuses);
}

int MPI_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *status)
{
    MPI_Request before[MOST];
    for (int i = 0; i < n && i < MOST; i++)
        before[i] = requests[i];
    int code = PMPI_Waitany(n, requests, index, status);
    if (*index >= 0 && *index < MOST)
        done(before[*index]);
    return code;
}

int MPI_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    MPI_Request before[MOST];
    for (int i = 0; i < n && i < MOST; i++)
        before[i] = requests[i];
    int code = PMPI_Testany(n, requests, index, flag, status);
    if (*flag && *index >= 0 && *index < MOST)
        done(before[*index]);
    return code;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    MPI_Request before = *request;
    int code = PMPI_Test(request, flag, status);
    if (*flag)
        done(before);
    return code;
}

int MPI_Finalize(void)
{
    fprintf(stderr, "%d receives were watched\n", watched);
    return PMPI_Finalize();
}
