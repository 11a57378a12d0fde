//! Every spelling of an address that must not be reached, through the whole connector, beside listeners that count.
//!
//! The listeners are bound to all addresses of the machine, so that 127.0.0.2 and 0.0.0.0 would reach them too.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpSocket, TcpStream},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    super::{Error, Outbound, OutboundSettings, Reason, Rejection, Sink},
    Names, SOON, open, post,
    receiver::{OK, Receiver, drain, read_request},
};

/// Verdict on a spelling under the default settings.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Means {
    /// A loopback address of the listeners: refused, and reached once loopback is allowed.
    Here,
    /// Refused as this, also when loopback is allowed.
    Refused(Reason),
    /// Not a URL that is taken.
    Fault,
    /// A name that does not resolve.
    Unknown,
}

use Means::{Fault, Here, Unknown};
use Reason::*;

const fn refused(reason: Reason) -> Means {
    Means::Refused(reason)
}

/// `PORT` is replaced by the listeners' port.
const SPELLINGS: &[(&str, Means)] = &[
    // IPv4: decimal, octal, hexadecimal, with fewer parts, with dots at the end.
    ("http://127.0.0.1:PORT/", Here),
    ("http://127.0.0.2:PORT/", Here),
    ("http://127.254.254.254:PORT/", Here),
    ("http://127.1:PORT/", Here),
    ("http://127.0.1:PORT/", Here),
    ("http://127.0.257:PORT/", Here),
    ("http://2130706433:PORT/", Here),
    ("http://2130706433.:PORT/", Here),
    ("http://0x7f000001:PORT/", Here),
    ("http://0X7F000001:PORT/", Here),
    ("http://0x7f.1:PORT/", Here),
    ("http://0x7f.0x0.0x0.0x1:PORT/", Here),
    ("http://0x0000000000007f.0.0.1:PORT/", Here),
    ("http://127.0.0.0x1:PORT/", Here),
    ("http://127.0x.0.1:PORT/", Here),
    ("http://0177.0.0.1:PORT/", Here),
    ("http://0177.1:PORT/", Here),
    ("http://0177.0000.0000.0001:PORT/", Here),
    ("http://00000177.0.0.1:PORT/", Here),
    ("http://017700000001:PORT/", Here),
    ("http://0x7f.0.01:PORT/", Here),
    ("http://127.0.0.1.:PORT/", Here),
    ("http://127.1.:PORT/", Here),
    ("http://127.0.0.1..:PORT/", Fault),
    ("http://127..0.1:PORT/", Fault),
    (".127.0.0.1:PORT/", Fault),
    ("http://.127.0.0.1:PORT/", Fault),
    ("http://127.0.0.256:PORT/", Fault),
    ("http://127.0.0.08:PORT/", Fault),
    ("http://0x100000000:PORT/", Fault),
    ("http://4294967296:PORT/", Fault),
    ("http://127.0.0.1.1:PORT/", Fault),
    ("http://127.16777216:PORT/", Fault),
    ("http://0xg.1:PORT/", Fault),
    ("http://-127.0.0.1:PORT/", Fault),
    ("http://+127.0.0.1:PORT/", Fault),
    ("http://127.0.0.1e0:PORT/", Unknown),
    // Other digits, dots and letters (UTS 46), percent-encoded ones, and characters that vanish.
    ("http://１２７.０.０.１:PORT/", Here),
    ("http://①②⑦.⓪.⓪.①:PORT/", Here),
    ("http://𝟏𝟐𝟕.𝟎.𝟎.𝟏:PORT/", Here),
    ("http://¹²⁷.⁰.⁰.¹:PORT/", Here),
    ("http://127。0。0。1:PORT/", Here),
    ("http://127．0．0．1:PORT/", Here),
    ("http://127｡0｡0｡1:PORT/", Here),
    ("http://０ｘ７ｆ．１:PORT/", Here),
    ("http://127.0.0.\u{AD}1:PORT/", Here),
    ("http://127.\u{200B}0.0.1:PORT/", Here),
    ("http://127.0.\u{2060}0.1:PORT/", Here),
    ("http://\u{FEFF}127.0.0.1:PORT/", Here),
    ("http://%31%32%37.0.0.1:PORT/", Here),
    ("http://127%2e0%2E0%2e1:PORT/", Here),
    ("http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1:PORT/", Here),
    ("http://0x7%66.1:PORT/", Here),
    ("http://127.0.0.1%00:PORT/", Fault),
    ("http://127.0.0.1%20:PORT/", Fault),
    ("http://127.0.0.1%09:PORT/", Fault),
    ("http://127.0.0.1%0d%0a:PORT/", Fault),
    ("http://127.0.0.1%2f:PORT/", Fault),
    ("http://127.0.0.1%23:PORT/", Fault),
    ("http://127.0.0.1%3aPORT/", Fault),
    ("http://public.test%40127.0.0.1:PORT/", Fault),
    ("http://%2531%2532%2537.0.0.1:PORT/", Fault),
    ("http://%zz.0.0.1:PORT/", Fault),
    // Schemes, slashes, ports, queries and fragments.
    ("HTTP://127.0.0.1:PORT/", Here),
    ("hTtP://127.0.0.1:PORT", Here),
    ("http:127.0.0.1:PORT/", Here),
    ("http:/127.0.0.1:PORT/", Here),
    ("http:////127.0.0.1:PORT/", Here),
    ("http://127.0.0.1:0000PORT/", Here),
    ("http://127.0.0.1:PORT?to=http://public.test/", Here),
    ("http://127.0.0.1:PORT#@public.test/", Here),
    ("http://127.0.0.1:PORT/..//../@public.test", Here),
    ("https://127.0.0.1:PORT/", Here),
    ("https://2130706433:PORT/", Here),
    ("http://127.0.0.1:0/", Fault),
    ("http://127.0.0.1:65536/", Fault),
    ("http://127.0.0.1:-PORT/", Fault),
    ("http://127.0.0.1:+PORT/", Fault),
    ("http://127.0.0.1:PORT:80/", Fault),
    ("http://127.0.0.1:８０/", Fault),
    ("http://:PORT/", Fault),
    ("http://", Fault),
    ("http:", Fault),
    ("", Fault),
    ("/", Fault),
    ("127.0.0.1:PORT/", Fault),
    ("//127.0.0.1:PORT/", Fault),
    ("localhost:PORT/", Fault),
    ("ftp://127.0.0.1:PORT/", Fault),
    ("ws://127.0.0.1:PORT/", Fault),
    ("wss://127.0.0.1:PORT/", Fault),
    ("gopher://127.0.0.1:PORT/_x", Fault),
    ("dict://127.0.0.1:PORT/x", Fault),
    ("tcp://127.0.0.1:PORT/", Fault),
    ("unix:///run/docker.sock", Fault),
    ("http+unix://%2Frun%2Fdocker.sock/", Fault),
    ("file:///etc/passwd", Fault),
    ("file://127.0.0.1/etc/passwd", Fault),
    ("data:text/plain,x", Fault),
    ("javascript:fetch('http://127.0.0.1:PORT/')", Fault),
    ("jar:http://127.0.0.1:PORT/!/", Fault),
    ("blob:http://127.0.0.1:PORT/x", Fault),
    ("view-source:http://127.0.0.1:PORT/", Fault),
    ("url:http://127.0.0.1:PORT/", Fault),
    // What parsers read differently.
    (" http://127.0.0.1:PORT/", Fault),
    ("http://127.0.0.1:PORT/ ", Fault),
    ("http://127.0.0.1 :PORT/", Fault),
    ("http://127.0.0.1:PORT /", Fault),
    ("ht\ttp://127.0.0.1:PORT/", Fault),
    ("http://127.0.\t0.1:PORT/", Fault),
    ("http://127.0.0.1\n:PORT/", Fault),
    ("http://127.0.0.1:PORT/\r\nHost: x", Fault),
    ("http://127.0.0.1:PORT/\u{0}", Fault),
    ("\u{1}http://127.0.0.1:PORT/", Fault),
    ("http://127.0.0.1\u{A0}:PORT/", Fault),
    ("http://127.0.0.1\u{3000}:PORT/", Fault),
    ("http:\\\\127.0.0.1:PORT\\", Fault),
    ("http://127.0.0.1:PORT\\@public.test/", Fault),
    ("http://public.test\\@127.0.0.1:PORT/", Fault),
    ("http://public.test\\.127.0.0.1:PORT/", Fault),
    ("http://127.0.0.1:PORT/\\public.test", Fault),
    ("http://<127.0.0.1>:PORT/", Fault),
    ("http://127.0.0.1|public.test:PORT/", Fault),
    ("http://127.0.0.1,public.test:PORT/", Unknown),
    // User information.
    ("http://me@127.0.0.1:PORT/", Fault),
    ("http://me:pass@127.0.0.1:PORT/", Fault),
    ("http://:pass@127.0.0.1:PORT/", Fault),
    ("http://public.test@127.0.0.1:PORT/", Fault),
    ("http://public.test:80@127.0.0.1:PORT/", Fault),
    ("http://127.0.0.1:PORT@public.test/", Fault),
    ("http://public.test@me@127.0.0.1:PORT/", Fault),
    ("http://%40@127.0.0.1:PORT/", Fault),
    ("http://[::1]@127.0.0.1:PORT/", Fault),
    ("http://@127.0.0.1:PORT/", Here),
    ("http://:@127.0.0.1:PORT/", Here),
    ("http://me:pass@localhost:PORT/", Fault),
    // IPv6.
    ("http://[::1]:PORT/", Here),
    ("http://[0:0:0:0:0:0:0:1]:PORT/", Here),
    (
        "http://[0000:0000:0000:0000:0000:0000:0000:0001]:PORT/",
        Here,
    ),
    ("http://[0::1]:PORT/", Here),
    ("http://[::0:1]:PORT/", Here),
    ("http://[::0.0.0.1]:PORT/", Here),
    ("http://%5B::1%5D:PORT/", Fault),
    ("http://[::1%25lo]:PORT/", Fault),
    ("http://[::1%lo]:PORT/", Fault),
    ("http://[fe80::1%25eth0]:PORT/", Fault),
    ("http://[fe80::1%2]:PORT/", Fault),
    ("http://::1:PORT/", Fault),
    ("http://[::1:PORT/", Fault),
    ("http://::1]:PORT/", Fault),
    ("http://[::1].:PORT/", Fault),
    ("http://[[::1]]:PORT/", Fault),
    ("http://[:::1]:PORT/", Fault),
    ("http://[::1::]:PORT/", Fault),
    ("http://[1:2:3:4:5:6:7:8:9]:PORT/", Fault),
    ("http://[::00001]:PORT/", Fault),
    ("http://[127.0.0.1]:PORT/", Fault),
    ("http://[localhost]:PORT/", Fault),
    ("http://[v1.x]:PORT/", Fault),
    ("http://[::127.0.0.01]:PORT/", Fault),
    ("http://[::０.0.0.1]:PORT/", Fault),
    // IPv4 inside of IPv6.
    ("http://[::ffff:127.0.0.1]:PORT/", Here),
    ("http://[::FFFF:7F00:1]:PORT/", Here),
    ("http://[0:0:0:0:0:ffff:127.0.0.2]:PORT/", Here),
    ("http://[::ffff:7f00:0001]:PORT/", Here),
    ("http://[::ffff:10.0.0.1]:PORT/", refused(Private)),
    ("http://[::ffff:0.0.0.0]:PORT/", refused(Unspecified)),
    ("http://[::ffff:169.254.169.254]/", refused(Metadata)),
    ("http://[::127.0.0.1]:PORT/", refused(Compatible)),
    ("http://[::7f00:1]:PORT/", refused(Compatible)),
    ("http://[::1.1.1.1]:PORT/", refused(Compatible)),
    ("http://[::2]:PORT/", refused(Compatible)),
    ("http://[::ffff:0:127.0.0.1]:PORT/", refused(Translated)),
    ("http://[64:ff9b::10.0.0.1]:PORT/", refused(Private)),
    ("http://[64:ff9b::a9fe:a9fe]/", refused(Metadata)),
    ("http://[64:ff9b::0.0.0.0]:PORT/", refused(Unspecified)),
    ("http://[64:ff9b:1::127.0.0.1]:PORT/", refused(LocalNat64)),
    ("http://[64:ff9b:1:7f00:0:100::]:PORT/", refused(LocalNat64)),
    ("http://[64:ff9b:1::1.1.1.1]:PORT/", refused(LocalNat64)),
    ("http://[64:ff9b:0:0:0:1:7f00:1]:PORT/", refused(Reserved)),
    ("http://[64:ff9b:2::7f00:1]:PORT/", refused(Reserved)),
    ("http://[2002:7f00:1::]:PORT/", refused(SixToFour)),
    ("http://[2002:7f00:0001::1]:PORT/", refused(SixToFour)),
    ("http://[2002:101:101::1]:PORT/", refused(SixToFour)),
    (
        "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]:PORT/",
        refused(Teredo),
    ),
    ("http://[2001::1]:PORT/", refused(Teredo)),
    ("http://[fe80::5efe:127.0.0.1]:PORT/", refused(LinkLocal)),
    ("http://[fe80::200:5efe:10.0.0.1]:PORT/", refused(LinkLocal)),
    ("http://[2600::5efe:10.0.0.1]:PORT/", refused(Private)),
    ("http://[2600::200:5efe:a9fe:a9fe]:PORT/", refused(Metadata)),
    // Whatever else is not global unicast.
    ("http://0:PORT/", refused(Unspecified)),
    ("http://0.0.0.0:PORT/", refused(Unspecified)),
    ("http://0x0:PORT/", refused(Unspecified)),
    ("http://00.0:PORT/", refused(Unspecified)),
    ("http://[::]:PORT/", refused(Unspecified)),
    ("http://[0:0::0:0]:PORT/", refused(Unspecified)),
    ("http://0.0.0.1:PORT/", refused(Protocol)),
    ("http://0.255.255.255:PORT/", refused(Protocol)),
    ("http://10.0.0.1:PORT/", refused(Private)),
    ("http://10.255.255.255:PORT/", refused(Private)),
    ("http://167772161:PORT/", refused(Private)),
    ("http://012.1:PORT/", refused(Private)),
    ("http://172.16.0.1:PORT/", refused(Private)),
    ("http://172.31.255.254:PORT/", refused(Private)),
    ("http://192.168.0.1:PORT/", refused(Private)),
    ("http://192.168.257:PORT/", refused(Private)),
    ("http://0xc0a80001:PORT/", refused(Private)),
    ("http://100.64.0.1:PORT/", refused(Shared)),
    ("http://100.127.255.255:PORT/", refused(Shared)),
    ("http://169.254.0.1:PORT/", refused(LinkLocal)),
    (
        "http://169.254.169.254/latest/meta-data/",
        refused(Metadata),
    ),
    ("http://0xa9fea9fe/", refused(Metadata)),
    ("http://2852039166/", refused(Metadata)),
    ("http://0251.0376.0251.0376/", refused(Metadata)),
    ("http://169.254.43518/", refused(Metadata)),
    ("http://169.254.170.2/", refused(Metadata)),
    ("http://100.100.100.200/", refused(Metadata)),
    ("http://192.0.0.192/", refused(Metadata)),
    ("http://168.63.129.16/", refused(Metadata)),
    ("http://[fd00:ec2::254]/", refused(Metadata)),
    ("http://[fd20:ce::254]/", refused(Metadata)),
    ("http://192.0.0.1:PORT/", refused(Protocol)),
    ("http://192.0.0.9:PORT/", refused(Protocol)),
    ("http://192.0.0.170:PORT/", refused(Protocol)),
    ("http://192.0.2.1:PORT/", refused(Documentation)),
    ("http://198.51.100.1:PORT/", refused(Documentation)),
    ("http://203.0.113.1:PORT/", refused(Documentation)),
    ("http://192.88.99.1:PORT/", refused(SixToFourRelay)),
    ("http://198.18.0.1:PORT/", refused(Benchmarking)),
    ("http://198.19.255.255:PORT/", refused(Benchmarking)),
    ("http://224.0.0.1:PORT/", refused(Multicast)),
    ("http://239.255.255.250:PORT/", refused(Multicast)),
    ("http://240.0.0.1:PORT/", refused(Reserved)),
    ("http://255.255.255.254:PORT/", refused(Reserved)),
    ("http://255.255.255.255:PORT/", refused(Broadcast)),
    ("http://4294967295:PORT/", refused(Broadcast)),
    ("http://[100::1]:PORT/", refused(Discarded)),
    ("http://[100:0:0:1::1]:PORT/", refused(Discarded)),
    ("http://[2001:2::1]:PORT/", refused(Benchmarking)),
    ("http://[2001:1::1]:PORT/", refused(Protocol)),
    ("http://[2001:10::1]:PORT/", refused(Protocol)),
    ("http://[2001:20::1]:PORT/", refused(Protocol)),
    ("http://[2001:30::1]:PORT/", refused(Protocol)),
    ("http://[2001:1ff:ffff::1]:PORT/", refused(Protocol)),
    ("http://[2001:db8::1]:PORT/", refused(Documentation)),
    ("http://[3fff::1]:PORT/", refused(Documentation)),
    ("http://[3fff:fff::1]:PORT/", refused(Documentation)),
    ("http://[5f00::1]:PORT/", refused(Segment)),
    ("http://[fc00::1]:PORT/", refused(Private)),
    ("http://[fdff:ffff::1]:PORT/", refused(Private)),
    ("http://[fe80::1]:PORT/", refused(LinkLocal)),
    ("http://[febf::1]:PORT/", refused(LinkLocal)),
    ("http://[fec0::1]:PORT/", refused(SiteLocal)),
    ("http://[ff02::1]:PORT/", refused(Multicast)),
    ("http://[ff0e::1]:PORT/", refused(Multicast)),
    ("http://[4000::1]:PORT/", refused(Reserved)),
    ("http://[1::1]:PORT/", refused(Reserved)),
    // Names.
    ("http://localhost:PORT/", Here),
    ("http://LOCALHOST:PORT/", Here),
    ("http://localhost.:PORT/", Here),
    ("http://ｌｏｃａｌｈｏｓｔ:PORT/", Here),
    ("http://loc%61lhost:PORT/", Here),
    ("http://ⓛocalhost:PORT/", Here),
    ("http://lo\u{AD}calhost:PORT/", Here),
    ("http://ſub.localhost:PORT/", Here),
    ("http://sub.localhost:PORT/", Here),
    ("http://ip6-localhost:PORT/", Here),
    ("http://127.0.0.1.nip.test:PORT/", Here),
    ("http://mapped.test:PORT/", Here),
    ("http://xn--mnich-kva.test:PORT/", Here),
    ("http://MÜNICH.test:PORT/", Here),
    ("http://under_score.test:PORT/", Here),
    ("http://private.test:PORT/", refused(Private)),
    ("http://mixed.test:PORT/", refused(Private)),
    ("http://mixed6.test:PORT/", refused(Private)),
    ("http://last.test:PORT/", refused(Metadata)),
    (
        "http://metadata.google.internal/computeMetadata/v1/",
        refused(Metadata),
    ),
    ("http://zero.test:PORT/", refused(Unspecified)),
    ("http://nat64.test:PORT/", refused(Private)),
    ("http://compatible.test:PORT/", refused(Compatible)),
    ("http://link.test:PORT/", refused(LinkLocal)),
    (
        "http://public.test#@127.0.0.1:PORT/",
        refused(Documentation),
    ),
    (
        "http://public.test/@127.0.0.1:PORT/",
        refused(Documentation),
    ),
    (
        "http://public.test?@127.0.0.1:PORT/",
        refused(Documentation),
    ),
    ("http://unknown.test:PORT/", Unknown),
    ("http://empty.test:PORT/", Unknown),
    ("http://a..test:PORT/", Fault),
    ("http://.localhost:PORT/", Fault),
    ("http://localhost..:PORT/", Fault),
    ("http://.:PORT/", Fault),
    ("http://..:PORT/", Fault),
    ("http://xn--a:PORT/", Fault),
    ("http://local host:PORT/", Fault),
    ("http://a:b:c:PORT/", Fault),
];

