# The image of `tread serve` and `tread agent`: the program, the libraries that it is linked
# with, the static program that agents bring to their hosts, the certificates that Debian
# trusts, and nothing else: no shell, no package manager.
#
#     docker build -t registry.example.com/tread:1 .

FROM rust:1.95-slim-trixie AS build
# The allocator is built with make.
RUN apt-get update && apt-get install --yes --no-install-recommends make
WORKDIR /tread
COPY . .
RUN cargo build --locked --profile dist -p tread-image
RUN set -eu; \
    target=$(uname -m)-unknown-linux-musl; \
    rustup target add "$target"; \
    cargo build --locked --profile dist -p tread-node --bin tread-node --target "$target"; \
    mkdir -p /image/usr/bin; \
    strip --strip-all -o /image/usr/bin/tread-node "target/$target/dist/tread-node"
# ldd names the libraries and the loader, for each architecture its own.
RUN set -eu; \
    mkdir -p /image/etc /image/usr/bin /image/usr/share/doc/tread /image/var/cache /cache; \
    strip --strip-all -o /image/usr/bin/tread target/dist/tread-image; \
    ldd target/dist/tread-image >/libraries; \
    if grep 'not found' /libraries; then exit 1; fi; \
    grep -o '/[^ )]*' /libraries | xargs cp --dereference --parents --target-directory=/image; \
    cp --dereference --parents --target-directory=/image /etc/ssl/certs/ca-certificates.crt; \
    cp LICENSE /image/usr/share/doc/tread/; \
    echo 'tread:x:65532:65532::/:/nologin' >/image/etc/passwd; \
    echo 'hosts: files dns' >/image/etc/nsswitch.conf

FROM scratch
COPY --from=build /image/ /
COPY --from=build --chown=65532:65532 /cache/ /var/cache/tread/
USER 65532:65532
ENV TREAD_CACHE_DIR=/var/cache/tread/compiled
EXPOSE 8080 8443
ENTRYPOINT ["/usr/bin/tread"]
CMD ["serve"]
