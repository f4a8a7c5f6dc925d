//! Trust anchors as text: files of DS and DNSKEY records, the state of RFC 5011, negative anchors. A text that is accepted is printed and read
//! again to the same; another one has an error that can be shown. What a state says of revoked keys holds, whatever else it says.
//!
//! The first octet of an input says of which kind the text is.

use crate::input::InputReader;
use ::anchors::limits::{ANCHORS, LAST_ID};
use ::anchors::name::to_text;
use ::anchors::{
    AnchorFile, Data, Key, Loaded, Moment, Negative, Observed, Pending, Saved, SavedZone, Signed, State,
    Steady, TrustAnchor, TrustPoint, TrustPoints,
};
use ::dnssec::{Algorithms, Digests};
use aws_lc_rs::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, digest};
use data_encoding::BASE64;

/// The present: 2026-11-29T00:00:00Z, as `date -d` says.
const NOW: Moment = Moment { wall: 1_795_910_400, steady: Steady { boot: 7, seconds: 1_000 } };

// Kinds of texts.
const FILE: u8 = 0;
const FILE_OF_CURRENT: u8 = 1;
const STATE: u8 = 2;
const STATE_WITH_SUMS: u8 = 3;
const KINDS: u8 = 5;

/// Tests one text.
pub fn run(input: &[u8]) {
    let mut reader = InputReader::new(input);
    match (reader.octet() % KINDS, reader.rest()) {
        (FILE, text) => file(text, Algorithms::ALL),
        (FILE_OF_CURRENT, text) => file(text, Algorithms::CURRENT),
        (STATE, text) => state(text),
        (STATE_WITH_SUMS, text) => state(&with_sums(text)),
        (_, text) => negative(&String::from_utf8_lossy(text)),
    }
}

/// Octets of data of a record, as text and as they are: white space and letter case take no less.
fn size(data: &Data) -> usize {
    match data {
        Data::Ds(rdata) | Data::Dnskey(rdata) => rdata.len(),
    }
}

fn file(text: &[u8], supported: Algorithms) {
    match AnchorFile::parse(text, supported) {
        Ok(file) => {
            assert!(!file.anchors.is_empty() && file.anchors.is_sorted());
            assert!(file.anchors.iter().map(|anchor| size(&anchor.data)).sum::<usize>() <= text.len());
            assert!(file.skipped.iter().all(|skipped| is_shown(&skipped.why) && is_line(skipped.line, text)));
            let line = |anchor: &TrustAnchor| format!("{} IN {}\n", to_text(&anchor.zone), anchor.data);
            let printed: String = file.anchors.iter().map(line).collect();
            let again = AnchorFile::parse(printed.as_bytes(), supported);
            assert_eq!(again, Ok(AnchorFile { skipped: Vec::new(), ..file }), "{printed}");
        }
        Err(error) => {
            assert!(is_shown(&error.what) && is_shown(&error.remedy), "{error}");
            assert!(error.line.is_none_or(|line| is_line(line, text)), "{error}");
        }
    }
}

