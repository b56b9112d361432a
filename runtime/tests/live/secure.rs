//! TLS, authentication, containers and proxies with a real pmcd, and the
//! messages for users who get something wrong.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pmderive_runtime::context::{ConnectOptions, HostContext, TlsSettings};
use pmderive_runtime::model::LabelLevel;
use pmderive_runtime::source::MetadataSource;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use super::real_pmcd::{RealPmcd, RealPmproxy, Settings, not_run, open_folder};

/// Users that pmcd can authenticate, each with its realm and its password. The
/// last one has no account on this system, which pmcd needs as well.
const USERS: &[(&str, Option<&str>, &str)] = &[
    ("nobody", None, "secretpw"),
    ("daemon", Some("elsewhere"), "otherpw"),
    ("pmderive-nowhere", None, "secretpw"),
];

/// Certificates, users and configuration files.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Site {
        let site = Site { folder: open_folder() };
        site.make_certificates();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(self.path(name), open).expect("permissions");
    }

    /// An authority, and certificates that it signs for pmcd and for a client.
    /// Also one of pmcd that signs itself, calls itself an authority and names no
    /// host.
    fn make_certificates(&self) {
        let mut params = CertificateParams::new(vec![]).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        self.write("ca.pem", &authority.pem());
        for (name, hosts) in [("pmcd", vec!["localhost".to_owned()]), ("client", vec![])] {
            let mut params = CertificateParams::new(hosts).expect("parameters");
            params.distinguished_name.push(DnType::CommonName, name);
            let key = KeyPair::generate().expect("a key");
            let signed = params.signed_by(&key, &authority).expect("a certificate");
            self.write(&format!("{name}.pem"), &signed.pem());
            self.write(&format!("{name}.key"), &key.serialize_pem());
        }
        let mut params = CertificateParams::new(vec![]).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "localhost");
        let key = KeyPair::generate().expect("a key");
        let own = params.self_signed(&key).expect("a certificate");
        self.write("self.pem", &own.pem());
        self.write("self.key", &key.serialize_pem());
    }

    /// A configuration of TLS with these keys and files.
    fn tls_conf(&self, name: &str, keys: &[(&str, &str)]) -> TlsSettings {
        let line = |(key, file): &(&str, &str)| format!("{key} = {}\n", self.path(file).display());
        self.write(name, &keys.iter().map(line).collect::<String>());
        TlsSettings::from_file(self.path(name))
    }

    /// Settings of a pmcd with a configuration of TLS.
    fn pmcd(&self, tls_conf: &str, options: &[&str]) -> Settings {
        let variable = |name: &str, path: &Path| (name.to_owned(), path.display().to_string());
        Settings {
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            environment: vec![
                variable("PCP_TLSCONF_PATH", &self.path(tls_conf)),
                variable("SASL_CONF_PATH", self.folder.path()),
            ],
        }
    }

    /// Makes the users known. False where the tool for it is missing.
    fn make_users(&self) -> bool {
        let database = self.path("users");
        let text =
            format!("mech_list: plain login scram-sha-256\nsasldb_path: {}\n", database.display());
        self.write("pmcd.conf", &text);
        for (user, realm, password) in USERS {
            let mut command = Command::new("saslpasswd2");
            command.args(["-p", "-c", "-a", "pmcd", "-f"]).arg(&database);
            command.args(realm.iter().flat_map(|realm| ["-u", *realm])).arg(user);
            let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else {
                not_run("saslpasswd2 is not installed (tests/real-pcp install)");
                return false;
            };
            let mut input = child.stdin.take().expect("a pipe");
            input.write_all(password.as_bytes()).expect("a reader");
            drop(input);
            assert!(child.wait().expect("its end").success(), "saslpasswd2 failed");
        }
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&database, open).expect("permissions");
        true
    }

    /// The outcome of a connection: `ok` once it answers, or the error, with
    /// names that are the same on every machine.
    fn outcome(&self, spec: &str, tls: &TlsSettings, ports: &[(u16, &str)]) -> String {
        let options = ConnectOptions {
            tls: tls.clone(),
            request_timeout: Some(Duration::from_secs(20)),
            ..ConnectOptions::default()
        };
        let folder = self.folder.path().display().to_string();
        let spec = spec.replace("FOLDER", &folder).parse().expect("a specification");
        let asked = HostContext::open_with(&spec, options)
            .and_then(|mut host| host.lookup_names(&["sample.long.one", "sample.bin"]));
        let text = match asked {
            Ok(found) if found.iter().all(Result::is_ok) => return "ok".to_owned(),
            Ok(found) => format!("{found:?}"),
            Err(error) => error.to_string(),
        };
        for (_, _, password) in USERS {
            assert!(!text.contains(password), "{text}");
        }
        let text = text.replace(&folder, "FOLDER");
        // Statuses are numbers as well.
        let shown = |text: String, (port, name): &(u16, &str)| {
            text.replace(&format!(":{port}"), &format!(":{name}"))
        };
        ports.iter().fold(text, shown)
    }
}

