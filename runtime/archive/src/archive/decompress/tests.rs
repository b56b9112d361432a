//! Expands the output of the real programs, whole and damaged.

use std::io::Write;
use std::process::{Command, Stdio};

use super::output::Output;
use super::*;

/// `size` bytes of text that compresses, but not to nothing.
fn contents(size: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 24
    };
    let words: Vec<String> = (0..64).map(|i| format!("metric.{i}.{} ", random())).collect();
    let text = std::iter::repeat_with(|| words[random() as usize % 64].bytes()).flatten();
    text.take(size).collect()
}

/// The output of a program. `None` if the program is not installed.
fn made_by(program: &str, options: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let child =
        Command::new(program).args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        let required = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!required, "{program} is not installed");
        eprintln!("NOT RUN: {program} is not installed");
        return None;
    };
    let mut stdin = child.stdin.take().expect("it is a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).expect("the program reads it"));
        let output = child.wait_with_output().expect("the program ends");
        assert!(output.status.success(), "{program}: {output:?}");
        Some(output.stdout)
    })
}

fn expand(bytes: &[u8], compression: Compression) -> io::Result<Vec<u8>> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(bytes)?;
    let expansions = Expansions::default();
    let mut behind = expansions.open(file.path(), compression)?;
    let mut front = expansions.open(file.path(), compression)?;
    let size = usize::try_from(behind.size()?).expect("small");
    let mut contents = vec![0; size + 1];
    // The second half first, through two readers: the order of reading must not matter.
    let half = size / 2;
    assert_eq!(read_full(&mut *behind, half, &mut contents[half..])?, size - half);
    assert_eq!(read_full(&mut *front, 0, &mut contents[..half])?, half);
    contents.truncate(size);
    Ok(contents)
}

