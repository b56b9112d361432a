//! Why something else than by PCP's tools is printed of some archives of its
//! test suite, in answers of version 6.0.

/// Reasons, and the archives that they hold for.
const REASONS: &[(&str, &[&str])] = &[
    ("compressed by bzip2, which is not read", &["archives/20130706"]),
    (
        "libpcp loses its way in event records after one that was missed",
        &["archives/eventrec", "archives/eventrec-old"],
    ),
    (
        "libpcp does not find a position by the index",
        &["archives/pcp-mpstat3", "badarchives/20180608.04.23-01"],
    ),
    ("names of instances are not UTF-8", &["archives/procpid-encode2"]),
    (
        "libpcp finds the end by the index, behind the last record",
        &[
            "archives/tzchange-10-a",
            "archives/tzchange-10-b",
            "archives/tzchange-11-a",
            "archives/tzchange-11-b",
            "archives/tzchange-12-a",
            "archives/tzchange-12-b",
        ],
    ),
    ("labels of volumes differ, and the first one counts", &["badarchives/badlabel-2"]),
    ("behind the damage libpcp finds no records by the index", &["badarchives/badlen-1"]),
    ("of times that go back, libpcp finds others by the index", &["badarchives/badlog-4"]),
    ("codes of types that do not exist are not kept", &["badarchives/badmeta-2"]),
    ("libpcp believes in an index that is wrong", &["badarchives/badti-2", "badarchives/badti-4"]),
    ("at the end libpcp reads a record for metrics that need none", &["badarchives/badti-3"]),
];

/// The reason for an archive, named as below the folder of the suite.
pub fn of(archive: &str) -> Option<&'static str> {
    let reason = REASONS.iter().find(|(_, archives)| archives.contains(&archive));
    reason.map(|(reason, _)| *reason)
}
