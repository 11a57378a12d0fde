"""Compares the look of delivered images with libvips': quality.py [--program FILE] [--images N] [--widths …] [FOLDER]

Photographs of FOLDER (those that the load harness has cut) are asked of a service of its own by their delivery addresses,
and made by vipsthumbnail with the same quality and effort. SSIMULACRA2 says how far each is from what Pillow makes of the
whole photograph with a Lanczos filter, once on the stored values ("gamma", as libvips scales) and once in linear light.
Exit status 1: ours are more than ALLOWED below libvips' in some row.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
SSIMULACRA2 = ROOT / "target/tools/ssimulacra2/bin/ssimulacra2_rs"
QUALITY = 80
# Points of SSIMULACRA2: 70 is "high quality", 90 "visually lossless".
ALLOWED = 0.7
# The savers' settings of image delivery (worker/src/image).
SAVERS = {
    "jpeg": f"[Q={QUALITY},optimize_coding,strip]",
    "webp": f"[Q={QUALITY},effort=2,strip]",
}
REFERENCES = ("gamma", "linear")
# First credentials of an empty database that is removed at the end.
API_KEY = "svc_LoadHarnessLoadHarnessLoadHarnessLoadHarnes"
START_SECONDS = 20
BOUNDARY = "sluice-quality-boundary"


class Service:
    """The release program with an empty data folder, and photographs stored in it."""

    def __init__(self, program, folder):
        self.base = f"http://127.0.0.1:{free_port()}"
        settings = {
            "SLUICE_HTTP__LISTEN": self.base.removeprefix("http://"),
            "SLUICE_RTMP__LISTEN": f"127.0.0.1:{free_port()}",
            "SLUICE_SRT__LISTEN": "127.0.0.1:0",
            "SLUICE_WEBRTC__LISTEN": "127.0.0.1:0",
            "SLUICE_WEBRTC__TCP_LISTEN": "127.0.0.1:0",
            "SLUICE_STORE__DATA_DIR": str(folder / "data"),
            "SLUICE_BOOTSTRAP__API_KEY": API_KEY,
            "SLUICE_BOOTSTRAP__ADMIN_PASSWORD": "quality only",
        }
        log = open(folder / "sluice.log", "wb")
        command = [program, "serve"]
        self.child = subprocess.Popen(command, cwd=folder, env=os.environ | settings, stdout=log, stderr=log)
        self.wait_until_ready(folder)
        self.key = self.post("/api/delivery-keys", "application/json", b'{"name":"quality"}')["token"]

    def wait_until_ready(self, folder):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return fetch(self.base + "/readyz")
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > deadline or self.child.poll() is not None:
                    sys.exit(f"sluice is not ready:\n{(folder / 'sluice.log').read_text()}")
                time.sleep(0.05)

    def post(self, path, content_type, body):
        headers = {"Authorization": f"Bearer {API_KEY}", "Content-Type": content_type}
        return json.loads(fetch(urllib.request.Request(self.base + path, body, headers)))

    def store(self, photograph):
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{photograph.name}"\r\n\r\n'
        body = head.encode() + photograph.read_bytes() + f"\r\n--{BOUNDARY}--\r\n".encode()
        return self.post("/api/files", f"multipart/form-data; boundary={BOUNDARY}", body)["file"]["id"]

    def delivered(self, file, width, image_format):
        return fetch(f"{self.base}/cdn/v1/{self.key}/{file}?w={width}&q={QUALITY}&format={image_format}")

    def stop(self):
        self.child.terminate()
        self.child.wait()


def fetch(request):
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def by_libvips(photograph, width, image_format, folder):
    result = folder / f"libvips.{image_format}"
    command = ["vipsthumbnail", photograph, "--size", f"{width}x", "--output", f"{result}{SAVERS[image_format]}"]
    subprocess.run(command, check=True, env=os.environ | {"VIPS_WARNING": "0"})
    return result


def reference(photograph, size, light):
    """The whole photograph onto the whole box, without a codec's help."""
    if light == "gamma":
        return photograph.resize(size, Image.Resampling.LANCZOS)
    stored = numpy.asarray(photograph, dtype=numpy.float32) / 255
    linear = numpy.where(stored <= 0.04045, stored / 12.92, ((stored + 0.055) / 1.055) ** 2.4)
    scaled = [
        numpy.asarray(Image.fromarray(channel).resize(size, Image.Resampling.LANCZOS))
        for channel in numpy.moveaxis(linear, 2, 0)
    ]
    linear = numpy.clip(numpy.stack(scaled, 2), 0, 1)
    stored = numpy.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return Image.fromarray((stored * 255 + 0.5).astype(numpy.uint8))


