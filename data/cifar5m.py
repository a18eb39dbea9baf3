#!/usr/bin/env python3
"""Makes CIFAR-10's records of a part of CIFAR-5M: a byte for the label, then 1,024 bytes each of red, green and blue.

    data/cifar5m.py part0.npz cifar5m_part0.bin

A part is a zip archive of X.npy, (n,32,32,3) of bytes, and Y.npy, n labels of 64 bits. Nothing but Python's own library is needed."""
import ast
import os
import struct
import sys
import zipfile
import zlib

PIXELS = 32 * 32


def open_array(archive, name, kind, sides):
    """The stream of an array's bytes, and how many things it has."""
    stream = archive.open(name + ".npy")
    magic = stream.read(8)
    if magic[:6] != b"\x93NUMPY":
        sys.exit(f"{archive.filename}: {name}: is no .npy file")
    size = struct.unpack("<H", stream.read(2))[0] if magic[6] == 1 else struct.unpack("<I", stream.read(4))[0]
    header = ast.literal_eval(stream.read(size).decode("latin1"))
    shape = header["shape"]
    if header["descr"] != kind or header["fortran_order"] or shape[1:] != sides:
        order = " in Fortran order" if header["fortran_order"] else ""
        sys.exit(f"{archive.filename}: array {name} is {shape} of type {header['descr']}{order}, "
                 f"expected {('n', *sides)} of type {kind}".replace("'n'", "n"))
    return stream, shape[0]


def main(path, out):
    with zipfile.ZipFile(path) as archive, open(out + ".part", "wb") as file:
        images, count = open_array(archive, "X", "|u1", (32, 32, 3))
        labels, labelled = open_array(archive, "Y", "<i8", ())
        if count == 0 or count != labelled:
            sys.exit(f"{path}: {count} images and {labelled} labels")
        for i in range(count):
            pixels, label = images.read(3 * PIXELS), labels.read(8)
            if len(pixels) < 3 * PIXELS or len(label) < 8:
                sys.exit(f"{path}: ends within image {i}")
            if not 0 <= (number := struct.unpack("<q", label)[0]) < 10:
                sys.exit(f"{path}: image {i} has the label {number}, expected 0 to 9")
            file.write(bytes([number]) + pixels[0::3] + pixels[1::3] + pixels[2::3])
        if images.read(1) or labels.read(1):  # reaches the end, where the archive's checksums are compared
            sys.exit(f"{path}: has more than its shapes say")
    os.replace(out + ".part", out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    try:
        main(*sys.argv[1:])
    except (OSError, EOFError, KeyError, ValueError, SyntaxError, zipfile.BadZipFile, zlib.error) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
