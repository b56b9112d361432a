//! URIs as editors write them. Some editors do not encode characters such as brackets in paths,
//! although RFC 3986 requires it.

use serde_json::Value;

/// Names of members that are URIs in the messages of clients.
const MEMBERS: [&str; 4] = ["uri", "rootUri", "oldUri", "newUri"];

/// Encodes the characters that may not stand in the URIs of a message.
pub fn encode_all(parameters: &mut Value) {
    match parameters {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if MEMBERS.contains(&&**name) => encode(text),
                    other => encode_all(other),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(encode_all),
        _ => {}
    }
}

/// Encodes the path of a `file:` URI; others are left as they are.
fn encode(uri: &mut String) {
    let may_stand =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&'()*+,;=%".contains(&byte);
    if !uri.starts_with("file:") || uri.bytes().all(may_stand) {
        return;
    }
    let mut encoded = String::with_capacity(uri.len());
    for byte in uri.bytes() {
        match may_stand(byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    *uri = encoded;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_may_not_stand_in_a_uri_is_encoded() {
        let mut parameters = json!({
            "rootUri": "file:///a[1]",
            "workspaceFolders": [{ "uri": "file:///b|c^d é", "name": "b|c" }],
            "textDocument": { "uri": "untitled:[1]", "text": "file:///x[1]" },
        });
        encode_all(&mut parameters);
        let encoded = json!({
            "rootUri": "file:///a%5B1%5D",
            "workspaceFolders": [{ "uri": "file:///b%7Cc%5Ed%20%C3%A9", "name": "b|c" }],
            "textDocument": { "uri": "untitled:[1]", "text": "file:///x[1]" },
        });
        assert_eq!(parameters, encoded);
    }
}
