//! Whatever a text is, it gives a service config or errors with paths.

use reattempt_grpc::{ServiceConfig, ServiceConfigReader};

/// Reads a text in both modes, and inspects the results.
pub(crate) fn look(text: &str) {
    let readers = [ServiceConfigReader::default(), ServiceConfig::lenient()];
    let [strict, lenient] = readers.map(|reader| reader.parse(text));
    for result in [&strict, &lenient] {
        match result {
            Ok(config) => {
                for path in ["", "/", "/a/b", "/service/method", "/ä/ö/", text] {
                    config.for_method(path);
                }
            }
            Err(errors) => {
                assert!(errors.iter().count() > 0);
                assert_eq!(errors.to_string().lines().count(), errors.iter().count(), "{errors}");
                assert!(errors.iter().all(|error| !error.reason().is_empty()));
            }
        }
    }
    if let Ok(config) = strict {
        assert_eq!(lenient.unwrap(), config, "the lenient reader takes more, and nothing otherwise");
    }
    let bytes = ServiceConfig::read(text.as_bytes());
    assert_eq!(bytes.is_ok(), ServiceConfig::parse(text).is_ok());
}
