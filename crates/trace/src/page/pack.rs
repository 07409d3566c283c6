//! Columns of numbers as text: differences or values of seven bits a byte, in base64.

/// Bytes of a column under construction.
#[derive(Debug, Default)]
pub(super) struct Column {
    bytes: Vec<u8>,
    last: i64,
    used: bool,
}

impl Column {
    /// Adds a nonnegative number.
    pub(super) fn push(&mut self, mut value: u64) {
        // the page holds numbers as doubles
        value = value.min(1 << 53);
        self.used |= value != 0;
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Adds a number as its difference to the previous one.
    pub(super) fn push_delta(&mut self, value: u64) {
        let value = value.min(1 << 53) as i64;
        let difference = value - self.last;
        self.last = value;
        self.push(((difference << 1) ^ (difference >> 63)) as u64);
        self.used = true;
    }

    /// Adds a number or none (0): 1 plus twice its absolute value, plus 1 if it is negative.
    pub(super) fn push_option(&mut self, value: Option<i64>) {
        let coded = value.map_or(0, |v| 1 + (v.unsigned_abs() << 1 | u64::from(v < 0)));
        self.push(coded);
    }

    /// The text; empty if all numbers are 0.
    pub(super) fn text(&self) -> String {
        if self.used {
            base64(&self.bytes)
        } else {
            String::new()
        }
    }
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= three.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        let mut column = Column::default();
        [5, 300].into_iter().for_each(|n| column.push(n));
        assert_eq!(column.bytes, [5, 0xac, 2]);
        let mut column = Column::default();
        [10, 8].into_iter().for_each(|n| column.push_delta(n));
        assert_eq!(column.bytes, [20, 3]);
        let mut column = Column::default();
        [None, Some(0), Some(-1)]
            .into_iter()
            .for_each(|n| column.push_option(n));
        assert_eq!(column.bytes, [0, 1, 4]);
    }
}
