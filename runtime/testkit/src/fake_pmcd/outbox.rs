//! Bytes on their way to a client, and the points in the stream where a fault
//! delays or ends them.

use std::collections::VecDeque;
use std::time::Duration;

/// Bytes of an endless stream that are in the outbox at once.
const ENDLESS_BYTES: usize = 64 << 10;

/// The event at a point of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// No more bytes until a test resumes the stream.
    Stall,
    /// No more bytes for a while.
    Wait(Duration),
    /// The end of the stream.
    Close,
    /// The end of the connection.
    Reset,
    /// These bytes for ever.
    Endless(Vec<u8>),
}

/// The stream.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Number of sent bytes.
    sent: usize,
    /// Offsets of events in the bytes, ascending.
    stops: VecDeque<(usize, Stop)>,
}

impl Outbox {
    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends bytes, without a copy if nothing is waiting.
    pub fn push_all(&mut self, bytes: Vec<u8>) {
        if self.bytes.is_empty() {
            self.bytes = bytes;
        } else {
            self.push(&bytes);
        }
    }

    /// The buffer, to be appended to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Makes something happen after the bytes so far.
    pub fn stop(&mut self, stop: Stop) {
        self.stops.push_back((self.bytes.len(), stop));
        self.refill();
    }

    /// Bytes that can be sent now.
    pub fn outgoing(&self) -> &[u8] {
        let end = self.stops.front().map_or(self.bytes.len(), |(at, _)| *at);
        self.bytes.get(self.sent..end).unwrap_or_default()
    }

    /// Bytes that wait here, whether they can be sent or not.
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Notes that this many of the outgoing bytes were sent.
    pub fn sent(&mut self, count: usize) {
        self.sent += count.min(self.outgoing().len());
        if self.sent == self.bytes.len() {
            self.rewind();
        }
        self.refill();
        // Thousands of connections wait most of the time, and need no buffer
        // then.
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
    }

    fn rewind(&mut self) {
        self.bytes.drain(..self.sent);
        for (at, _) in &mut self.stops {
            *at -= self.sent;
        }
        self.sent = 0;
    }

    /// The current event, after all bytes before it were sent.
    pub fn stopped(&self) -> Option<&Stop> {
        self.stops.front().filter(|(at, _)| *at == self.sent).map(|(_, stop)| stop)
    }

    /// Resumes after a [`Stop::Stall`] or [`Stop::Wait`].
    pub fn resume(&mut self) {
        if matches!(self.stopped(), Some(Stop::Stall | Stop::Wait(_))) {
            self.stops.pop_front();
            self.refill();
        }
    }

    /// Replaces the sent bytes by more of an endless stream.
    fn refill(&mut self) {
        let Some(Stop::Endless(piece)) = self.stopped() else { return };
        if piece.is_empty() {
            self.stops.front_mut().expect("just looked at").1 = Stop::Stall;
            return;
        }
        let piece = piece.clone();
        self.rewind();
        while self.bytes.len() < ENDLESS_BYTES {
            self.bytes.extend_from_slice(&piece);
        }
        if let Some((at, _)) = self.stops.front_mut() {
            *at = self.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_come_between_the_bytes() {
        let mut outbox = Outbox::default();
        outbox.push(b"ab");
        outbox.stop(Stop::Stall);
        outbox.push(b"c");
        outbox.stop(Stop::Wait(Duration::ZERO));
        outbox.push(b"d");
        outbox.stop(Stop::Close);
        assert_eq!((outbox.outgoing(), outbox.stopped()), (&b"ab"[..], None));
        outbox.resume();
        outbox.sent(1);
        assert_eq!(outbox.outgoing(), b"b");
        outbox.sent(7);
        assert_eq!((outbox.outgoing(), outbox.stopped()), (&b""[..], Some(&Stop::Stall)));
        outbox.resume();
        assert_eq!(outbox.outgoing(), b"c");
        outbox.sent(1);
        outbox.resume();
        outbox.sent(1);
        outbox.resume();
        assert_eq!((outbox.outgoing(), outbox.stopped()), (&b""[..], Some(&Stop::Close)));
    }

    #[test]
    fn an_endless_stream_takes_bounded_memory() {
        let mut outbox = Outbox::default();
        outbox.push(b"x");
        outbox.stop(Stop::Endless(b"abc".to_vec()));
        let mut stream = Vec::new();
        while stream.len() < 1 << 20 {
            assert!(outbox.waiting() <= ENDLESS_BYTES + 3);
            let count = outbox.outgoing().len().min(7_777);
            stream.extend_from_slice(&outbox.outgoing()[..count]);
            outbox.sent(count);
        }
        assert!(stream[1..].iter().zip(b"abc".iter().cycle()).all(|(byte, due)| byte == due));
        let mut nothing = Outbox::default();
        nothing.stop(Stop::Endless(Vec::new()));
        assert_eq!(nothing.stopped(), Some(&Stop::Stall));
    }
}
