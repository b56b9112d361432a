//! `serve` over a real pmcd: values of its sample agent, over TLS, with a user who logs
//! in, and with keys and passwords that are wrong.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use pmderive_testkit::real_pmcd::{RealPmcd, Settings, not_run, open_folder};
use serde_json::{Value as Json, json};

use super::{Site, is_frame};

const PASSWORD: &str = "secretpw";

/// Writes a file that pmcd's user may read.
fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).expect("permissions");
}

/// Writes a certificate for `localhost` and its key, and configurations that serve and
/// trust it.
fn make_certificate(folder: &Path, name: &str) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    write(folder, &format!("{name}.pem"), &made.cert.pem());
    write(folder, &format!("{name}.key"), &made.signing_key.serialize_pem());
    let path = |ending: &str| folder.join(format!("{name}.{ending}")).display().to_string();
    let (certificate, key) = (path("pem"), path("key"));
    let served = format!(
        "tls-cert-file = {certificate}\ntls-key-file = {key}\ntls-ca-cert-file = {certificate}\n"
    );
    write(folder, &format!("{name}.served"), &served);
    write(folder, &format!("{name}.trusted"), &format!("tls-ca-cert-file = {certificate}\n"));
}

/// Makes a user known to pmcd. False where the tool for it is missing.
fn make_user(folder: &Path) -> bool {
    let database = folder.join("users");
    let text = format!("mech_list: plain scram-sha-256\nsasldb_path: {}\n", database.display());
    write(folder, "pmcd.conf", &text);
    let mut command = Command::new("saslpasswd2");
    command.args(["-p", "-c", "-a", "pmcd", "-f"]).arg(&database).arg("nobody");
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else {
        not_run("saslpasswd2 is not installed (tests/real-pcp install)");
        return false;
    };
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(PASSWORD.as_bytes()).expect("a reader");
    drop(input);
    assert!(child.wait().expect("its end").success(), "saslpasswd2 failed");
    std::fs::set_permissions(database, std::fs::Permissions::from_mode(0o644))
        .expect("permissions");
    true
}

/// A site with groups over one pmcd each, and lines of JSON.
fn site(groups: &[(&str, String, &str)]) -> Site {
    let mut config = "interval = 2\n[[sink]]\nkind = 'json-lines'\n".to_owned();
    let site = Site::new(1, "");
    for (name, target, access) in groups {
        config += &format!(
            "[[group]]\nname = '{name}'\ntargets = ['{name}.json']\ndefinitions = ['s.conf']\n\
             export = ['s.*']\n{access}\n"
        );
        let target = json!([{ "targets": [target], "labels": { "group": name } }]);
        site.write(&format!("{name}.json"), &target.to_string());
    }
    site.write("s.conf", "s.one = sample.long.one * 2\ns.bins = sample.bin + 1\n");
    site.write("serve.toml", &config);
    site
}

fn check_values(line: &Json) {
    assert_eq!(line["metrics"]["s.one"], 2, "{line}");
    let bins: Vec<Json> =
        (1..10).map(|n| json!([n * 100, format!("bin-{n}00"), n * 100 + 1])).collect();
    assert_eq!(line["metrics"]["s.bins"], json!(bins), "{line}");
}

#[test]
fn a_real_pmcd_gives_its_values_over_tls_to_who_logs_in() {
    let folder = open_folder();
    let folder = folder.path();
    make_certificate(folder, "own");
    make_certificate(folder, "other");
    if !make_user(folder) {
        return;
    }
    let variable = |name: &str, path: &Path| (name.to_owned(), path.display().to_string());
    let environment = vec![
        variable("PCP_TLSCONF_PATH", &folder.join("own.served")),
        variable("SASL_CONF_PATH", folder),
    ];
    let Some(pmcd) = RealPmcd::start_with(Settings { options: Vec::new(), environment }) else {
        return;
    };
    write(folder, "password", PASSWORD);
    write(folder, "wrong", "wrongpw");
    let access = |tls: &str, password: &str| {
        format!(
            "secure = 'required'\ntls = '{}'\nuser = 'nobody'\npassword-file = '{}'",
            folder.join(tls).display(),
            folder.join(password).display(),
        )
    };
    let closed = format!("localhost:{}", pmcd.port);

    let good = access("own.trusted", "password");
    let site_of_both = site(&[
        ("open", format!("127.0.0.1:{}", pmcd.port), ""),
        ("closed", closed.clone(), &good),
    ]);
    let mut serving = site_of_both.start();
    for group in ["open", "closed"] {
        for _ in 0..2 {
            check_values(
                &serving.line_like(|line| is_frame(line) && line["labels"]["group"] == group),
            );
        }
    }
    let (_, log) = serving.end();
    assert!(!log.contains(PASSWORD), "{log}");
    let said = pmcd.log();
    assert!(said.contains("Successful authentication for user \"nobody\""), "{said}");

    for (access, expected) in [
        (access("other.trusted", "password"), "the certificate of pmcd is not accepted"),
        (access("own.trusted", "wrong"), "authentication failed"),
    ] {
        let site = site(&[("closed", closed.clone(), &access)]);
        let mut serving = site.start();
        let line = serving.log_with(expected);
        assert!(!line.contains("wrongpw"), "{line}");
        let (lines, _) = serving.end();
        assert!(!lines.iter().any(is_frame), "{lines:?}");
    }
}
