//! Bytes that have arrived are not a time-out, however late they are read.
//! These tests use deadlines that have passed, and a clock that only they
//! advance.

use std::future::{Future, poll_fn};
use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use rustix::net::{SendFlags, send};

use super::tcp::tests::reset_after;
use super::{AsyncSocket, Deadline, Readiness, Socket, Transport, within};

const TIMEOUT: Duration = Duration::from_secs(1);

/// Reads and waits with a deadline that has passed: with a reply in the socket, without
/// one, and at the end of the stream. `filler` is a second handle of the socket, to
/// fill its output.
async fn look_late<T: Transport>(mut socket: T, filler: UnixStream, mut peer: UnixStream) {
    let passed = Deadline::after(T::now(), Some(Duration::ZERO));
    let mut inbox = Vec::with_capacity(4);
    peer.write_all(b"answer").expect("room");
    for expected in [&b"answ"[..], b"er"] {
        inbox.clear();
        assert_eq!(socket.receive(&mut inbox, passed).await.expect("bytes"), expected.len());
        assert_eq!(inbox, expected);
    }
    let error = socket.receive(&mut inbox, passed).await.expect_err("nothing");
    assert_eq!(error.kind(), ErrorKind::TimedOut);

    assert_eq!(socket.wait(passed).await.expect("room"), Readiness { receive: false, send: true });
    while send(&filler, &[0; 4096], SendFlags::DONTWAIT).is_ok() {}
    let error = socket.wait(passed).await.expect_err("neither");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    peer.write_all(b"more").expect("room");
    assert_eq!(socket.wait(passed).await.expect("bytes"), Readiness { receive: true, send: false });
    inbox.clear();
    assert_eq!(socket.receive(&mut inbox, passed).await.expect("bytes"), 4);
    peer.shutdown(std::net::Shutdown::Write).expect("a socket");
    inbox.clear();
    assert_eq!(socket.receive(&mut inbox, passed).await.expect("the end"), 0);
}

#[test]
fn a_thread_that_waits() {
    let (ours, peer) = UnixStream::pair().expect("two sockets");
    let filler = ours.try_clone().expect("a descriptor");
    super::ready(look_late(Socket::new(ours.into()), filler, peer));
}

#[tokio::test(start_paused = true)]
async fn a_task() {
    let (ours, peer) = UnixStream::pair().expect("two sockets");
    ours.set_nonblocking(true).expect("a socket");
    let filler = ours.try_clone().expect("a descriptor");
    look_late(AsyncSocket::Unix(ours.try_into().expect("a runtime")), filler, peer).await;
}

/// The last byte comes in time, but the task looks only after its deadline. A byte that never comes
/// is not waited for.
#[tokio::test(start_paused = true)]
async fn work_whose_last_byte_is_there() {
    for (sent, expected) in [(&b"answer"[..], Some(6)), (b"", None)] {
        let (ours, mut peer) = UnixStream::pair().expect("two sockets");
        ours.set_nonblocking(true).expect("a socket");
        let mut socket = AsyncSocket::Unix(ours.try_into().expect("a runtime"));
        let mut inbox = Vec::with_capacity(100);
        let never = Deadline::after(AsyncSocket::now(), None);
        let mut work = pin!(within(TIMEOUT, socket.receive(&mut inbox, never)));
        let first = poll_fn(|context| Poll::Ready(work.as_mut().poll(context).is_pending()));
        assert!(first.await, "nothing is there yet");
        peer.write_all(sent).expect("room");
        tokio::time::advance(TIMEOUT * 2).await;
        assert_eq!(work.await.map(|received| received.expect("bytes")), expected);
    }
}

/// The connection is made at once, but the task looks only after the time-out.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_there() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let ports = [port];
    let mut attempt = pin!(AsyncSocket::connect_tcp("127.0.0.1", &ports, Some(TIMEOUT)));
    let first = poll_fn(|context| Poll::Ready(attempt.as_mut().poll(context).is_pending()));
    if first.await {
        tokio::time::advance(TIMEOUT * 2).await;
        assert!(attempt.await.is_ok());
    }
}

/// The peer resets the connection before the task checks whether it was made.
#[tokio::test(start_paused = true)]
async fn a_connection_that_was_reset() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let ports = [listener.local_addr().expect("an address").port()];
    let mut attempt = pin!(AsyncSocket::connect_tcp("127.0.0.1", &ports, Some(TIMEOUT)));
    let mut socket = None;
    poll_fn(|context| {
        if let Poll::Ready(made) = attempt.as_mut().poll(context) {
            socket = Some(made);
        }
        Poll::Ready(())
    })
    .await;
    reset_after(&listener, b"refused");
    let socket = match socket {
        Some(made) => made,
        None => attempt.await,
    };
    let mut inbox = Vec::with_capacity(100);
    let deadline = Deadline::after(AsyncSocket::now(), Some(TIMEOUT));
    let mut socket = socket.expect("a connection");
    assert_eq!(socket.receive(&mut inbox, deadline).await.expect("bytes"), 7);
    assert_eq!(inbox, b"refused");
}
