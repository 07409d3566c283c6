! bt: the equations of compressible viscous flow in a cube, by alternating directions, with systems
! of 5 x 5 blocks along lines.
!
!   make apps && dist/bin/mpiexec -n 4 build/apps/bt W
!
! The equations L(u) = L(u*) are those of module flow. Each iteration takes r = dt (L(u) - L(u*)),
! and solves (1 - dt X) (1 - dt Y) (1 - dt Z) v = r, where X, Y and Z are the linearized parts of L
! in the three dimensions; then u = u + v. Each factor couples the points of a line with their
! neighbours only: a block tridiagonal system, which Gauss' elimination solves in a sweep forwards
! and one back.
!
! How the cube is cut, and which rank sends what, is explained in module cells: 30 numbers a line go forwards
! from cell to cell, 5 come back. The number of ranks must be a square.
program bt
  use nas, only: start
  use cells
  use bt_lines
  implicit none
  character(2) :: class

  class = start("bt", ["S", "W", "A"])
  call set_bt_problem(class)
  call solve_in_sweeps("bt", "BT class "//trim(class), counts, 25, forward, 30, backward, 5)
end program
