//! Errors of PMI: misuse by this side, protocol errors of the other side.

use super::Stage;
use super::line::short;
use thiserror::Error;

/// An error of PMI.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum PmiError {
    // Misuse by this library.
    #[error("{protocol} was asked {request} in state {state}")]
    OutOfTurn {
        protocol: &'static str,
        request: String,
        state: String,
    },
    #[error("PMI-1 cannot say '{}' as the word of a command", .0.escape_debug())]
    Unspeakable(String),
    #[error("a PMI-2 frame takes {most} bytes, this one has {len}")]
    LongFrame { len: usize, most: usize },

    // Invalid lines and frames.
    #[error("a PMI line has {len} bytes and no end; at most {most} are read")]
    LongLine { len: usize, most: usize },
    #[error("a PMI line is not text: '{0}'")]
    NotText(String),
    #[error("a PMI line is empty")]
    EmptyLine,
    #[error("a PMI line begins with '{0}', not with 'cmd='")]
    LineBegins(String),
    #[error("a PMI-2 frame begins with '{0}', not with its length")]
    NoLength(String),
    #[error("a PMI-2 frame begins with '{0}', not with 'cmd='")]
    FrameBegins(String),
    #[error("a PMI-2 frame has the word '{0}'")]
    Word(String),

    // Missing or invalid words.
    #[error("PMI command '{command}' lacks '{key}='")]
    Lacks { command: String, key: String },
    #[error("PMI command '{command}' says {key}='{value}', which is not a number")]
    NoNumber {
        command: String,
        key: String,
        value: String,
    },
    #[error("a PMI value has a '%' that no two hexadecimal digits follow")]
    Escape,
    #[error("a PMI value says it has '{0}' pieces")]
    Pieces(String),
    #[error("a PMI value was not stored by this library")]
    Foreign,

    // Protocol errors of a launcher.
    #[error("unexpected message '{0}' from the launcher")]
    Unasked(String),
    #[error("the launcher answered '{answer}' instead of '{due}'")]
    Answer { answer: String, due: String },
    #[error("the launcher refused: '{0}'")]
    Refused(String),
    #[error("the launcher says {key} is {value}")]
    Maximum { key: String, value: String },
    #[error("the launcher does not speak PMI-2: '{0}'")]
    NoPmi2(String),

    // Protocol errors of a rank.
    #[error("PMI command '{command}' came in stage {stage:?}")]
    Stage { command: String, stage: Stage },
}

impl PmiError {
    /// A word's value is not a number.
    pub(super) fn no_number(command: &str, key: &str, value: &str) -> PmiError {
        PmiError::NoNumber {
            command: command.into(),
            key: key.into(),
            value: short(value),
        }
    }
}
