//! Reads compressed files of an archive as if they were plain.
//!
//! In: a file and what its suffix says. Out: [`Bytes`] at any offset of the
//! expanded contents, which are produced only as far as they are asked for,
//! into a temporary file that has no name. What is compressed is not known here.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::archive::bytes::Bytes;

/// Expanded at a time.
const CHUNK: usize = 256 * 1024;

/// Memory that an xz decoder may take, in KiB; the strongest preset needs a quarter of it.
const XZ_MEMORY_KIB: u32 = 256 * 1024;

/// How a file is stored, by the suffix of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Xz,
    Zstd,
    /// PCP reads it with the help of an external program; this reader does
    /// not. The suffix, with its dot.
    Unsupported(&'static str),
}

/// Every suffix that PCP takes for a compressed file.
const SUFFIXES: &[(&str, Compression)] = &[
    (".xz", Compression::Xz),
    (".zst", Compression::Zstd),
    (".lzma", Compression::Unsupported(".lzma")),
    (".bz2", Compression::Unsupported(".bz2")),
    (".bz", Compression::Unsupported(".bz")),
    (".gz", Compression::Unsupported(".gz")),
    (".Z", Compression::Unsupported(".Z")),
    (".z", Compression::Unsupported(".z")),
];

impl Compression {
    /// Splits the suffix of a compressed file off a file name.
    pub(super) fn of_name(name: &[u8]) -> (&[u8], Compression) {
        for (suffix, compression) in SUFFIXES {
            if let Some(stem) = name.strip_suffix(suffix.as_bytes()) {
                return (stem, *compression);
            }
        }
        (name, Compression::None)
    }

    /// Opens a file for reading its expanded contents.
    pub(super) fn open(self, path: &Path) -> io::Result<Box<dyn Bytes>> {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(rustix::io::Errno::ISDIR.into());
        }
        let decoder: Box<dyn Read + Send> = match self {
            Compression::None => return Ok(Box::new(file)),
            Compression::Xz => Box::new(xz_reader(file)),
            Compression::Zstd => Box::new(ZstdReader::new(BufReader::new(file))),
            Compression::Unsupported(suffix) => {
                let message = format!("files compressed as {suffix} are not supported");
                return Err(io::Error::new(io::ErrorKind::Unsupported, message));
            }
        };
        Ok(Box::new(Expanding {
            decoder,
            expanded: tempfile::tempfile()?,
            size: 0,
            state: State::Expanding,
            chunk: vec![0; CHUNK],
        }))
    }
}

/// A compressed file and the part of its contents that was expanded so far.
struct Expanding {
    decoder: Box<dyn Read + Send>,
    expanded: File,
    /// Bytes in `expanded`.
    size: u64,
    state: State,
    chunk: Vec<u8>,
}

/// Whether more can be expanded.
enum State {
    Expanding,
    Finished,
    /// The compressed file is damaged behind what was expanded.
    Failed(String),
}

impl Expanding {
    /// Expands until `size` bytes are there or the contents end.
    fn expand(&mut self, size: u64) -> io::Result<()> {
        while self.size < size {
            match &self.state {
                State::Expanding => {}
                State::Finished => break,
                State::Failed(message) => return Err(io::Error::other(message.clone())),
            }
            match self.decoder.read(&mut self.chunk) {
                Ok(0) => self.state = State::Finished,
                Ok(count) => {
                    self.expanded.write_all_at(&self.chunk[..count], self.size)?;
                    self.size += count as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // Decoders are not made to go on after an error.
                Err(e) => self.state = State::Failed(e.to_string()),
            }
        }
        Ok(())
    }
}

impl Bytes for Expanding {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let expanded = self.expand(offset.saturating_add(buffer.len() as u64));
        let count = Bytes::read_at(&mut self.expanded, offset, buffer)?;
        // What was expanded before the damage is good.
        if count == 0 {
            expanded?;
        }
        Ok(count)
    }

    fn size(&mut self) -> io::Result<u64> {
        self.expand(u64::MAX)?;
        Ok(self.size)
    }
}

/// Decodes all streams of a file, one after the other.
fn xz_reader<R: Read>(input: R) -> lzma_rust2::XzReader<R> {
    lzma_rust2::XzReader::new_mem_limit(input, true, XZ_MEMORY_KIB)
}

/// Decodes all frames of a file, one after the other.
struct ZstdReader<R> {
    input: R,
    decoder: FrameDecoder,
    within_frame: bool,
}

impl<R: BufRead> ZstdReader<R> {
    fn new(input: R) -> ZstdReader<R> {
        ZstdReader { input, decoder: FrameDecoder::new(), within_frame: false }
    }

