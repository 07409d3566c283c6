//! Bytes of packets: the Protocol Buffers encoding of the messages in `perfetto`, written directly.
//!
//! One event of a trace is some dozen numbers. Building it as a value with lists and encoding that
//! costs ten times as much, and the recorder has no CPU of its own.

/// A varint.
#[inline(always)]
pub(super) fn varint(out: &mut Vec<u8>, n: u64) {
    match n {
        0..0x80 => out.push(n as u8),
        _ => long(out, n),
    }
}

/// A varint of several bytes: the maximum number is written, and the rest is taken back, which
/// avoids copying an unknown length.
#[inline]
fn long(out: &mut Vec<u8>, n: u64) {
    let len = length(n);
    let mut bytes = [0u8; 10];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (n >> (7 * at)) as u8 | 0x80;
    }
    bytes[len - 1] &= 0x7f;
    let begin = out.len();
    out.extend_from_slice(&bytes);
    out.truncate(begin + len);
}

/// A field that is a number.
#[inline(always)]
pub(super) fn number(out: &mut Vec<u8>, field: u32, n: u64) {
    varint(out, u64::from(field) << 3);
    varint(out, n);
}

/// A field of eight bytes.
#[inline(always)]
pub(super) fn fixed(out: &mut Vec<u8>, field: u32, n: u64) {
    varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&n.to_le_bytes());
}

/// A field that is a message, or a text.
#[inline(always)]
pub(super) fn bytes(out: &mut Vec<u8>, field: u32, data: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, data.len() as u64);
    out.extend_from_slice(data);
}

/// Number of bytes of a varint.
#[inline(always)]
pub(super) fn length(n: u64) -> usize {
    (70 - (n | 1).leading_zeros() as usize) / 7
}

/// An argument: the number of its name, and a field with a number, which is its value.
#[inline(always)]
pub(super) fn argument(out: &mut Vec<u8>, name: u64, field: u32, value: u64) {
    let key = u64::from(field) << 3;
    let len = 1 + length(name) + length(key) + length(value);
    out.extend_from_slice(&[4 << 3 | 2, len as u8, 1 << 3]);
    varint(out, name);
    varint(out, key);
    varint(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto::{DebugAnnotation, TrackEvent, Value};
    use prost::Message;

    #[test]
    fn lengths_are_those_of_the_bytes() {
        for shift in 0..64 {
            for n in [1u64 << shift, (1 << shift) - 1] {
                let mut out = Vec::new();
                varint(&mut out, n);
                assert_eq!(out.len(), length(n), "{n}");
                assert_eq!(out.len(), prost::encoding::encoded_len_varint(n), "{n}");
            }
        }
    }

    #[test]
    fn what_is_put_down_is_what_the_message_would_be() {
        let event = TrackEvent {
            debug_annotations: vec![DebugAnnotation {
                name_iid: Some(300),
                name: None,
                value: Some(Value::StringIid(7)),
            }],
            name_iid: Some(9),
            flow_ids: vec![1 << 60],
            ..TrackEvent::default()
        };
        let mut out = Vec::new();
        argument(&mut out, 300, 17, 7);
        number(&mut out, 10, 9);
        fixed(&mut out, 47, 1 << 60);
        assert_eq!(out, event.encode_to_vec());
    }
}
