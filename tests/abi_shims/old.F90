! What programs of another ABI's mpif.h have and the standard one has not: procedures of MPI-1, names as other compilers write them, keys
! that may be other numbers in Fortran than in C. Prints 'passed'.
program old
  implicit none
  include 'mpif.h'
  interface ! as compilers write a name that has two underscores, capitals, or nothing at its end
    subroutine twice(comm, rank, ierr) bind(c, name='mpi_comm_rank__')
      integer :: comm, rank, ierr
    end subroutine
    subroutine capitals(comm, rank, ierr) bind(c, name='PMPI_COMM_RANK')
      integer :: comm, rank, ierr
    end subroutine
    subroutine bare(comm, rank, ierr) bind(c, name='mpi_comm_rank')
      integer :: comm, rank, ierr
    end subroutine
  end interface
  integer :: ierr, ranks(4), extent, lower, upper, made, size, at(2), first, second
  integer :: column(6), got(6), seen, handler, was, class
  common /together/ first, second
  integer(MPI_ADDRESS_KIND) :: bound
  logical :: found
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, ranks(1), ierr)
  call twice(MPI_COMM_WORLD, ranks(2), ierr)
  call capitals(MPI_COMM_WORLD, ranks(3), ierr)
  call bare(MPI_COMM_WORLD, ranks(4), ierr)
  call want(all(ranks == ranks(1)), 'one rank under four names')

  call MPI_Address(first, at(1), ierr)
  call MPI_Address(second, at(2), ierr)
  call want(at(2) - at(1) == 4, 'MPI_Address')
  call MPI_Type_hvector(3, 1, 8, MPI_INTEGER, made, ierr)
  call MPI_Type_extent(made, extent, ierr)
  call MPI_Type_lb(made, lower, ierr)
  call MPI_Type_ub(made, upper, ierr)
  call want(extent == 20 .and. lower == 0 .and. upper == 20, 'the bounds of a vector')
  call MPI_Type_commit(made, ierr)
  column = [1, 2, 3, 4, 5, 6]
  got = 0
  call MPI_Sendrecv(column, 1, made, 0, 7, got, 1, made, 0, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE, ierr)
  call want(all(got == [1, 0, 3, 0, 5, 0]), 'what went through a vector')
  call MPI_Type_free(made, ierr)
  call MPI_Type_create_resized(MPI_INTEGER, 0_MPI_ADDRESS_KIND, 3000000000_MPI_ADDRESS_KIND, made, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
  call MPI_Type_extent(made, extent, ierr)
  call MPI_Error_class(ierr, class, was)
  call want(class == MPI_ERR_ARG, 'an extent of more than 2 GB')
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, ierr)
  call MPI_Type_free(made, ierr)
  call MPI_Type_struct(2, [1, 2], [0, 8], [MPI_INTEGER, MPI_REAL], made, ierr)
  call MPI_Type_size(made, size, ierr)
  call want(size == 12, 'MPI_Type_struct')
  call MPI_Type_free(made, ierr)
  call MPI_Type_hindexed(2, [1, 1], [4, 12], MPI_INTEGER, made, ierr)
  call MPI_Type_lb(made, lower, ierr)
  call want(lower == 4, 'MPI_Type_hindexed')
  call MPI_Type_free(made, ierr)

  seen = 0
  call MPI_Errhandler_create(note, handler, ierr)
  call MPI_Errhandler_set(MPI_COMM_SELF, handler, ierr)
  call MPI_Errhandler_get(MPI_COMM_SELF, was, ierr)
  call want(was == handler, 'MPI_Errhandler_get')
  call MPI_Send(first, 1, MPI_INTEGER, 5, 0, MPI_COMM_SELF, ierr)
  call MPI_Error_class(ierr, class, size)
  call want(class == MPI_ERR_RANK .and. seen == 1, 'an error handler')

  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, bound, found, ierr)
  call want(found .and. bound >= 32767, 'MPI_TAG_UB')
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, size, found, ierr)
  call want(found .and. (size == 0 .or. size == 1), 'MPI_WTIME_IS_GLOBAL')
  call MPI_Finalize(ierr)
  if (ranks(1) == 0) print '(a)', 'passed'
contains
  subroutine want(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print '(2a)', 'FAILED: ', what
    stop 1
  end subroutine

  subroutine note(comm, code)
    integer :: comm, code
    seen = seen + merge(1, 2, comm == MPI_COMM_SELF .and. code /= 0)
  end subroutine
end program