fn read_full(bytes: &mut dyn Bytes, offset: usize, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match bytes.read_at((offset + filled) as u64, &mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Programs with options, and the suffix of their output.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    ("xz", &["-0"], ".xz"),
    ("xz", &["-9", "--block-size=30000", "--check=sha256"], ".xz"),
    ("xz", &["-6", "--threads=2", "--block-size=70000", "--check=crc32"], ".xz"),
    ("xz", &["--check=none", "--delta=dist=4", "--x86", "--lzma2"], ".xz"),
    ("xz", &["--format=lzma"], ".lzma"),
    ("bzip2", &["-1"], ".bz2"),
    ("bzip2", &["-9"], ".bz"),
    ("gzip", &["-1"], ".gz"),
    ("gzip", &["-9"], ".z"),
    ("zstd", &["-1", "-q"], ".zst"),
    ("zstd", &["-19", "-q", "--no-check"], ".zst"),
];

#[test]
fn what_the_programs_make_is_expanded() {
    for size in [0, 1, 1000, 250_000] {
        let contents = contents(size);
        for (program, options, suffix) in PROGRAMS {
            let Some(made) = made_by(program, options, &contents) else { continue };
            let (_, compression) = Compression::of_name(suffix.as_bytes());
            let what = format!("{program} {options:?} of {size} bytes");
            assert!(expand(&made, compression).expect(&what) == contents, "{what}");
            if *suffix == ".lzma" {
                continue;
            }
            let two = [made.as_slice(), made.as_slice()].concat();
            let expected = [contents.as_slice(), contents.as_slice()].concat();
            assert!(expand(&two, compression).expect(&what) == expected, "{what}, twice");
        }
    }
}

/// Writes codes like `compress`.
struct Codes {
    made: Vec<u8>,
    bits: u32,
    kept: u64,
    kept_bits: u32,
    in_group: u32,
}

impl Codes {
    fn put(&mut self, code: usize) {
        self.kept |= (code as u64) << self.kept_bits;
        self.kept_bits += self.bits;
        self.in_group += 1;
        self.flush(8);
    }

    fn flush(&mut self, least: u32) {
        while self.kept_bits >= least {
            self.made.push(self.kept as u8);
            self.kept >>= 8;
            self.kept_bits = self.kept_bits.saturating_sub(8);
        }
    }

    fn end_group(&mut self) {
        while !self.in_group.is_multiple_of(8) {
            self.put(0);
        }
        self.in_group = 0;
    }
}

#[test]
fn skippable_frames_of_zstd_are_skipped() {
    let encode = |contents: &[u8]| {
        ruzstd::encoding::compress_to_vec(contents, ruzstd::encoding::CompressionLevel::Fastest)
    };
    let mut bytes = encode(&[7; 300_000]);
    bytes.extend_from_slice(&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    bytes.extend_from_slice(&encode(b"end"));
    let contents = [&[7; 300_000][..], b"end"].concat();
    assert!(expand(&bytes, Compression::Zstd).expect("good") == contents);
}

/// A file of `compress` with codes of up to `most` bits. If `clear_after` is given, a
/// clear code follows after that many codes.
fn compress(contents: &[u8], most: u32, clear_after: Option<usize>) -> Vec<u8> {
    let flags = u8::try_from(most).expect("few") | if clear_after.is_some() { 0x80 } else { 0 };
    let base = if clear_after.is_some() { 257 } else { 256 };
    let made = vec![0x1f, 0x9d, flags];
    let mut codes = Codes { made, bits: 9, kept: 0, kept_bits: 0, in_group: 0 };
    let mut table = std::collections::HashMap::new();
    // Number of codes since the table was empty. The reader has one entry less.
    let mut count = 0;
    let mut rest = contents;
    while let Some((first, mut tail)) = rest.split_first() {
        if count > 0 && base + count > 1 << codes.bits && codes.bits < most {
            codes.end_group();
            codes.bits += 1;
        }
        if clear_after == Some(count) {
            codes.put(256);
            codes.end_group();
            codes.bits = 9;
            table.clear();
            count = 0;
            continue;
        }
        let mut string = usize::from(*first);
        while let Some((byte, after)) = tail.split_first() {
            match table.get(&(string, *byte)) {
                Some(longer) => (string, tail) = (*longer, after),
                None => {
                    if base + count < 1 << most {
                        table.insert((string, *byte), base + count);
                    }
                    break;
                }
            }
        }
        codes.put(string);
        count += 1;
        rest = tail;
    }
    codes.flush(1);
    codes.made
}

/// A file of `pack` in which each byte has a code of eight bits. Only the last byte has
/// nine bits; its code and the end's have a common prefix.
fn pack(contents: &[u8]) -> Vec<u8> {
    let mut made = vec![0x1f, 0x1e];
    made.extend(u32::try_from(contents.len()).expect("small").to_be_bytes());
    // 255 codes of eight bits, and two of nine: one byte, and the end.
    made.push(9);
    made.extend([0, 0, 0, 0, 0, 0, 0, 255, 0]);
    made.extend(0..=255);
    let (mut kept, mut kept_bits) = (0u32, 0);
    let ends = contents.iter().map(|byte| match byte {
        255 => (0, 9),
        byte => (u32::from(*byte) + 1, 8),
    });
    for (code, bits) in ends.chain([(1, 9)]) {
        kept = kept << bits | code;
        kept_bits += bits;
        while kept_bits >= 8 {
            kept_bits -= 8;
            made.push((kept >> kept_bits) as u8);
        }
    }
    if kept_bits > 0 {
        made.push((kept << (8 - kept_bits)) as u8);
    }
    made
}

#[test]
fn what_gzip_expands_besides_is_expanded() {
    for size in [1, 2, 3, 1000, 250_000] {
        let contents = contents(size);
        let mut bytes: Vec<u8> = contents.iter().map(|byte| byte.wrapping_mul(7)).collect();
        bytes.extend([255, 0, 255]);
        let mut files = vec![("packed".to_string(), bytes.clone(), pack(&bytes))];
        for (most, clear) in [(10, None), (12, None), (16, None), (16, Some(5000)), (10, Some(900))]
        {
            let what = format!("{most} bits, {clear:?}, {size} bytes");
            files.push((what, contents.clone(), compress(&contents, most, clear)));
        }
        for (what, contents, made) in files {
            let found = expand(&made, Compression::Gzip).expect(&what);
            assert!(found == contents, "{what}, {size} bytes");
            if let Some(expanded) = made_by("gzip", &["-dc"], &made) {
                assert!(expanded == contents, "{what}, {size} bytes: this test is wrong");
            }
        }
    }
}

/// Small files of every kind, with their contents.
fn small_files() -> Vec<(String, Compression, Vec<u8>, Vec<u8>)> {
    let contents = contents(300);
    let mut files: Vec<_> = PROGRAMS
        .iter()
        .filter_map(|(program, options, suffix)| {
            let (_, compression) = Compression::of_name(suffix.as_bytes());
            let made = made_by(program, options, &contents)?;
            Some((format!("{program} {options:?}"), compression, contents.clone(), made))
        })
        .collect();
    let made = compress(&contents, 12, Some(80));
    files.push(("compress".to_string(), Compression::Gzip, contents.clone(), made));
    let made = pack(&contents);
    files.push(("pack".to_string(), Compression::Gzip, contents, made));
    files
}

#[test]
fn decoders_survive_any_damage() {
    for (what, compression, contents, made) in small_files() {
        // These formats cannot detect all damage.
        let is_checked = !["compress", "pack", "lzma", "--check=none", "--no-check"]
            .iter()
            .any(|word| what.contains(word));
        for cut in 0..made.len() {
            match expand(&made[..cut], compression) {
                Err(_) => {}
                Ok(found) if what == "compress" => assert!(contents.starts_with(&found)),
                Ok(_) => panic!("{what}: cut at {cut}"),
            }
        }
        // Flipping every bit would take too long.
        for bit in (0..8 * made.len()).step_by(3) {
            let mut damaged = made.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // Flipping a bit that means nothing does no harm.
            if let Ok(found) = expand(&damaged, compression)
                && is_checked
            {
                assert!(found == contents, "{what}: bit {bit}");
            }
        }
    }
}

#[test]
fn units_in_front_of_damage_and_blocks_behind_it_are_good() {
    let contents = contents(200_000);
    for (program, options, suffix) in PROGRAMS {
        if *suffix == ".lzma" || options.len() == 1 && *suffix == ".xz" {
            continue;
        }
        let Some(made) = made_by(program, options, &contents) else { continue };
        let (_, compression) = Compression::of_name(suffix.as_bytes());
        let mut damaged = made.repeat(2);
        let at = made.len() + made.len() / 2;
        damaged[at] ^= 0x10;
        damaged[at + 1] ^= 0x10;
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&damaged).expect("space");
        let mut expansion = Expansions::default().open(file.path(), compression).expect("a file");
        let what = format!("{program} {options:?}");
        let mut found = vec![0; contents.len()];
        assert_eq!(read_full(&mut *expansion, 0, &mut found).expect(&what), contents.len());
        assert!(found == contents, "{what}");
        let behind = read_full(&mut *expansion, contents.len(), &mut vec![0; contents.len()]);
        if !options.iter().any(|option| option.contains("check=none") || *option == "--no-check") {
            let error = behind.expect_err(&what);
            let error = error.downcast::<ExpandError>().expect("it cannot be expanded");
            assert!(error.offset >= at as u64 / 2, "{what}: {}", error.offset);
        }
        if options.iter().any(|option| option.contains("block-size")) {
            let mut last = vec![0; 10_000];
            let offset = 2 * contents.len() - last.len();
            assert_eq!(read_full(&mut *expansion, offset, &mut last).expect(&what), last.len());
            assert!(contents.ends_with(&last), "{what}");
        }
    }
}

#[test]
fn failures_say_where_and_why() {
    let fails = |bytes: &[u8], compression| {
        let error = expand(bytes, compression).expect_err("it is bad");
        let error = error.downcast::<ExpandError>().expect("it cannot be expanded");
        (error.offset, error.to_string())
    };
    for (bytes, compression, offset, reason) in [
        (&b"not compressed"[..], Compression::Xz, 0, "this is not xz or lzma data"),
        (b"not compressed", Compression::Gzip, 0, "this is not gzip, compress or pack data"),
        (b"not compressed", Compression::Bzip2, 7, "bz2 header missing"),
        (b"not compressed", Compression::Zstd, 0, "this is not zstd data"),
        (b"", Compression::Xz, 0, "it ends too early"),
        (b"", Compression::Gzip, 0, "it ends too early"),
        (b"", Compression::Bzip2, 0, "too early"),
        (b"", Compression::Zstd, 0, "too early"),
        (b"\x1f\x9d\x88", Compression::Gzip, 3, "its kind of codes is unknown"),
        (b"\x1f\x9d\x90\x00\xff", Compression::Gzip, 5, ""),
    ] {
        let found = fails(bytes, compression);
        assert!(
            found.0 == offset && found.1.contains(reason),
            "{found:?}, not {offset} {reason:?}"
        );
    }
}

#[test]
fn bytes_behind_the_end_are_told() {
    let contents = contents(1000);
    for (program, options, suffix) in PROGRAMS {
        if !matches!(*suffix, ".xz" | ".zst") {
            continue;
        }
        let Some(made) = made_by(program, options, &contents) else { continue };
        let (_, compression) = Compression::of_name(suffix.as_bytes());
        for junk in [&b"abc"[..], &[b'a'; 100]] {
            let bytes = [&made, junk].concat();
            let error = expand(&bytes, compression).expect_err("something follows");
            let error = error.downcast::<ExpandError>().expect("it cannot be expanded");
            assert_eq!(error.offset, made.len() as u64, "{program} {options:?}");
            assert!(error.to_string().contains("follow the end of the data"), "{error}");
        }
        // A further one that is cut is no other data.
        let error = expand(&[&made[..], &made[..3]].concat(), compression).expect_err("it is cut");
        assert!(error.to_string().contains("it ends too early"), "{error}");
    }
}

#[test]
fn bombs_are_defused() {
    let Some(bomb) = made_by("xz", &["-9"], &vec![0; 1 << 20]) else { return };
    let mut units = Compression::Xz.units().expect("a decoder");
    let mut input = Input::new(Box::new(Arc::<[u8]>::from(bomb.repeat(3))));
    let mut sink = io::sink();
    assert!(units.next(&mut input, &mut Output::new(&mut sink, 1 << 20)).expect("it fits"));
    let result = units.next(&mut input, &mut Output::new(&mut sink, (1 << 20) - 1));
    let error = result.expect_err("it does not fit");
    assert_eq!(error.to_string(), "it expands to more than the 1048575 bytes allowed");
}

/// The limit is the same for every program, whatever the file's size. Everything before
/// the limit can be read.
#[test]
fn a_limit_is_one_for_all() {
    let contents = contents(100_000);
    for (program, options, suffix) in PROGRAMS {
        let Some(made) = made_by(program, options, &contents) else { continue };
        let (_, compression) = Compression::of_name(suffix.as_bytes());
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&made).expect("space");
        for (limit, is_enough) in [(Some(100_000), true), (Some(99_999), false), (None, true)] {
            let opened = Expansions::within(limit).open(file.path(), compression);
            let size = opened.expect("a file").size();
            let what = format!("{program} {options:?} {limit:?}");
            match size {
                Ok(size) => assert!(is_enough && size == 100_000, "{what}"),
                Err(error) => {
                    let expected = "it expands to more than the 99999 bytes allowed";
                    assert!(!is_enough && error.to_string() == expected, "{what}: {error}");
                }
            }
        }
    }
}

#[test]
fn suffixes_are_split_off() {
    for (name, stem, compression) in [
        ("a.0.xz", "a.0", Compression::Xz),
        ("a.0.lzma", "a.0", Compression::Xz),
        ("a.index.bz", "a.index", Compression::Bzip2),
        ("a.meta.Z", "a.meta", Compression::Gzip),
        ("a.meta.z", "a.meta", Compression::Gzip),
        ("a.0.zst", "a.0", Compression::Zstd),
        ("a.0", "a.0", Compression::None),
    ] {
        assert_eq!(Compression::of_name(name.as_bytes()), (stem.as_bytes(), compression));
    }
}
