//! The body of a remote write request, version 1.0: a protocol buffer, read by
//! hand. This reader shares no code with the writer.

/// The contents of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteRequest {
    /// Time series with their samples.
    pub series: Vec<Series>,
    /// Descriptions of metrics, independent of the series.
    pub metadata: Vec<Metadata>,
}

/// Samples of a time series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Labels as they came, the name of the metric being `__name__`.
    pub labels: Vec<(String, String)>,
    /// Samples as they came.
    pub samples: Vec<Sample>,
}

/// A value at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// The value.
    pub value: f64,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
}

/// Samples are the same when all their bits are: no NaN is lost.
impl PartialEq for Sample {
    fn eq(&self, other: &Sample) -> bool {
        (self.value.to_bits(), self.timestamp) == (other.value.to_bits(), other.timestamp)
    }
}

/// The NaN that ends a series.
pub const STALE: u64 = 0x7ff0_0000_0000_0002;

impl Sample {
    /// True if it is the mark that ends a series.
    pub fn is_stale(&self) -> bool {
        self.value.to_bits() == STALE
    }
}

/// The description of a metric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// 1 is a counter, 2 a gauge; the others as in the definition of the format.
    pub kind: u64,
    /// Name of the metric.
    pub name: String,
    /// Help text.
    pub help: String,
    /// Unit.
    pub unit: String,
}

/// One field of a message.
enum Field<'b> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'b [u8]),
    Fixed32,
}

/// Removes the next field, with its number, from a message.
fn field<'b>(message: &mut &'b [u8]) -> Result<Option<(u64, Field<'b>)>, String> {
    if message.is_empty() {
        return Ok(None);
    }
    let key = varint(message)?;
    let field = match key & 7 {
        0 => Field::Varint(varint(message)?),
        1 => Field::Fixed64(u64::from_le_bytes(bytes(message)?)),
        2 => {
            let length = usize::try_from(varint(message)?).unwrap_or(usize::MAX);
            let (content, rest) = message.split_at_checked(length).ok_or("a field has no end")?;
            *message = rest;
            Field::Bytes(content)
        }
        5 => {
            bytes::<4>(message)?;
            Field::Fixed32
        }
        other => return Err(format!("there is no wire type {other}")),
    };
    match key >> 3 {
        0 => Err("there is no field 0".to_owned()),
        number => Ok(Some((number, field))),
    }
}

fn varint(message: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let [byte] = bytes(message)?;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return Err("a number has more than 64 bits".to_owned());
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number has no end".to_owned())
}

fn bytes<const N: usize>(message: &mut &[u8]) -> Result<[u8; N], String> {
    let (first, rest) = message.split_first_chunk().ok_or("it ends in the middle of a field")?;
    *message = rest;
    Ok(*first)
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "a text is no UTF-8".to_owned())
}

/// Reads a message. A field of another type than it should have is a mistake,
/// one of another number is left out, as receivers do.
///
/// # Errors
/// The fault.
pub fn decode(mut message: &[u8]) -> Result<WriteRequest, String> {
    let mut request = WriteRequest::default();
    while let Some(field) = field(&mut message)? {
        match field {
            (1, Field::Bytes(series)) => request.series.push(decode_series(series)?),
            (3, Field::Bytes(metadata)) => request.metadata.push(decode_metadata(metadata)?),
            (number @ (1 | 3), _) => return Err(format!("field {number} is no message")),
            _ => {}
        }
    }
    Ok(request)
}

fn decode_series(mut message: &[u8]) -> Result<Series, String> {
    let mut series = Series::default();
    while let Some(field) = field(&mut message)? {
        match field {
            (1, Field::Bytes(label)) => series.labels.push(decode_label(label)?),
            (2, Field::Bytes(sample)) => series.samples.push(decode_sample(sample)?),
            (number @ (1 | 2), _) => {
                return Err(format!("field {number} of a series is no message"));
            }
            _ => {}
        }
    }
    Ok(series)
}