fn names() -> Arc<Names> {
    let here = [
        "localhost",
        "localhost.",
        "sub.localhost",
        "127.0.0.1.nip.test",
    ];
    let here = here.map(|name| (name, "127.0.0.1"));
    let others = [
        ("under_score.test", "127.0.0.1"),
        ("xn--mnich-kva.test", "127.0.0.2"),
        ("ip6-localhost", "::1"),
        ("mapped.test", "::ffff:127.0.0.1"),
        ("private.test", "10.1.2.3"),
        ("mixed.test", "1.1.1.1 10.1.2.3"),
        ("mixed6.test", "2606:4700::1111 fd00::1"),
        (
            "last.test",
            "1.1.1.1 1.0.0.1 2606:4700::1111 169.254.169.254",
        ),
        ("metadata.google.internal", "169.254.169.254"),
        ("zero.test", "0.0.0.0"),
        ("nat64.test", "64:ff9b::10.0.0.1"),
        ("compatible.test", "::127.0.0.1"),
        ("link.test", "fe80::1"),
        ("public.test", "203.0.113.1"),
        ("empty.test", ""),
    ];
    Names::new((here.into_iter().chain(others)).map(|(name, found)| (name, vec![found])))
}

/// Listeners of both families on one port that answer and note by which address they were reached.
struct Everywhere {
    port: u16,
    reached: Arc<Mutex<Vec<IpAddr>>>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Everywhere {
    async fn listen() -> Self {
        let v4 = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
        let port = v4.local_addr().unwrap().port();
        let v6 = TcpSocket::new_v6().unwrap();
        rustix::net::sockopt::set_ipv6_v6only(&v6, true).unwrap();
        v6.bind((Ipv6Addr::UNSPECIFIED, port).into()).unwrap();
        let reached = Arc::default();
        let tasks = [v4, v6.listen(64).unwrap()].map(|listener| {
            let noting = tokio::spawn(note(listener, Arc::clone(&reached)));
            AbortOnDropHandle::new(noting)
        });
        Self {
            port,
            reached,
            _tasks: tasks.into(),
        }
    }

    /// The spelling with the listeners' port.
    fn here(&self, spelling: &str) -> String {
        spelling.replace("PORT", &self.port.to_string())
    }

    /// By which addresses connections came since the last call: one of our own comes after them, so that none is missed.
    async fn reached(&self) -> Vec<IpAddr> {
        let own = [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ];
        for address in own {
            let mut stream = TcpStream::connect((address, self.port)).await.unwrap();
            stream.shutdown().await.unwrap();
            drain(stream).await;
        }
        let mut reached = std::mem::take(&mut *self.reached.lock());
        for address in own {
            let last = reached.iter().rposition(|&other| other == address);
            reached.remove(last.expect("our own connection"));
        }
        reached
    }
}

async fn note(listener: TcpListener, reached: Arc<Mutex<Vec<IpAddr>>>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let address = stream.local_addr().unwrap().ip();
        reached.lock().push(address);
        tokio::spawn(async move {
            read_request(&mut stream).await;
            let _gone = stream.write_all(OK.as_bytes()).await;
        });
    }
}

