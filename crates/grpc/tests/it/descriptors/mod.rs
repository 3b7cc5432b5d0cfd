//! Tests of the idempotency levels in descriptor sets: of protoc, and of bytes that are no set.

mod any;

use proptest::collection::vec;
use proptest::prelude::*;
use reattempt_grpc::{DescriptorSet, DescriptorSetError, IdempotencyLevel, Malformed};

/// Made by protoc 3.21 from `shop.proto` and `plain.proto`.
const SHOP: &[u8] = include_bytes!("shop.binpb");

use IdempotencyLevel::{Idempotent, NoSideEffects};

/// Returns a field with bytes.
fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let mut length = bytes.len();
    let mut written = vec![number << 3 | 2];
    while length >= 0x80 {
        written.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    written.push(u8::try_from(length).unwrap());
    written.extend(bytes);
    written
}

/// Returns the options of a method with this level. Field 34 has a tag of two bytes.
fn options(level: u8) -> Vec<u8> {
    field(4, [0x90, 0x02, level])
}

/// Returns a method with these options.
fn method(name: &str, options: &[u8]) -> Vec<u8> {
    field(2, [&field(1, name)[..], options].concat())
}

/// Returns a set with one file of one service.
fn set(package: &str, service: &str, methods: &[u8]) -> Vec<u8> {
    let service = field(6, [&field(1, service)[..], methods].concat());
    field(1, [&field(2, package)[..], &service].concat())
}

#[test]
fn set_of_protoc_has_each_level() {
    let set = DescriptorSet::parse(SHOP).unwrap();
    let levels = [
        ("/Clock/Read", NoSideEffects),
        ("/shop.v1.Catalog/Find", NoSideEffects),
        ("/shop.v1.Catalog/Watch", NoSideEffects),
        ("/shop.v1.Orders/Cancel", Idempotent),
    ];
    assert_eq!(set.levels().collect::<Vec<_>>(), levels);
    for unknown in
        ["/shop.v1.Orders/Place", "/shop.v1.Orders/Amend", "/shop.v1.Orders/Return", "shop.v1.Catalog/Find", ""]
    {
        assert_eq!(set.level(unknown), None, "{unknown}");
    }
    assert_eq!(
        format!("{set:?}"),
        "DescriptorSet {\"/Clock/Read\": NoSideEffects, \"/shop.v1.Catalog/Find\": NoSideEffects, \
         \"/shop.v1.Catalog/Watch\": NoSideEffects, \"/shop.v1.Orders/Cancel\": Idempotent}"
    );
}

#[test]
fn joined_sets_are_one() {
    let joined = [SHOP, &set("bank", "Accounts", &method("Read", &options(1))), SHOP].concat();
    let set = DescriptorSet::parse(&joined).unwrap();
    assert_eq!((set.levels().count(), set.level("/bank.Accounts/Read")), (5, Some(NoSideEffects)));
}

#[test]
fn last_option_counts() {
    let level = |options: &[u8]| {
        let set = set("a", "B", &method("C", options));
        DescriptorSet::parse(&set).unwrap().level("/a.B/C")
    };
    assert_eq!(level(&[]), None);
    assert_eq!(level(&[options(1), options(2)].concat()), Some(Idempotent));
    assert_eq!(level(&[options(2), options(0)].concat()), None);
    assert_eq!(level(&[options(2), options(3)].concat()), None, "a level that is not defined yet");
    assert_eq!(level(&[options(2), field(4, [])].concat()), Some(Idempotent), "other options follow");
}

#[test]
fn package_may_follow_services() {
    let service = field(6, [field(1, "B"), method("C", &options(1))].concat());
    let bytes = field(1, [service, field(2, "late")].concat());
    assert_eq!(DescriptorSet::parse(&bytes).unwrap().level("/late.B/C"), Some(NoSideEffects));
}

#[test]
fn contradiction_is_an_error() {
    for (first, second) in [(1, 2), (0, 1), (2, 0)] {
        let methods = [method("C", &options(first)), method("C", &options(second))].concat();
        let error = DescriptorSet::parse(&set("a", "B", &methods)).unwrap_err();
        assert_eq!(error, DescriptorSetError::Contradiction { path: "/a.B/C".into() });
        assert_eq!(error.to_string(), "\"/a.B/C\" is described twice, with different idempotency levels");
    }
}

#[test]
fn malformed_bytes_have_a_position() {
    let nested = [&[0x0b; 101][..], &[0x0c; 101]].concat();
    for (bytes, position, reason) in [
        (&b"{}"[..], 2, Malformed::Truncated),
        (&[0x0a, 5, 1], 2, Malformed::Truncated),
        (&[0x0a], 1, Malformed::Truncated),
        (&[0x12, 0xff], 2, Malformed::Truncated),
        (&[0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], 1, Malformed::Varint),
        (&[0x10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0], 1, Malformed::Varint),
        (&[0x02, 0], 0, Malformed::Tag),
        (&[0x0e], 0, Malformed::Tag),
        (&[0xf8, 0xff, 0xff, 0xff, 0x7f, 0], 0, Malformed::Tag),
        (&[0x0c], 0, Malformed::Tag),
        (&[0x0b, 0x14], 1, Malformed::Group),
        (&nested, 100, Malformed::Group),
        (&[0x0b, 0x10, 1], 3, Malformed::Truncated),
        (&[0x08, 1], 0, Malformed::Kind),
        (&[0x0b, 0x0c], 0, Malformed::Kind),
        (&field(1, field(2, b"\xff")), 4, Malformed::Text),
    ] {
        let expected = DescriptorSetError::Malformed { position, reason };
        assert_eq!(DescriptorSet::parse(bytes).unwrap_err(), expected, "{bytes:x?}");
    }
    let error = DescriptorSet::parse(&SHOP[..SHOP.len() - 1]).unwrap_err();
    assert!(error.to_string().starts_with("the bytes are not a FileDescriptorSet: at byte "), "{error}");
}

#[test]
fn bytes_without_a_file_are_an_error() {
    for bytes in [&[][..], &[0x10, 1], &[0x13, 0x14]] {
        assert_eq!(DescriptorSet::parse(bytes).unwrap_err(), DescriptorSetError::NoFile, "{bytes:x?}");
    }
}

/// Many short methods in a package with a long name would need far more memory than their bytes.
#[test]
fn long_paths_are_bounded() {
    let methods = (0..100_u8).map(|number| method(&number.to_string(), &[])).collect::<Vec<_>>().concat();
    let bytes = set(&"p".repeat(200_000), "B", &methods);
    assert_eq!(DescriptorSet::parse(&bytes).unwrap_err(), DescriptorSetError::TooLarge);
    assert!(DescriptorSet::parse(&set(&"p".repeat(100_000), "B", &methods)).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(data in vec(any::<u8>(), 0..300)) {
        any::check(&data);
    }

    /// One changed byte of a set gets deeper into it than any bytes.
    #[test]
    fn changed_set_is_read_or_refused(place in 0..SHOP.len(), byte in any::<u8>(), end in 0..=SHOP.len()) {
        let mut bytes = SHOP.to_vec();
        bytes[place] = byte;
        bytes.truncate(end);
        any::check(&bytes);
    }
}
