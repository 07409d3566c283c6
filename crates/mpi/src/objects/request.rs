//! Request objects: what an MPI_Request names. (room to be filled)
