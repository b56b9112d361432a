//! Tests handshakes with peers that are good, wrong, or cut off.

use std::sync::Arc;

use super::super::certificate::CertificateProblem;
use super::super::config::{
    ConnectionConfig, Credentials, Forward, Method, Peer, Secret, Security,
};
use super::super::test_peer::{Faults, Identity, PASSWORD, TestPeer, converse};
use super::*;

const ALL: Features = Features(0x0e55);

fn user(password: &str, method: Option<Method>) -> Option<Credentials> {
    Some(Credentials { user: "fred".to_owned(), password: Secret::new(password), method })
}

/// A client that demands everything.
fn demanding(identity: &Identity) -> ConnectionConfig {
    ConnectionConfig {
        forward: Some(Forward { address: [127, 0, 0, 1].into(), port: 44321 }),
        security: Security::Required(identity.client(true)),
        credentials: user(PASSWORD, None),
        container: Some("web".to_owned()),
        ..ConnectionConfig::default()
    }
}

fn outcome(config: ConnectionConfig, mut peer: TestPeer) -> Result<Vec<String>, ProtocolError> {
    converse(&mut Connection::new(config), &mut peer, usize::MAX, usize::MAX, None)?;
    Ok(peer.heard)
}

#[test]
fn everything_together_works_in_any_pieces() {
    let identity = Arc::new(Identity::new());
    for piece in [1, 2, 3, 7, 100, usize::MAX] {
        let mut peer =
            TestPeer::new(ALL, Faults::default()).with_identity(&identity).behind_proxy();
        let mut connection = Connection::new(demanding(&identity));
        converse(&mut connection, &mut peer, piece, usize::MAX, None).expect("ready");
        assert_eq!(
            peer.heard,
            [
                "pmproxy-client 1",
                "127.0.0.1 44321",
                "creds 0x0055",
                "scram",
                "proof",
                "done",
                "container web",
                "children",
            ]
        );
        assert_eq!(connection.features(), ALL);
        assert!(connection.is_ready());
        assert!(!format!("{connection:?}").contains(PASSWORD));
    }
}

#[test]
fn a_connection_cut_anywhere_is_never_ready() {
    let identity = Arc::new(Identity::new());
    let run = |cut, garbled| {
        let mut peer =
            TestPeer::new(ALL, Faults::default()).with_identity(&identity).behind_proxy();
        let mut connection = Connection::new(demanding(&identity));
        converse(&mut connection, &mut peer, usize::MAX, cut, garbled)
    };
    let total = run(usize::MAX, None).expect("ready");
    assert!(total > 800, "{total}");
    for cut in (0..80).chain((80..total).step_by(9)) {
        let error = run(cut, None).expect_err("cut off");
        let expected = match cut {
            0..17 => matches!(error, ProtocolError::ClosedInHandshake { .. }),
            17..37 => matches!(error, ProtocolError::ProxyClosed { .. }),
            _ => matches!(error, ProtocolError::ClosedInHandshake { .. }),
        };
        assert!(expected, "cut after {cut}: {error}");
    }
    // From the 53rd byte on, every altered byte is noticed, except for one byte of each
    // record, where TLS accepts any minor version.
    let mut unnoticed = 0;
    for at in (53..total - 200).step_by(13) {
        let Err(error) = run(usize::MAX, Some(at)) else {
            unnoticed += 1;
            continue;
        };
        assert!(
            matches!(
                error,
                ProtocolError::Tls(_)
                    | ProtocolError::Certificate(_)
                    | ProtocolError::ClosedInHandshake { .. }
            ),
            "byte {at}: {error:?}"
        );
    }
    assert!(unnoticed <= 3, "{unnoticed}");
}