fn decode_label(mut message: &[u8]) -> Result<(String, String), String> {
    let mut label = (String::new(), String::new());
    while let Some(field) = field(&mut message)? {
        match field {
            (1, Field::Bytes(name)) => label.0 = text(name)?,
            (2, Field::Bytes(value)) => label.1 = text(value)?,
            (number @ (1 | 2), _) => return Err(format!("field {number} of a label is no text")),
            _ => {}
        }
    }
    Ok(label)
}

fn decode_sample(mut message: &[u8]) -> Result<Sample, String> {
    let mut sample = Sample::default();
    while let Some(field) = field(&mut message)? {
        match field {
            (1, Field::Fixed64(bits)) => sample.value = f64::from_bits(bits),
            (2, Field::Varint(time)) => sample.timestamp = time.cast_signed(),
            (number @ (1 | 2), _) => {
                return Err(format!("field {number} of a sample is no number of its kind"));
            }
            _ => {}
        }
    }
    Ok(sample)
}

/// Hands the samples of a message over, each with the labels of its series as they are
/// encoded: for receivers of many messages of the same series.
///
/// # Errors
/// The fault of the message.
pub(crate) fn samples_of(
    mut message: &[u8],
    mut take: impl FnMut(&[u8], Sample),
) -> Result<(), String> {
    while let Some(field) = field(&mut message)? {
        let (1, Field::Bytes(series)) = field else { continue };
        let (mut rest, mut labels) = (series, &series[..0]);
        // Most labels are short, and are skipped at once.
        while let [0x0a, length @ ..0x80, after @ ..] = rest {
            rest = after.get(usize::from(*length)..).ok_or("a field has no end")?;
            labels = &series[..series.len() - rest.len()];
        }
        while let Some(field) = self::field(&mut rest)? {
            match field {
                (1, Field::Bytes(_)) => labels = &series[..series.len() - rest.len()],
                (2, Field::Bytes(sample)) => take(labels, decode_sample(sample)?),
                (number, _) => return Err(format!("there is a field {number} in a series")),
            }
        }
    }
    Ok(())
}

/// Labels as [`samples_of`] has them.
///
/// # Errors
/// They are not in order.
pub(crate) fn labels_of(encoded: &[u8]) -> Result<Vec<(String, String)>, String> {
    let series = Series { samples: vec![Sample::default()], ..decode_series(encoded)? };
    match fault_of(&series) {
        Some(fault) => Err(fault),
        None => Ok(series.labels),
    }
}

fn decode_metadata(mut message: &[u8]) -> Result<Metadata, String> {
    let mut metadata = Metadata::default();
    while let Some(field) = field(&mut message)? {
        match field {
            (1, Field::Varint(kind)) => metadata.kind = kind,
            (2, Field::Bytes(name)) => metadata.name = text(name)?,
            (4, Field::Bytes(help)) => metadata.help = text(help)?,
            (5, Field::Bytes(unit)) => metadata.unit = text(unit)?,
            (number @ (1 | 2 | 4 | 5), _) => {
                return Err(format!("field {number} of metadata has another type"));
            }
            _ => {}
        }
    }
    Ok(metadata)
}

/// The standard's demands on a series beyond its form: the first that is not
/// met.
pub(super) fn fault_of(series: &Series) -> Option<String> {
    let labels = &series.labels;
    let fault = if !labels.iter().any(|(name, value)| name == "__name__" && !value.is_empty()) {
        "has no name"
    } else if labels.iter().any(|(name, value)| name.is_empty() || value.is_empty()) {
        "has an empty label"
    } else if !labels.is_sorted_by(|(one, _), (other, _)| one < other) {
        "has labels out of order, or twice"
    } else if !labels.iter().all(|(name, value)| is_label(name, value)) {
        "has a name that is none"
    } else if series.samples.is_empty() {
        "has no samples"
    } else if !series.samples.is_sorted_by(|one, other| one.timestamp < other.timestamp) {
        "has samples out of order"
    } else {
        return None;
    };
    Some(format!("{labels:?} {fault}"))
}

