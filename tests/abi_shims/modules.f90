! What gfortran makes of a program with Open MPI's modules beyond calls of MPI's procedures: predefined procedures, comparisons and
! variables of the modules, types as class(*), sizes. Here their names stand in the program: there is no such module. Prints 'passed'.
module declared
  use, intrinsic :: iso_c_binding
  implicit none
  type, bind(C) :: handle
    integer :: mpi_val
  end type
  integer(c_int), bind(C, name='ompi_f08_mpi_comm_world') :: world
  integer(c_int), bind(C, name='ompi_f08_mpi_int16') :: int16
  integer(c_int), bind(C, name='__mpi_f08_types_MOD_mpi_sum') :: sum_of
  integer(c_int), bind(C, name='__mpi_f08_types_MOD_mpi_long_long_int') :: long_long
  ! what gfortran knows a type by: its hash, its bytes, the type above it, what a new one is, who copies one
  type, bind(C) :: class_of
    integer(c_int) :: hash, gap
    integer(c_long) :: bytes
    type(c_ptr) :: above, new
    type(c_funptr) :: copy, last, free
  end type
  type(class_of), bind(C, name='__mpi_f08_types_MOD___vtab_mpi_f08_types_Mpi_comm') :: comm_of_4
  type(class_of), bind(C, name='__mpi_types_MOD___vtab_mpi_types_Mpi_status') :: status_of_5
  interface
    logical function equal_4(x, y) bind(C, name='__mpi_f08_types_MOD_ompi_comm_op_eq')
      import
      type(handle) :: x, y
    end function
    logical function differ_4(x, y) bind(C, name='__mpi_f08_types_MOD_ompi_op_op_ne')
      import
      type(handle) :: x, y
    end function
    logical function equal_5(x, y) bind(C, name='__mpi_types_MOD_ompi_win_op_eq')
      import
      type(handle) :: x, y
    end function
    logical function differ_5(x, y) bind(C, name='__mpi_types_MOD_ompi_datatype_op_ne')
      import
      type(handle) :: x, y
    end function
    subroutine dup_fn(comm, key, extra, in, out, flag, ierror) bind(C, name='__mpi_f08_callbacks_MOD_mpi_comm_dup_fn')
      import
      type(handle) :: comm
      integer :: key, ierror
      integer(c_long) :: extra, in, out
      logical :: flag
    end subroutine
    subroutine null_delete_fn(comm, key, value, extra, ierror) bind(C, name='__mpi_f08_callbacks_MOD_mpi_comm_null_delete_fn')
      import
      type(handle) :: comm
      integer :: key, ierror
      integer(c_long) :: value, extra
    end subroutine
    subroutine mpi_comm_create_keyval_f08(copy, delete, key, extra, ierror)
      import
      external :: copy, delete
      integer :: key
      integer(c_long) :: extra
      integer, optional :: ierror
    end subroutine
    subroutine mpix_bcast_init_f08(buffer, n, of, root, comm, info, request, ierror)
      import
      integer :: buffer, n
      type(handle) :: of, comm, info, request
      integer :: root
      integer, optional :: ierror
    end subroutine
    subroutine copies(from, to) bind(C)
      import
      integer(c_int) :: from(*), to(*)
    end subroutine
  end interface
end module

program modules
  use declared
  implicit none
  include 'mpif.h'
  integer :: ierr, here, key, bytes, value, of(6), to(6)
  integer(c_long) :: attribute
  logical :: found
  type(handle) :: comm, request
  type(c_ptr) :: memory
  integer, pointer :: words(:)
  procedure(copies), pointer :: copy
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, here, ierr)
  call want(world == MPI_COMM_WORLD .and. int16 == MPI_INT16_T, 'variables of Open MPI 3')
  call want(sum_of == MPI_SUM .and. long_long == MPI_LONG_LONG, 'variables of Open MPI 4')
  call want(equal_4(handle(7), handle(7)) .and. .not. differ_4(handle(7), handle(7)), 'comparisons of Open MPI 4')
  call want(differ_5(handle(7), handle(8)) .and. .not. equal_5(handle(7), handle(8)), 'comparisons of Open MPI 5')

  call mpi_comm_create_keyval_f08(dup_fn, null_delete_fn, key, 0_c_long)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 70000000000_c_long, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm%mpi_val, ierr)
  call MPI_Comm_get_attr(comm%mpi_val, key, attribute, found, ierr)
  call want(found .and. attribute == 70000000000_c_long, 'an attribute that MPI_COMM_DUP_FN copies')
  call MPI_Comm_free_keyval(key, ierr)

  value = here + 40
  call mpix_bcast_init_f08(value, 1, handle(MPI_INTEGER), 0, comm, handle(MPI_INFO_NULL), request)
  call MPI_Start(request%mpi_val, ierr)
  call MPI_Wait(request%mpi_val, MPI_STATUS_IGNORE, ierr)
  call want(value == 40, 'what came by MPIX_Bcast_init')
  call MPI_Request_free(request%mpi_val, ierr)
  call MPI_Comm_free(comm%mpi_val, ierr)

  call mpi_alloc_mem_cptr(8_c_long, MPI_INFO_NULL, memory, ierr)
  call c_f_pointer(memory, words, [2])
  words = [1, 2]
  call MPI_Free_mem(words, ierr)
  call want(ierr == MPI_SUCCESS, 'memory told by a C pointer')

  call mpi_sizeof_real32_scalar(1.0, bytes, ierr)
  call want(bytes == 4 .and. ierr == MPI_SUCCESS, 'the size of a REAL')
  call mpi_sizeof_complex64_r3([(1d0, 1d0)], bytes, ierr)
  call want(bytes == 16, 'the size of a DOUBLE COMPLEX')
  call pmpi_sizeof_character_r15(['abc'], bytes, ierr)
  call want(bytes == 1, 'the size of a CHARACTER')

  call want(comm_of_4%bytes == 4 .and. status_of_5%bytes == 24 .and. comm_of_4%hash /= status_of_5%hash, 'types as class(*)')
  of = [1, 2, 3, 4, 5, 6]
  to = 0
  call c_f_procpointer(comm_of_4%copy, copy)
  call copy(of, to)
  call want(all(to == [1, 0, 0, 0, 0, 0]), 'a copy of a handle')
  call c_f_procpointer(status_of_5%copy, copy)
  call copy(of, to)
  call want(all(to == of), 'a copy of a status')
  call c_f_pointer(status_of_5%new, words, [6])
  call want(all(words == 0), 'a new status')
  call MPI_Finalize(ierr)
  if (here == 0) print '(a)', 'passed'
contains
  subroutine want(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print '(2a)', 'FAILED: ', what
    stop 1
  end subroutine
end program
