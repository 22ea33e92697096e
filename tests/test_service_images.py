"""Images of anyone: what comes out is what was drawn, and nothing else gets through."""

import io
import struct
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image, ImageDraw

from imparo.service.image_files import image_file, orientation_in
from imparo.service.images import N_PIXELS, BadImage, decode, pixels, thumbnail

# Three by two, all different, larger than the blocks of JPEG when enlarged.
CORNERS = np.array(
    [[[200, 0, 0], [0, 200, 0], [0, 0, 200]], [[0, 0, 0], [200, 200, 0], [90, 90, 90]]],
    dtype=np.uint8,
)


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def chunk(name, content):
    checksum = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)


def png(width, height, bits, color, rows, extra=b""):
    """Return a PNG made by hand; ``rows`` begin with a byte for their filter."""
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    pieces = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + pieces + chunk(b"IEND", b"")


def exif(order, value, kind=3):
    """Return Exif data with an orientation after another entry."""
    entries = struct.pack(f"{order}HHIHH", 0x0100, 3, 1, 7, 0)
    entries += struct.pack(f"{order}HHIHH", 0x0112, kind, 1, value, 0)
    start = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, 2)
    return b"Exif\0\0" + start + entries + b"\0\0\0\0"


def noise(rng, height=40, width=50, channels=3):
    return Image.fromarray(rng.integers(0, 256, (height, width, channels), dtype=np.uint8))


def enlarged(colors, factor=16):
    return Image.fromarray(colors.repeat(factor, axis=0).repeat(factor, axis=1))


# What comes out.


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P"])
@pytest.mark.parametrize(("kind", "options"), [("PNG", {}), ("WEBP", {"lossless": True})])
def test_pixels_come_back_as_they_were(rng, mode, kind, options):
    image = noise(rng).convert(mode)
    back = decode(encoded(image, kind, **options))
    assert back.mode == "RGB"
    assert_array_equal(np.asarray(back), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_comes_back_nearly(mode, progressive):
    image = enlarged(CORNERS).convert(mode)
    back = decode(encoded(image, "JPEG", quality=95, progressive=progressive))
    expected = np.asarray(image.convert("RGB"), dtype=float)
    # Away from the edges, where JPEG halves the resolution of colours.
    at = np.ix_(range(8, 32, 16), range(8, 48, 16))
    assert_allclose(np.asarray(back, dtype=float)[at], expected[at], atol=6)


# Exif 2.3, table 4.6.4: where the file's first row and its first column are seen.
SEEN = {
    1: ("top", "left"),
    2: ("top", "right"),
    3: ("bottom", "right"),
    4: ("bottom", "left"),
    5: ("left", "top"),
    6: ("right", "top"),
    7: ("right", "bottom"),
    8: ("left", "bottom"),
}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", SEEN)
def test_photographs_are_upright(kind, orientation):
    upright = enlarged(CORNERS)
    row, column = SEEN[orientation]
    stored = np.asarray(upright)
    if row in ("left", "right"):  # Its rows are the columns that are seen.
        stored = stored.transpose(1, 0, 2)
    if row in ("bottom", "right"):
        stored = stored[::-1]
    if column in ("bottom", "right"):
        stored = stored[:, ::-1]
    data = exif("<" if orientation % 2 else ">", orientation)
    back = decode(encoded(Image.fromarray(stored), kind, exif=data, quality=95))
    assert back.size == upright.size
    difference = np.asarray(back, dtype=float) - np.asarray(upright, dtype=float)
    assert np.abs(difference[8::16, 8::16]).max() < 30


def test_transparency_is_white(rng):
    colors = rng.integers(0, 256, (9, 7, 4), dtype=np.uint8)
    alpha = colors[:, :, 3:] / 255
    expected = alpha * colors[:, :, :3] + (1 - alpha) * 255
    back = decode(encoded(Image.fromarray(colors), "PNG"))
    assert_allclose(np.asarray(back), expected, atol=1.01)


@pytest.mark.parametrize(
    ("bits", "color", "row", "extra", "expected"),
    [
        (16, 0, b"\x80\x12", b"", (128, 128, 128)),
        (16, 0, b"\x80\x12", chunk(b"tRNS", b"\x80\x12"), (255, 255, 255)),
        (16, 2, b"\x80\x12\x40\0\x20\0", b"", (128, 64, 32)),
        (16, 6, b"\x80\x12\x40\0\x20\0\0\0", b"", (255, 255, 255)),
        (8, 2, b"\1\2\3", chunk(b"tRNS", b"\0\1\0\2\0\3"), (255, 255, 255)),
        (8, 2, b"\1\2\4", chunk(b"tRNS", b"\0\1\0\2\0\3"), (1, 2, 4)),
        (8, 0, b"\x55", chunk(b"tRNS", b"\0\x55"), (255, 255, 255)),
        (8, 4, b"\x10\0", b"", (255, 255, 255)),
        (8, 3, b"\1", chunk(b"PLTE", b"\1\2\3\4\5\6"), (4, 5, 6)),
        (8, 3, b"\1", chunk(b"PLTE", b"\1\2\3\4\5\6") + chunk(b"tRNS", b"\xff\0"), (255,) * 3),
        (1, 0, b"\x80", b"", (255, 255, 255)),
    ],
)
def test_pngs_of_every_depth(bits, color, row, extra, expected):
    assert decode(png(1, 1, bits, color, b"\0" + row, extra)).getpixel((0, 0)) == expected


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_of_a_film_the_first_picture_is_taken(rng, kind):
    first, second = noise(rng), noise(rng)
    film = encoded(first, kind, save_all=True, append_images=[second], lossless=True)
    assert_array_equal(np.asarray(decode(film)), np.asarray(first))


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((640, 480), (640, 480)),
        ((895, 900), (895, 900)),
        ((896, 900), (448, 450)),
        ((3600, 1792), (900, 448)),
        ((4000, 3), (4000, 3)),
    ],
)
def test_large_jpegs_are_decoded_smaller_but_never_too_small(size, expected):
    large = Image.linear_gradient("L").resize(size).convert("RGB")
    small = decode(encoded(large, "JPEG"))
    assert small.size == expected
    assert_allclose(np.asarray(small), np.asarray(large.resize(expected)), atol=12)


