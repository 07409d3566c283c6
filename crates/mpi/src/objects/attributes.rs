//! Attributes and keyvals, for communicators, datatypes and windows. (room to be filled)
