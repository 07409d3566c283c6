! How often a tool was called.
module counted
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  integer :: of_fortran = 0
  integer(c_int), bind(C, name='of_c') :: of_c
end module