#[test]
fn tls_and_users_are_who_they_say() {
    let site = Site::new();
    let served = [
        ("tls-cert-file", "pmcd.pem"),
        ("tls-key-file", "pmcd.key"),
        ("tls-ca-cert-file", "ca.pem"),
    ];
    site.tls_conf("pmcd-tls.conf", &served);
    if !site.make_users() {
        return;
    }
    let Some(pmcd) = RealPmcd::start_with(site.pmcd("pmcd-tls.conf", &[])) else { return };
    let trusting = site.tls_conf("trusting.conf", &[("tls-ca-cert-file", "ca.pem")]);
    let nothing = site.tls_conf("none.conf", &[("tls-ca-cert-file", "client.pem")]);
    site.write("password", "secretpw\nand another line\n");
    let (port, socket) = (pmcd.port, pmcd.socket.display().to_string());
    let outcome = |spec: &str, tls| {
        let spec = spec.replace("PORT", &port.to_string()).replace("SOCKET", &socket);
        site.outcome(&spec, tls, &[(port, "PORT")])
    };
    for good in [
        "pcps://localhost:PORT",
        "localhost:PORT?secure",
        "localhost:PORT?user=nobody&pass=secretpw",
        "localhost:PORT?user=nobody&pass=secretpw&method=scram-sha-256",
        "localhost:PORT?user=nobody&pass=secretpw&method=plain",
        "pcps://localhost:PORT?user=nobody&pass=secretpw",
        "pcps://localhost:PORT?user=nobody&pass=secretpw&method=plain&container=web",
        "unix:SOCKET?user=nobody&pass=secretpw&container=web",
        "local:SOCKET",
        "localhost:PORT?user=nobody&passfile=FOLDER/password",
        "pcps://localhost:PORT?passfile=FOLDER/password&user=nobody&method=plain",
    ] {
        assert_eq!(outcome(good, &trusting), "ok", "{good}");
    }
    assert_eq!(outcome("pcps://localhost:PORT?secure=relaxed", &nothing), "ok");
    let log = pmcd.log();
    assert!(log.contains("Successful authentication for user \"nobody\""), "{log}");

    for (spec, tls, expected) in [
        (
            "pcps://localhost:PORT",
            &nothing,
            "localhost:PORT: the certificate of pmcd is not accepted: no authority that this \
             client trusts vouches for it; name its authority, or the certificate itself if it \
             signs itself, as tls-ca-cert-file in FOLDER/none.conf; `?secure=relaxed` encrypts \
             without knowing for whom",
        ),
        (
            "pcps://127.0.0.1:PORT",
            &trusting,
            "127.0.0.1:PORT: the certificate of pmcd is not accepted: it is for localhost, not \
             for 127.0.0.1; use a name that the certificate has, or set \
             PCP_ALLOW_BAD_CERT_DOMAIN=1 to overlook this",
        ),
        (
            "localhost:PORT?user=nobody&pass=wrong",
            &nothing,
            "localhost:PORT: authentication failed: wrong password, or no such user (status \
             -21357); are user and password right, and known to pmcd (`saslpasswd2 -a pmcd` there)?",
        ),
        (
            "localhost:PORT?user=nobody&pass=wrong&method=plain",
            &nothing,
            "localhost:PORT: authentication failed: wrong password, or no such user (status \
             -21357); are user and password right, and known to pmcd (`saslpasswd2 -a pmcd` there)?",
        ),
        (
            "localhost:PORT?user=nobody&passfile=FOLDER/client.pem",
            &nothing,
            "localhost:PORT: authentication failed: wrong password, or no such user (status \
             -21357); are user and password right, and known to pmcd (`saslpasswd2 -a pmcd` there)?",
        ),
        (
            "localhost:PORT?user=nobody&passfile=FOLDER/none",
            &nothing,
            "localhost:PORT?user=nobody&passfile=FOLDER/none: the password in FOLDER/none cannot \
             be read: No such file or directory (os error 2)",
        ),
        (
            "localhost:PORT?user=ghost&pass=secretpw",
            &nothing,
            "localhost:PORT: authentication failed: no such user (status -21364); are user and \
             password right, and known to pmcd (`saslpasswd2 -a pmcd` there)?",
        ),
        (
            "localhost:PORT?user=pmderive-nowhere&pass=secretpw",
            &nothing,
            "localhost:PORT: pmcd rejected the credentials or the container: No such process; \
             the user needs an account on that host, too, not with pmcd alone",
        ),
        // The realm is part of the login: without it there is no such user.
        (
            "localhost:PORT?user=daemon&pass=otherpw&realm=elsewhere",
            &nothing,
            "localhost:PORT: pmcd rejected the credentials or the container: No such process; \
             the user needs an account on that host, too, not with pmcd alone",
        ),
    ] {
        assert_eq!(outcome(spec, tls), expected, "{spec}");
    }
    let log = pmcd.log();
    assert!(log.contains("Successful authentication for user \"daemon@elsewhere\""), "{log}");
}

