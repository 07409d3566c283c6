//! The known word that is nearest to a misspelt one.

/// The nearest of these words, if one is so near that it may be meant.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let close = |name: &str| distance(name.trim_start_matches('-'), word.trim_start_matches('-'));
    let best = known.min_by_key(|n| close(n))?;
    let most = (word.trim_start_matches('-').chars().count().div_ceil(3)).max(1);
    (close(best) <= most).then_some(best)
}

/// Edits between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = corner + usize::from(ca != *cb);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
