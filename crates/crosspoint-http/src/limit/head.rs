//! How long the head of a request may be. The HTTP library has limits of its own beyond these, and answers for itself.

use axum::http::{HeaderMap, Uri};
use crosspoint_exchange::refusal::{Limit, Refusal};

/// Bytes that stand between the name of a header and its value, and after it.
const AROUND_BYTES: usize = ": \r\n".len();

/// Returns why a head is too long, if it is.
pub(crate) fn too_long(
    uri: &Uri,
    headers: &HeaderMap,
    url_bytes_max: usize,
    header_bytes_max: usize,
) -> Option<Refusal> {
    if url_bytes(uri) > url_bytes_max {
        return Some(Refusal::head_too_long("address", Limit::UrlBytes, url_bytes_max));
    }
    let header_bytes: usize =
        headers.iter().map(|(name, value)| name.as_str().len() + value.len() + AROUND_BYTES).sum();
    (header_bytes > header_bytes_max).then(|| Refusal::head_too_long("head", Limit::HeaderBytes, header_bytes_max))
}

/// The length of an address in the request line. Most have only a path and a query.
fn url_bytes(uri: &Uri) -> usize {
    let scheme = uri.scheme_str().map_or(0, |scheme| scheme.len() + "://".len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    scheme + authority + uri.path_and_query().map_or(0, |path| path.as_str().len())
}

#[cfg(test)]
mod tests {
    use axum::http::header::HeaderValue;

    use super::*;

    #[test]
    fn a_head_that_just_fits_is_fine() {
        let uri: Uri = "http://localhost:7420/a?b=c".parse().expect("an address");
        assert_eq!(url_bytes(&uri), "http://localhost:7420/a?b=c".len());
        let headers = HeaderMap::from_iter([(axum::http::header::HOST, HeaderValue::from_static("localhost"))]);
        let bytes = "host: localhost\r\n".len();
        let over = |url, header| too_long(&uri, &headers, url, header).and_then(|refusal| refusal.limit());
        assert_eq!(over(27, bytes), None);
        assert_eq!((over(26, bytes), over(27, bytes - 1)), (Some(Limit::UrlBytes), Some(Limit::HeaderBytes)));
    }
}