#[test]
fn tls_is_only_begun_and_trusted_as_wanted() {
    let identity = Arc::new(Identity::new());
    let with = |security| ConnectionConfig { security, ..ConnectionConfig::default() };
    let required = || with(Security::Required(identity.client(true)));
    let peer = |features, faults| TestPeer::new(features, faults).with_identity(&identity);
    let good = || Faults::default();
    assert_eq!(outcome(required(), peer(ALL, good())), Ok(heard(&["creds 0x0011", "children"])));
    // An old pmcd that does not acknowledge.
    let old = Features(0x0e45);
    assert_eq!(outcome(required(), peer(old, good())), Ok(heard(&["creds 0x0001", "children"])));
    let without = Features(0x0e44);
    assert_eq!(
        outcome(required(), peer(without, good())),
        Err(ProtocolError::Unsupported(Lack::Tls))
    );
    let relaxed = || with(Security::Relaxed(identity.client(true)));
    assert_eq!(outcome(relaxed(), peer(without, good())), Ok(vec![]));
    assert_eq!(outcome(relaxed(), peer(ALL, good())), Ok(heard(&["creds 0x0011", "children"])));
    assert_eq!(
        outcome(with(Security::Required(identity.client(false))), peer(ALL, good())),
        Err(ProtocolError::Certificate(CertificateProblem::UnknownIssuer))
    );
    let refusing = Faults { tls_status: -12_391, ..Faults::default() };
    assert_eq!(
        outcome(required(), peer(ALL, refusing)),
        Err(ProtocolError::TlsRefused(PmStatus(-12_391)))
    );
    // Bytes that an attacker inserts between the permission and the encryption must not
    // be mistaken for pmcd's.
    let injecting = Faults { injected: vec![0; 5], ..Faults::default() };
    assert_eq!(
        outcome(required(), peer(ALL, injecting)),
        Err(ProtocolError::Unsolicited { bytes: 5 })
    );
    assert_eq!(
        outcome(required(), peer(Features(0x0ed5), good())),
        Err(ProtocolError::CertificateRequired)
    );
}

