//! Encodes any bytes as a word that is safe on a PMI line, and splits values over several keys if
//! the launcher limits their length.
//!
//! Letters, digits and `-_.:,/()+@` stand for themselves, every other byte is `%XX`. A stored value
//! begins with `s` (whole) or is `m<N>` (its N pieces are under `key.0` ... `key.N-1`).

use super::PmiError;

fn plain(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-_.:,/()+@".contains(&b)
}

/// Bytes as a safe word.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &b in bytes {
        if plain(b) {
            out.push(b as char);
        } else {
            out.push('%');
            out.push(digit(b >> 4));
            out.push(digit(b & 15));
        }
    }
    out
}

fn digit(n: u8) -> char {
    char::from(b"0123456789ABCDEF"[n as usize & 15])
}

/// The bytes of a safe word.
pub fn decode(word: &str) -> Result<Vec<u8>, PmiError> {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word.bytes();
    while let Some(b) = rest.next() {
        if b == b'%' {
            out.push(escaped(rest.next(), rest.next())?);
        } else {
            out.push(b);
        }
    }
    Ok(out)
}

fn escaped(high: Option<u8>, low: Option<u8>) -> Result<u8, PmiError> {
    let value = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
    match (value(high), value(low)) {
        (Some(h), Some(l)) => Ok((h * 16 + l) as u8),
        _ => Err(PmiError::Escape),
    }
}

/// Pairs `(key, value)` to store, with values of at most `max` bytes, from which `value` can be
/// read back; the pair of the key itself comes last.
pub fn split(key: &str, value: &[u8], max: usize) -> Vec<(String, String)> {
    let word = encode(value);
    let key = encode(key.as_bytes());
    let max = max.max(16);
    if word.len() < max {
        return vec![(key, format!("s{word}"))];
    }
    let mut pairs: Vec<(String, String)> = word
        .as_bytes()
        .chunks(max)
        .enumerate()
        // an encoded word is ASCII, so it can be cut anywhere
        .map(|(i, c)| {
            (
                format!("{key}.{i}"),
                String::from_utf8_lossy(c).into_owned(),
            )
        })
        .collect();
    let count = pairs.len();
    pairs.push((key, format!("m{count}")));
    pairs
}

/// Form of the value stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The value itself.
    Whole(Vec<u8>),
    /// Number of pieces under `key.0`, `key.1`, ...; join them and [`decode`].
    Pieces(usize),
}

/// Reads the value of the key itself.
pub fn stored(word: &str) -> Result<Stored, PmiError> {
    match word.split_at_checked(1) {
        Some(("s", rest)) => Ok(Stored::Whole(decode(rest)?)),
        Some(("m", rest)) => match rest.parse() {
            Ok(n) => Ok(Stored::Pieces(n)),
            Err(_) => Err(PmiError::Pieces(rest.into())),
        },
        _ => Err(PmiError::Foreign),
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|b| [digit(b >> 4), digit(b & 15)])
        .collect()
}

/// Reads a key from 64 hexadecimal digits.
pub fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut out = [0u8; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (slot, pair) in out.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *slot = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(out)
}