def score(wanted, found):
    answer = subprocess.run([SSIMULACRA2, "image", wanted, found], check=True, capture_output=True, text=True)
    return float(answer.stdout.split()[-1])


def scores_of(service, photograph, file, width, image_format):
    """Of one photograph: (reference, who) → score."""
    with tempfile.TemporaryDirectory() as name, Image.open(photograph) as original:
        folder = Path(name)
        original = original.convert("RGB")
        ours = folder / f"ours.{image_format}"
        ours.write_bytes(service.delivered(file, width, image_format))
        scores = {}
        for who, result in ("ours", ours), ("libvips", by_libvips(photograph, width, image_format, folder)):
            with Image.open(result) as decoded:
                size = decoded.size
                decoded.convert("RGB").save(folder / "found.png", compress_level=1)
            for light in REFERENCES:
                reference(original, size, light).save(folder / "wanted.png", compress_level=1)
                scores[light, who] = score(folder / "wanted.png", folder / "found.png")
        return scores


def measure(service, photographs, widths):
    """Prints a row for each format and width; the largest lead of libvips in any."""
    files = [service.store(photograph) for photograph in photographs]
    print(f"SSIMULACRA2 of {len(files)} photographs, quality {QUALITY}, mean (least)")
    print(f"{'':14}" + "".join(f"{light + ': ours':>20}{'libvips':>16}{'lead':>8}" for light in REFERENCES))
    behind = -100.0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for image_format in SAVERS:
            for width in widths:
                one = lambda pair: scores_of(service, *pair, width, image_format)
                found = list(pool.map(one, zip(photographs, files)))
                row = f"{image_format:6}{width:5} px"
                for light in REFERENCES:
                    ours, theirs = ([scores[light, who] for scores in found] for who in ("ours", "libvips"))
                    lead = mean(ours) - mean(theirs)
                    behind = max(behind, -lead)
                    row += f"{mean(ours):13.2f} ({min(ours):.1f}){mean(theirs):9.2f} ({min(theirs):.1f}){lead:8.2f}"
                print(row, flush=True)
    return behind


def mean(values):
    return sum(values) / len(values)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", type=Path, default=ROOT / "target/release/sluice")
    arguments.add_argument("--images", type=int, default=20)
    arguments.add_argument("--widths", type=int, nargs="+", default=[320, 512, 640, 960])
    arguments.add_argument("folder", type=Path, nargs="?")
    options = arguments.parse_args()
    folder = options.folder or max((ROOT / "target/load").glob("crops-*"), default=ROOT / "target/load/none")
    photographs = sorted(folder.glob("*.jpg"))
    if not photographs:
        sys.exit(f"no photographs in {folder}: run cargo bench --bench load -- photographs")
    if not SSIMULACRA2.exists():
        sys.exit(f"{SSIMULACRA2} is missing: run scripts/install.sh quality")
    step = max(1, len(photographs) // options.images)
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as scratch:
        service = Service(options.program.resolve(), Path(scratch))
        try:
            behind = measure(service, photographs[::step][: options.images], options.widths)
        finally:
            service.stop()
    if behind > ALLOWED:
        sys.exit(f"libvips leads by {behind:.2f}, more than {ALLOWED}")


if __name__ == "__main__":
    main()
