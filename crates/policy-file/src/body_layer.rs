//! The layer that reads response bodies as a file describes.

use reattempt::PeekBodyLayer;

use crate::PolicyFile;

impl PolicyFile {
    /// Creates the layer that reads response bodies as the file's `[[bodies]]` describe. It belongs inside the file's
    /// other layer, directly around the client. The conditions of a section are compared with the request that is sent.
    ///
    /// It is the layer of [`PolicyFileOptions::bodies`](crate::PolicyFileOptions::bodies), or a default one without
    /// that option. Responses that no section covers have its settings.
    ///
    /// ```no_run
    /// use http_body_util::Full;
    /// use hyper_util::client::legacy::Client;
    /// use hyper_util::rt::TokioExecutor;
    /// use reattempt::PeekBodyLayer;
    /// use reattempt_policy_file::PolicyFileOptions;
    /// use tower::ServiceBuilder;
    ///
    /// # fn main() -> Result<(), reattempt_policy_file::PolicyFileError> {
    /// // The file has: [[bodies]] destination = "https://dynamodb.us-east-1.amazonaws.com", rules = ["aws-json"]
    /// let policies = PolicyFileOptions::new().bodies(PeekBodyLayer::new()).load("policies.toml")?;
    /// let client = ServiceBuilder::new()
    ///     .layer(policies.layer())
    ///     .layer(policies.body_layer())
    ///     .service(Client::builder(TokioExecutor::new()).build_http());
    /// # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
    /// # Ok(())
    /// # }
    /// ```
    pub fn body_layer(&self) -> PeekBodyLayer {
        let file = self.clone();
        self.bodies().program.clone().choose(move |request| file.bodies().layer_of(request))
    }
}