def test_metadata_do_not_change_the_picture(rng):
    image = noise(rng)
    plain, long = encoded(image, "JPEG"), b"\xff\xe2\xff\xff" + b"p" * 65533
    with_more = plain[:2] + long * 3 + b"\xff\xfe\0\5abc" + plain[2:]
    assert_array_equal(np.asarray(decode(with_more)), np.asarray(decode(plain)))
    assert len(image_file(with_more).content) == len(image_file(plain).content) == len(plain)


# What is refused.


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"GIF89a\1\0\1\0\0\0\0;", "GIF"),
        (b"II*\0\x08\0\0\0\0\0", "TIFF"),
        (b"BM\x1a\0\0\0", "BMP"),
        (b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', "SVG"),
        (b"%PDF-1.7\n", "PDF"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "PostScript"),
        (b"\0\0\0\x18ftypheic", "HEIC"),
        (b"hello", "JPEG, PNG or WebP"),
        (b"RIFF\0\0\0\0WAVEfmt ", "JPEG, PNG or WebP"),
    ],
)
def test_other_kinds_are_refused_by_their_names(content, word):
    with pytest.raises(BadImage, match=word):
        decode(content)


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "BMP", "PPM", "ICO", "TGA", "EPS", "PDF"])
def test_files_that_pillow_could_read_are_refused(rng, kind):
    with pytest.raises(BadImage, match="JPEG, PNG or WebP"):
        decode(encoded(noise(rng), kind))


def webp(width, height):
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + sides
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def jpeg_header(width, height):
    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame + b"\xff\xda\0\2"


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (png(100_000, 100_000, 8, 2, b""), "100000 × 100000"),
        (png(2**31 - 1, 1, 8, 2, b""), f"{2**31 - 1} × 1"),
        (jpeg_header(65_000, 65_000), "65000 × 65000"),
        (webp(2**24, 2**24), f"{2**24} × {2**24}"),
        (png(4001, 4000, 8, 0, b""), "4001 × 4000"),
    ],
)
def test_pixels_are_counted_before_anything_is_decoded(monkeypatch, content, size):
    def decoding(*_, **__):
        raise AssertionError("it was given to the decoder")

    monkeypatch.setattr(Image, "open", decoding)
    with pytest.raises(BadImage, match=size):
        decode(content)


def test_the_limit_is_the_product_of_the_sides():
    content = encoded(Image.new("L", (30, 20)), "PNG")
    assert decode(content, max_pixels=600).size == (30, 20)
    with pytest.raises(BadImage, match="599 are allowed"):
        decode(content, max_pixels=599)


def test_a_second_header_does_not_count():
    second = chunk(b"IHDR", struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0))
    assert decode(png(1, 1, 8, 2, b"\0\1\2\3", second)).size == (1, 1)
    jpeg = jpeg_header(2, 2)
    with pytest.raises(BadImage, match="two headers"):
        decode(jpeg[:-4] + jpeg_header(60_000, 60_000)[2:])


