//! Bytes that are written as `%20` in URIs: in their paths, and in names and values behind a `?`.

/// Appends a path.
pub fn push_path(out: &mut String, path: &[u8]) {
    for byte in path {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(*byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
}

/// Replaces a `%` and two hexadecimal digits by their byte, and `+` by `plus`, which is a
/// blank behind a `?`.
///
/// # Errors
/// The offset of a `%` without two digits.
pub fn decoded(text: &str, plus: u8) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        bytes.push(match first {
            b'%' => {
                let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
                let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                    return Err(text.len() - after.len() - 1);
                };
                rest = &after[2..];
                (high << 4 | low) as u8
            }
            b'+' => plus,
            _ => *first,
        });
    }
    Ok(bytes)
}
