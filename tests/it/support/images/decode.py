"""Reads images with Pillow and its plugins: decoders that share no code with ours.

    decode.py look FILE            what the file is and how it looks, as one JSON object
    decode.py difference FILE FILE the mean difference of two images, 0 to 255, as a JSON number

Colours are sRGB, through the embedded profile where there is one. An EXIF orientation that is still in the file is
reported and not applied: what we write must be upright without it.
"""

import io
import json
import sys

import pillow_heif
import pillow_jxl  # noqa: F401  registers itself
from PIL import Image, ImageCms, ImageSequence

pillow_heif.register_heif_opener()
# Our own limits are tested elsewhere; what comes out of a test is small.
Image.MAX_IMAGE_PIXELS = 300_000_000

ORIENTATION = 0x0112
# Mean colours are taken of a grid of this many cells a side.
GRID = 4


def has_alpha(image):
    return "A" in image.getbands() or "transparency" in image.info


def in_srgb(image):
    """RGBA, the embedded profile applied."""
    profile = image.info.get("icc_profile")
    alpha = image.convert("RGBA").getchannel("A") if has_alpha(image) else None
    if profile and image.mode in ("RGB", "RGBA", "CMYK", "L", "LA"):
        plain = image.convert("RGB") if image.mode in ("RGBA",) else image
        plain = plain.convert("L") if plain.mode == "LA" else plain
        embedded = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        try:
            plain = ImageCms.profileToProfile(
                plain, embedded, ImageCms.createProfile("sRGB"), outputMode="RGB"
            )
        except ImageCms.PyCMSError:
            plain = image.convert("RGB")
        image = plain
    if image.mode.startswith("I;16") or image.mode == "I":
        image = image.point(lambda value: value / 257).convert("L")
    result = image.convert("RGBA")
    if alpha is not None:
        result.putalpha(alpha)
    return result


def grid(image):
    """Mean (red, green, blue, alpha) of each cell, row by row; what is transparent has no part in a cell's colour."""
    small = image.resize((GRID, GRID), Image.Resampling.BOX)
    return [list(small.getpixel((x, y))) for y in range(GRID) for x in range(GRID)]


def profile_name(image):
    profile = image.info.get("icc_profile")
    if not profile:
        return None
    embedded = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    return ImageCms.getProfileDescription(embedded).strip()


def look(path):
    with Image.open(path) as image:
        image.load()
        frames = getattr(image, "n_frames", 1)
        exif = image.getexif()
        facts = {
            "format": image.format,
            "width": image.width,
            "height": image.height,
            "mode": image.mode,
            "frames": frames,
            "hasAlpha": has_alpha(image),
            "orientation": exif.get(ORIENTATION, 1),
            "exifTags": len(exif),
            "profile": profile_name(image),
            "grid": grid(in_srgb(image)),
            "delays": [],
            "lastGrid": None,
        }
        if frames > 1:
            for frame in ImageSequence.Iterator(image):
                frame.load()
                facts["delays"].append(int(frame.info.get("duration", 0)))
                facts["lastGrid"] = grid(in_srgb(frame))
        return facts


def difference(first, second):
    with Image.open(first) as one, Image.open(second) as other:
        one, other = in_srgb(one), in_srgb(other)
        size = (min(one.width, other.width), min(one.height, other.height))
        pixels = [
            image.convert("RGB").resize(size, Image.Resampling.BOX).tobytes()
            for image in (one, other)
        ]
        total = sum(abs(a - b) for a, b in zip(*pixels))
        return total / len(pixels[0])


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    print(json.dumps(look(*paths) if what == "look" else difference(*paths)))
