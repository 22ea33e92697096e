"""What a decoder needs of a JPEG, PNG or WebP file, cut out before it sees the rest.

Headers are read here, in a few lines that allocate nothing, and so is the one piece of
metadata that changes a picture, its orientation. Text, profiles, previews, further frames
and the like never reach the decoder: what is not read cannot be a bomb.
"""

import re
import struct
from typing import NamedTuple

# Files beyond these are made to keep a decoder busy: each scan of a JPEG goes over the whole
# picture (programs write about ten), and each piece of a PNG is some work.
_MOST_SCANS = 50
_MOST_PIECES = 100_000
_PNG = b"\x89PNG\r\n\x1a\n"
_ORIENTATION = 0x0112


class BadImage(ValueError):
    """What was sent is no picture that can be used; the message says why."""


class ImageFile(NamedTuple):
    """A picture as a file of its own, without what is not needed to draw it.

    Attributes
    ----------
    format : str
        "JPEG", "PNG" or "WEBP".
    content : bytes
        The file; of WebP, which has its own library, the whole.
    width, height : int
        As its header says.
    orientation : int
        How the camera was held, 1 to 8 as in Exif; 1 is upright.
    """

    format: str
    content: bytes
    width: int
    height: int
    orientation: int


def image_file(content: bytes) -> ImageFile:
    """Return what a file says of itself, and what of it is a picture.

    Parameters
    ----------
    content : bytes

    Raises
    ------
    BadImage
        If it is of another kind, or its header is damaged.
    """
    if not content:
        raise BadImage("the image is empty; send the content of a JPEG, PNG or WebP file")
    for start, reader in (
        (rb"\xff\xd8\xff", _jpeg),
        (re.escape(_PNG), _png),
        (rb"RIFF....WEBP", _webp),
    ):
        if re.match(start, content, re.DOTALL):
            try:
                return reader(content)
            except (struct.error, IndexError) as error:
                raise BadImage("the image file is cut off; send all of it") from error
    raise BadImage(f"this is {_kind(content)}; send a JPEG, PNG or WebP image")


def _kind(content: bytes) -> str:
    """Return in words what a file that is refused seems to be."""
    head = content[:1024].lstrip()
    for pattern, kind in (
        (rb"GIF8", "a GIF file"),
        (rb"II\*\0|MM\0\*", "a TIFF file"),
        (rb"BM", "a BMP file"),
        (rb"%PDF", "a PDF file"),
        (rb"%!PS|\xc5\xd0\xd3\xc6", "a PostScript file"),
        (rb"....ftyp(heic|heix|mif1)", "a HEIC file"),
        (rb"....ftypavi[fs]", "an AVIF file"),
        (rb"(?=<)(?s:.*?)<svg", "an SVG drawing"),
    ):
        if re.match(pattern, head, re.DOTALL | re.IGNORECASE):
            return kind
    return "no image of a kind that is known here"


# JPEG (ITU T.81, annex B): FF, a marker, and mostly the length of what belongs to it.


