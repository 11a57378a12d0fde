//! Session descriptions (SDP, RFC 8866) of clients that send nothing after their offer, valid ones and others.

/// Offer of a viewer as Chromium writes it; each number has credentials of its own.
pub fn offer(number: u32) -> String {
    let video = format!(
        "m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\n{}a=mid:0\r\na=recvonly\r\na=rtcp-mux\r\na=rtcp-rsize\r\n\
         a=rtpmap:96 H264/90000\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\n\
         a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n\
         a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n",
        transport(number)
    );
    let audio = format!(
        "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n{}a=mid:1\r\na=recvonly\r\na=rtcp-mux\r\n\
         a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\n",
        transport(number)
    );
    format!("{}{video}{audio}", head("0 1"))
}

fn head(group: &str) -> String {
    format!(
        "v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE {group}\r\n\
         a=extmap-allow-mixed\r\na=msid-semantic: WMS\r\n"
    )
}

fn transport(number: u32) -> String {
    let fingerprint = vec!["5A"; 32].join(":");
    format!(
        "c=IN IP4 0.0.0.0\r\na=rtcp:9 IN IP4 0.0.0.0\r\na=ice-ufrag:{number:08x}\r\n\
         a=ice-pwd:{number:024x}\r\na=ice-options:trickle\r\na=fingerprint:sha-256 {fingerprint}\r\na=setup:actpass\r\n"
    )
}

/// Offers that break a rule or ask for much, with their names. Each is to be answered by an error.
pub fn hostile() -> Vec<(&'static str, String)> {
    let good = offer(7);
    let without = |part: &str| {
        let lines = good.lines().filter(|line| !line.contains(part));
        lines.map(|line| format!("{line}\r\n")).collect::<String>()
    };
    let with = |lines: String| format!("{good}{lines}");
    vec![
        ("empty", String::new()),
        ("no description", "what is this?".to_owned()),
        ("no version", without("v=0")),
        ("no media", head("0")),
        ("no fingerprint", without("a=fingerprint")),
        ("no password", without("a=ice-pwd")),
        ("a weak fingerprint", good.replace("sha-256", "md5")),
        (
            "no encryption",
            good.replace("UDP/TLS/RTP/SAVPF", "RTP/AVP"),
        ),
        (
            "another codec",
            good.replace("H264", "VP8").replace("opus", "PCMU"),
        ),
        ("a control character", good.replace("s=-", "s=\u{1}")),
        ("a zero byte", good.replace("s=-", "s=\0")),
        (
            "a line of 60 KB",
            with(format!("a=fmtp:96 {}\r\n", "a".repeat(60_000))),
        ),
        ("6 000 lines", with("a=b:c\r\n".repeat(6_000))),
        (
            "500 media",
            with("m=video 9 UDP/TLS/RTP/SAVPF 96\r\n".repeat(500)),
        ),
        (
            "2 000 parameters",
            with(
                (0..2_000)
                    .map(|it| format!("a=fmtp:96 x{it}=1\r\n"))
                    .collect(),
            ),
        ),
        (
            "a number without end",
            good.replace("a=mid:0", &format!("a=mid:{}", "9".repeat(5_000))),
        ),
        ("more than 64 KiB", with("a=x\r\n".repeat(14_000))),
    ]
}
