//! Reads passwords from files. In a command line, every list of processes would show
//! them.
//!
//! The file is read again for each connection, so a new password takes effect with the
//! next connection.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use pmderive_core::escape;

use crate::proto::Secret;

/// Maximum length of a password in bytes.
const LONGEST: u64 = 4096;

/// The password in the first line of a file. Nothing after that line is needed, so the
/// file may be a pipe or a terminal.
///
/// # Errors
/// The file cannot be read, or it has no password. The text names the file and shows
/// nothing of its contents.
pub(super) fn read(path: &Path) -> Result<Secret, String> {
    let problem =
        |what: &str| format!("the password in {} cannot be read: {what}", escape::path(&path));
    let file = File::open(path).map_err(|error| problem(&error.to_string()))?;
    let mut line = Vec::new();
    let mut start = BufReader::new(file).take(LONGEST + 1);
    start.read_until(b'\n', &mut line).map_err(|error| problem(&error.to_string()))?;
    if line.len() as u64 > LONGEST {
        return Err(problem(&format!("its first line has more than {LONGEST} bytes")));
    }
    let text = String::from_utf8(line).map_err(|_| problem("it is not UTF-8"))?;
    match text.trim_end_matches(['\n', '\r']) {
        "" => Err(problem("its first line is empty")),
        password => Ok(Secret::new(password)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_password() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let longest = "x".repeat(LONGEST as usize);
        let outcome = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("a file");
            read(&path).map_err(|text| {
                let text = text.replace(&path.display().to_string(), "FILE");
                text.strip_prefix("the password in FILE cannot be read: ").expect("why").to_owned()
            })
        };
        for (bytes, password) in [
            (&b"secret"[..], "secret"),
            (b"secret\n", "secret"),
            (b"sec ret \r\nmore\n", "sec ret "),
            (longest.as_bytes(), &longest),
        ] {
            assert_eq!(outcome(bytes), Ok(Secret::new(password)));
        }
        let too_long = "its first line has more than 4096 bytes";
        for (bytes, problem) in [
            (&b""[..], "its first line is empty"),
            (b"\nsecret\n", "its first line is empty"),
            (b"\xffsecret\n", "it is not UTF-8"),
            (format!("{longest}y").as_bytes(), too_long),
        ] {
            assert_eq!(outcome(bytes), Err(problem.to_owned()));
        }
        let text = read(folder.path()).expect_err("a folder");
        assert!(text.ends_with("Is a directory (os error 21)"), "{text}");
    }
}
