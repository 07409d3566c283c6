//! Info objects. (room to be filled)
