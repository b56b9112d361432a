//! Reasons for differences from the output of PCP's tools, in answers of version 6.0 over
//! archives of its test suite.

// Not every test needs all of it.
#![allow(dead_code)]

/// Reasons, and the archives that they hold for.
const REASONS: &[(&str, &[&str])] = &[
    (
        "libpcp loses its way in event records after one that was missed",
        &["archives/eventrec", "archives/eventrec-old"],
    ),
    (
        "libpcp believes in an index that is wrong",
        &[
            "archives/binning",
            "archives/pcp-mpstat3",
            "badarchives/20180608.04.23-01",
            "badarchives/badti-2",
            "badarchives/badti-4",
        ],
    ),
    (
        "a file ends within a record, and libpcp fails as soon as it looks that far",
        &[
            "archives/multi-corrupted",
            "archives/multi-corrupted/20150508.11.50",
            "badarchives/badlog-1",
            "badarchives/ok-truncbin",
        ],
    ),
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
    (
        "some values are not encoded as their metric's type, and libpcp fails where it meets them",
        &["badarchives/archive-20141125-000009"],
    ),
    ("libpcp does not find the end before the damage", &["badarchives/archive-20150417.131733"]),
    ("behind the damage libpcp finds no records by the index", &["badarchives/badlen-1"]),
    (
        "of an archive without a whole record libpcp says what is wrong only at its start",
        &["badarchives/badlen-2", "badarchives/badlen-3"],
    ),
    ("where times go back, libpcp finds others", &["badarchives/badlog-3", "badarchives/badlog-4"]),
    (
        "pmprobe says of a domain that is unknown that it is, and not which instances there are",
        &["badarchives/badmeta-2"],
    ),
    ("at the end libpcp reads a record for metrics that need none", &["badarchives/badti-3"]),
];

/// The reason for an archive, named as below the folder of the suite.
pub fn of(archive: &str) -> Option<&'static str> {
    let reason = REASONS.iter().find(|(_, archives)| archives.contains(&archive));
    reason.map(|(reason, _)| *reason)
}

/// The archives that there is a reason for.
pub fn archives() -> impl Iterator<Item = &'static str> {
    REASONS.iter().flat_map(|(_, archives)| archives.iter().copied())
}
