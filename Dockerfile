# The image of all three processes. The builder in images/ makes the files; without Docker, the same files come out of
# `python -m images.build --output build/image`. The final stage holds no shell, no package manager and no build tools.
FROM debian:bookworm-slim AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends binutils ca-certificates python3 python3-pip
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY images images
COPY src src
RUN python3 -m images.build --root /rootfs

FROM scratch
COPY --from=build /rootfs/ /
ENV PATH=/usr/local/bin:/usr/bin HOME=/tmp LANG=C.UTF-8
USER 65532:65532
WORKDIR /
CMD ["stromboli", "--help"]
