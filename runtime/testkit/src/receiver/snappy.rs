//! A reader of snappy's block format. It shares no code with the writer.

/// Expands compressed bytes to at most `most` bytes.
///
/// # Errors
/// The fault of the bytes.
pub fn decompress(bytes: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let mut input = bytes;
    let length = announced(&mut input)?;
    if length > most {
        return Err(format!("{length} bytes are announced, more than {most}"));
    }
    // The announced bytes may never come, so the buffer grows with the real
    // ones.
    let mut out = Vec::with_capacity(length.min(64 << 10));
    while let Some(tag) = take(&mut input, 1) {
        let (kind, upper) = (tag & 3, (tag >> 2) as usize);
        let short = "it ends in the middle of an element";
        match kind {
            0 => {
                let extra = upper.saturating_sub(59);
                let length = match extra {
                    0 => upper,
                    extra => take(&mut input, extra).ok_or(short)? as usize,
                };
                let (literal, rest) = input.split_at_checked(length + 1).ok_or(short)?;
                out.extend_from_slice(literal);
                input = rest;
            }
            1 => {
                let low = take(&mut input, 1).ok_or(short)? as usize;
                repeat(&mut out, (upper >> 3) << 8 | low, 4 + (upper & 7))?;
            }
            2 => repeat(&mut out, take(&mut input, 2).ok_or(short)? as usize, upper + 1)?,
            _ => repeat(&mut out, take(&mut input, 4).ok_or(short)? as usize, upper + 1)?,
        }
        if out.len() > length {
            return Err(format!("more than the {length} bytes that are announced"));
        }
    }
    match out.len() == length {
        true => Ok(out),
        false => Err(format!("{} bytes, and {length} are announced", out.len())),
    }
}

/// The length that stands before all else, seven bits in a byte.
fn announced(input: &mut &[u8]) -> Result<usize, String> {
    let mut length = 0u64;
    for shift in (0..35).step_by(7) {
        let byte = take(input, 1).ok_or("it ends in the middle of its length")?;
        length |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            let length = u32::try_from(length).map_err(|_| "its length has more than 32 bits")?;
            return Ok(length as usize);
        }
    }
    Err("its length has no end".to_owned())
}

/// A number of this many bytes, the lowest first.
fn take(input: &mut &[u8], count: usize) -> Option<u32> {
    let (bytes, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Appends earlier bytes again, which may overlap the appended ones.
fn repeat(out: &mut Vec<u8>, back: usize, length: usize) -> Result<(), String> {
    if back == 0 || back > out.len() {
        return Err(format!("a copy from {back} bytes back, where there are {}", out.len()));
    }
    let (start, mut left) = (out.len() - back, length);
    while left > 0 {
        // All bytes from the start on are repeated as a whole.
        let piece = left.min(out.len() - start);
        out.extend_from_within(start..start + piece);
        left -= piece;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes by hand, from the description of the format.
    #[test]
    fn elements_of_all_kinds() {
        let long = [vec![61 << 2, 99, 0], vec![b'x'; 100]].concat();
        let cases: &[(&[u8], &[u8])] = &[
            (&[0], b""),
            (&[3, 2 << 2, b'a', b'b', b'c'], b"abc"),
            // Four bytes from two back: a run.
            (&[6, 1 << 2, b'a', b'b', 1, 2], b"ababab"),
            (&[5, 0, b'z', 3 << 2 | 2, 1, 0], b"zzzzz"),
            (&[3, 0, b'q', 1 << 2 | 3, 1, 0, 0, 0], b"qqq"),
            (&[&[100][..], &long].concat(), &[b'x'; 100]),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decompress(bytes, 1_000).as_deref(), Ok(*expected), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let cases: &[(&[u8], &str)] = &[
            (&[], "middle of its length"),
            (&[0x80; 5], "no end"),
            (&[0xff, 0xff, 0xff, 0xff, 0x7f], "32 bits"),
            (&[0xe9, 0x07], "more than 1000"),
            (&[1], "0 bytes, and 1"),
            (&[3, 2 << 2, b'a'], "middle of an element"),
            (&[3, 63 << 2, 0xff, 0xff, 0xff], "middle of an element"),
            (&[3, 63 << 2, 0xff, 0xff, 0xff, 0xff], "middle of an element"),
            (&[4, 0, b'a', 1, 2], "2 bytes back, where there are 1"),
            (&[4, 0, b'a', 1, 0], "0 bytes back"),
            (&[1, 0, b'a', 1, 1], "more than the 1"),
        ];
        for (bytes, expected) in cases {
            let error = decompress(bytes, 1_000).expect_err("a mistake");
            assert!(error.contains(expected), "{bytes:?}: {error}");
        }
    }
}
