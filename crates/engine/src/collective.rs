//! Runs collective schedules on the engine. (room to be filled)