fn with_names(allow: &[&str]) -> Outbound {
    let settings = OutboundSettings {
        allow: allow.iter().map(|text| text.parse().unwrap()).collect(),
        // https to a listener without TLS lasts so long.
        connect_timeout: SOON,
        ..OutboundSettings::default()
    };
    Outbound::with_resolver(&settings, names()).expect("no ca_file")
}

fn meaning(error: &Error) -> Means {
    match error {
        Error::Refused(Rejection::Url(_)) => Fault,
        Error::Refused(Rejection::Address { verdict, .. }) => match verdict.reason {
            Loopback => Here,
            reason => Means::Refused(reason),
        },
        Error::Resolve { .. } => Unknown,
        other => panic!("neither refused nor unknown: {other}"),
    }
}

#[tokio::test]
async fn no_spelling_reaches_what_is_refused() {
    assert!(SPELLINGS.len() >= 200);
    let (listeners, outbound) = (Everywhere::listen().await, with_names(&[]));
    for &(spelling, means) in SPELLINGS {
        let url = listeners.here(spelling);
        let error = post(&outbound, &url).await.expect_err(spelling);
        assert_eq!(meaning(&error), means, "{spelling:?}: {error}");
        if matches!(means, Here | Means::Refused(_)) {
            let message = error.to_string();
            assert!(
                message.contains("outbound.allow = [\""),
                "{spelling:?}: {message}"
            );
        }

        let error = outbound
            .fetch(&url, &mut Nothing, 1)
            .await
            .expect_err(spelling);
        assert_eq!(meaning(&error), means, "{spelling:?}: {error}");

        let probed = outbound.probe_url(&url).await.map_err(Error::from);
        let probed = probed.map_or_else(|error| meaning(&error), |()| Unknown);
        assert_eq!(probed, means, "{spelling:?}");
    }
    assert_eq!(listeners.reached().await, [] as [IpAddr; 0]);
}