#[test]
fn demands_of_pmcd_are_met_or_explained() {
    let site = Site::new();
    let served = [
        ("tls-cert-file", "self.pem"),
        ("tls-key-file", "self.key"),
        ("tls-ca-cert-file", "ca.pem"),
    ];
    site.tls_conf("pmcd-tls.conf", &served);
    site.tls_conf("no-tls.conf", &[]);
    if !site.make_users() {
        return;
    }
    let certified = RealPmcd::start_with(site.pmcd("pmcd-tls.conf", &["-Q"]));
    let known = RealPmcd::start_with(site.pmcd("no-tls.conf", &["-S"]));
    let (Some(certified), Some(known)) = (certified, known) else { return };
    let ports = [(certified.port, "CERTIFIED"), (known.port, "KNOWN")];
    let outcome = |spec: &str, tls: &TlsSettings| {
        let place =
            |spec: String, (port, name): &(u16, &str)| spec.replace(name, &port.to_string());
        site.outcome(&ports.iter().fold(spec.to_owned(), place), tls, &ports)
    };
    let anonymous = site.tls_conf("anonymous.conf", &[("tls-ca-cert-file", "self.pem")]);
    let client = site.tls_conf(
        "client.conf",
        &[
            ("tls-ca-cert-file", "self.pem"),
            ("tls-client-cert-file", "client.pem"),
            ("tls-client-key-file", "client.key"),
        ],
    );
    // A certificate that signs itself is good once it is named itself.
    assert_eq!(outcome("pcps://localhost:CERTIFIED", &client), "ok");
    let lenient = TlsSettings::from_file(site.path("none.conf")).allow_unknown_issuers();
    let careless = lenient.clone().allow_other_names();
    let known_socket = format!("unix:{}", known.socket.display());
    assert_eq!(outcome("localhost:KNOWN?user=nobody&pass=secretpw", &anonymous), "ok");
    // The system itself identifies the other end of a socket.
    assert_eq!(outcome(&known_socket, &anonymous), "ok");
    // Within its host, pmcd requires no certificate, except in TLS.
    assert_eq!(outcome("127.0.0.1:CERTIFIED", &anonymous), "ok");
    for (spec, tls, expected) in [
        (
            "pcps://localhost:CERTIFIED",
            &anonymous,
            "localhost:CERTIFIED: pmcd does not accept the certificate of this client: \
             there is none; name yours as tls-client-cert-file and tls-client-key-file in \
             FOLDER/anonymous.conf, and connect by `pcps://`; pmcd has to know the authority that \
             signed it",
        ),
        (
            "pcps://localhost:CERTIFIED",
            &lenient,
            "localhost:CERTIFIED: the certificate of pmcd is not accepted: it names no host, \
             localhost was expected; use a name that the certificate has, or set \
             PCP_ALLOW_BAD_CERT_DOMAIN=1 to overlook this",
        ),
        (
            "pcps://localhost:CERTIFIED",
            &careless,
            "localhost:CERTIFIED: pmcd does not accept the certificate of this client: \
             there is none; name yours as tls-client-cert-file and tls-client-key-file in \
             FOLDER/none.conf, and connect by `pcps://`; pmcd has to know the authority that \
             signed it",
        ),
        (
            "localhost:KNOWN",
            &anonymous,
            "localhost:KNOWN: authentication failed: pmcd demands to know who the user is; add \
             `?user=NAME&passfile=FILE` to the host specification, best with `pcps://`",
        ),
        (
            "pcps://localhost:KNOWN?user=nobody&pass=secretpw",
            &anonymous,
            "localhost:KNOWN: this pmcd has no TLS; configure it there in tls.conf, or connect \
             without: by `pcp://` and without PCP_SECURE_SOCKETS",
        ),
    ] {
        assert_eq!(outcome(spec, tls), expected, "{spec}");
    }
    let relaxed = "localhost:KNOWN?secure=relaxed&user=nobody&pass=secretpw";
    assert_eq!(outcome(relaxed, &anonymous), "ok");
}