@pytest.mark.parametrize("name", [b"zTXt", b"iTXt", b"iCCP"])
def test_compressed_text_and_profiles_are_not_read(name):
    bomb = zlib.compress(bytes(10_000_000))
    start = b"a\0\1\0\0\0" if name == b"iTXt" else b"a\0\0"
    content = png(1, 1, 8, 2, b"\0\1\2\3", chunk(name, start + bomb) * 10)
    assert decode(content).getpixel((0, 0)) == (1, 2, 3)
    assert len(image_file(content).content) < 100


def test_more_data_than_pixels_are_not_unpacked():
    assert decode(png(2, 2, 8, 2, bytes(100_000_000))).size == (2, 2)


def test_pieces_and_scans_beyond_reason_are_refused(rng):
    with pytest.raises(BadImage, match="pieces"):
        decode(png(1, 1, 8, 2, b"\0\1\2\3", chunk(b"tEXt", b"") * 100_000))
    jpeg = encoded(noise(rng), "JPEG", progressive=True)
    scan = jpeg[jpeg.rindex(b"\xff\xda") : -2]
    with pytest.raises(BadImage, match="scans"):
        decode(jpeg[:-2] + 100 * scan + b"\xff\xd9")


def test_images_without_pixels_are_refused():
    for content in (png(0, 5, 8, 0, b""), png(5, 0, 8, 0, b""), jpeg_header(0, 5)):
        with pytest.raises(BadImage, match="no pixels"):
            decode(content)


