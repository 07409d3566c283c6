"""What the libraries' programs say."""
from kwlab import libraries


def test_what_a_library_says_at_its_end_is_told_without_its_drawn_rules():
    said = "=====\n==========\n= BAD TERMINATION\n= RANK 1 ===\nMPI_Wait(59933)........: MPI_Wait(request=0x7) failed\n"
    assert str(libraries.Failed(255, "x", "", said)) == "status 255: … = BAD TERMINATION = RANK 1 === MPI_Wait(59933)… MPI_Wait(request=0x7) failed"
