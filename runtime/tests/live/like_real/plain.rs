//! A client without state. It sends given bytes to a real pmcd and to a fake
//! one, and compares the replies.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pmderive_runtime::model::Pmid;
use pmderive_runtime::pdu::{Credential, Creds, DescIds, Descs, Features, Pdu, PduType};

pub fn encoded<'a>(pdu: &impl Pdu<'a>) -> Vec<u8> {
    let mut bytes = Vec::new();
    pdu.encode(&mut bytes);
    bytes
}

/// A PDU of any type, with a body of words.
pub fn raw(code: u32, words: &[u32]) -> Vec<u8> {
    let len = u32::try_from(12 + 4 * words.len()).expect("short");
    [len, code, 0].iter().chain(words).flat_map(|word| word.to_be_bytes()).collect()
}

/// A client without state: it sends given bytes.
pub struct Plain {
    stream: TcpStream,
}

/// A question after each request, to count the replies before its own. It asks
/// for two descriptors that do not exist, and no other request does.
pub const MARK: [Pmid; 2] = [Pmid::NULL; 2];

impl Plain {
    pub fn connect(port: u16) -> Plain {
        let mut plain = Plain::greeted(port);
        plain.send(&encoded(&Creds { credentials: vec![Credential::version_2(Features(0))] }));
        plain
    }

    /// A connection whose client has not sent anything.
    pub fn greeted(port: u16) -> Plain {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
        stream.set_nodelay(true).expect("an option");
        let mut plain = Plain { stream };
        assert_eq!(plain.receive().expect("a greeting").len(), 20);
        plain
    }

    fn send(&mut self, bytes: &[u8]) {
        // A client whose connection was reset notices it on reading.
        drop(self.stream.write_all(bytes));
    }

    /// One PDU; `None` at the end of the connection, however it ended.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut pdu = vec![0; 12];
        let mut read = |bytes: &mut [u8]| match self.stream.read_exact(bytes) {
            // This is not the end, but silence.
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer"),
            outcome => outcome.ok(),
        };
        read(&mut pdu)?;
        let len = u32::from_be_bytes([pdu[0], pdu[1], pdu[2], pdu[3]]);
        pdu.resize(usize::try_from(len).expect("a length"), 0);
        read(&mut pdu[12..])?;
        Some(pdu)
    }

    /// The replies to a request, and whether the connection is still there.
    pub fn ask(&mut self, request: &[u8]) -> (Vec<Vec<u8>>, bool) {
        self.send(request);
        self.send(&encoded(&DescIds { pmids: MARK[..].into() }));
        let mark = encoded(&Descs { descs: vec![None; MARK.len()] });
        let mut replies = Vec::new();
        while let Some(pdu) = self.receive() {
            if pdu == mark {
                return (replies, true);
            }
            replies.push(comparable(pdu));
        }
        (replies, false)
    }
}

/// A reply with zeros in place of its time stamp, and of the semantics of
/// unsupported metrics, which our descriptors cannot express.
pub fn comparable(mut pdu: Vec<u8>) -> Vec<u8> {
    let kind = PduType::from_code(u32::from_be_bytes([pdu[4], pdu[5], pdu[6], pdu[7]]));
    match kind {
        Some(PduType::Result) => pdu[12..20].fill(0),
        Some(PduType::HighresResult) => pdu[16..32].fill(0),
        Some(PduType::Desc | PduType::Descs) => {
            let first = if kind == Some(PduType::Desc) { 12 } else { 16 };
            for desc in pdu[first..].chunks_exact_mut(20) {
                if desc[4..8] == [0xff; 4] {
                    desc[12..16].fill(0);
                }
            }
        }
        _ => {}
    }
    pdu
}

/// The difference between the answers to one request, if there is one.
pub fn difference(
    what: &str,
    request: &[u8],
    real: &mut Plain,
    fake: &mut Plain,
) -> Option<String> {
    let (theirs, ours) = (real.ask(request), fake.ask(request));
    if theirs == ours {
        return None;
    }
    let show = |(replies, open): &(Vec<Vec<u8>>, bool)| {
        // The equal beginning is left out.
        let same = theirs.0.iter().flatten().zip(ours.0.iter().flatten());
        let same = same.take_while(|(one, other)| one == other).count() / 4 * 4;
        let hex = |pdu: &Vec<u8>| -> String {
            let from = if same < 100 { 0 } else { same };
            let shown = pdu.iter().skip(from).take(160).map(|byte| format!("{byte:02x}"));
            format!("@{from} {}", shown.collect::<String>())
        };
        let replies: Vec<String> = replies.iter().map(hex).collect();
        format!("[{}] {}", replies.join(", "), if *open { "open" } else { "closed" })
    };
    Some(format!("{what}\n  real {}\n  fake {}", show(&theirs), show(&ours)))
}

pub fn report(differences: &[String], asked: usize) {
    let shown = differences.iter().take(25).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {asked} differ:\n{shown}", differences.len());
}
