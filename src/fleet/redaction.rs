//! Hides secrets in texts that diagnostics show. Diagnostics show the lines around a mistake,
//! which may have a secret in a wrong place.

use std::ops::Range;

/// Replaces these places of a text by asterisks.
pub fn without(text: &str, mut places: Vec<Range<usize>>) -> String {
    places.sort_by_key(|place| place.start);
    let mut places = places.into_iter().peekable();
    let mut shown = String::with_capacity(text.len());
    for (at, one) in text.char_indices() {
        while places.next_if(|place| place.end <= at).is_some() {}
        match one != '\n' && places.peek().is_some_and(|place| place.contains(&at)) {
            true => shown.extend(std::iter::repeat_n('*', one.len_utf8())),
            false => shown.push(one),
        }
    }
    shown
}

/// A possible password in a wrong host: the text before an `@`, where a port might be.
pub fn password_in(host: &str) -> Option<Range<usize>> {
    let start = host.find("//").map_or(0, |slashes| slashes + 2);
    let end = start + host[start..].rfind('@')?;
    let colon = start + host[start..end].find(':')?;
    Some(colon + 1..end)
}

/// Possible secrets in a URL: the user information, and the query, which may have a token.
pub fn secrets_in_url(url: &str) -> impl Iterator<Item = Range<usize>> + use<> {
    let start = url.find("//").map_or(0, |slashes| slashes + 2);
    let user = url[start..].rfind('@').map(|at| start..start + at);
    user.into_iter().chain(behind_mark(url))
}

/// Possible secrets in a text that cannot be parsed. These are the possible secrets of hosts
/// and URLs in it, and of each line the text behind a word for secrets.
pub fn secrets_in(text: &str) -> Vec<Range<usize>> {
    let mut secrets = Vec::new();
    let mut start = 0;
    for piece in text.split(['"', '\'', '\n']) {
        let found = password_in(piece).into_iter().chain(behind_mark(piece));
        secrets.extend(found.map(|place| start + place.start..start + place.end));
        start += piece.len() + 1;
    }
    start = 0;
    for line in text.split_inclusive('\n') {
        let value = word_for_secrets(line)
            .and_then(|word| Some(word + line[word..].find(['=', ':'])? + 1..line.len()));
        secrets.extend(value.map(|value| start + value.start..start + value.end));
        start += line.len();
    }
    secrets
}

/// The place at which a text has a word for secrets.
fn word_for_secrets(text: &str) -> Option<usize> {
    let text = text.to_ascii_lowercase();
    let words = ["pass", "secret", "token", "auth", "bearer", "credential", "key"];
    words.iter().filter_map(|word| text.find(word)).min()
}

fn behind_mark(text: &str) -> Option<Range<usize>> {
    text.find('?').map(|mark| mark + 1..text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_cannot_be_read_show_no_secrets() {
        for (text, shown) in [
            (
                "[{\"targets\": [\"me:s3cret@web1\" \"web2\"",
                "[{\"targets\": [\"me:******@web1\" \"web2\"",
            ),
            ("\"pcp://me:s3:@cret@web1:1\"", "\"pcp://me:********@web1:1\""),
            ("\"web1?a=s3cret\", \"web2\"", "\"web1?********\", \"web2\""),
            (
                "url = https://me:s3cret@web1/w\nkind = x",
                "url = https://me:******@web1/w\nkind = x",
            ),
            ("url = 'https://web1/w?t=s3cret\nkind", "url = 'https://web1/w?********\nkind"),
            ("a = 1\nPassword = \"s3cret\na@b", "a = 1\nPassword =********\na@b"),
            ("sink = [{ bearer = 's3cret'", "sink = [{ bearer =*********"),
            ("{\"targets\": [], \"token\": \"\u{e9}\"}", "{\"targets\": [], \"token\":******"),
            (
                "interval = 10 sec\nlisten = '127.0.0.1:9464'",
                "interval = 10 sec\nlisten = '127.0.0.1:9464'",
            ),
        ] {
            assert_eq!(without(text, secrets_in(text)), shown);
        }
    }

    #[test]
    fn places_may_be_within_each_other() {
        let of = |places: &[Range<usize>]| without("0123456789", places.to_vec());
        assert_eq!(of(&[5..7, 0..2]), "**234**789");
        assert_eq!(of(&[1..9, 2..3, 4..5]), "0********9");
        assert_eq!(of(&[1..3, 2..5, 2..5]), "0****56789");
    }
}