    /// Begins the next frame; `false` at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.input).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(e) => return Err(io::Error::new(io::ErrorKind::InvalidData, e)),
            }
        }
        Ok(false)
    }

    /// Compares the frame's contents with its checksum, if it has one.
    fn check_frame(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(stored) if self.decoder.get_calculated_checksum() != Some(stored) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "checksum of a frame differs"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.within_frame {
                self.within_frame = self.next_frame()?;
                if !self.within_frame {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.check_frame()?;
            self.within_frame = false;
        }
    }
}

/// Expands bytes by the decoder that the first of them chooses, up to a size
/// that only a damaged input of a fuzzer has.
#[doc(hidden)]
pub fn fuzz_decompress(data: &[u8]) {
    const LIMIT: u64 = 4 * 1024 * 1024;
    let Some((first, input)) = data.split_first() else { return };
    let decoder: &mut dyn Read =
        if first % 2 == 0 { &mut xz_reader(input) } else { &mut ZstdReader::new(input) };
    // Damage is an error; that it is nothing worse is what is tested.
    let _ = io::copy(&mut decoder.take(LIMIT), &mut io::sink());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn expand(bytes: &[u8], compression: Compression) -> io::Result<Vec<u8>> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(bytes)?;
        let mut expanding = compression.open(file.path())?;
        let size = usize::try_from(expanding.size()?).expect("small");
        let mut contents = vec![0; size + 1];
        // From behind to the front: the order of reading does not matter.
        let half = size / 2;
        let end = expanding.read_at(half as u64, &mut contents[half..])?;
        assert_eq!(half + end, size);
        assert_eq!(expanding.read_at(0, &mut contents[..half])?, half);
        contents.truncate(size);
        Ok(contents)
    }

    fn zstd(contents: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(contents, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn zstd_frames_follow_one_another_and_skippable_ones_are_skipped() {
        let mut bytes = zstd(&[7; 300_000]);
        bytes.extend_from_slice(&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        bytes.extend_from_slice(&zstd(b"end"));
        let mut contents = vec![7; 300_000];
        contents.extend_from_slice(b"end");
        assert_eq!(expand(&bytes, Compression::Zstd).expect("good"), contents);
        bytes.truncate(bytes.len() - 3);
        assert!(expand(&bytes, Compression::Zstd).is_err());
    }

    /// Forty times "PCP archive ".
    const XZ: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21,
        0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x01, 0xdf, 0x00, 0x15, 0x5d,
        0x00, 0x28, 0x10, 0xc6, 0x43, 0x31, 0x4c, 0xf1, 0x64, 0x26, 0xfc, 0xb4, 0x30, 0x8e, 0x7e,
        0x7b, 0xc4, 0x30, 0x89, 0xaa, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x94, 0x13, 0xfb, 0x1c,
        0x00, 0x01, 0x2d, 0xe0, 0x03, 0x00, 0x00, 0x00, 0x04, 0xaa, 0x06, 0x42, 0x3e, 0x30, 0x0d,
        0x8b, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
    ];

    #[test]
    fn xz_is_expanded() {
        assert_eq!(expand(XZ, Compression::Xz).expect("good"), b"PCP archive ".repeat(40));
        let two = [XZ, XZ].concat();
        assert_eq!(expand(&two, Compression::Xz).expect("good"), b"PCP archive ".repeat(80));
    }

    #[test]
    fn decoders_survive_any_damage() {
        let zst = zstd(&b"PCP archive ".repeat(40));
        for (bytes, compression) in [(XZ, Compression::Xz), (&zst[..], Compression::Zstd)] {
            for cut in 1..bytes.len() {
                assert!(expand(&bytes[..cut], compression).is_err(), "cut at {cut}");
            }
            for bit in 0..8 * bytes.len() {
                let mut damaged = bytes.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                // A bit that means nothing may be flipped without harm.
                if let Ok(contents) = expand(&damaged, compression) {
                    assert_eq!(contents, b"PCP archive ".repeat(40), "bit {bit}");
                }
            }
        }
    }

    #[test]
    fn damaged_contents_are_errors() {
        assert!(expand(b"not compressed", Compression::Xz).is_err());
        assert!(expand(b"not compressed", Compression::Zstd).is_err());
        let error = expand(b"", Compression::Unsupported(".gz")).expect_err("not supported");
        assert_eq!(error.to_string(), "files compressed as .gz are not supported");
    }

    #[test]
    fn suffixes_are_split_off() {
        assert_eq!(Compression::of_name(b"a.0.xz"), (&b"a.0"[..], Compression::Xz));
        assert_eq!(Compression::of_name(b"a.0"), (&b"a.0"[..], Compression::None));
        assert_eq!(
            Compression::of_name(b"a.meta.Z"),
            (&b"a.meta"[..], Compression::Unsupported(".Z"))
        );
    }
}
