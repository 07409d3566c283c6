//! Error handlers. (room to be filled)
