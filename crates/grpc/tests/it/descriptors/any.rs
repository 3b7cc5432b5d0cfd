//! The properties of any bytes as a descriptor set. The fuzz target `descriptors` in `fuzz/` runs the same function.

use reattempt_grpc::{DescriptorSet, DescriptorSetError};

/// Checks that the bytes are a set whose paths can be looked up, or give an error inside them.
pub(crate) fn check(bytes: &[u8]) {
    match DescriptorSet::parse(bytes) {
        Ok(set) => {
            for (path, level) in set.levels() {
                assert_eq!(set.level(path), Some(level));
                assert!(path.starts_with('/') && path.len() <= bytes.len() + 3, "{path:?}");
            }
            // A set that is read twice contradicts itself nowhere.
            let twice = DescriptorSet::parse(&[bytes, bytes].concat());
            assert!(twice.is_ok_and(|twice| twice.levels().eq(set.levels())));
        }
        Err(DescriptorSetError::Malformed { position, .. }) => assert!(position <= bytes.len()),
        Err(_) => {}
    }
}