#[tokio::test]
async fn what_is_allowed_is_reached_and_nothing_else() {
    let (listeners, outbound) = (
        Everywhere::listen().await,
        with_names(&["127.0.0.0/8", "::1"]),
    );
    for &(spelling, means) in SPELLINGS {
        let ended = post(&outbound, &listeners.here(spelling)).await;
        let reached = listeners.reached().await;
        if means == Here {
            assert!(
                matches!(reached[..], [address] if address.is_loopback()),
                "{spelling:?} {reached:?}"
            );
            let is_answered = ended.is_ok_and(|answer| answer.status == 200);
            assert_eq!(is_answered, !spelling.starts_with("https"), "{spelling:?}");
        } else {
            assert_eq!(reached, [] as [IpAddr; 0], "{spelling:?}");
            assert_eq!(meaning(&ended.expect_err(spelling)), means, "{spelling:?}");
        }
    }
}

#[tokio::test]
async fn no_redirect_leads_to_what_is_refused() {
    let (listeners, outbound) = (Everywhere::listen().await, with_names(&["127.0.0.99"]));
    for &(spelling, _) in SPELLINGS {
        let location = listeners.here(spelling);
        let answer =
            format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let redirecting = Receiver::answering_at([127, 0, 0, 99], answer).await;
        let fetched = outbound.fetch(&redirecting.url(), &mut Nothing, 1).await;
        let error = fetched.expect_err(spelling);
        assert!(
            matches!(
                error,
                Error::Refused(_)
                    | Error::Redirect(_)
                    | Error::Resolve { .. }
                    | Error::Malformed(_)
            ),
            "{spelling:?}: {error}"
        );
    }
    assert_eq!(listeners.reached().await, [] as [IpAddr; 0]);
}

