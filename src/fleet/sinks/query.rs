//! Parameters of requests: the query, and the wanted form of text.

use pmderive_runtime::percent;

use super::text::Format;

/// The query of a request: the text behind the `?`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses `a=b&c=d`. `None` if an escape in it is wrong.
    pub fn parse(text: &str) -> Option<Query> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescaped(name)?, unescaped(value)?))
        };
        pairs.map(pair).collect::<Option<_>>().map(Query)
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// Replaces escapes. `None` if one is wrong, or the result is not UTF-8.
fn unescaped(text: &str) -> Option<String> {
    String::from_utf8(percent::decoded(text, b' ').ok()?).ok()
}

/// The entries of a header such as `Accept`, in lower case, each with its weight (RFC 9110).
pub fn weighted(header: &str) -> impl Iterator<Item = (String, f32)> {
    header.split(',').map(|wanted| {
        let mut parts = wanted.split(';').map(str::trim);
        let what = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse().unwrap_or(0.0))
        });
        (what, quality.unwrap_or(1.0))
    })
}

/// The form of text that an `Accept` header prefers; OpenMetrics if it has no preference.
pub fn format(accept: &str) -> Format {
    let (mut open, mut text) = (0.0_f32, 0.0_f32);
    for (media, quality) in weighted(accept) {
        match &*media {
            "application/openmetrics-text" => open = open.max(quality),
            "text/plain" | "text/*" | "*/*" => text = text.max(quality),
            _ => {}
        }
    }
    if open > 0.0 && open >= text { Format::OpenMetrics } else { Format::Text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries() {
        let cases = [
            ("target=web1%3a44321&times=true", Some("web1:44321")),
            ("x&&target=a+b%20c&target=d", Some("a b c")),
            ("target", Some("")),
            ("", None),
            ("targets=x", None),
            ("target=h%c3%a4", Some("hä")),
        ];
        for (text, target) in cases {
            assert_eq!(Query::parse(text).expect(text).get("target"), target, "{text}");
        }
        for text in ["target=%", "target=%4", "target=%4g", "%ff=x", "target=%+1"] {
            assert_eq!(Query::parse(text), None, "{text}");
        }
    }

    #[test]
    fn forms() {
        let prometheus = "application/openmetrics-text;version=1.0.0,\
            application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let open =
            [prometheus, "application/openmetrics-text", "Application/OpenMetrics-Text ; Q=0.5"];
        for accept in open {
            assert_eq!(format(accept), Format::OpenMetrics, "{accept}");
        }
        let text = [
            "",
            "*/*",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=x",
            "application/openmetrics-text;q=0.1, text/plain",
            "application/openmetrics-text;q=nan",
            "application/json",
        ];
        for accept in text {
            assert_eq!(format(accept), Format::Text, "{accept}");
        }
    }
}
