//! A receiver of remote write requests, the peer of tests of sinks. It remembers
//! all requests, and answers well or badly as a script says.
//!
//! Its own code reads compression, encoding and HTTP. It is as strict as the
//! standard allows: labels are sorted, samples of a series come in order of time,
//! headers are present.
//!
//! ```
//! use std::io::{Read, Write};
//! use pmderive_testkit::receiver::{Receiver, Reply};
//!
//! let receiver = Receiver::listen()?;
//! receiver.script([Reply::too_many("7")]);
//! let mut stream = std::net::TcpStream::connect(receiver.address())?;
//! // An empty request; by its merit it would be taken.
//! stream.write_all(
//!     b"POST /api/v1/write HTTP/1.1\r\nContent-Encoding: snappy\r\n\
//!       Content-Type: application/x-protobuf\r\nX-Prometheus-Remote-Write-Version: 0.1.0\r\n\
//!       Content-Length: 1\r\n\r\n\0",
//! )?;
//! let mut answer = [0; 29];
//! stream.read_exact(&mut answer)?;
//! assert!(answer.starts_with(b"HTTP/1.1 429"));
//! assert_eq!(receiver.requests().len(), 1);
//! assert!(receiver.stored().is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```

mod http;
mod remote_write;
mod server;
mod snappy;
mod store;

pub use http::Request;
pub use remote_write::{Metadata, STALE, Sample, Series, WriteRequest, decode};
pub(crate) use remote_write::{labels_of, samples_of};
pub use server::{Listening, Receiver};
pub use snappy::decompress;
pub use store::{ReceivedRequest, Reply};

/// Reads unchecked bytes as a request and its body. Nothing may panic or
/// allocate memory out of proportion.
#[doc(hidden)]
pub fn fuzz_receiver(data: &[u8]) {
    let _ = http::take_request(&mut data.to_vec());
    let _ = decode(data);
    let _ = samples_of(data, |labels, _| drop(labels_of(labels)));
    if let Ok(bytes) = decompress(data, 1 << 20) {
        assert!(bytes.len() <= 1 << 20);
        let _ = decode(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::mix;

    #[test]
    fn inputs_by_chance() {
        for round in 0..20_000 {
            let length = mix(&[round]) % 64;
            let bytes: Vec<u8> = (0..length).map(|at| mix(&[round, at]) as u8).collect();
            fuzz_receiver(&bytes);
        }
    }
}
