//! TLS to an agent, with the certificates that the system trusts.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::ConfigVerifierExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// TLS to one host; `None` if the system has no certificates that can be read.
pub(crate) struct Tls(pub(crate) Option<(TlsConnector, ServerName<'static>)>);

impl Tls {
    pub(crate) fn new(host: &str) -> Tls {
        // Installing it twice does no harm: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let name = ServerName::try_from(host.to_owned());
        let config = ClientConfig::with_platform_verifier().inspect_err(|error| {
            tracing::error!(%error, "the system has no certificates that can be read; agents behind https cannot be reached");
        });
        let connector = config.map(|mut config| {
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            TlsConnector::from(Arc::new(config))
        });
        Tls(connector.ok().zip(name.ok()))
    }

    /// Fails without certificates: an agent whose identity cannot be checked is not even connected to.
    pub(crate) fn ready(&self) -> io::Result<()> {
        if self.0.is_some() { Ok(()) } else { Err(io::Error::other("there are no certificates to know it by")) }
    }

    pub(crate) async fn connect(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.ready()?;
        let (connector, name) = self.0.as_ref().ok_or(io::ErrorKind::NotFound)?;
        connector.connect(name.clone(), socket).await
    }
}
