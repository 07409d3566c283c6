! What gfortran makes of a program with MPICH's module mpi_f08: calls of procedures that take its own descriptors of arrays, and constants
! that are variables of C. Here the interfaces stand in the program: there is no such module. Prints 'passed'.
module declared
  use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t
  implicit none
  integer, parameter :: count_kind = selected_int_kind(18)
  integer(c_int), bind(c, name='MPIR_F08_MPI_IN_PLACE') :: in_place
  integer(c_int), bind(c, name='MPIR_F08_MPI_STATUS_IGNORE_OBJ') :: ignored(5)
  interface
    subroutine mpi_sendrecv_f08ts(from, n, of, to_rank, tag, to, m, of_to, from_rank, tag_to, comm, status, ierror)
      type(*), dimension(..), intent(in) :: from
      type(*), dimension(..) :: to
      integer, intent(in) :: n, of, to_rank, tag, m, of_to, from_rank, tag_to, comm
      integer :: status(5)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine mpi_irecv_f08ts(to, n, of, from_rank, tag, comm, request, ierror)
      type(*), dimension(..), asynchronous :: to
      integer, intent(in) :: n, of, from_rank, tag, comm
      integer, intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    integer(c_int) function wait_in_c(request, status) bind(c, name='MPI_Wait')
      import
      integer(c_int), intent(inout) :: request
      integer(c_intptr_t), value :: status
    end function
    subroutine mpi_allreduce_f08ts(from, to, n, of, op, comm, ierror)
      type(*), dimension(..), intent(in) :: from
      type(*), dimension(..) :: to
      integer, intent(in) :: n, of, op, comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine mpi_allreduce_f08ts_large(from, to, n, of, op, comm, ierror)
      import
      type(*), dimension(..), intent(in) :: from
      type(*), dimension(..) :: to
      integer(count_kind), intent(in) :: n
      integer, intent(in) :: of, op, comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine mpi_pack_external_f08ts(form, from, n, of, to, bytes, at, ierror)
      import
      character(len=*), intent(in) :: form
      type(*), dimension(..), intent(in) :: from
      type(*), dimension(..) :: to
      integer, intent(in) :: n, of
      integer(count_kind), intent(in) :: bytes
      integer(count_kind), intent(inout) :: at
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface
end module

program descriptors
  use declared
  implicit none
  include 'mpif.h'
  integer :: ierr, i, here, n, every_second, request
  integer, target, asynchronous :: grid(4, 6), got(4, 6), row(6), packed(6)
  integer, pointer :: inner(:, :)
  integer(count_kind) :: at
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, here, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  grid = reshape([(i, i = 1, 24)], [4, 6])

  got = 0
  call mpi_sendrecv_f08ts(grid(3, :), 6, MPI_INTEGER, 0, 1, got(2, 1:6), 6, MPI_INTEGER, 0, 1, MPI_COMM_SELF, ignored)
  call want(all(got(2, :) == grid(3, :)) .and. sum(got) == sum(grid(3, :)), 'a row')
  got = 0
  inner => grid(2:4:2, 6:1:-3)
  call mpi_sendrecv_f08ts(inner, 4, MPI_INTEGER, 0, 1, got, 4, MPI_INTEGER, 0, 1, MPI_COMM_SELF, ignored, ierr)
  call want(ierr == 0 .and. all(got(:, 1) == [22, 24, 10, 12]) .and. all(got(:, 2:) == 0), 'a section that goes backwards')
  call mpi_sendrecv_f08ts(here, 1, MPI_INTEGER, 0, 1, i, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, ignored)
  call want(i == here, 'a scalar')
  call assumed(grid)

  ! a datatype over a section: goes through a copy, and C completes the request
  call MPI_Type_vector(3, 1, 2, MPI_INTEGER, every_second, ierr)
  call MPI_Type_commit(every_second, ierr)
  got = 0
  call mpi_irecv_f08ts(got(2, :), 1, every_second, 0, 1, MPI_COMM_SELF, request, ierr)
  call MPI_Send([7, 8, 9], 3, MPI_INTEGER, 0, 1, MPI_COMM_SELF, ierr)
  call want(wait_in_c(request, 1_c_intptr_t) == 0, 'MPI_Wait in C')
  call want(all(got(2, 1:5:2) == [7, 8, 9]) .and. count(got /= 0) == 3, 'a section whose request C completes')

  row = [(i, i = 1, 6)]
  call mpi_allreduce_f08ts(in_place, row(1:5:2), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call want(all(row == [n, 2, 3 * n, 4, 5 * n, 6]), 'a sum in place')
  call mpi_allreduce_f08ts_large(in_place, row, 2_count_kind, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  call want(ierr == 0, 'a large count')
  at = 0
  call mpi_pack_external_f08ts('external32 ', [1, 256], 2, MPI_INTEGER, packed, 24_count_kind, at, ierr)
  call want(ierr == 0 .and. at == 8 .and. packed(1) == ishft(1, 24) .and. packed(2) == ishft(1, 16), 'a text among descriptors')
  call MPI_Finalize(ierr)
  if (here == 0) print '(a)', 'passed'
contains
  subroutine assumed(array)
    integer :: array(4, *)
    integer :: there(8)
    call mpi_sendrecv_f08ts(array, 8, MPI_INTEGER, 0, 1, there, 8, MPI_INTEGER, 0, 1, MPI_COMM_SELF, ignored)
    call want(all(there == [(i, i = 1, 8)]), 'an array whose size is assumed')
  end subroutine

  subroutine want(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print '(2a)', 'FAILED: ', what
    stop 1
  end subroutine
end program
