! Attributes: of the library, of the program, copied and deleted by procedures, and those of C (the other side is crossing.c).
#include "forms.h"
module attribute_procedures
  USE_MPI
  use checks
  implicit none
#if defined(KW_MPIF)
  include 'mpif.h'
#endif
  integer :: copies = 0, deletes = 0
contains
  subroutine copy_of_comm(comm, keyval, extra, value_in, value_out, flag, ierror)
    HANDLE(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    copies = copies + 1
    call check(extra == 1234567890123_MPI_ADDRESS_KIND, 'the extra state of a copy procedure')
    value_out = value_in + 1
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete_of_comm(comm, keyval, value, extra, ierror)
    HANDLE(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra
    deletes = deletes + 1
    ierror = MPI_SUCCESS
    if (value == 666) ierror = MPI_ERR_OTHER
  end subroutine
  subroutine copy_of_type(datatype, keyval, extra, value_in, value_out, flag, ierror)
    HANDLE(MPI_Datatype) :: datatype
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    value_out = 10 * value_in
    flag = value_in /= 5
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete_of_type(datatype, keyval, value, extra, ierror)
    HANDLE(MPI_Datatype) :: datatype
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra
    deletes = deletes + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

subroutine test_attributes()
  USE_MPI
  use checks
  use attribute_procedures, only: copy_of_comm, delete_of_comm, copy_of_type, delete_of_type, copies, deletes
  use, intrinsic :: iso_c_binding
  implicit none
  INCLUDE_MPI
  interface
    integer(c_int) function c_keyval() bind(C)
      import
    end function
    integer(c_int) function c_set(comm, keyval, value) bind(C)
      import
      integer(c_int), value :: comm, keyval
      integer(c_intptr_t), value :: value
    end function
    ! what C finds: the address that an attribute is, or the integer it points to
    integer(c_intptr_t) function c_get(comm, keyval, behind) bind(C)
      import
      integer(c_int), value :: comm, keyval, behind
    end function
  end interface
  integer :: ierr, key, type_key, same_key, c_key, world
  integer(MPI_ADDRESS_KIND) :: value, extra
  logical :: flag
  HANDLE(MPI_Comm) :: a, b
  HANDLE(MPI_Datatype) :: t, u
#if !defined(KW_F08)
  integer :: old, old_value
#endif

  ! those of the library are values
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  call check(flag .and. value >= 32767, 'MPI_TAG_UB')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, value, flag, ierr)
  call check(flag .and. (value == 0 .or. value == 1), 'MPI_WTIME_IS_GLOBAL')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, value, flag, ierr)
  call check(flag .and. value >= MPI_ERR_LASTCODE, 'MPI_LASTUSEDCODE')

  ! ours
  extra = 1234567890123_MPI_ADDRESS_KIND
  call MPI_Comm_create_keyval(copy_of_comm, delete_of_comm, key, extra, ierr)
  call ok(ierr, 'MPI_Comm_create_keyval')
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, same_key, extra, ierr)
  call ok(ierr, 'MPI_Comm_create_keyval with predefined procedures')
  call MPI_Comm_dup(MPI_COMM_WORLD, a, ierr)
  call MPI_Comm_get_attr(a, key, value, flag, ierr)
  call check(.not. flag, 'an attribute that was not set is there')
  value = 2_MPI_ADDRESS_KIND**40 + 7
  call MPI_Comm_set_attr(a, key, value, ierr)
  call MPI_Comm_set_attr(a, same_key, value, ierr)
  call MPI_Comm_dup(a, b, ierr)
  call same(copies, 1, 'the calls of a copy procedure')
  call MPI_Comm_get_attr(b, key, value, flag, ierr)
  call check(flag .and. value == 2_MPI_ADDRESS_KIND**40 + 8, 'a copied attribute')
  call MPI_Comm_get_attr(b, same_key, value, flag, ierr)
  call check(flag .and. value == 2_MPI_ADDRESS_KIND**40 + 7, 'an attribute of MPI_COMM_DUP_FN')
  call MPI_Comm_delete_attr(b, key, ierr)
  call same(deletes, 1, 'the calls of a delete procedure')
  value = 666
  call MPI_Comm_set_attr(b, key, value, ierr)
  call MPI_Comm_delete_attr(b, key, ierr)
  call check(ierr /= MPI_SUCCESS, 'what a delete procedure refuses')
  value = 1
  call MPI_Comm_set_attr(b, key, value, ierr)

  ! C sees the address of what Fortran has set
#if defined(KW_F08)
  world = a%MPI_VAL
#else
  world = a
#endif
  call same(int(c_get(world, key, 1), int64), 2_int64**40 + 7, 'what C finds behind an attribute of Fortran')
  ! Fortran sees the address that C has set
  c_key = c_keyval()
  call same(c_set(world, c_key, int(77, c_intptr_t)), 0, 'setting in C')
  call MPI_Comm_get_attr(a, c_key, value, flag, ierr)
  call check(flag .and. value == 77, 'what Fortran finds of an attribute of C')
  call same(c_set(world, key, int(55, c_intptr_t)), 0, 'setting a key of Fortran in C')
  call MPI_Comm_get_attr(a, key, value, flag, ierr)
  call check(flag .and. value == 55, 'an attribute of C with a key of Fortran')
  value = -3
  call MPI_Comm_set_attr(a, c_key, value, ierr)
  call same(int(c_get(world, c_key, 1), int64), -3_int64, 'what C finds behind a key of its own')
  call MPI_Comm_free(b, ierr)

  ! datatypes
  call MPI_Type_create_keyval(copy_of_type, delete_of_type, type_key, extra, ierr)
  call MPI_Type_dup(MPI_INTEGER, t, ierr)
  value = 4
  call MPI_Type_set_attr(t, type_key, value, ierr)
  call MPI_Type_dup(t, u, ierr)
  call MPI_Type_get_attr(u, type_key, value, flag, ierr)
  call check(flag .and. value == 40, 'a copied attribute of a type')
  call MPI_Type_free(u, ierr)
  value = 5
  call MPI_Type_set_attr(t, type_key, value, ierr)
  call MPI_Type_dup(t, u, ierr)
  call MPI_Type_get_attr(u, type_key, value, flag, ierr)
  call check(.not. flag, 'an attribute whose copy was refused')
  call MPI_Type_delete_attr(t, type_key, ierr)
  call MPI_Type_free(t, ierr)
  call MPI_Type_free(u, ierr)
  call MPI_Type_free_keyval(type_key, ierr)
  call same(type_key, MPI_KEYVAL_INVALID, 'a freed key of types')

#if !defined(KW_F08)
  ! MPI-1: values are INTEGERs
  call MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, old, 0, ierr)
  call ok(ierr, 'MPI_Keyval_create')
  call MPI_Attr_put(a, old, -12, ierr)
  call MPI_Attr_get(a, old, old_value, flag, ierr)
  call check(flag .and. old_value == -12, 'MPI_Attr_get')
  call MPI_Attr_delete(a, old, ierr)
  call MPI_Keyval_free(old, ierr)
  call ok(ierr, 'MPI_Keyval_free')
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, old_value, flag, ierr)
  call check(flag .and. old_value >= 32767, 'MPI_TAG_UB by MPI_Attr_get')
#endif
  call MPI_Comm_free_keyval(key, ierr)
  call same(key, MPI_KEYVAL_INVALID, 'a freed key')
  call MPI_Comm_set_attr(a, MPI_KEYVAL_INVALID, value, ierr)
  call fails(ierr, MPI_ERR_KEYVAL, 'an attribute without a key')
  call MPI_Comm_free(a, ierr)
end subroutine
