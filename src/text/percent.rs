//! Paths in URIs, where many bytes are written as `%20`.

/// Appends a path.
pub fn push(out: &mut String, path: &[u8]) {
    for byte in path {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(*byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
}
