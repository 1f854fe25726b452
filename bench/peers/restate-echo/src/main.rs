//! A service of Restate that answers with its input, in the form its SDK documents: one struct, one handler.
//!
//! The input is taken as bytes and given back as they are, so that Restate is measured and not a parser of JSON.

use std::convert::Infallible;

use restate_sdk::prelude::*;

struct Echo;

#[restate_sdk::service]
impl Echo {
    #[handler]
    async fn echo(&self, _context: Context<'_>, input: bytes::Bytes) -> Result<bytes::Bytes, Infallible> {
        Ok(input)
    }
}

#[tokio::main]
async fn main() {
    let address = std::env::args().nth(1).expect("usage: restate-echo ADDRESS");
    let address = address.parse().expect("an address is IP:PORT");
    HttpServer::new(Endpoint::builder().bind(Echo).build()).listen_and_serve(address).await;
}
