# The image of `orders` (examples/orders/), the service that one deploys on Cloud Run.
#
#   docker build --tag orders .
#   docker run --rm --publish 8080:8080 orders
#
# For a service of your own, copy this file and .dockerignore beside its Cargo.toml, and
#   1. name its program: `--bins` in place of `--examples`, `--bin NAME` of `--example ${EXAMPLE}`,
#   2. copy it from where cargo puts it: target/release/NAME,
#   3. give FEATURES what your package has, if anything, and let .dockerignore pass what its build reads.
#
# For production name both bases by digest, so that a build is one that was tried:
#   --build-arg RUST_IMAGE=rust@sha256:.. --build-arg RUNTIME_IMAGE=gcr.io/distroless/cc-debian12@sha256:..
# What is inside: `docker buildx build --sbom=true --provenance=mode=max --push ..` attaches the list of
# packages and how the image was made. The list of crates is in the program itself, for scanners that look
# there, once `cargo auditable build` (cargo install cargo-auditable) takes the place of `cargo build`.
#
# There is no HEALTHCHECK: Cloud Run has probes of its own and ignores it. An engine that heeds one asks
# `/app healthcheck` (functional/compose.yaml): this image has no shell and no curl.

ARG RUST_IMAGE=rust:1.95-bookworm
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot

# A debug build of cargo-chef does in a second what it has to, and compiles in a quarter of the time. An
# image that has it already, such as lukemathwalker/cargo-chef, skips even that.
FROM ${RUST_IMAGE} AS chef
ARG CARGO_CHEF=0.1.78
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    command -v cargo-chef || cargo install cargo-chef --version "${CARGO_CHEF}" --locked --debug
WORKDIR /build

FROM chef AS recipe
COPY . .
RUN cargo chef prepare --recipe-path recipe.json

# The dependencies are a layer, which a change of Cargo.toml, Cargo.lock or the features makes anew, and
# nothing else. Only what was downloaded is a cache mount: it may be gone the next time.
FROM chef AS program
ARG FEATURES=serve,telemetry,oidc,datastore,prometheus
ENV CARGO_PROFILE_RELEASE_STRIP=symbols
COPY --from=recipe /build/recipe.json .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    cargo chef cook --release --locked --examples --features "${FEATURES}"

ARG EXAMPLE=orders
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    cargo build --release --locked --example "${EXAMPLE}" --features "${FEATURES}" \
    && cp "target/release/examples/${EXAMPLE}" /app

FROM ${RUNTIME_IMAGE}
ARG REVISION=unknown
ARG RUNTIME_IMAGE
LABEL org.opencontainers.image.title="orders" \
      org.opencontainers.image.description="Orders, pushed by Pub/Sub, each of them done once" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${RUNTIME_IMAGE}"
COPY --from=program /app /app
USER 65532:65532
# Exec form: a shell in between would keep SIGTERM to itself.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/app"]
