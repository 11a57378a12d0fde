//! Exchange of offer and answer by HTTP/1.1 in the clear, and the addresses that an answer names.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::Transport;
use crate::Failure;

const ANSWER_DEADLINE: Duration = Duration::from_secs(20);
/// Most bytes of a response.
const MAX_RESPONSE: u64 = 1 << 20;

/// Reason why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// The service rejected the offer.
    #[error("rejected: {status} {body}")]
    Rejected {
        status: u16,
        /// Header lines, names in lower case.
        head: String,
        body: String,
    },
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The session as the service names it.
#[derive(Clone, Debug)]
pub struct Resource {
    pub url: String,
    bearer: Option<String>,
}

impl Resource {
    /// Ends the session by DELETE; returns the status.
    pub async fn delete(&self) -> Result<u16, Failure> {
        let response = request("DELETE", &self.url, self.bearer.as_deref(), "").await?;
        Ok(response.status)
    }
}

/// Posts an offer; returns the answer and the session.
pub(super) async fn post(
    url: &str,
    bearer: Option<&str>,
    offer: &str,
) -> Result<(String, Resource), OfferError> {
    let response = request("POST", url, bearer, offer).await?;
    if response.status != 201 {
        return Err(OfferError::Rejected {
            status: response.status,
            head: response.head,
            body: response.body,
        });
    }
    let location = response
        .header("location")
        .ok_or_else(|| Failure::from("the answer has no Location"))?;
    let resource = Resource {
        url: absolute(url, location)?,
        bearer: bearer.map(str::to_owned),
    };
    Ok((response.body, resource))
}

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(found, value)| (found == name).then_some(value.trim()))
    }
}

/// Makes a request on a connection of its own.
async fn request(
    method: &str,
    url: &str,
    bearer: Option<&str>,
    body: &str,
) -> Result<Response, Failure> {
    let (address, path) = parts(url)?;
    let authorization = bearer.map_or(String::new(), |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/sdp\r\n\
         {authorization}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let exchange = async {
        let mut socket = TcpStream::connect(address).await?;
        socket.write_all(request.as_bytes()).await?;
        let mut response = Vec::new();
        socket.take(MAX_RESPONSE).read_to_end(&mut response).await?;
        Ok::<_, std::io::Error>(response)
    };
    let response = timeout(ANSWER_DEADLINE, exchange).await??;
    let response = String::from_utf8(response)?;
    let (head, body) = response
        .split_once("\r\n\r\n")
        .ok_or_else(|| format!("{method} {url}: no HTTP response but {response:?}"))?;
    let (status_line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = status_line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| format!("{method} {url}: no status in {status_line:?}"))?;
    // Names in lower case, values as they came.
    let fields = fields.lines().filter_map(|line| line.split_once(':'));
    let head: String = fields
        .map(|(name, value)| format!("{}:{value}\n", name.to_ascii_lowercase()))
        .collect();
    if head.contains("transfer-encoding:") {
        return Err(format!("{method} {url}: a body in chunks is not read here").into());
    }
    Ok(Response {
        status,
        head,
        body: body.to_owned(),
    })
}

/// Splits `http://address/path`.
fn parts(url: &str) -> Result<(&str, &str), Failure> {
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| format!("expected http://…, got {url}"))?;
    let at = rest.find('/').unwrap_or(rest.len());
    let (address, path) = rest.split_at(at);
    Ok((address, if path.is_empty() { "/" } else { path }))
}

/// The address that `location` in an answer of `url` means.
fn absolute(url: &str, location: &str) -> Result<String, Failure> {
    if location.starts_with("http://") {
        return Ok(location.to_owned());
    }
    Ok(format!("http://{}{location}", parts(url)?.0))
}

/// The first candidate of a transport (RFC 8839, section 5.1).
pub(super) fn candidate(answer: &str, transport: Transport) -> Option<SocketAddr> {
    let wanted = match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
    };
    answer.lines().find_map(|line| {
        let fields = line.trim_end().strip_prefix("a=candidate:")?;
        let mut fields = fields.split(' ').skip(2);
        let found = fields.next()?;
        let address = fields.nth(1)?.parse().ok()?;
        let port = fields.next()?.parse().ok()?;
        found
            .eq_ignore_ascii_case(wanted)
            .then(|| SocketAddr::new(address, port))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_found_by_transport() {
        let answer = "v=0\r\na=candidate:1 1 udp 2130706175 192.0.2.1 8189 typ host\r\n\
                      a=candidate:2 1 TCP 1671430143 ::1 8190 typ host tcptype passive\r\n";
        assert_eq!(
            candidate(answer, Transport::Udp),
            Some(([192, 0, 2, 1], 8189).into())
        );
        assert_eq!(candidate(answer, Transport::Tcp), "[::1]:8190".parse().ok());
    }

    #[test]
    fn locations_are_completed() {
        let url = "http://127.0.0.1:80/live/v1/x/whep";
        assert_eq!(absolute(url, "/s/1").unwrap(), "http://127.0.0.1:80/s/1");
        assert_eq!(absolute(url, "http://a/s/1").unwrap(), "http://a/s/1");
    }
}
