//! Reduction operations. (room to be filled)
