//! Figures as text: times, bytes, percentages, lists of ranks.

/// Nanoseconds with a unit, three figures.
pub fn time(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        n if n < 1e3 => return format!("{n:.0} ns"),
        n if n < 1e6 => (n / 1e3, "us"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", three(value))
}

/// Bytes with a unit, three figures.
pub fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match value {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{} KB", three(b / 1e3)),
        b if b < 1e9 => format!("{} MB", three(b / 1e6)),
        b => format!("{} GB", three(b / 1e9)),
    }
}

fn three(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// A fraction of a whole, in percent.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".into();
    }
    let percent = 100.0 * part as f64 / whole as f64;
    match percent {
        p if p > 0.0 && p < 0.1 => "less than 0.1 %".into(),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// `rank 3`, `ranks 0-2 and 5`, `all 8 ranks`; the list is sorted.
pub fn ranks(list: &[u32], of: usize) -> String {
    match list {
        [] => "no rank".into(),
        [one] => format!("rank {one}"),
        [_, _] if of == 2 => "both ranks".into(),
        all if all.len() == of => format!("all {of} ranks"),
        some => {
            let ranges = ranges(some);
            match ranges.as_slice() {
                [one] => format!("ranks {one}"),
                [first @ .., last] if first.len() < 6 => {
                    format!("ranks {} and {last}", first.join(", "))
                }
                _ => format!("{} ranks (of {of})", some.len()),
            }
        }
    }
}

fn ranges(list: &[u32]) -> Vec<String> {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for n in list {
        match all.last_mut() {
            Some((_, to)) if *to + 1 == *n => *to = *n,
            _ => all.push((*n, *n)),
        }
    }
    let spell = |(from, to): (u32, u32)| match to - from {
        0 => vec![from.to_string()],
        1 => vec![from.to_string(), to.to_string()],
        _ => vec![format!("{from}-{to}")],
    };
    all.into_iter().flat_map(spell).collect()
}

/// `1 call`, `3 000 calls`.
pub fn several(n: u64, thing: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", count(n))
}

/// A number with its noun, with groups of thousands.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(' ');
        }
        out.push(d);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(time(999), "999 ns");
        assert_eq!(time(12_340), "12.3 us");
        assert_eq!(time(1_234_000_000), "1.23 s");
        assert_eq!(bytes(4096), "4.10 KB");
        assert_eq!(share(1, 8), "12 %");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(several(1, "call"), "1 call");
        assert_eq!(several(0, "call"), "0 calls");
    }

    #[test]
    fn ranks_are_ranges() {
        assert_eq!(ranks(&[3], 8), "rank 3");
        assert_eq!(ranks(&[0, 1, 2, 5], 8), "ranks 0-2 and 5");
        assert_eq!(ranks(&[0, 1], 2), "both ranks");
        assert_eq!(ranks(&[0, 1, 2, 3], 4), "all 4 ranks");
        assert_eq!(ranks(&[0, 2, 4, 6, 8, 10, 12, 14], 16), "8 ranks (of 16)");
    }
}
