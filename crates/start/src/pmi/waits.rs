//! Wait reports of ranks while the job runs: a rank of this library sends one in a line of its own,
//! unasked or at the launcher's request. Neither line has an answer in the sense of PMI-1, so both
//! may occur between any two other lines.

/// Start of the line in which a rank reports what it waits for. PMI does not interpret the rest.
pub const WAITS: &str = "cmd=kw_waits ";
const ASK: &str = "cmd=kw_ask round=";

/// The launcher's question, newline included; answers name the round.
pub fn ask(round: u32) -> String {
    format!("{ASK}{round}\n")
}

/// The round of a line that is such a question.
pub fn question(line: &str) -> Option<u32> {
    line.strip_prefix(ASK)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_distinguished_from_answers() {
        assert_eq!(question(ask(7).trim_end()), Some(7));
        assert_eq!(question("cmd=barrier_out rc=0"), None);
        assert_eq!(question("cmd=kw_ask round=-1"), None);
    }
}
