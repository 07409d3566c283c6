/* Requests of Fortran's that C completes. */
#include <mpi.h>

enum { WAIT, WAITALL, WAITANY, WAITSOME, TEST, TESTALL, TESTANY, TESTSOME, LOOK, LOOK_ALL, LOOK_ANY, LOOK_SOME, FREE, CANCEL, START };
enum { MOST = 4 };

/* One after the other. */
static int each(int n, MPI_Request *requests, int way)
{
    int code = MPI_SUCCESS;
    for (int i = 0; i < n; i++) {
        int flag = 0, now = MPI_SUCCESS;
        switch (way) {
        case WAIT: now = MPI_Wait(&requests[i], MPI_STATUS_IGNORE); break;
        case TEST: while (!flag) now = MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE); break;
        case LOOK: while (!flag) now = MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE); break;
        case FREE: now = MPI_Request_free(&requests[i]); break;
        case CANCEL: now = MPI_Cancel(&requests[i]); break;
        case START: now = MPI_Start(&requests[i]); break;
        }
        if (now != MPI_SUCCESS)
            code = now;
    }
    return code;
}

/* As they come. */
static int any(int n, MPI_Request *requests, int way)
{
    int code = MPI_SUCCESS, at[MOST];
    for (int left = n; left > 0;) {
        int count = 1, flag = 1, now;
        switch (way) {
        case WAITANY: now = MPI_Waitany(n, requests, at, MPI_STATUS_IGNORE); break;
        case TESTANY: now = MPI_Testany(n, requests, at, &flag, MPI_STATUS_IGNORE); break;
        case WAITSOME: now = MPI_Waitsome(n, requests, &count, at, MPI_STATUSES_IGNORE); break;
        default: now = MPI_Testsome(n, requests, &count, at, MPI_STATUSES_IGNORE); break;
        }
        if (now != MPI_SUCCESS)
            code = now;
        left -= flag ? count : 0;
    }
    return code;
}

/* All at once, or until all are seen to be complete. */
static int all(int n, MPI_Request *requests, int way)
{
    int code = MPI_SUCCESS, flag = 0, at[MOST], count = 0;
    switch (way) {
    case WAITALL: return MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    case TESTALL: while (!flag) code = MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE); break;
    case LOOK_ALL: while (!flag) code = MPI_Request_get_status_all(n, requests, &flag, MPI_STATUSES_IGNORE); break;
    case LOOK_ANY:
        for (int i = 0; i < n; i++)
            for (flag = 0; !flag;) code = MPI_Request_get_status_any(1, &requests[i], at, &flag, MPI_STATUS_IGNORE);
        break;
    case LOOK_SOME: while (count < n) code = MPI_Request_get_status_some(n, requests, &count, at, MPI_STATUSES_IGNORE); break;
    }
    return code;
}

int c_complete(int n, MPI_Fint *numbers, int way)
{
    MPI_Request requests[MOST];
    int code;
    for (int i = 0; i < n; i++)
        requests[i] = MPI_Request_f2c(numbers[i]);
    switch (way) {
    case WAITALL: case TESTALL: case LOOK_ALL: case LOOK_ANY: case LOOK_SOME: code = all(n, requests, way); break;
    case WAITANY: case TESTANY: case WAITSOME: case TESTSOME: code = any(n, requests, way); break;
    default: code = each(n, requests, way);
    }
    for (int i = 0; i < n; i++)
        numbers[i] = MPI_Request_c2f(requests[i]);
    return code;
}
