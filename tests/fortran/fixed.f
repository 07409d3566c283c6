C     A program in the fixed form of Fortran 77, as old codes are: mpif.h, commons, buffers of two types for one procedure.
      PROGRAM FIXED
      INCLUDE 'mpif.h'
      INTEGER N
      PARAMETER (N = 10)
      INTEGER IERR, MYRANK, NPROCS, I, STATUS(MPI_STATUS_SIZE), NEXT
      INTEGER LAST, REQ(2), STATS(MPI_STATUS_SIZE, 2), WRONG, NBAD
      INTEGER MYOP
      LOGICAL FLAG
      REAL*8 T, X(N), Y(N)
      INTEGER K(N), L(N)
      CHARACTER*20 WORD
      COMMON /FIELD/ X, Y
      EXTERNAL ADDUP
      WRONG = 0
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, MYRANK, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, NPROCS, IERR)
      NEXT = MOD(MYRANK + 1, NPROCS)
      LAST = MOD(MYRANK + NPROCS - 1, NPROCS)
      DO 10 I = 1, N
         X(I) = MYRANK + I * 0.5D0
         K(I) = 100 * MYRANK + I
   10 CONTINUE
      T = MPI_WTIME()
      CALL MPI_IRECV(Y, N, MPI_DOUBLE_PRECISION, LAST, 1,
     &               MPI_COMM_WORLD, REQ(1), IERR)
      CALL MPI_IRECV(L, N, MPI_INTEGER, LAST, 2,
     &               MPI_COMM_WORLD, REQ(2), IERR)
      CALL MPI_SEND(X, N, MPI_DOUBLE_PRECISION, NEXT, 1,
     &              MPI_COMM_WORLD, IERR)
      CALL MPI_SEND(K, N, MPI_INTEGER, NEXT, 2,
     &              MPI_COMM_WORLD, IERR)
      CALL MPI_WAITALL(2, REQ, STATS, IERR)
      IF (STATS(MPI_SOURCE, 2) .NE. LAST) WRONG = WRONG + 1
      IF (STATS(MPI_TAG, 2) .NE. 2) WRONG = WRONG + 1
      DO 20 I = 1, N
         IF (ABS(Y(I) - LAST - I * 0.5D0) .GT. 1D-9) WRONG = WRONG + 1
         IF (L(I) .NE. 100 * LAST + I) WRONG = WRONG + 1
   20 CONTINUE
      CALL MPI_OP_CREATE(ADDUP, .TRUE., MYOP, IERR)
      CALL MPI_ALLREDUCE(MPI_IN_PLACE, K, 1, MPI_INTEGER, MYOP,
     &                   MPI_COMM_WORLD, IERR)
      IF (K(1) .NE. NPROCS + 50 * NPROCS * (NPROCS - 1))
     &   WRONG = WRONG + 1
      CALL MPI_OP_FREE(MYOP, IERR)
      IF (MYRANK .EQ. 0) WORD = 'FROM THE ROOT'
      CALL MPI_BCAST(WORD, 20, MPI_CHARACTER, 0, MPI_COMM_WORLD, IERR)
      IF (WORD .NE. 'FROM THE ROOT') WRONG = WRONG + 1
      CALL MPI_IPROBE(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, FLAG,
     &                STATUS, IERR)
      IF (FLAG) WRONG = WRONG + 1
      IF (MPI_WTIME() .LT. T) WRONG = WRONG + 1
      CALL MPI_REDUCE(WRONG, NBAD, 1, MPI_INTEGER, MPI_SUM, 0,
     &                MPI_COMM_WORLD, IERR)
      CALL MPI_FINALIZE(IERR)
      IF (MYRANK .EQ. 0) THEN
         IF (NBAD .NE. 0) STOP 1
         PRINT '(A)', 'passed'
      END IF
      END

      SUBROUTINE ADDUP(A, B, N, TYPE)
      INTEGER N, TYPE, A(N), B(N), I
      DO 30 I = 1, N
         B(I) = A(I) + B(I)
   30 CONTINUE
      END
