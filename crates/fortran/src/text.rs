//! Texts: padded with blanks in Fortran, terminated by a zero in C.

use std::ffi::{c_char, c_int};

/// The longest text that MPI returns, without its zero.
const LONGEST: usize = {
    let version = crate::constants::MPI_MAX_LIBRARY_VERSION_STRING as usize;
    let port = crate::constants::MPI_MAX_PORT_NAME as usize;
    if version > port { version } else { port }
};
/// Length of a text of Fortran. Compilers pass 8 bytes, older ones 4 (gfortran before 8), with
/// undefined contents in the others.
pub type Length = u32;
/// Mark of a text that C has not written.
const UNWRITTEN: u8 = 1;

/// A text for C.
pub struct Text {
    short: [u8; 64],
    long: Vec<u8>,
}

impl Text {
    /// Reads `length` characters, without the blanks at the end.
    ///
    /// # Safety
    /// `from` has `length` characters.
    pub unsafe fn read(from: *const c_char, length: Length) -> Text {
        // SAFETY: the caller's promise.
        Text::of(cut(unsafe { characters(from, length) }))
    }

    /// Reads a key or a value of an info object, without leading and trailing blanks (MPI 5.0, 10).
    ///
    /// # Safety
    /// `from` has `length` characters.
    pub unsafe fn read_info(from: *const c_char, length: Length) -> Text {
        // SAFETY: the caller's promise.
        Text::of(trimmed(unsafe { characters(from, length) }))
    }

    fn of(text: &[u8]) -> Text {
        let mut out = Text {
            short: [0; 64],
            long: Vec::new(),
        };
        if text.len() < out.short.len() {
            out.short[..text.len()].copy_from_slice(text);
        } else {
            out.long = [text, &[0]].concat();
        }
        out
    }

    /// The C argument.
    pub fn as_c(&self) -> *mut c_char {
        let text: &[u8] = if self.long.is_empty() {
            &self.short
        } else {
            &self.long
        };
        text.as_ptr().cast_mut().cast()
    }
}

/// # Safety
/// `from` has `length` characters.
unsafe fn characters<'a>(from: *const c_char, length: Length) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(from.cast(), length as usize) }
}

/// The part without trailing blanks, and up to the first zero (which a program may have put there).
fn cut(text: &[u8]) -> &[u8] {
    let text = text.split(|c| *c == 0).next().unwrap_or(text);
    let end = text.iter().rposition(|c| *c != b' ').map_or(0, |at| at + 1);
    &text[..end]
}

/// The part without leading and trailing blanks.
fn trimmed(text: &[u8]) -> &[u8] {
    let text = cut(text);
    let from = text.iter().position(|c| *c != b' ').unwrap_or(text.len());
    &text[from..]
}

/// Room for a text that C writes.
pub struct Room([u8; LONGEST + 1]);

impl Room {
    /// Creates a buffer without a text.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Room {
        let mut room = Room([0; LONGEST + 1]);
        room.0[0] = UNWRITTEN;
        room
    }

    /// The C argument.
    pub fn as_c(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// Writes the text, cut or padded with blanks, if there is one.
    ///
    /// # Safety
    /// `to` has `length` characters.
    pub unsafe fn write(&self, to: *mut c_char, length: Length) {
        if self.0[0] == UNWRITTEN || length == 0 {
            return;
        }
        // SAFETY: the caller's promise.
        pad(&self.0, unsafe {
            std::slice::from_raw_parts_mut(to.cast(), length as usize)
        });
    }
}

/// Copies a C text into Fortran's buffer.
fn pad(text: &[u8], to: &mut [u8]) {
    let end = text.iter().position(|c| *c == 0).unwrap_or(text.len());
    let n = end.min(to.len());
    to[..n].copy_from_slice(&text[..n]);
    to[n..].fill(b' ');
}

/// Number of characters of a value that C may write, without its zero.
pub fn value_length(length: c_int) -> c_int {
    length.min(LONGEST as c_int)
}

/// C's buffer size for a text of `length` characters in Fortran.
pub fn room(length: c_int) -> c_int {
    if length <= 0 {
        length
    } else {
        value_length(length) + 1
    }
}

/// Several texts for C, with a final null.
pub struct Words {
    /// The target of the pointers.
    _texts: Vec<Vec<u8>>,
    pointers: Vec<*mut c_char>,
    none: bool,
}

