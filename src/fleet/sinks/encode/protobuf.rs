//! The fields of protobuf that remote write needs.

/// Appends a label as a field of a series.
pub fn put_label(out: &mut Vec<u8>, name: &str, value: &str) {
    let size = |text: &str| 1 + varint_size(text.len() as u64) + text.len();
    out.push(0x0a);
    put_varint(out, (size(name) + size(value)) as u64);
    put_text(out, 0x0a, name);
    put_text(out, 0x12, value);
}

/// Appends a text with its tag.
pub fn put_text(out: &mut Vec<u8>, tag: u8, text: &str) {
    out.push(tag);
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number of variable length.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Size of such a number, in bytes.
pub fn varint_size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}
