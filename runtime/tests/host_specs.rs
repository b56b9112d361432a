//! Host specifications, compared with the reading of libpcp's parser.

use pmderive_runtime::context::spec::{HostAndPorts, Target};
use pmderive_runtime::context::{Encryption, HostSpec};
use pmderive_runtime::proto::Secret;
use serde_json::{Value, json};

/// Rows in which this parser deliberately differs.
const DIFFERENCES: &[(&str, &str)] = &[
    ("", "libpcp's parser leaves it to the context to find no host"),
    ("host@", "a proxy without a name cannot be connected to"),
    ("host@:1", "libpcp takes the port for the name of a proxy"),
    ("host:0", "no port"),
    ("host:65536", "no port; libpcp connects to port 0"),
    ("host:99999999999", "no port; libpcp connects to some other"),
    ("host?user==x", "a value may begin with `=`; libpcp drops the attribute"),
];

/// Numbers of attributes that libpcp sets itself, or that mean nothing to pmcd:
/// protocol, unix, uid, gid, local, pid, exclusive.
const IGNORED: &[&str] = &["1", "10", "11", "12", "13", "14", "16"];

/// Hosts and ports of a specification in the form of the recorded rows.
fn hosts(spec: &HostSpec) -> Value {
    let host = |host: &HostAndPorts| json!([host.name, host.ports.len(), host.ports]);
    let socket = |path: &Option<std::path::PathBuf>, kind: i32| {
        let path = path.as_deref().unwrap_or("/run/pcp/pmcd.socket".as_ref());
        json!([[path, kind, []]])
    };
    match &spec.target {
        Target::Local { socket: path } => socket(path, -1),
        Target::Unix { socket: path } => socket(path, -2),
        Target::Host(first) => {
            let all = std::iter::once(first).chain(&spec.proxy);
            Value::Array(all.map(host).collect())
        }
    }
}

/// The mistake in the attributes of a specification, if there is one.
fn judge_attributes(spec: &HostSpec, protocol: &str, recorded: &Value) -> Result<(), String> {
    let user = spec.user.clone().unwrap_or_default();
    let text = |number: &str| {
        recorded.get(number).map(|value| value.as_str().unwrap_or_default().to_owned())
    };
    let secure = match text("2").as_deref() {
        Some("relaxed") => Encryption::Relaxed,
        Some(_) => Encryption::Required,
        None if protocol == "pcps" => Encryption::Required,
        None => Encryption::Off,
    };
    let about_users = ["4", "5", "7", "8", "9"].iter().any(|number| recorded.get(number).is_some());
    let checks = [
        ("secure", spec.encryption == secure),
        ("compress", spec.compress == recorded.get("3").is_some()),
        ("any user", spec.user.is_some() == about_users),
        ("user", user.name == text("5")),
        ("password", user.password == text("7").map(Secret::new)),
        ("method", user.method == text("8")),
        ("realm", user.realm == text("9")),
        ("container", spec.container == text("15")),
    ];
    let known = ["2", "3", "4", "5", "7", "8", "9", "15"];
    for number in recorded.as_object().into_iter().flat_map(|map| map.keys()) {
        if !known.contains(&number.as_str()) && !IGNORED.contains(&number.as_str()) {
            return Err(format!("attribute {number} is not compared"));
        }
    }
    match checks.iter().find(|(_, holds)| !holds) {
        Some((what, _)) => Err(format!("{what} differs: {spec:?}")),
        None => Ok(()),
    }
}

/// The difference between a parsed text and its recorded row.
fn judge(row: &[Value]) -> Result<(), String> {
    let [text, status, recorded, attributes, _, message] = row else {
        return Err("a row of another shape".to_owned());
    };
    let text = text.as_str().expect("a text");
    match (text.parse::<HostSpec>(), status.as_i64()) {
        (Ok(spec), Some(0)) => {
            let mut recorded = recorded.clone();
            // Only the first proxy is ever used.
            recorded.as_array_mut().expect("hosts").truncate(2);
            if hosts(&spec) != recorded {
                return Err(format!("{} for {recorded}", hosts(&spec)));
            }
            judge_attributes(&spec, attributes["1"].as_str().unwrap_or_default(), attributes)
        }
        (Err(error), Some(-12345)) => {
            let shown = format!("{error}\n");
            if Some(shown.as_str()) == message.as_str() { Ok(()) } else { Err(shown) }
        }
        (Err(_), Some(-22)) => Ok(()),
        (outcome, _) => Err(format!("{outcome:?}")),
    }
}

#[test]
fn specifications_mean_what_libpcp_takes_them_for() {
    let text = include_str!("data/pmapi/metric_specs.json");
    let golden: Value = serde_json::from_str(text).expect("JSON");
    let rows = golden["tables"]["host"]["rows"].as_array().expect("rows");
    assert!(rows.len() >= 100, "{} rows", rows.len());
    let mut differing = Vec::new();
    for row in rows {
        let row = row.as_array().expect("a row");
        let text = row[0].as_str().expect("a text");
        let outcome = judge(row);
        let expected = DIFFERENCES.iter().any(|(known, _)| *known == text);
        match outcome {
            Ok(()) => assert!(!expected, "`{text}` does not differ"),
            Err(problem) => {
                assert!(expected, "`{text}`: {problem}");
                differing.push(text);
            }
        }
    }
    assert_eq!(differing.len(), DIFFERENCES.len(), "{differing:?}");
}
