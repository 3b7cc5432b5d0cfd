//! The idempotency levels in a `FileDescriptorSet`, as protoc, tonic-build and buf write it.

mod error;
mod wire;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

pub use error::{DescriptorSetError, Malformed};
use wire::{WireField, WireReader, WireValue};

/// The most bytes that the paths of all methods may have together. A short service in a package with a long name has a
/// long path, so the paths could otherwise be far longer than the input.
const MOST_BYTES_OF_PATHS: usize = 16 << 20;

/// The most characters of a path in an error.
const MOST_CHARACTERS_SHOWN: usize = 200;

/// The `idempotency_level` of a method, in its options in a `.proto` file.
///
/// Both levels allow a retry. Only the first one states that the method changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdempotencyLevel {
    /// The method changes nothing, so it may also run several times at the same time (`NO_SIDE_EFFECTS`).
    NoSideEffects,
    /// The method may run twice, and the second time changes nothing more (`IDEMPOTENT`).
    Idempotent,
}

/// The methods in a `FileDescriptorSet`, with their idempotency levels.
///
/// tonic-build writes the set with `file_descriptor_set_path`, protoc with `--descriptor_set_out`, and buf with
/// `buf build -o set.binpb`. Sets that are joined end to end are one set.
///
/// ```
/// use reattempt_grpc::{DescriptorSet, IdempotencyLevel};
/// # const SHOP: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/descriptors/shop.binpb"));
///
/// let set = DescriptorSet::parse(SHOP)?;
/// assert_eq!(set.level("/shop.v1.Catalog/Find"), Some(IdempotencyLevel::NoSideEffects));
/// assert_eq!(set.level("/shop.v1.Orders/Cancel"), Some(IdempotencyLevel::Idempotent));
/// assert_eq!(set.level("/shop.v1.Orders/Place"), None);
/// # Ok::<(), reattempt_grpc::DescriptorSetError>(())
/// ```
#[derive(Clone)]
pub struct DescriptorSet {
    /// All methods by their paths. A method without a level is kept, so that a contradiction is detected.
    methods: Arc<BTreeMap<Box<str>, Option<IdempotencyLevel>>>,
}

impl DescriptorSet {
    /// Reads a set. The bytes may be hostile: time and memory are bounded by their number.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are malformed, contain no file, describe a method twice with different levels, or
    /// have methods whose paths are longer than 16 MiB together.
    pub fn parse(bytes: &[u8]) -> Result<Self, DescriptorSetError> {
        let (mut set, mut methods, mut files) = (WireReader::new(bytes), Methods::default(), 0usize);
        while let Some(field) = set.next_field()? {
            // FileDescriptorSet.file
            if let Some(file) = message(&field, 1)? {
                files = files.saturating_add(1);
                methods.read_file(file)?;
            }
        }
        match files {
            0 => Err(DescriptorSetError::NoFile),
            _ => Ok(Self { methods: Arc::new(methods.by_path) }),
        }
    }

    /// Returns the level of a method, by its path `/package.Service/Method`. Returns `None` if the method is unknown or
    /// has no level.
    pub fn level(&self, path: &str) -> Option<IdempotencyLevel> {
        self.methods.get(path).copied().flatten()
    }

    /// Returns the paths of all methods that have a level, in alphabetical order.
    pub fn levels(&self) -> impl Iterator<Item = (&str, IdempotencyLevel)> {
        self.methods.iter().filter_map(|(path, level)| Some((&**path, (*level)?)))
    }
}

impl fmt::Debug for DescriptorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DescriptorSet ")?;
        f.debug_map().entries(self.levels()).finish()
    }
}

/// The methods read so far.
#[derive(Default)]
struct Methods {
    by_path: BTreeMap<Box<str>, Option<IdempotencyLevel>>,
    bytes: usize,
}

impl Methods {
    /// Reads a `FileDescriptorProto`. Its package may come after its services, so it is read first.
    fn read_file(&mut self, file: WireReader<'_>) -> Result<(), DescriptorSetError> {
        let package = last_text(file, 2)?;
        let mut fields = file;
        while let Some(field) = fields.next_field()? {
            if let Some(service) = message(&field, 6)? {
                self.read_service(package, service)?;
            }
        }
        Ok(())
    }

    /// Reads a `ServiceDescriptorProto`.
    fn read_service(&mut self, package: &str, service: WireReader<'_>) -> Result<(), DescriptorSetError> {
        let name = last_text(service, 1)?;
        let mut fields = service;
        while let Some(field) = fields.next_field()? {
            if let Some(method) = message(&field, 2)? {
                self.add((package, name, last_text(method, 1)?), level_of_method(method)?)?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        (package, service, method): (&str, &str, &str),
        level: Option<IdempotencyLevel>,
    ) -> Result<(), DescriptorSetError> {
        let dot = if package.is_empty() { "" } else { "." };
        let parts = [package.len(), service.len(), method.len(), 3];
        self.bytes = parts.iter().fold(self.bytes, |sum, part| sum.saturating_add(*part));
        if self.bytes > MOST_BYTES_OF_PATHS {
            return Err(DescriptorSetError::TooLarge);
        }
        match self.by_path.entry(format!("/{package}{dot}{service}/{method}").into()) {
            Entry::Vacant(entry) => drop(entry.insert(level)),
            Entry::Occupied(entry) if *entry.get() == level => {}
            Entry::Occupied(entry) => {
                let path = entry.key().chars().take(MOST_CHARACTERS_SHOWN).collect();
                return Err(DescriptorSetError::Contradiction { path });
            }
        }
        Ok(())
    }
}

/// Returns the level in the options of a `MethodDescriptorProto`. If there are several, the last one counts.
fn level_of_method(method: WireReader<'_>) -> Result<Option<IdempotencyLevel>, DescriptorSetError> {
    let (mut level, mut fields) = (None, method);
    while let Some(field) = fields.next_field()? {
        let Some(mut options) = message(&field, 4)? else { continue };
        while let Some(option) = options.next_field()? {
            match (option.number, option.value) {
                (34, WireValue::Number(1)) => level = Some(IdempotencyLevel::NoSideEffects),
                (34, WireValue::Number(2)) => level = Some(IdempotencyLevel::Idempotent),
                // IDEMPOTENCY_UNKNOWN, or a level that a later protobuf may define.
                (34, WireValue::Number(_)) => level = None,
                _ => {}
            }
        }
    }
    Ok(level)
}

/// Returns the message in the field with this number, or `None` if the field has another number.
fn message<'a>(field: &WireField<'a>, number: u32) -> Result<Option<WireReader<'a>>, DescriptorSetError> {
    match field.value {
        _ if field.number != number => Ok(None),
        WireValue::Bytes(message) => Ok(Some(message)),
        WireValue::Number(_) | WireValue::Other => Err(Malformed::Kind.at(field.position)),
    }
}

/// Returns the text in the last field with this number, or an empty one.
fn last_text(mut message: WireReader<'_>, number: u32) -> Result<&str, DescriptorSetError> {
    let mut text = "";
    while let Some(field) = message.next_field()? {
        if let Some(found) = self::message(&field, number)? {
            text = found.text()?;
        }
    }
    Ok(text)
}
