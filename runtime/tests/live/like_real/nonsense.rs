//! Requests that are malformed or ask for the impossible.

use super::plain::{encoded, raw};
use pmderive_runtime::model::{InDom, Pmid, TextKind, TextSubject};
use pmderive_runtime::pdu::{
    Attr, Credential, Creds, DescIds, DescRequest, Features, Fetch, InstanceRequest, PmnsChild,
    PmnsIds, PmnsNames, PmnsTraverse, Profile, Resolution, TextRequest,
};

/// A copy of a request with its length changed, and more bytes or fewer.
pub fn resized(request: &[u8], len: usize) -> Vec<u8> {
    let mut pdu = request.to_vec();
    pdu.resize(len, 0);
    pdu[..4].copy_from_slice(&u32::try_from(len).expect("short").to_be_bytes());
    pdu
}

pub fn with_word(request: &[u8], at: usize, word: u32) -> Vec<u8> {
    let mut pdu = request.to_vec();
    pdu[at..at + 4].copy_from_slice(&word.to_be_bytes());
    pdu
}

/// All of them, each with the name of its fault.
pub fn nonsense() -> Vec<(String, Vec<u8>)> {
    let bin = Pmid::new(29, 0, 6);
    let mut names = Vec::new();
    PmnsNames::encode_names(&["sample.bin", "sample.colour"], &mut names);
    let mut one_name = Vec::new();
    PmnsNames::encode_names(&["sample.bin"], &mut one_name);
    let profile = encoded(&Profile::include_all(0));
    let fetch =
        encoded(&Fetch { resolution: Resolution::Nano, context: 0, pmids: vec![bin].into() });
    let both = |one: &[u8], other: &[u8]| [one, other].concat();
    let request = |pdu: Vec<u8>, name: &str| (name.to_owned(), pdu);
    let instance = InstanceRequest { indom: InDom::new(29, 2), instance: -1, name: b"bin-100" };
    let text = encoded(&TextRequest { subject: TextSubject::Metric(bin), kind: TextKind::Help });
    let valid = [
        ("desc_req", encoded(&DescRequest { pmid: bin })),
        ("desc_ids", encoded(&DescIds { pmids: vec![bin, Pmid::new(29, 0, 10)].into() })),
        ("text_req", text),
        ("label_req", raw(0x7012, &[bin.0, 16])),
        ("instance_req", encoded(&instance)),
        ("pmns_ids", encoded(&PmnsIds { status: 0, pmids: vec![bin].into() })),
        ("pmns_child", encoded(&PmnsChild { name: b"sample.long", subtype: 1 })),
        ("pmns_traverse", encoded(&PmnsTraverse { name: b"sample.long" })),
        ("pmns_names", names.clone()),
    ];
    let mut list = vec![
        request(with_word(&valid[0].1, 0, 0), "length 0"),
        request(with_word(&valid[0].1, 0, 11), "length 11"),
        request(with_word(&valid[0].1, 0, 0x8000_0000), "negative length"),
        request(with_word(&valid[0].1, 0, 65_540), "length 65540"),
        request(with_word(&valid[0].1, 0, 0x7fff_ffff), "greatest length"),
        request(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), "a web browser"),
        request(fetch.clone(), "a fetch without a profile"),
        request(both(&profile, &with_word(&fetch, 12, 1)), "a context without a profile"),
        request(both(&profile, &with_word(&fetch, 12, u32::MAX)), "context -1"),
        request(both(&profile, &with_word(&fetch, 24, 0)), "no metrics, but one"),
        request(both(&profile, &resized(&with_word(&fetch, 24, 0), 28)), "no metrics"),
        request(both(&profile, &with_word(&fetch, 24, u32::MAX)), "-1 metrics"),
        request(both(&profile, &with_word(&fetch, 24, 2)), "more metrics than there are"),
        request(both(&profile, &resized(&fetch, 36)), "fewer metrics than there are"),
        request(with_word(&profile, 12, u32::MAX), "profile of context -1"),
        request(with_word(&profile, 20, 1), "profile without its entry"),
        request(with_word(&profile, 20, u32::MAX), "profile with -1 entries"),
        request(resized(&profile, 24), "profile without padding"),
        request(both(&resized(&profile, 32), &fetch), "profile with a word too many"),
        request(both(&with_word(&profile, 16, 7), &fetch), "profile with state 7"),
        request(with_word(&names, 12, 5), "nstrbytes too small"),
        request(with_word(&names, 12, u32::MAX), "nstrbytes negative"),
        request(with_word(&names, 12, 60_000), "nstrbytes too large"),
        request(with_word(&names, 20, 3), "a name too few"),
        request(resized(&with_word(&names, 20, 0), 24), "no names"),
        request(with_word(&names, 20, u32::MAX), "-1 names"),
        request(with_word(&names, 24, 100), "a name past the end"),
        request(with_word(&names, 24, u32::MAX), "a name of -1 bytes"),
        request(resized(&one_name, 38), "the last name without padding"),
        request(raw(0x700e, &[1, 0, 1, 0]), "one empty name"),
        request(raw(0x700e, &[5, 0, 1, 4, 0x6100_0000]), "a name with a NUL"),
        request(raw(0x700d, &[0, 2, bin.0, bin.0]), "names of two metrics"),
        request(raw(0x7016, &[0, 1, bin.0]), "descriptors without the mark"),
        request(raw(0x7016, &[u32::MAX, 0]), "no descriptors"),
        request(raw(0x7008, &[bin.0, 1]), "text of neither metric nor domain"),
        request(raw(0x7008, &[Pmid::new(400, 0, 0).0, 5]), "text without an agent"),
        request(raw(0x7008, &[InDom::new(400, 0).0, 9]), "domain text without an agent"),
        request(raw(0x7012, &[bin.0, 0]), "labels of no level"),
        request(raw(0x7012, &[bin.0, 3]), "labels of two levels"),
        request(raw(0x7012, &[bin.0, 64]), "labels of an unknown level"),
        request(encoded(&Attr { key: 15, value: b"late" }), "a container too late"),
        request(
            encoded(&Creds { credentials: vec![Credential::version_2(Features(0))] }),
            "creds again",
        ),
    ];
    for code in
        [0, 0x8000_7004, 0xffff_ffff, 0x6fff, 0x700a, 0x700b, 0x7018, 0x7000, 0x7005, 0x7015]
    {
        list.push(request(raw(code, &[bin.0]), &format!("type {code:#x}")));
    }
    for (name, pdu) in valid {
        for len in [12, pdu.len() - 4, pdu.len() + 4] {
            list.push(request(resized(&pdu, len), &format!("{name} of {len} bytes")));
        }
        let (twice, name) = (both(&pdu, &pdu), format!("{name} twice"));
        list.push(request(twice, &name));
    }
    for (what, at) in [("instance_req", 28), ("pmns_child", 16), ("pmns_traverse", 16)] {
        let pdu = match what {
            "instance_req" => encoded(&instance),
            "pmns_child" => encoded(&PmnsChild { name: b"sample.long", subtype: 1 }),
            _ => encoded(&PmnsTraverse { name: b"sample.long" }),
        };
        for len in [u32::MAX, 100, 0x7fff_ffff] {
            list.push(request(with_word(&pdu, at, len), &format!("{what} with a name of {len}")));
        }
    }
    list
}