fn heard(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// The outcome of an authentication without TLS.
fn authenticate(
    password: &str,
    method: Option<Method>,
    peer: TestPeer,
) -> Result<Vec<String>, String> {
    let credentials = user(password, method);
    let config = ConnectionConfig { credentials, ..ConnectionConfig::default() };
    let outcome = outcome(config, peer);
    outcome.map_err(|error| {
        let text = error.to_string();
        assert!(!text.contains(PASSWORD), "{text}");
        text.strip_prefix("authentication failed: ").map_or(text.clone(), str::to_owned)
    })
}

#[test]
fn passwords_are_not_given_to_eavesdroppers() {
    let peer = || TestPeer::new(ALL, Faults::default());
    let plain = || peer().with_mechanisms("PLAIN LOGIN");
    let words = "pmcd accepts the password only unencrypted, and the connection does not hide it";
    assert_eq!(authenticate(PASSWORD, None, plain()), Err(words.to_owned()));
    let sent = authenticate(PASSWORD, Some(Method::Plain), plain()).expect("wanted");
    assert_eq!(sent, ["creds 0x0004", "PLAIN\\x00\\x00fred\\x00pencil", "children"]);
    let identity = Arc::new(Identity::new());
    let over = |security, peer_kind| {
        let config = ConnectionConfig {
            security,
            credentials: user(PASSWORD, None),
            peer: peer_kind,
            ..ConnectionConfig::default()
        };
        outcome(config, plain().with_identity(&identity)).map(|heard| heard.len())
    };
    assert_eq!(over(Security::Required(identity.client(true)), Peer::Remote), Ok(3));
    assert_eq!(over(Security::Off, Peer::SameHost), Ok(3));
    let anyone = TlsClient { is_verified: false, ..identity.client(true) };
    assert_eq!(
        over(Security::Relaxed(anyone), Peer::Remote),
        Err(AuthenticationError::PasswordInTheClear.into())
    );
}

/// In `LOGIN`, pmcd asks for user and password in turn. The client uses it if the
/// user requests it. By itself, the client uses it only where no listener is
/// possible.
#[test]
fn user_and_password_are_told_one_by_one() {
    let sasl = vec![None, Some(b"User Name\0".to_vec()), Some(b"Password\0".to_vec())];
    let peer = || {
        let faults = Faults { sasl: sasl.clone(), ..Faults::default() };
        TestPeer::new(ALL, faults).with_mechanisms("LOGIN")
    };
    let sent = authenticate(PASSWORD, Some(Method::Login), peer()).expect("wanted");
    assert_eq!(sent, ["creds 0x0004", "LOGIN\\x00", "fred", "pencil", "children"]);
    let words = "pmcd accepts the password only unencrypted, and the connection does not hide it";
    assert_eq!(authenticate(PASSWORD, None, peer()), Err(words.to_owned()));
    let credentials = user(PASSWORD, None);
    let same = ConnectionConfig { credentials, peer: Peer::SameHost, ..Default::default() };
    assert_eq!(outcome(same, peer()).map(|heard| heard.len()), Ok(5));
}

/// Over a unix socket the system tells pmcd the user, and no messages of SASL follow.
#[test]
fn a_pmcd_that_demands_users_knows_them_on_the_same_host() {
    let demanding = TestPeer::new(ALL.with(Features::CREDS_REQUIRED), Faults::default());
    let credentials = user(PASSWORD, None);
    let same = ConnectionConfig { credentials, peer: Peer::SameHost, ..Default::default() };
    let heard = outcome(same, demanding.with_mechanisms("")).expect("it is let in");
    assert_eq!(heard, ["creds 0x000c", "children"]);
}

#[test]
fn authentications_that_fail_say_why() {
    let scripted = |sasl: &[Option<&[u8]>]| {
        let sasl = sasl.iter().map(|message| message.map(<[u8]>::to_vec)).collect();
        TestPeer::new(ALL, Faults { sasl, ..Faults::default() })
    };
    let faulty = |faults| TestPeer::new(ALL, faults);
    let plain = Some(Method::Plain);
    let verdict = |verdict| faulty(Faults { verdict, ..Faults::default() });
    let hashing = |iterations| faulty(Faults { iterations, ..Faults::default() });
    let long = vec![b'x'; 3000];
    for (outcome, expected) in [
        (
            authenticate("wrong", None, scripted(&[])),
            "wrong password, or no such user (status -21357)",
        ),
        (authenticate(PASSWORD, plain, verdict(-21_364)), "no such user (status -21364)"),
        (
            authenticate(PASSWORD, plain, verdict(-21_375)),
            "pmcd failed with code -31 of SASL (status -21375)",
        ),
        (
            authenticate(PASSWORD, plain, verdict(-12_387)),
            "pmcd rejected the credentials or the container: \
             No permission to perform requested operation",
        ),
        (
            authenticate(PASSWORD, None, scripted(&[Some(b"GSSAPI \xff")])),
            "pmcd offers \"GSSAPI \\xff\", but SCRAM-SHA-256, PLAIN or LOGIN is needed",
        ),
        (
            authenticate(PASSWORD, plain, scripted(&[Some(b"SCRAM-SHA-256")])),
            "pmcd offers \"SCRAM-SHA-256\", but PLAIN is needed",
        ),
        (
            authenticate(PASSWORD, None, scripted(&[None, None, Some(b"v=AAAA")])),
            "the peer could not prove that it knows the password: it may not be the right pmcd",
        ),
        (
            authenticate(PASSWORD, None, scripted(&[None, None, Some(b"")])),
            "pmcd sent an invalid message of the authentication: part 1 is not of the form x=value",
        ),
        (
            authenticate(PASSWORD, None, scripted(&[None, Some(b"r=abc,s=AAAA,i=4096")])),
            "pmcd sent an invalid message of the authentication: internal mechanism error: \
             SCRAM protocol error: returned server nonce is invalid",
        ),
        (
            authenticate(PASSWORD, None, scripted(&[None, Some(b"r=abc,,i=4096")])),
            "pmcd sent an invalid message of the authentication: part 2 is not of the form x=value",
        ),
        (
            authenticate(PASSWORD, None, scripted(&[None, Some(b"r=abc,s=AAAA,i=many")])),
            "pmcd sent an invalid message of the authentication: \
             the number of rounds is not a number",
        ),
        (
            authenticate(PASSWORD, None, hashing(u32::MAX)),
            "pmcd asks for 4294967295 rounds of hashing; at most 65536 are allowed",
        ),
        (
            authenticate(PASSWORD, None, hashing(65_537)),
            "pmcd asks for 65537 rounds of hashing; at most 65536 are allowed",
        ),
        (
            authenticate(PASSWORD, None, scripted(&[Some(&long)])),
            "malformed reply: pdu.len at byte 0: 3016 is not between 12 and 2063",
        ),
        (
            authenticate("", None, scripted(&[])),
            "the name of the user or the password cannot be used: \
             neither may be empty or have a NUL in it",
        ),
        (
            authenticate("a\0b", plain, scripted(&[])),
            "the name of the user or the password cannot be used: \
             neither may be empty or have a NUL in it",
        ),
        (
            authenticate(&"x".repeat(2040), plain, scripted(&[])),
            "the names of user and realm and the password are too long together",
        ),
    ] {
        assert_eq!(outcome, Err(expected.to_owned()));
    }
}