#[test]
fn proxies_lead_to_the_pmcd_that_was_named() {
    let site = Site::new();
    site.tls_conf("pmcd-tls.conf", &[("tls-cert-file", "pmcd.pem"), ("tls-key-file", "pmcd.key")]);
    let Some(pmcd) = RealPmcd::start_with(site.pmcd("pmcd-tls.conf", &[])) else { return };
    let proxy = RealPmproxy::start();
    let ports = [(pmcd.port, "PMCD"), (proxy.port, "PROXY")];
    let trusting = site.tls_conf("trusting.conf", &[("tls-ca-cert-file", "ca.pem")]);
    let outcome = |spec: &str| {
        let place =
            |spec: String, (port, name): &(u16, &str)| spec.replace(name, &port.to_string());
        site.outcome(&ports.iter().fold(spec.to_owned(), place), &trusting, &ports)
    };
    for good in [
        "localhost:PMCD@localhost:PROXY",
        "127.0.0.1:1,PMCD@127.0.0.1:PROXY",
        "pcps://localhost:PMCD@localhost:PROXY?container=web",
    ] {
        assert_eq!(outcome(good), "ok", "{good}");
    }
    for (spec, expected) in [
        (
            "localhost:1@localhost:PROXY",
            "cannot connect to localhost:1 through the proxy localhost:PROXY: the proxy closed \
             the connection: it may not reach pmcd at 127.0.0.1:1; is pmcd running there, on that \
             port, and open to the proxy?",
        ),
        (
            "localhost:PMCD@localhost:1",
            "cannot connect to localhost:PMCD through the proxy localhost:1: Connection refused \
             (os error 111); is pmproxy running there, on that port?",
        ),
        (
            "localhost:PMCD@localhost:PMCD",
            "localhost:PMCD through the proxy localhost:PMCD: the peer is not a pmproxy: instead \
             of `pmproxy-server 1` it sent \"\\x00\\x00\\x00\\x14\\x00\\x00p\\x00\\x00\\x00\\x00\
             \\x00\\x00\\x00\\x00\\x00\\x02\\x01\\x0eU\"; is the port right? pmproxy's is 44322 \
             unless told otherwise",
        ),
        (
            "[::1]:PMCD@localhost:PROXY",
            "[::1]:PMCD through the proxy localhost:PROXY: `::1` has no IPv4 address, and pmproxy \
             takes no other for its own host",
        ),
    ] {
        assert_eq!(outcome(spec), expected, "{spec}");
    }
}

#[test]
fn containers_are_named_to_pmcd() {
    let Some(pmcd) = RealPmcd::start() else { return };
    for (attributes, expected) in [("?container=web-1", Some("\"web-1\"")), ("", None)] {
        let spec = format!("unix:{}{attributes}", pmcd.socket.display());
        let spec = spec.parse().expect("a specification");
        let mut host = HostContext::open_with(&spec, ConnectOptions::default()).expect("accepted");
        let sets = host.labels(LabelLevel::Context).expect("answers").expect("labels");
        let mut labels = sets.iter().flat_map(|set| set.labels());
        let container = labels.find(|label| label.name == "container");
        assert_eq!(container.map(|label| label.value), expected);
    }
}

/// A fault of the socket is reported only if the network fails too.
#[test]
fn local_falls_back_when_the_socket_is_no_good() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let folder = open_folder();
    let socket = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let answering = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.write_all(b"no pmcd\n").expect("sent");
        }
    });
    let outcome = |ports: Vec<u16>| {
        let options = ConnectOptions { socket: socket.clone(), ports, ..ConnectOptions::default() };
        let spec = "local:".parse().expect("a specification");
        HostContext::open_with(&spec, options).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(outcome(vec![1, pmcd.port]), Ok(()));
    let error = outcome(vec![1]).expect_err("no way");
    let expected = format!("{}: the peer is not a pmcd: instead of a greeting", socket.display());
    assert!(error.starts_with(&expected), "{error}");
    answering.join().expect("served");
}
