"""A substitute for Sluice that shows what a proxy does to a low-latency stream.

Serves on 127.0.0.1:PORT (the only argument), HTTP/1.1 with kept connections:

/live/v1/x/media.m3u8?_HLS_msn=N   answers after the seconds of `wait=` (a blocking reload), then 40 kB of playlist
/drip                              sends a line each 0.25 s in a chunked body, five times
/headers                           the request's headers and the number of the connection, as JSON
/upload                            the length of the request's body
"""

import http.server
import itertools
import json
import sys
import time
from urllib.parse import parse_qs, urlsplit

connections = itertools.count(1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.connection_number = next(connections)

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/drip":
            return self.drip()
        if url.path == "/headers":
            facts = {name.lower(): value for name, value in self.headers.items()}
            facts["version"] = self.request_version
            facts["connection_number"] = self.connection_number
            return self.answer(json.dumps(facts).encode(), "application/json")
        time.sleep(float(parse_qs(url.query).get("wait", ["0"])[0]))
        self.answer(b"#EXTM3U\n" + b"#EXT-X-PART:\n" * 3000, "application/vnd.apple.mpegurl")

    def do_PUT(self):
        length = int(self.headers.get("Content-Length", 0))
        self.rfile.read(length)
        self.answer(str(length).encode(), "text/plain")

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drip(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(5):
            self.wfile.write(b"6\r\npart.\n\r\n")
            self.wfile.flush()
            time.sleep(0.25)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