/// True if a text for the operator is there, and safe for a terminal.
fn is_shown(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

/// True if a text has a line of this number.
fn is_line(number: usize, text: &[u8]) -> bool {
    (1..=text.split(|octet| *octet == b'\n').count()).contains(&number)
}

fn state(text: &[u8]) {
    let revoked = Saved::revoked(text);
    match Saved::parse(text) {
        Ok(saved) => {
            let printed = Saved::text(saved.serial, saved.zones.iter());
            assert_eq!(Saved::parse(printed.as_bytes()).as_ref(), Ok(&saved), "{printed}");
            let keys = saved.zones.iter().flat_map(|zone| &zone.keys);
            assert_eq!(keys.filter(|key| key.state.is_revoked()).count(), revoked.len());
            // Numbers of new keys are left.
            if saved.zones.iter().all(|zone| zone.next_id < LAST_ID - ANCHORS as u32) {
                follow(saved);
            }
        }
        Err(error) => {
            assert!(is_shown(&error.to_string()));
            assert!(error.line.is_none_or(|line| is_line(line, text)), "{error}");
            let message = error.to_string();
            let start = TrustPoints::start(
                &::anchors::anchor::root(),
                Loaded::Damaged { message, revoked },
                NOW,
                &Aws,
            );
            assert!(start.points.iter().all(|point| !point.anchors().is_empty()));
        }
    }
}

/// Goes on with a state, through a set of all its keys: revoked ones stay so, and what is saved then can be read.
fn follow(saved: Saved) {
    let configured: Vec<TrustAnchor> = saved
        .zones
        .iter()
        .flat_map(|zone| zone.configured.iter().map(|data| (zone.zone.clone(), data.clone())))
        .map(|(zone, data)| TrustAnchor { zone, data })
        .collect();
    let new = root_key(0);
    let mut start = TrustPoints::start(&configured, Loaded::State(saved.clone()), NOW, &Aws);
    for zone in &saved.zones {
        let Some(point) = start.points.get(&zone.zone) else { continue };
        let revoked: Vec<&Key> = zone.keys.iter().filter(|key| key.state.is_revoked()).collect();
        check(point, &revoked);
        let signed = Signed {
            inception: NOW.wall as u32 - 1,
            expiration: NOW.wall as u32 + 86_400,
            original_ttl: 172_800,
        };
        let own = zone.keys.iter().map(|key| Observed { rdata: &key.rdata, signed: Some(signed) });
        let set: Vec<Observed<'_>> = own.chain([Observed { rdata: &new, signed: None }]).collect();
        let outcome = point.observe(NOW, &set, Algorithms::CURRENT, &Aws);
        assert!(outcome.next.as_secs() >= 3_600, "{outcome:?}");
        check(point, &revoked);
    }
    let zones: Vec<SavedZone> = start.points.iter().map(|point| point.saved().clone()).collect();
    let text = Saved::text(saved.serial, zones.iter());
    assert_eq!(Saved::parse(text.as_bytes()), Ok(Saved { serial: saved.serial, zones }), "{text}");
}

/// Checks that none of these keys is trusted: as an anchor it stands with the bit that revokes it, or not at all.
fn check(point: &TrustPoint, revoked: &[&Key]) {
    let anchors = point.anchors();
    assert!(!anchors.is_empty());
    for key in revoked {
        let is_trusted =
            |anchor: &TrustAnchor| matches!(&anchor.data, Data::Dnskey(rdata) if *rdata == key.rdata);
        assert!(!anchors.iter().any(is_trusted), "{key:?}");
    }
}

/// CRC-32 of RFC 1952 section 8.
fn crc(octets: &[u8]) -> u32 {
    let step = |rest: u32, _| if rest & 1 == 1 { 0xedb8_8320 ^ (rest >> 1) } else { rest >> 1 };
    !octets.iter().fold(u32::MAX, |rest, octet| (0..8).fold(rest ^ u32::from(*octet), step))
}

/// A text with the right checksum behind each line, so that the readers behind the checksums see changes.
fn with_sums(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in text.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()) {
        let end = line.windows(7).rposition(|window| window == b" check=").unwrap_or(line.len());
        out.extend_from_slice(&line[..end]);
        out.extend_from_slice(format!(" check={:08x}\n", crc(&line[..end])).as_bytes());
    }
    out
}

fn negative(text: &str) {
    match Negative::parse(text) {
        Ok(negative) => assert_eq!(Negative::parse(&negative.to_string()), Ok(negative)),
        Err(error) => assert!(is_shown(&error.to_string()), "{error}"),
    }
}

/// Digests of AWS-LC.
struct Aws;

fn of<const N: usize>(algorithm: &'static Algorithm, octets: &[u8]) -> [u8; N] {
    digest(algorithm, octets).as_ref().try_into().expect("the octets of the algorithm")
}

impl Digests for Aws {
    fn sha1(&self, octets: &[u8]) -> [u8; 20] {
        of(&SHA1_FOR_LEGACY_USE_ONLY, octets)
    }

    fn sha256(&self, octets: &[u8]) -> [u8; 32] {
        of(&SHA256, octets)
    }

    fn sha384(&self, octets: &[u8]) -> [u8; 48] {
        of(&SHA384, octets)
    }
}

