! The three interfaces by one name each: a test is compiled as KW_F08 (use mpi_f08), KW_MPI (use mpi) and KW_MPIF (mpif.h).
! LASTING stands where a buffer is declared that is in use after a call returns.
! KW_FOREIGN: for the library of another ABI, whose statuses have KW_STATUS_SIZE integers.
#if !defined(KW_STATUS_SIZE)
#define KW_STATUS_SIZE 8
#endif
#if defined(KW_F08)
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#define LASTING , asynchronous
#define HANDLE(name) type(name)
#define A_STATUS(s) type(MPI_Status) :: s
#define STATUSES(s, n) type(MPI_Status) :: s(n)
#define SOURCE_OF(s) s%MPI_SOURCE
#define TAG_OF(s) s%MPI_TAG
#define ERROR_OF(s) s%MPI_ERROR
#define SOURCE_AT(s, i) s(i)%MPI_SOURCE
#define TAG_AT(s, i) s(i)%MPI_TAG
#else
#if defined(KW_MPI)
#define USE_MPI use mpi
#define INCLUDE_MPI
#define LASTING , asynchronous
#else
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#define LASTING
#endif
#define HANDLE(name) integer
#define A_STATUS(s) integer :: s(MPI_STATUS_SIZE)
#define STATUSES(s, n) integer :: s(MPI_STATUS_SIZE, n)
#define SOURCE_OF(s) s(MPI_SOURCE)
#define TAG_OF(s) s(MPI_TAG)
#define ERROR_OF(s) s(MPI_ERROR)
#define SOURCE_AT(s, i) s(MPI_SOURCE, i)
#define TAG_AT(s, i) s(MPI_TAG, i)
#endif
