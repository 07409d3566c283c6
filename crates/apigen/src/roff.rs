//! Text in the syntax of roff.

/// A paragraph or a line: backslashes are escaped, and so are lines that roff would take for
/// requests.
pub fn text(plain: &str) -> String {
    plain.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A program: quotes, dashes and accents also stay unchanged, so that the page's text compiles.
pub fn program(plain: &str) -> String {
    let mut out = String::new();
    for plain in plain.lines() {
        for (i, c) in line(plain).char_indices() {
            match c {
                '-' => out.push_str("\\-"),
                '\'' if i > 0 => out.push_str("\\(aq"),
                '`' => out.push_str("\\(ga"),
                '^' => out.push_str("\\(ha"),
                '~' => out.push_str("\\(ti"),
                c => out.push(c),
            }
        }
        out.push('\n');
    }
    out
}

fn line(plain: &str) -> String {
    let escaped = plain.replace('\\', "\\e");
    if escaped.starts_with(['.', '\'']) {
        format!("\\&{escaped}")
    } else {
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::{program, text};

    #[test]
    fn nothing_of_a_text_is_a_request() {
        assert_eq!(text(".5 of \\n\n'x'"), "\\&.5 of \\en\n\\&'x'");
        assert_eq!(
            program("a - 'b' ^ ~`"),
            "a \\- \\(aqb\\(aq \\(ha \\(ti\\(ga\n"
        );
        assert_eq!(program("    \"\\n\""), "    \"\\en\"\n");
    }
}
