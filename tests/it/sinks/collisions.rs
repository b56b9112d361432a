//! Metrics whose series could not be told apart are refused before anything starts.

use pmderive::internal::fleet::plan::{Origin, load};

/// What is said of definitions, with a sink of this kind.
fn report(definitions: &str, sink: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    write("shop.conf", definitions);
    write("hosts.json", "[{\"targets\": [\"web1\"]}]");
    let config = format!(
        "interval = \"10 sec\"\n\n[[group]]\nname = \"web\"\ntargets = [\"hosts.json\"]\n\
         definitions = [\"shop.conf\"]\nexport = [\"*\"]\n\n[[sink]]\n{sink}\n"
    );
    write("serve.toml", &config);
    let mut loaded = load(&Origin::File(folder.path().join("serve.toml")));
    let is_refused = loaded.plan.is_none();
    let report = loaded.report().replace(&folder.path().display().to_string(), "");
    assert_eq!(is_refused, !report.is_empty(), "{report}");
    report
}

const REMOTE: &str = "kind = \"remote-write\"\nurl = \"http://localhost:9090/api/v1/write\"";
const LINES: &str = "kind = \"json-lines\"\npath = \"shop.jsonl\"";

#[test]
fn names_that_collide_are_refused_where_they_matter() {
    let collide = "a.b_c = kernel.all.load\na_b.c = kernel.all.load\nz.z = kernel.all.load\n";
    insta::assert_snapshot!(report(collide, REMOTE));
    insta::assert_snapshot!(report("pmderive.up = kernel.all.load\n", REMOTE));
    assert_eq!(report(collide, LINES), "");
    let apart = format!("{REMOTE}\nexport = [\"a*\"]\n\n[[sink]]\n{LINES}\nname = \"lines\"");
    insta::assert_snapshot!(report(collide, &apart));
    let apart = apart.replace("a*", "z.z");
    assert_eq!(report(collide, &apart), "");
    assert_eq!(report("a.b = kernel.all.load\n", REMOTE), "");
}
