//! Reading little-endian numbers and bytes that came from another process: no length is trusted.

/// Bytes that have not been read yet. Each function takes its value off the front; `None` if there
/// are fewer bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader of these bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// The unread bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// `N` bytes.
    #[inline]
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (word, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*word)
    }

    /// A number of 32 bits.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    /// A signed integer.
    #[inline]
    pub fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    /// A number of 64 bits.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// A signed integer.
    #[inline]
    pub fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }

    /// The next bytes.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Bytes that are preceded by their number (u32).
    #[inline]
    pub fn counted(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_nothing_more() {
        let bytes = [1, 0, 0, 0, 254, 255, 255, 255, 2, 0, 0, 0, 7, 8, 9];
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.u32(), reader.i32()), (Some(1), Some(-2)));
        assert_eq!(reader.counted(), Some(&[7, 8][..]));
        assert_eq!((reader.u64(), reader.bytes(2)), (None, None));
        assert_eq!((reader.take(), reader.rest()), (Some([9]), &[][..]));
        assert_eq!(Reader::new(&[5, 0, 0, 0, 1]).counted(), None);
    }
}
