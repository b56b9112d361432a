//! A pmcd that wants a password in the clear: with `--compat`, too, it is said
//! what to do, for libpcp would have sent it.

use std::io::{Read, Write};
use std::net::TcpListener;

use pmderive_runtime::pdu::{Attr, Features, Hello, Pdu, SASL_KEY};

use super::command::run;

#[test]
fn passwords_that_are_not_sent_are_explained() {
    for (command, tool) in [("info", "pminfo"), ("probe", "pmprobe"), ("val", "pmval")] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let peer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut said = Vec::new();
            Hello { refusal: None, version: 2, features: Features::AUTH }.encode(&mut said);
            Attr { key: SASL_KEY, value: b"PLAIN" }.encode(&mut said);
            stream.write_all(&said).expect("it listens");
            let mut heard = Vec::new();
            // It may go away with a reset.
            let _ = stream.read_to_end(&mut heard);
            heard
        });
        let host = format!("127.0.0.1:{port}?username=fred&password=pencil");
        let found = run(&[command, "--compat", "6.0", "-h", &host, "m.count"]);
        let heard = peer.join().expect("a peer");
        assert!(!heard.windows(6).any(|six| six == b"pencil"), "{heard:?}");
        assert_eq!(found.status, Some(1), "{found:?}");
        let lines: Vec<&str> = found.err.lines().collect();
        let [first, second] = lines[..] else { panic!("{found:?}") };
        assert!(first.starts_with(&format!("{tool}: Cannot connect to PMCD on host ")), "{first}");
        assert!(second.contains("connect by `pcps://`, or add `method=PLAIN`"), "{second}");
    }
}
