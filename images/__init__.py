"""The container image: a Debian base without a shell, the pinned wheels and the three processes' commands.

Everything is made from packages of Debian and of the Python index by their own clients, without a container engine:
``python -m images.build --output build/image`` writes an archive that ``docker load``, ``ctr images import`` and
``kind load image-archive`` take. The Dockerfile runs the same builder, so both ways give the same files.

Same packages in, same bytes out: entries are sorted, times fixed, byte code is bound to content instead of times. What
went in is listed in the SBOM inside and beside the archive. The builder needs nothing but Python's standard library.
"""


class ImageError(Exception):
    """The image cannot be built; the text is one line for whoever builds it, with the next step."""

    for_user = True
