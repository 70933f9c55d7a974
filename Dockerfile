# The image of `tread serve`: the program, the libraries that it is linked with,
# and nothing else: no shell, no package manager.
#
#     docker build -t registry.example.com/tread:1 .

FROM rust:1.95-slim AS build
WORKDIR /tread
COPY . .
RUN cargo build --locked --release -p tread
# ldd names the libraries and the loader, for each architecture its own.
RUN set -eu; \
    mkdir -p /image/etc /image/usr/bin /cache; \
    strip --strip-all -o /image/usr/bin/tread target/release/tread; \
    ldd target/release/tread | grep -o '/[^ )]*' | xargs cp --dereference --parents --target-directory=/image; \
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