/// The file of Debian's package dns-root-data with the root's keys.
const ROOT_KEY: &str = include_str!("../../../server/anchors/tests/root.key");

/// RDATA of a key of the root.
fn root_key(number: usize) -> Box<[u8]> {
    let line = ROOT_KEY.lines().nth(number).expect("a line");
    let key = line.split(' ').nth(6).expect("a key");
    [&[1, 1, 3, 8][..], &BASE64.decode(key.as_bytes()).expect("base64")].concat().into()
}

/// Words of the texts.
pub const WORDS: &[&str] = &[
    " IN ",
    " DS ",
    " DNSKEY ",
    "257 3 ",
    "$ORIGIN ",
    "$TTL 1\n",
    ";;state=2",
    "TYPE43",
    "CLASS1",
    "( ",
    " )\n",
    "\\000",
    "ED25519",
    "\nzone ",
    "\nanchor ",
    "\nkey ",
    " next=",
    " newest=1:2",
    " clock=0:1",
    " id=",
    " tag=0",
    " state=add-pend",
    " state=valid",
    " state=missing",
    " state=revoked",
    " state=removed",
    " since=0",
    " since=2026-11-29T00:00:00Z",
    " held=",
    " need=",
    " expiration=",
    " gap=true",
    " by=1",
    "\nend lines=",
    " until ",
];

/// Files as programs and operators write them, a state as the server writes it, negative anchors.
pub fn seeds() -> Vec<Vec<u8>> {
    let short = BASE64.encode(&[7; 32]);
    let operators = format!(
        "; of an operator\n$ORIGIN b.\nexample. 3600 IN DNSKEY 257 3 ED25519 ( {short} ) ; all\n\
         @ IN DNSKEY 385 3 15 {short}\nc DS 20326 8 2\n \
         E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n\\000\\@.x. TYPE43 1 15 1 {}\n",
        "00".repeat(20)
    );
    let unbound = format!(
        "; autotrust trust anchor file\n;;id: . 1\n.\t60\tIN\tDNSKEY\t257 3 15 {short} ;{{id = 1 (ksk)}} \
         ;;state=2 [  VALID  ] \
         ;;count=0\n.\t60\tIN\tDNSKEY\t257 3 15 {} ;;state=1 [ ADDPEND ]\n",
        BASE64.encode(&[8; 32])
    );
    let state = Saved::text(3, zones().iter());
    let piece = |kind: u8, text: &str| [&[kind], text.as_bytes()].concat();
    vec![
        piece(FILE, ROOT_KEY),
        piece(FILE_OF_CURRENT, &operators),
        piece(FILE_OF_CURRENT, &unbound),
        piece(STATE, &state),
        piece(STATE_WITH_SUMS, &state),
        piece(STATE_WITH_SUMS, &Saved::text(0, [].iter())),
        piece(KINDS - 1, "broken.example until 2027-01-31T01:00:00+01:00"),
    ]
}

/// The state of a rollover of the root, and of a zone of which nothing was seen.
fn zones() -> Vec<SavedZone> {
    let ds = |anchor: TrustAnchor| anchor.data;
    let key = |id: u32, rdata: Box<[u8]>, state: State| {
        let pending =
            Pending { need: 2_592_000, expiration: NOW.wall + 86_400, has_gap: true, by: vec![1, 2] };
        let pending = (state == State::AddPend).then_some(pending);
        Key { id, rdata, state, since: NOW.wall, held: 5, pending }
    };
    let small = |octet: u8| [&[1, 1, 3, 15][..], &[octet; 32]].concat().into();
    let root = SavedZone {
        zone: [0].into(),
        configured: ::anchors::anchor::root().into_iter().map(ds).collect(),
        keys: vec![
            key(1, root_key(0), State::Valid),
            key(2, small(2), State::Missing),
            key(3, small(3), State::AddPend),
            key(4, small(4), State::Revoked),
            key(5, small(5), State::Removed),
        ],
        newest: Some((NOW.wall - 86_400, NOW.wall + 86_400)),
        clock: Some(NOW.steady),
        next_id: 6,
    };
    vec![root, SavedZone { configured: vec![Data::Dnskey(small(6))], ..SavedZone::new(b"\x03a.b\0") }]
}