#[tokio::test]
async fn the_systems_localhost_is_refused() {
    let listeners = Everywhere::listen().await;
    let strict = Outbound::new(&OutboundSettings::default()).expect("no ca_file");
    let url = listeners.here("http://localhost:PORT/");
    let error = post(&strict, &url).await.expect_err("loopback");
    assert_eq!(meaning(&error), Here, "{error}");
    assert_eq!(listeners.reached().await, [] as [IpAddr; 0]);
    let answer = post(&open(), &url).await.expect("allowed");
    assert_eq!(answer.status, 200);
}

/// 127.0.0.9 is an address that may be reached, 127.0.0.10 one that may not.
#[tokio::test]
async fn a_name_that_changes_its_address_is_dialled_where_it_was_checked() {
    let listeners = Everywhere::listen().await;
    for (answers, reached_then) in [
        (
            vec!["127.0.0.9", "127.0.0.10"],
            &[&["127.0.0.9"][..], &[]][..],
        ),
        (vec!["127.0.0.10", "127.0.0.9"], &[&[], &["127.0.0.9"]]),
        (
            vec!["127.0.0.9 127.0.0.10", "127.0.0.9"],
            &[&[], &["127.0.0.9"]],
        ),
        (
            vec!["127.0.0.9", "127.0.0.9 127.0.0.10"],
            &[&["127.0.0.9"], &[]],
        ),
    ] {
        let settings = OutboundSettings {
            allow: vec!["127.0.0.9".parse().unwrap()],
            max_idle: 0,
            ..OutboundSettings::default()
        };
        let names = Names::new([("moving.test", answers.clone())]);
        let outbound = Outbound::with_resolver(&settings, names).unwrap();
        for expected in reached_then {
            let ended = post(&outbound, &listeners.here("http://moving.test:PORT/")).await;
            let reached = listeners.reached().await;
            let reached: Vec<String> = reached.iter().map(IpAddr::to_string).collect();
            assert_eq!(&reached, expected, "{answers:?}");
            assert_eq!(ended.is_ok(), !expected.is_empty(), "{answers:?}");
        }
    }
    // A probe that found it harmless does not vouch for the request after it.
    let names = Names::new([("moving.test", vec!["1.1.1.1", "127.0.0.1"])]);
    let outbound = Outbound::with_resolver(&OutboundSettings::default(), names).unwrap();
    let url = listeners.here("http://moving.test:PORT/");
    outbound.probe_url(&url).await.expect("public at first");
    let error = post(&outbound, &url).await.expect_err("refused now");
    let message = "moving.test resolves to 127.0.0.1, which is a loopback address; the operator can allow it by outbound.allow = [\"127.0.0.0/8\"]";
    assert_eq!(error.to_string(), message);
    assert_eq!(listeners.reached().await, [] as [IpAddr; 0]);
}

/// Takes no byte.
struct Nothing;

impl Sink for Nothing {
    async fn write(&mut self, _piece: Bytes) -> io::Result<()> {
        panic!("a byte came")
    }
}
