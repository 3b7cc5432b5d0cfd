//! Generates client and server of the echo service that tests and examples call, one method of each
//! kind, from what is written here: without a `.proto` file, and so without a compiler for them.

use tonic_build::manual::{Builder, Method, Service};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let method = |name, route| {
        Method::builder()
            .name(name)
            .route_name(route)
            .input_type("super::Text")
            .output_type("super::Text")
            .codec_path("tonic_prost::ProstCodec")
    };
    let echo = Service::builder()
        .name("Echo")
        .package("reattempt.testing")
        .method(method("say", "Say").build())
        .method(method("gather", "Gather").client_streaming().build())
        .method(method("repeat", "Repeat").server_streaming().build())
        .method(method("talk", "Talk").client_streaming().server_streaming().build())
        .build();
    Builder::new().build_transport(false).compile(&[echo]);
}
