//! Rows of a table, as every form has them: what tests compare.

use serde_json::Value;

/// A row, without the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Nanoseconds since 1970.
    pub time: i64,
    pub metric: String,
    pub instance: Option<i32>,
    pub instance_name: Option<String>,
    pub value_type: String,
    pub semantics: String,
    pub units: String,
    pub content: Content,
}

/// Values are compared bit for bit, but any NaN is the same as any other.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    I64(i64),
    U64(u64),
    /// Bits of a double; also of types that it is exact for.
    Double(u64),
    Text(String),
    Bytes(Vec<u8>),
    Status(String),
}

impl Content {
    pub fn double(value: f64) -> Content {
        Content::Double(if value.is_nan() { f64::NAN } else { value }.to_bits())
    }

    /// The value of a text as `eval` prints it.
    fn of_text(value_type: &str, text: &str) -> Content {
        let number = |text: &str| match text {
            "nan" | "NaN" => f64::NAN,
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            _ if value_type == "FLOAT" => text.parse::<f32>().expect("a number").into(),
            _ => text.parse().expect("a number"),
        };
        match value_type {
            "64" => Content::I64(text.parse().expect("a number")),
            "U64" => Content::U64(text.parse().expect("a number")),
            "STRING" => Content::Text(text.to_owned()),
            "AGGREGATE" => {
                let digits = text.strip_prefix("hex:").expect("a block");
                let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
                Content::Bytes((0..digits.len()).step_by(2).map(byte).collect())
            }
            _ => Content::double(number(text)),
        }
    }
}

/// Rows of samples as `eval --format json` prints them; those without a value
/// for one of `reasons` have none.
pub fn of_json(lines: &str, without: &[&str]) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in lines.lines() {
        let sample: Value = serde_json::from_str(line).expect("JSON");
        let Some(time) = sample["t"].as_str() else { continue };
        let time = time.replace('.', "").parse().expect("a time");
        for metric in sample["metrics"].as_array().expect("metrics") {
            let desc = &metric["desc"];
            if desc.is_null() {
                continue;
            }
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            let row = |instance, instance_name, content| Row {
                time,
                metric: text(&metric["name"]),
                instance,
                instance_name,
                value_type: text(&desc["type"]),
                semantics: text(&desc["sem"]),
                units: text(&desc["units"]),
                content,
            };
            let why = metric["why"]["reason"].as_str();
            if let Some(status) = metric["errname"].as_str().or(why) {
                if !without.contains(&status) {
                    rows.push(row(None, None, Content::Status(status.to_owned())));
                }
                continue;
            }
            for value in metric["values"].as_array().expect("values") {
                let instance = value[0].as_i64().expect("an instance");
                let instance = i32::try_from(instance).ok().filter(|instance| *instance != -1);
                let name = value[1].as_str().map(str::to_owned);
                let printed = match &value[2] {
                    Value::String(text) => text.clone(),
                    number => number.to_string(),
                };
                let value_type = desc["type"].as_str().expect("a type");
                rows.push(row(instance, name, Content::of_text(value_type, &printed)));
            }
        }
    }
    rows
}

/// Rows of a table as CSV.
pub fn of_csv(text: &str) -> Vec<Row> {
    let mut records = records(text).into_iter();
    let names = "time,host,metric,instance,instance_name,type,semantics,units,value,status";
    let header: Vec<String> = records.next().expect("a header").into_iter().flatten().collect();
    assert_eq!(header.join(","), names);
    let row = |record: Vec<Option<String>>| {
        let Ok(
            [time, _, metric, instance, instance_name, value_type, semantics, units, value, status],
        ) = <[Option<String>; 10]>::try_from(record)
        else {
            panic!("a line has other fields than the header");
        };
        let value_type = value_type.expect("a type");
        let content = match (value, status) {
            (Some(value), None) => Content::of_text(&value_type, &value),
            (None, Some(status)) => Content::Status(status),
            other => panic!("{other:?}"),
        };
        Row {
            time: nanoseconds(&time.expect("a time")),
            metric: metric.expect("a metric"),
            instance: instance.map(|id| id.parse().expect("an instance")),
            instance_name,
            value_type,
            semantics: semantics.expect("semantics"),
            units: units.unwrap_or_default(),
            content,
        }
    };
    records.map(row).collect()
}

/// Lines and fields (RFC 4180); `None` for one with nothing in it.
fn records(text: &str) -> Vec<Vec<Option<String>>> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let field;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut value = String::new();
            let mut pieces = quoted;
            loop {
                let (piece, after) = pieces.split_once('"').expect("a closing quote");
                value.push_str(piece);
                match after.strip_prefix('"') {
                    Some(more) => {
                        value.push('"');
                        pieces = more;
                    }
                    None => {
                        rest = after;
                        break;
                    }
                }
            }
            field = Some(value);
        } else {
            let end = rest.find([',', '\n']).expect("lines end");
            field = Some(rest[..end].to_owned()).filter(|field| !field.is_empty());
            rest = &rest[end..];
        }
        record.push(field);
        if rest.starts_with('\n') {
            records.push(std::mem::take(&mut record));
        }
        rest = &rest[1..];
    }
    records
}

/// Nanoseconds of a time in UTC such as `2023-11-15T03:46:40.000000000Z`.
fn nanoseconds(text: &str) -> i64 {
    let (whole, fraction) = text.strip_suffix('Z').and_then(|t| t.split_once('.')).expect("UTC");
    let numbers: Vec<i64> =
        whole.split(['-', 'T', ':']).map(|part| part.parse().expect("a number")).collect();
    let [year, month, day, hour, minute, second] = numbers[..] else { panic!("{text}") };
    // Days since 1970 in the calendar that years from March make simple.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let seconds = ((days - 719_468) * 24 + hour) * 3600 + minute * 60 + second;
    seconds * 1_000_000_000 + fraction.parse::<i64>().expect("nanoseconds")
}