def _jpeg(content: bytes) -> ImageFile:
    size: tuple[int, int] | None = None
    orientation, kept, position = 1, [b"\xff\xd8"], 2
    for _ in range(_MOST_PIECES):
        position = content.find(b"\xff", position)  # Some cameras fill up between segments.
        if position < 0:
            raise BadImage("the JPEG file is cut off; send all of it")
        marker = content[position + 1]
        if marker == 0xFF:  # Filling.
            position += 1
            continue
        if marker == 0xDA:  # The scans begin: no lengths from here on.
            break
        if marker in (0x00, 0x01, *range(0xD0, 0xDA)):
            raise BadImage("the JPEG file is damaged: there is no picture in it")
        (length,) = struct.unpack_from(">H", content, position + 2)
        if length < 2:
            raise BadImage("the JPEG file is damaged: a segment has an impossible length")
        segment = content[position : position + 2 + length]
        body, position = segment[4:], position + 2 + length
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            if size is not None:
                raise BadImage("the JPEG file is damaged: it has two headers")
            height, width = struct.unpack_from(">HH", body, 1)
            size = width, height
        if marker == 0xE1 and body.startswith(b"Exif\0\0"):
            orientation = orientation_in(body)
        # Of the segments of applications, the colours depend on JFIF's and Adobe's.
        if not (0xE0 <= marker <= 0xEF or marker == 0xFE) or (
            marker in (0xE0, 0xEE) and body.startswith((b"JFIF\0", b"Adobe"))
        ):
            kept.append(segment)
    else:
        raise BadImage("the JPEG file is damaged: it never comes to its picture")
    if size is None:
        raise BadImage("the JPEG file is damaged: its size is not given")
    # A picture's end or a scan's beginning cannot be among its numbers: FF is escaped there.
    end = content.find(b"\xff\xd9", position)
    scans = content[position : end + 2 if end >= 0 else None]
    if scans.count(b"\xff\xda") > _MOST_SCANS:
        raise BadImage(f"the JPEG image has more than {_MOST_SCANS} scans; save it anew")
    return ImageFile("JPEG", b"".join([*kept, scans]), *size, orientation)


# PNG (ISO 15948): chunks of a length, a name, that many bytes and a checksum.


def _png(content: bytes) -> ImageFile:
    if content[12:16] != b"IHDR":
        raise BadImage("the PNG file is damaged: it does not begin with its header")
    width, height = struct.unpack_from(">II", content, 16)
    orientation, kept, position, seen = 1, [_PNG], 8, set()
    for _ in range(_MOST_PIECES):
        if position == len(content):
            break
        length, name = struct.unpack_from(">I4s", content, position)
        end = position + 12 + length
        if end > len(content):
            raise BadImage("the PNG file is cut off; send all of it")
        if name == b"IDAT" or (name in (b"IHDR", b"PLTE", b"tRNS") and name not in seen):
            kept.append(content[position:end])
        elif name == b"eXIf":
            orientation = orientation_in(content[position + 8 : end - 4])
        elif name == b"IEND":
            kept.append(content[position:end])
            break
        seen.add(name)
        position = end
    else:
        raise BadImage(f"the PNG image is in more than {_MOST_PIECES} pieces; save it anew")
    if b"IDAT" not in seen:
        raise BadImage("the PNG file is damaged: there is no picture in it")
    return ImageFile("PNG", b"".join(kept), width, height, orientation)


# WebP (RFC 9649): chunks of a name, a length and that many bytes, an even number.


def _webp(content: bytes) -> ImageFile:
    kind, body = content[12:16], content[20:]
    orientation = 1
    if kind == b"VP8 ":
        if body[3:6] != b"\x9d\x01\x2a":
            raise BadImage("the WebP file is damaged: its size is not given")
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", body, 6))
    elif kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", body, 1)
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8X":
        struct.unpack_from("10x", body)
        width, height = (int.from_bytes(body[i : i + 3], "little") + 1 for i in (4, 7))
        orientation = _webp_orientation(content)
    else:
        raise BadImage("the WebP file is damaged: there is no picture in it")
    return ImageFile("WEBP", content, width, height, orientation)


def _webp_orientation(content: bytes) -> int:
    position = 12
    for _ in range(_MOST_PIECES):
        if position + 8 > len(content):
            break
        name, length = struct.unpack_from("<4sI", content, position)
        if name == b"EXIF":
            return orientation_in(content[position + 8 : position + 8 + length])
        position += 8 + length + length % 2
    return 1


def orientation_in(exif: bytes) -> int:
    """Return the orientation that Exif data give, 1 to 8; 1 if they are damaged.

    Parameters
    ----------
    exif : bytes
        A small TIFF file, after "Exif" and two zeros or not.
    """
    tiff = exif.removeprefix(b"Exif\0\0")
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    try:
        if order is None:
            return 1
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (entries,) = struct.unpack_from(f"{order}H", tiff, start)
        for i in range(entries):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", tiff, start + 2 + 12 * i)
            if tag == _ORIENTATION:
                return value if 1 <= value <= 8 else 1
    except struct.error:
        pass
    return 1
