//! A peer that does what a script says: on the loopback interface, in a thread.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use pmderive_runtime::pdu::{Features, Hello, MAX_REQUEST_BYTES, Pdu, PduType};

/// Makes the bytes of an answer, perhaps none, out of a PDU.
pub type Answer = dyn FnMut(&[u8]) -> Vec<u8> + Send;

/// One thing that the peer does.
pub enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Reads one PDU, which must be of this type.
    Expect(PduType),
    /// Answers every PDU by what the function makes of it, until the client closes.
    Serve(Box<Answer>),
    /// Waits for the client to close.
    Stall,
    /// Closes the connection in a way that the client sees as a reset.
    Reset,
}

/// A fake pmcd that serves one script per connection, in turn.
pub struct FakePmcd {
    pub port: u16,
    thread: Option<JoinHandle<()>>,
}

impl FakePmcd {
    pub fn start(scripts: Vec<Vec<Step>>) -> FakePmcd {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let thread = std::thread::spawn(move || {
            for script in scripts {
                let (stream, _) = listener.accept().expect("a client");
                perform(stream, script);
            }
        });
        FakePmcd { port, thread: Some(thread) }
    }

    /// Waits for the end of the last script.
    ///
    /// # Panics
    /// The client did something that a script did not expect.
    pub fn finish(mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the scripts were followed");
        }
    }

    pub fn spec(&self) -> pmderive_runtime::context::HostSpec {
        format!("pcp://127.0.0.1:{}", self.port).parse().expect("a specification")
    }
}

fn perform(mut stream: TcpStream, script: Vec<Step>) {
    stream.set_nodelay(true).expect("an option");
    for step in script {
        match step {
            // A client that gave up is noticed by the steps that read.
            Step::Send(bytes) => drop(stream.write_all(&bytes)),
            Step::Expect(kind) => {
                let pdu = read_pdu(&mut stream).expect("a PDU");
                assert_eq!(code_of(&pdu), kind.code(), "{kind:?} expected");
            }
            Step::Serve(mut answer) => {
                while let Some(pdu) = read_pdu(&mut stream) {
                    assert!(pdu.len() <= MAX_REQUEST_BYTES, "{} bytes", pdu.len());
                    if stream.write_all(&answer(&pdu)).is_err() {
                        break;
                    }
                }
            }
            Step::Stall => while read_pdu(&mut stream).is_some() {},
            Step::Reset => {
                // Bytes left unread turn the close into a reset.
                let mut one = [0];
                stream.read_exact(&mut one).expect("a byte");
                return;
            }
        }
    }
}

/// One PDU; `None` at the end of the stream.
fn read_pdu(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut pdu = vec![0; 12];
    stream.read_exact(&mut pdu).ok()?;
    let len = u32::from_be_bytes([pdu[0], pdu[1], pdu[2], pdu[3]]);
    let len = usize::try_from(len).expect("a small length");
    assert!((12..=1 << 20).contains(&len), "length {len}");
    pdu.resize(len, 0);
    stream.read_exact(&mut pdu[12..]).ok()?;
    Some(pdu)
}

/// Number of a PDU's type.
pub fn code_of(pdu: &[u8]) -> u32 {
    u32::from_be_bytes([pdu[4], pdu[5], pdu[6], pdu[7]])
}

/// The bytes of a PDU.
pub fn encoded<'a>(pdu: &impl Pdu<'a>) -> Vec<u8> {
    let mut bytes = Vec::new();
    pdu.encode(&mut bytes);
    bytes
}

/// A greeting with features.
pub fn greeting(features: Features) -> Vec<u8> {
    encoded(&Hello { refusal: None, version: 2, features })
}
