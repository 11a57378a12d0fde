"""An RTSP server for tests: `serve.py PROTOCOLS LAUNCH` prints its port and serves /stream until its input ends.

PROTOCOLS is `tcp`, `udp` or `both`; LAUNCH is a GStreamer pipeline with payloaders pay0, pay1. USER:PASSWORD in the
variable RTSP_LOGIN asks for Digest authentication; RTSP_PORT is the port, a free one without it.
"""

import os
import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer

Gst.init(None)
protocols = {
    "tcp": GstRtsp.RTSPLowerTrans.TCP,
    "udp": GstRtsp.RTSPLowerTrans.UDP,
    "both": GstRtsp.RTSPLowerTrans.TCP | GstRtsp.RTSPLowerTrans.UDP,
}[sys.argv[1]]

server = GstRtspServer.RTSPServer.new()
server.set_address("127.0.0.1")
server.set_service(os.environ.get("RTSP_PORT", "0"))
factory = GstRtspServer.RTSPMediaFactory.new()
factory.set_launch(sys.argv[2])
factory.set_shared(True)
factory.set_protocols(protocols)

login = os.environ.get("RTSP_LOGIN")
if login:
    user, password = login.split(":")
    auth = GstRtspServer.RTSPAuth.new()
    token = GstRtspServer.RTSPToken.new()
    token.set_string("media.factory.role", "user")
    auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
    auth.add_digest(user, password, token)
    server.set_auth(auth)
    permissions = GstRtspServer.RTSPPermissions.new()
    permissions.add_permission_for_role("user", "media.factory.access", True)
    permissions.add_permission_for_role("user", "media.factory.construct", True)
    factory.set_permissions(permissions)

server.get_mount_points().add_factory("/stream", factory)
loop = GLib.MainLoop()
server.attach(None)
print(server.get_bound_port(), flush=True)


def end_with_input():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
loop.run()
