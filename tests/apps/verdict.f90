! verdict: what the NAS kernels say of a result that is right (R), right but for rounding (E), wrong by
! a millionth (W), no number (N), wrong on the last rank only (L), or of which a part is missing (P).
program verdict
  use nas
  implicit none
  real(dp), parameter :: published(2) = [3._dp, -4e-6_dp]
  real(dp) :: values(2)
  character(2) :: what

  what = start("verdict", ["R", "E", "W", "N", "L", "P"])
  values = published
  if (what == "E") values(2) = values(2) * (1 + 1e-9_dp)
  if (what == "W" .or. what == "L" .and. rank == ranks - 1) values(2) = values(2) * (1 + 1e-6_dp)
  if (what == "N") values(1) = sqrt(-abs(values(1)))
  call finish("verdict", 1._dp, 1e6_dp, agrees(values(:merge(1, 2, what == "P")), published, 1e-8_dp))
end program
