//! Validates JSON by a JSON schema of draft 7, as far as the schema of SARIF uses
//! that language: a word that is not understood here is a mistake, not passed over.
//! It knows nothing of SARIF.

use regex::Regex;
use serde_json::{Map, Value};

/// What is wrong with a document: the place of each mistake, and the mistake.
pub fn mistakes(schema: &Value, document: &Value) -> Vec<String> {
    let mut validation = Validation { root: schema, mistakes: Vec::new() };
    validation.value(schema, document, "");
    validation.mistakes
}

struct Validation<'s> {
    root: &'s Value,
    mistakes: Vec<String>,
}

impl Validation<'_> {
    fn wrong(&mut self, place: &str, words: impl std::fmt::Display) {
        self.mistakes.push(format!("{place}: {words}"));
    }

    /// What would be wrong by another schema.
    fn by(&self, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        let mut other = Validation { root: self.root, mistakes: Vec::new() };
        other.value(schema, value, place);
        other.mistakes
    }

    fn value(&mut self, schema: &Value, value: &Value, place: &str) {
        let schema = schema.as_object().expect("a schema is an object");
        // Nothing beside it counts in draft 7.
        if let Some(reference) = schema.get("$ref") {
            let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
            let target = pointer.and_then(|pointer| self.root.pointer(pointer));
            return self.value(target.expect("a definition of this schema"), value, place);
        }
        for (word, says) in schema {
            match &**word {
                // About the schema itself.
                "$schema" | "$id" | "title" | "description" | "default" | "definitions" => {}
                "type" => self.kind(says, value, place),
                "enum" => {
                    let allowed = says.as_array().expect("a list");
                    if !allowed.contains(value) {
                        self.wrong(place, format_args!("{value} is not among {says}"));
                    }
                }
                "anyOf" | "oneOf" => {
                    let schemas = says.as_array().expect("a list").iter();
                    let fits = schemas.filter(|one| self.by(one, value, place).is_empty()).count();
                    if fits == 0 || word == "oneOf" && fits > 1 {
                        self.wrong(place, format_args!("{fits} of {word} fit"));
                    }
                }
                "required" | "properties" | "additionalProperties" => {
                    if let Some(object) = value.as_object() {
                        self.object(word, says, schema, object, place);
                    }
                }
                "items" | "minItems" | "uniqueItems" => {
                    if let Some(list) = value.as_array() {
                        self.list(word, says, list, place);
                    }
                }
                "minimum" | "maximum" => {
                    let bound = says.as_f64().expect("a number");
                    let is_inside = value.as_f64().is_none_or(|number| match &**word {
                        "minimum" => number >= bound,
                        _ => number <= bound,
                    });
                    if !is_inside {
                        self.wrong(place, format_args!("{value} is outside of {word} {says}"));
                    }
                }
                "pattern" | "format" => {
                    if let Some(text) = value.as_str() {
                        self.text(word, says.as_str().expect("a text"), text, place);
                    }
                }
                other => panic!("this validation does not know `{other}`"),
            }
        }
    }

    fn kind(&mut self, says: &Value, value: &Value, place: &str) {
        let is_of = |kind: &Value| match kind.as_str().expect("a text") {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "null" => value.is_null(),
            other => panic!("this validation does not know the type `{other}`"),
        };
        let fits = says.as_array().map_or_else(|| is_of(says), |kinds| kinds.iter().any(is_of));
        if !fits {
            self.wrong(place, format_args!("{value} is no {says}"));
        }
    }

    fn object(
        &mut self,
        word: &str,
        says: &Value,
        schema: &Map<String, Value>,
        object: &Map<String, Value>,
        place: &str,
    ) {
        match word {
            "required" => {
                for name in says.as_array().expect("a list").iter().filter_map(Value::as_str) {
                    if !object.contains_key(name) {
                        self.wrong(place, format_args!("there is no `{name}`"));
                    }
                }
            }
            "properties" => {
                for (name, schema) in says.as_object().expect("schemas") {
                    if let Some(value) = object.get(name) {
                        self.value(schema, value, &format!("{place}/{name}"));
                    }
                }
            }
            _ => {
                let known = schema.get("properties").and_then(Value::as_object);
                let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
                for (name, value) in object.iter().filter(|(name, _)| !is_known(name)) {
                    match says {
                        Value::Bool(true) => {}
                        Value::Bool(false) => {
                            self.wrong(place, format_args!("`{name}` is unknown"))
                        }
                        schema => self.value(schema, value, &format!("{place}/{name}")),
                    }
                }
            }
        }
    }

    fn list(&mut self, word: &str, says: &Value, list: &[Value], place: &str) {
        match word {
            "items" => {
                for (at, value) in list.iter().enumerate() {
                    self.value(says, value, &format!("{place}/{at}"));
                }
            }
            "minItems" => {
                if (list.len() as u64) < says.as_u64().expect("a number") {
                    self.wrong(place, format_args!("there are fewer than {says}"));
                }
            }
            _ => {
                let is_again = |at: usize| list[..at].contains(&list[at]);
                if *says == Value::Bool(true) && (0..list.len()).any(is_again) {
                    self.wrong(place, "the same stands here twice");
                }
            }
        }
    }

    fn text(&mut self, word: &str, says: &str, text: &str, place: &str) {
        let characters = r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*";
        let pattern = match (word, says) {
            ("pattern", pattern) => pattern.to_owned(),
            // The characters and forms of RFC 3986 and RFC 3339.
            (_, "uri") => format!("^[A-Za-z][A-Za-z0-9+.-]*:{characters}$"),
            (_, "uri-reference") => format!("^{characters}$"),
            (_, "date-time") => {
                r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$".to_owned()
            }
            (_, other) => panic!("this validation does not know the format `{other}`"),
        };
        if !Regex::new(&pattern).expect("a pattern").is_match(text) {
            self.wrong(place, format_args!("{text:?} does not match {word} {says}"));
        }
    }
}
