//! The calls of the chapter.

pub mod name;
pub mod port;
pub mod spawn;
