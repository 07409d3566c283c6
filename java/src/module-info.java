/** MPI for Java: the bindings of Kittiwake. */
module mpi {
    exports mpi;
}
