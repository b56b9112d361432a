//! The part of HTTP/1.1 that a receiver of POST requests needs.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest head of a request, in bytes.
const MOST_HEAD: usize = 64 << 10;

/// Longest body, in bytes.
pub(super) const MOST_BODY: usize = 64 << 20;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The method, such as `POST`.
    pub method: String,
    /// The path, such as `/api/v1/write`.
    pub path: String,
    /// Names in small letters, and values.
    pub headers: Vec<(String, String)>,
    /// The body, as it came.
    pub body: Vec<u8>,
}

impl Request {
    /// The first header of a name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Removes the next request from the front of the read bytes. `None` if more
/// must be read first.
///
/// # Errors
/// The bytes are not a request.
pub(super) fn take_request(read: &mut Vec<u8>) -> Result<Option<Request>, String> {
    let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if read.len() > MOST_HEAD { Err("a head without an end".into()) } else { Ok(None) };
    };
    let head = std::str::from_utf8(&read[..end]).map_err(|_| "a head that is no text")?;
    let mut lines = head.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, path, "HTTP/1.1"] = words[..] else { return Err(format!("{words:?}")) };
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers = lines.map(header).collect::<Option<_>>().ok_or("a header without a colon")?;
    let mut request =
        Request { method: method.into(), path: path.into(), headers, body: Vec::new() };
    let rest = &read[end + 4..];
    let used = if request.header("transfer-encoding") == Some("chunked") {
        let Some((body, used)) = chunks(rest)? else { return Ok(None) };
        request.body = body;
        used
    } else {
        let length = request.header("content-length").map_or(Ok(0), str::parse);
        let length = length.map_err(|_| "a length that is no number")?;
        if length > MOST_BODY {
            return Err(format!("a body of {length} bytes"));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        request.body = body.to_vec();
        length
    };
    read.drain(..end + 4 + used);
    Ok(Some(request))
}

/// A body in chunks, and its number of bytes. `None` if it is incomplete.
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let mut body = Vec::new();
    let mut used = 0;
    loop {
        let rest = &bytes[used..];
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
            return if rest.len() > 20 { Err("no size of a chunk".into()) } else { Ok(None) };
        };
        let size = std::str::from_utf8(&rest[..end]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let size =
            size.filter(|size| *size <= MOST_BODY - body.len()).ok_or("a size of a chunk")?;
        let Some(chunk) = rest.get(end + 2..end + 2 + size + 2) else { return Ok(None) };
        if !chunk.ends_with(b"\r\n") {
            return Err("a chunk without its end".into());
        }
        body.extend_from_slice(&chunk[..size]);
        used += end + 2 + size + 2;
        if size == 0 {
            return Ok(Some((body, used)));
        }
    }
}

/// Reads the next request; `None` at the end of the stream.
///
/// # Errors
/// The stream breaks, or its bytes are not a request
/// ([`io::ErrorKind::InvalidData`]).
pub(super) async fn read_request(
    stream: &mut (impl AsyncRead + Unpin),
    read: &mut Vec<u8>,
) -> io::Result<Option<Request>> {
    loop {
        let taken = take_request(read);
        let taken = taken.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if taken.is_some() {
            return Ok(taken);
        }
        if stream.read_buf(read).await? == 0 {
            return Ok(None);
        }
    }
}

/// A response without a body, or with a text.
pub(super) fn response(status: u16, retry_after: Option<&str>, text: &str) -> Vec<u8> {
    let retry = retry_after.map_or(String::new(), |when| format!("Retry-After: {when}\r\n"));
    // No content has no length, either.
    let length = match status {
        204 => String::new(),
        _ => format!("Content-Length: {}\r\n", text.len()),
    };
    let text = if status == 204 { "" } else { text };
    format!("HTTP/1.1 {status} As Told\r\n{retry}{length}\r\n{text}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_in_pieces_and_one_after_another() {
        let bytes = b"POST /a HTTP/1.1\r\nContent-Length: 3\r\nX: y \r\n\r\nabc\
            POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n\
            GET /c HTTP/1.1\r\n\r\n";
        let mut read = Vec::new();
        let mut requests = Vec::new();
        for byte in bytes {
            read.push(*byte);
            requests.extend(take_request(&mut read).expect("requests"));
        }
        assert!(read.is_empty());
        let bodies: Vec<&[u8]> = requests.iter().map(|request| &request.body[..]).collect();
        assert_eq!(bodies, [&b"abc"[..], b"def", b""]);
        let paths: Vec<&str> = requests.iter().map(|request| &*request.path).collect();
        assert_eq!(paths, ["/a", "/b", "/c"]);
        assert_eq!(requests[0].header("x"), Some("y"));
    }

    #[test]
    fn what_is_no_request_is_told() {
        let chunked = "POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let cases = [
            "hello\r\n\r\n".to_owned(),
            "GET / HTTP/1.0\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nx\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n".to_owned(),
            "x".repeat(MOST_HEAD + 1),
            format!("{chunked}x\r\n"),
            format!("{chunked}ffffffffffffffff\r\n"),
            format!("{chunked}1\r\nabc"),
            format!("{chunked}{}", "0".repeat(21)),
        ];
        for case in cases {
            assert!(take_request(&mut case.clone().into_bytes()).is_err(), "{case}");
        }
    }
}
