! suite CHAPTER: the tests of a chapter, with the interface that it was compiled for.
#include "forms.h"
program suite
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  character(len=20) :: chapter
  integer :: ierr, total, level
  call get_command_argument(1, chapter)
  if (chapter == 'rest') then
    call MPI_Init_thread(MPI_THREAD_SINGLE, level, ierr)
    call check(ierr == MPI_SUCCESS .and. level >= MPI_THREAD_SINGLE, 'MPI_Init_thread')
  else
    call MPI_Init(ierr)
  end if
  call MPI_Comm_rank(MPI_COMM_WORLD, here, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
  select case (chapter)
  case ('point')
    call test_point()
  case ('complete')
    call test_complete()
  case ('datatypes')
    call test_datatypes()
  case ('numbers')
    call test_numbers()
  case ('collectives')
    call test_collectives()
  case ('forms')
    call test_forms()
  case ('communicators')
    call test_communicators()
  case ('attributes')
    call test_attributes()
  case ('topologies')
    call test_topologies()
  case ('environment')
    call test_environment()
  case ('plain')
    call test_plain()
  case ('callbacks')
    call test_callbacks()
  case ('files')
    call test_files()
  case ('windows')
    call test_windows()
  case ('processes')
    call test_processes()
  case ('rest')
    call test_rest()
  case ('abort')
    call MPI_Abort(MPI_COMM_WORLD, 7, ierr)
#if !defined(KW_MPIF) && !defined(KW_FOREIGN)
  case ('sections')
    call test_sections()
  case ('completed_in_c')
    call test_completed_in_c()
#endif
#if defined(KW_F08)
  case ('modern')
    call test_modern()
#if !defined(KW_FOREIGN)
  case ('large')
    call test_large()
#endif
#endif
  case default
    call check(.false., 'there is no chapter '//chapter)
  end select
  call MPI_Allreduce(failures, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
  if (total /= 0) stop 1
  if (here == 0) print '(a)', 'passed'
end program

! The call has succeeded.
subroutine ok(code, what)
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, intent(in) :: code
  character(len=*), intent(in) :: what
  call same(code, MPI_SUCCESS, what)
end subroutine

! The call has failed with this class.
subroutine fails(code, class, what)
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, intent(in) :: code, class
  character(len=*), intent(in) :: what
  integer :: got, ierr
  call MPI_Error_class(code, got, ierr)
  call same(got, class, 'the error class of '//what)
end subroutine
