//! Reads a trace packet by packet: whole ones up to a damaged place, which is reported in one
//! sentence.
//!
//! A file is a sequence of packets, each with a tag, its length and its bytes. Its writer may be
//! killed at any byte, so the end of the last whole packet is the end of the trace.

use std::io::{self, BufRead, Read};

use prost::Message;

use crate::model::{Builder, Trace};
use crate::perfetto::TracePacket;

/// Tag of field 1 of a trace, of bytes, with which each packet begins.
const PACKET: u8 = 0x0a;
/// Beginning of the packet for jobs that share a file (field 4001), which tells nothing of a rank.
const SHARED: [u8; 3] = [0x8a, 0xfa, 0x01];
/// Length of a packet that is never written: a longer one is damaged.
const LONGEST: u64 = 1 << 24;

/// Reason why a file is not a trace.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It is empty.
    #[error("it is empty: the program wrote no trace, or was killed before it could")]
    Empty,
    /// It has a different beginning.
    #[error("it is not a trace but {0}; kwtrace reads traces written by mpiexec --trace")]
    Other(&'static str),
    /// Its packets contain no MPI calls.
    #[error(
        "it is a Perfetto trace without MPI calls; kwtrace reads traces written by mpiexec --trace"
    )]
    NoCalls,
    /// An error of the system.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Result of reading one packet.
enum Piece {
    Packet(Vec<u8>),
    End,
    Torn(&'static str),
}

/// The trace in these bytes.
///
/// # Errors
/// A file that is empty, of another kind or without MPI calls, or an error of the system. A torn
/// file is not an error: the trace holds the complete part, and one of its notes says so.
pub fn read(mut input: impl BufRead) -> Result<Trace, Fault> {
    kind(input.fill_buf()?)?;
    let mut builder = Builder::default();
    let (mut at, mut packets) = (0u64, 0u64);
    let torn = loop {
        match piece(&mut input)? {
            Piece::End => break None,
            Piece::Torn(how) => break Some(how),
            Piece::Packet(bytes) => match TracePacket::decode(bytes.as_slice()) {
                Ok(packet) => {
                    builder.packet(packet);
                    packets += u64::from(!bytes.starts_with(&SHARED));
                    at += head(bytes.len()) + bytes.len() as u64;
                }
                Err(_) => break Some("contains bytes that are not a packet"),
            },
        }
    };
    let mut trace = builder.finish();
    if trace.calls.is_empty() {
        return Err(match (packets, torn) {
            (0, Some(_)) => Fault::Other("a file of another kind, or cut off in its first packet"),
            (0, None) => Fault::Empty,
            _ => Fault::NoCalls,
        });
    }
    if let Some(how) = torn {
        let note = format!(
            "The file is torn: after {at} bytes and {packets} packets it {how}; the part before is shown."
        );
        trace.notes.insert(0, note);
    }
    Ok(trace)
}

/// Bytes of tag and length before a packet of this many bytes.
fn head(bytes: usize) -> u64 {
    1 + prost::length_delimiter_len(bytes) as u64
}

/// Whether this is the beginning of a trace.
fn kind(first: &[u8]) -> Result<(), Fault> {
    Err(match first {
        [] => Fault::Empty,
        [PACKET, ..] => return Ok(()),
        [0x1f, 0x8b, ..] => Fault::Other("a file packed by gzip (unpack it with gunzip)"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Fault::Other("a file packed by zstd (unpack it first)"),
        [b'{' | b'[', ..] => Fault::Other("JSON"),
        [b'<', ..] => Fault::Other("a page (HTML or XML)"),
        [0x7f, b'E', b'L', b'F', ..] => Fault::Other("a program"),
        [b'O', b'T', b'F', b'2', ..] => Fault::Other("a trace of another format, OTF2"),
        _ => Fault::Other("a file of another kind"),
    })
}

/// The next packet.
fn piece(mut input: &mut impl BufRead) -> io::Result<Piece> {
    match byte(input)? {
        None => return Ok(Piece::End),
        Some(PACKET) => {}
        Some(_) => return Ok(Piece::Torn("continues with bytes that are not a packet")),
    }
    let Some(length) = varint(input)? else {
        return Ok(Piece::Torn("ends inside the length of a packet"));
    };
    if length > LONGEST {
        return Ok(Piece::Torn("has a packet longer than any that is written"));
    }
    let mut bytes = Vec::new();
    Read::take(&mut input, length).read_to_end(&mut bytes)?;
    Ok(if bytes.len() as u64 == length {
        Piece::Packet(bytes)
    } else {
        Piece::Torn("ends inside a packet")
    })
}

fn byte(input: &mut impl BufRead) -> io::Result<Option<u8>> {
    let first = input.fill_buf()?.first().copied();
    if first.is_some() {
        input.consume(1);
    }
    Ok(first)
}

/// A number of seven bits per byte; none if the file ends inside it. One that is too long becomes a
/// very large one.
fn varint(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let Some(b) = byte(input)? else {
            return Ok(None);
        };
        value |= u64::from(b & 0x7f) << shift;
        if b < 0x80 {
            return Ok(Some(value));
        }
    }
    Ok(Some(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn what_is_no_trace_gets_a_sentence() {
        for (bytes, word) in [
            (&b""[..], "empty"),
            (b"{\"traceEvents\":[]}", "JSON"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"hello", "another kind"),
            (b"\x0a\x02\x08", "cut off"),
            (b"\x0a\x02\x40\x01", "without MPI calls"),
            (b"\x0a\x04\x8a\xfa\x01\x00", "empty"),
        ] {
            let text = read(bytes).unwrap_err().to_string();
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn a_torn_file_is_read_up_to_its_tear() {
        let whole = example::ring(4, 3);
        let all = read(whole.as_slice()).unwrap();
        assert!(all.notes.is_empty(), "{:?}", all.notes);
        let part = read(&whole[..whole.len() - 3]).unwrap();
        assert!(
            part.notes[0].contains("ends inside a packet"),
            "{:?}",
            part.notes
        );
        assert_eq!(part.calls.len(), all.calls.len());
        let mut damaged = whole.clone();
        damaged.extend([0x55, 1, 2, 3]);
        let note = &read(damaged.as_slice()).unwrap().notes[0];
        assert!(
            note.contains(&format!("after {} bytes", whole.len())),
            "{note}"
        );
    }

    #[test]
    fn files_put_behind_each_other_are_one_trace() {
        let once = example::ring(3, 2);
        let twice = [once.clone(), once.clone()].concat();
        let (once, twice) = (
            read(once.as_slice()).unwrap(),
            read(twice.as_slice()).unwrap(),
        );
        assert_eq!(2 * once.calls.len(), twice.calls.len());
        assert_eq!(2 * once.messages.len(), twice.messages.len());
        assert_eq!(2 * once.collectives.len(), twice.collectives.len());
    }
}