def test_no_memory_is_said_as_such(monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(Image, "open", full)
    with pytest.raises(BadImage, match="memory"):
        decode(png(1, 1, 8, 2, b"\0\1\2\3"))


# What is damaged.

_RNG = np.random.default_rng(3)
FILES = [
    encoded(noise(_RNG), "JPEG", exif=exif("<", 6)),
    encoded(noise(_RNG), "JPEG", progressive=True),
    encoded(noise(_RNG).convert("CMYK"), "JPEG"),
    encoded(noise(_RNG, channels=4), "PNG", exif=exif(">", 3)),
    encoded(noise(_RNG).convert("P"), "PNG", transparency=3),
    encoded(noise(_RNG), "PNG", save_all=True, append_images=[noise(_RNG)]),
    encoded(noise(_RNG, channels=4), "WEBP", exif=exif("<", 8)),
    encoded(noise(_RNG), "WEBP", lossless=True),
    encoded(noise(_RNG), "WEBP", save_all=True, append_images=[noise(_RNG)]),
]


def decoded_or_refused(content):
    """Decode, or say that it was refused; warnings are errors here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            image = decode(content, max_pixels=100_000)
        except BadImage as error:
            message = str(error)
            assert message
            assert len(message) < 160
            assert not any(word in message for word in ("\n", "object at", "bytes not"))
            return None
        assert image.mode == "RGB"
        assert 0 < image.width * image.height <= 100_000
        assert np.isin(pixels(image).max(), (0, 1))
        assert decode(thumbnail(image)).size <= (112, 112)
        return image


@pytest.mark.parametrize("content", FILES)
def test_every_beginning_of_a_file_is_decoded_or_refused(content):
    whole = decoded_or_refused(content)
    assert whole is not None
    step = max(1, len(content) // 150)
    lengths = [*range(64), *range(64, len(content), step)]
    refused = [decoded_or_refused(content[:length]) is None for length in lengths]
    assert all(refused[:30])
    # The last bytes of a file may matter little, half of it never suffices.
    assert all(
        answer
        for length, answer in zip(lengths, refused, strict=True)
        if length < len(content) // 2 - 100
    )


@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_flipped_bytes_are_decoded_or_refused(data):
    content = bytearray(data.draw(st.sampled_from(FILES)))
    last = data.draw(st.sampled_from([60, 300, len(content)])) - 1
    places = st.tuples(st.integers(0, min(last, len(content) - 1)), st.integers(0, 255))
    for place, value in data.draw(st.lists(places, min_size=1, max_size=12)):
        content[place] = value
    decoded_or_refused(bytes(content))


@given(
    start=st.sampled_from(
        [b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\x50\0\0\0WEBPVP8X", b""]
    ),
    rest=st.binary(max_size=300),
)
@settings(max_examples=300, deadline=None)
def test_bytes_at_random_are_refused(start, rest):
    assert decoded_or_refused(start + rest) is None


@given(content=st.binary(max_size=80), order=st.sampled_from([b"II*\0", b"MM\0*"]))
def test_damaged_exif_is_upright_and_silent(content, order):
    damaged = b"Exif\0\0" + order + content
    assert orientation_in(damaged) in range(1, 9)
    jpeg = FILES[1]
    segment = b"\xff\xe1" + struct.pack(">H", len(damaged) + 2) + damaged
    assert decoded_or_refused(jpeg[:2] + segment + jpeg[2:]) is not None


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_orientations_that_there_are_not_are_upright(value):
    assert orientation_in(exif("<", value)) == 1


# Small pictures.


@pytest.mark.parametrize(
    ("size", "expected"),
    [((640, 480), (112, 84)), ((50, 100), (50, 100)), ((3000, 2), (112, 1)), ((1, 1), (1, 1))],
)
def test_thumbnails_keep_their_proportions(size, expected):
    content = thumbnail(Image.new("RGB", size, (200, 100, 50)))
    assert content.startswith(b"\xff\xd8")
    back = decode(content)
    assert back.size == expected
    assert_allclose(back.getpixel((0, 0)), (200, 100, 50), atol=5)


# Drawings.


def drawing(size=(300, 300), paper=255, ink=0, place=(0, 0), scale=1.0):
    """Return an L, drawn with strokes."""
    image = Image.new("L", size, paper)
    at = [
        (place[0] + scale * x, place[1] + scale * y)
        for x, y in ((20, 20), (20, 100), (80, 100))
    ]
    ImageDraw.Draw(image).line(at, fill=ink, width=round(12 * scale), joint="curve")
    return image.convert("RGB")


def alike(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def test_where_how_large_and_in_which_colors_something_is_drawn_does_not_count():
    reference = pixels(drawing())
    for other in (
        drawing(place=(150, 100)),
        drawing(size=(900, 500), place=(300, 10), scale=3.2),
        drawing(paper=0, ink=255),
        drawing(paper=200, ink=120),
        drawing(paper=60, ink=230, scale=2),
    ):
        assert alike(pixels(other), reference) > 0.95
    other_shape = pixels(drawing().rotate(90, fillcolor="white"))
    assert alike(other_shape, reference) < 0.8


def test_drawings_are_as_mnist_has_digits(rng):
    ink = pixels(drawing(place=(70, 90))).reshape(28, 28)
    assert ink.dtype == float
    assert (ink.min(), ink.max()) == (0, 1)
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    assert max(np.ptp(rows), np.ptp(columns)) + 1 == 20
    # The shape is 86 by 86 or so, but its mass is below and to the left of the middle.
    for axis in (0, 1):
        center = ink.sum(axis=1 - axis) @ np.arange(28) / ink.sum()
        assert abs(center - 14) <= 0.5


def test_digits_come_back_as_they_were(real_data):
    digits = real_data("mnist")["X_test"][:80].reshape(-1, 28, 28)
    likeness = [
        alike(pixels(Image.fromarray(255 - digit).resize((280, 280))), digit.ravel() / 255.0)
        for digit in digits
    ]
    assert np.median(likeness) > 0.95
    assert np.mean(np.array(likeness) < 0.8) < 0.05


def test_noise_is_no_ink(rng):
    clean = pixels(drawing(paper=200, ink=60))
    light = np.asarray(drawing(paper=200, ink=60), dtype=float)[:, :, :1]
    noisy = np.clip(light + 8 * rng.normal(size=light.shape), 0, 255).astype(np.uint8)
    found = pixels(Image.fromarray(noisy.repeat(3, axis=2)))
    assert alike(found, clean) > 0.97
    empty = np.clip(180 + 12 * rng.normal(size=(200, 300)), 0, 255).astype(np.uint8)
    assert not pixels(Image.fromarray(empty).convert("RGB")).any()


@pytest.mark.parametrize("size", [(1, 1), (5, 1), (1, 300), (28, 28), (100_000, 1)])
def test_an_image_without_ink_is_zeros(size):
    for color in ("white", "black", "grey"):
        found = pixels(Image.new("RGB", size, color))
        assert found.shape == (N_PIXELS,)
        assert not found.any()


@pytest.mark.parametrize("size", [(40, 1), (1, 40), (3000, 2), (2, 2), (3, 3)])
def test_images_of_a_few_rows_have_ink_too(size):
    image = Image.new("RGB", size, "white")
    image.paste("black", (size[0] // 2, size[1] // 2, size[0] // 2 + 1, size[1] // 2 + 1))
    found = pixels(image)
    assert found.max() <= 1
    assert np.isfinite(found).all()
    # Of two by two, every pixel is border.
    assert found.any() or size[1] == 2