/// `[a-zA-Z_][a-zA-Z0-9_]*`, and in names of metrics colons.
fn is_label(name: &str, value: &str) -> bool {
    let is_word = |text: &str, others: &[char]| {
        let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_' || others.contains(&c);
        text.chars().all(is_good) && !text.starts_with(|c: char| c.is_ascii_digit())
    };
    is_word(name, &[]) && (name != "__name__" || is_word(value, &[':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by hand, from the definition of the format.
    #[test]
    fn a_request_by_hand() {
        let label = |name: &str, value: &str| {
            let texts = [name, value].map(|text| [&[text.len() as u8], text.as_bytes()].concat());
            let message = [&[0x0a][..], &texts[0], &[0x12], &texts[1]].concat();
            [&[0x0a, message.len() as u8][..], &message].concat()
        };
        let sample = [&[0x12, 13, 0x09][..], &1.5f64.to_le_bytes(), &[0x10, 0xac, 0x02, 0x38]];
        // The sample ends with an unknown field.
        let sample = [&sample.concat()[..], &[1]].concat();
        let sample = [&[0x12, sample.len() as u8 - 2][..], &sample[2..]].concat();
        let series = [label("__name__", "up"), label("job", "x"), sample].concat();
        let metadata =
            [&[0x08, 2, 0x12, 2][..], b"up", &[0x22, 1], b"?", &[0x2a, 1], b"s"].concat();
        let body = [
            &[0x0a, series.len() as u8][..],
            &series,
            &[0x1a, metadata.len() as u8],
            &metadata,
            // Field 15, of four bytes.
            &[0x7d, 1, 2, 3, 4],
        ];
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = WriteRequest {
            series: vec![Series {
                labels: vec![pair("__name__", "up"), pair("job", "x")],
                samples: vec![Sample { value: 1.5, timestamp: 300 }],
            }],
            metadata: vec![Metadata {
                kind: 2,
                name: "up".into(),
                help: "?".into(),
                unit: "s".into(),
            }],
        };
        assert_eq!(decode(&body.concat()), Ok(expected.clone()));
        let mut found = Vec::new();
        let take = |labels: &[u8], sample| found.push((labels_of(labels), sample));
        samples_of(&body.concat(), take).expect("it is in order");
        let series = &expected.series[0];
        assert_eq!(found, [(Ok(series.labels.clone()), series.samples[0])]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let cases: &[(&[u8], &str)] = &[
            (&[0x0a], "middle of a field"),
            (&[0x0a, 5, 1], "no end"),
            (&[0x08, 1], "field 1 is no message"),
            (&[0x0b], "wire type 3"),
            (&[0x02, 0], "field 0"),
            (&[0x80; 11], "no end"),
            (&[&[0xff; 9][..], &[2]].concat(), "64 bits"),
            (&[0x0a, 2, 0x08, 1], "field 1 of a series"),
            (&[0x0a, 5, 0x0a, 3, 0x0a, 1, 0xff], "no UTF-8"),
            (&[0x0a, 4, 0x12, 2, 0x08, 1], "field 1 of a sample"),
        ];
        for (bytes, expected) in cases {
            let error = decode(bytes).expect_err("a mistake");
            assert!(error.contains(expected), "{bytes:?}: {error}");
        }
        assert_eq!(decode(&[]), Ok(WriteRequest::default()));
    }

    #[test]
    fn faults_of_series_are_told() {
        let series = |labels: &[(&str, &str)], times: &[i64]| Series {
            labels: labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            samples: times.iter().map(|time| Sample { value: 0.0, timestamp: *time }).collect(),
        };
        let name = ("__name__", "a:b_1");
        let cases: &[(Series, &str)] = &[
            (series(&[("a", "b")], &[1]), "no name"),
            (series(&[name, ("a", "")], &[1]), "empty"),
            (series(&[("a", "b"), name], &[1]), "order"),
            (series(&[name, ("a", "b"), ("a", "c")], &[1]), "twice"),
            (series(&[name, ("a-b", "c")], &[1]), "none"),
            (series(&[("__name__", "1a")], &[1]), "none"),
            (series(&[name], &[]), "no samples"),
            (series(&[name], &[2, 2]), "samples out of order"),
        ];
        for (series, expected) in cases {
            let fault = fault_of(series).expect("a fault");
            assert!(fault.contains(expected), "{fault}");
        }
        assert_eq!(fault_of(&series(&[name, ("a", "b-c ü")], &[1, 2])), None);
    }
}