impl Words {
    fn of(texts: Vec<Vec<u8>>) -> Words {
        let texts: Vec<Vec<u8>> = texts.into_iter().map(|t| [&t[..], &[0]].concat()).collect();
        let mut pointers: Vec<*mut c_char> =
            texts.iter().map(|t| t.as_ptr().cast_mut().cast()).collect();
        pointers.push(std::ptr::null_mut());
        Words {
            _texts: texts,
            pointers,
            none: false,
        }
    }

    /// The C argument.
    pub fn as_c(&self) -> *mut *mut c_char {
        if self.none {
            return std::ptr::null_mut();
        }
        self.pointers.as_ptr().cast_mut()
    }

    /// Reads `n` texts.
    ///
    /// # Safety
    /// `from` has `n` texts of `length` characters.
    pub unsafe fn counted(from: *const c_char, length: Length, n: c_int) -> Words {
        let text = |i: usize| {
            // SAFETY: the caller's promise.
            trimmed(unsafe { characters(from.wrapping_add(i * length as usize), length) }).to_vec()
        };
        Words::of((0..n.max(0) as usize).map(text).collect())
    }

    /// Reads texts every `step` characters, up to a blank one.
    ///
    /// # Safety
    /// There is a blank one.
    unsafe fn until_blank(from: *const c_char, length: Length, step: usize) -> Words {
        let text = |i: usize| {
            // SAFETY: the caller's promise.
            trimmed(unsafe { characters(from.wrapping_add(i * step), length) }).to_vec()
        };
        let texts = (0..).map(text).take_while(|text| !text.is_empty());
        Words::of(texts.collect())
    }
}

impl Words {
    /// Arguments of a command, up to a blank one (MPI 5.0, 11.8.2).
    ///
    /// # Safety
    /// `from` is MPI_ARGV_NULL, or one of its texts of `length` characters is blank.
    pub unsafe fn arguments(from: *const c_char, length: Length) -> Words {
        if crate::sentinels::is_no_arguments(from) {
            return Words {
                none: true,
                ..Words::of(Vec::new())
            };
        }
        // SAFETY: the caller's promise.
        unsafe { Words::until_blank(from, length, length as usize) }
    }
}

/// Arguments of several commands.
pub struct Lists {
    _lists: Vec<Words>,
    pointers: Vec<*mut *mut c_char>,
}

impl Lists {
    /// An array (n, *) of texts: a row for each command, up to a blank one.
    ///
    /// # Safety
    /// `from` is MPI_ARGVS_NULL, or each row has a blank text.
    pub unsafe fn read(from: *const c_char, length: Length, n: c_int) -> Lists {
        let n = n.max(0) as usize;
        let mut lists = Vec::new();
        if !crate::sentinels::is_no_arguments(from) {
            for i in 0..n {
                // SAFETY: the caller's promise.
                lists.push(unsafe {
                    Words::until_blank(
                        from.wrapping_add(i * length as usize),
                        length,
                        n * length as usize,
                    )
                });
            }
        }
        let pointers = lists.iter().map(Words::as_c).collect();
        Lists {
            _lists: lists,
            pointers,
        }
    }

    /// The C argument.
    pub fn as_c(&self) -> *mut *mut *mut c_char {
        if self.pointers.is_empty() {
            return std::ptr::null_mut();
        }
        self.pointers.as_ptr().cast_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_around_a_text_do_not_count() {
        for (given, kept) in [
            ("  a b  ", "a b"),
            ("", ""),
            ("    ", ""),
            ("x\0yz", "x"),
            ("a", "a"),
        ] {
            assert_eq!(trimmed(given.as_bytes()), kept.as_bytes(), "{given:?}");
        }
    }

    #[test]
    fn a_text_is_cut_or_padded() {
        let mut to = [b'#'; 4];
        pad(b"ab\0zzz", &mut to);
        assert_eq!(&to, b"ab  ");
        pad(b"abcdef\0", &mut to);
        assert_eq!(&to, b"abcd");
        pad(b"\0", &mut to);
        assert_eq!(&to, b"    ");
    }

    #[test]
    fn a_list_of_texts_ends_at_a_blank_one() {
        let given = b"one  two  \0    xxxxx";
        // SAFETY: the third text is blank.
        let words = unsafe { Words::until_blank(given.as_ptr().cast(), 5, 5) };
        assert_eq!(words._texts, [b"one\0".to_vec(), b"two\0".to_vec()]);
        assert_eq!(words.pointers.len(), 3);
    }

    #[test]
    fn room_has_one_more_for_the_zero() {
        assert_eq!(room(0), 0);
        assert_eq!(room(10), 11);
        assert_eq!(room(1 << 20), LONGEST as c_int + 1);
    }
}
