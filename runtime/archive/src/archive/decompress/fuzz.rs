//! The promises of the decoders about any bytes, for fuzzers.

use super::output::Output;
use super::*;

/// Expands bytes with the decoder that the first byte chooses, up to a size that only a
/// damaged input of a fuzzer has. Blocks of xz must expand to the same in any order.
///
/// # Panics
/// If a decoder panics or contradicts itself.
pub fn fuzz_decompress(data: &[u8]) {
    const LIMIT: u64 = 4 * 1024 * 1024;
    let Some((first, bytes)) = data.split_first() else { return };
    let kinds = [Compression::Xz, Compression::Zstd, Compression::Gzip, Compression::Bzip2];
    let units = kinds[usize::from(first % 4)].units();
    let Some(mut units) = units else { return };
    let new_input = || Input::new(Box::new(Arc::<[u8]>::from(bytes)));
    let mut input = new_input();
    let mut contents = Vec::new();
    let result = loop {
        let mut output = Output::new(&mut contents, LIMIT);
        match units.next(&mut input, &mut output) {
            Ok(true) if contents.len() as u64 >= LIMIT => break Ok(()),
            Ok(true) => {}
            Ok(false) => break Ok(()),
            // Errors are fine: the test is that damage causes nothing worse.
            Err(error) => break Err(error),
        }
    };
    if first % 4 != 0 || result.is_err() {
        return;
    }
    let mut input = new_input();
    for block in xz::blocks(&mut input).into_iter().flatten().rev() {
        let mut alone = Vec::new();
        block.expand(&mut input, &mut Output::new(&mut alone, LIMIT)).expect("it was good before");
        let start = usize::try_from(block.start).expect("little was expanded");
        assert_eq!(alone, contents[start..][..alone.len()], "blocks are independent");
    }
}
