# ops-mail as an image: `docker build -t ops-mail .`; built and tried out as a whole by `bash deploy/image/try.sh`.
#
# The base is pinned by its full version. A digest pins it for good: look it up where you build (`docker buildx imagetools
# inspect python:3.11.14-slim-bookworm`) and pass --build-arg BASE=docker.io/library/python@sha256:…
# Any image with Python 3.11 to 3.13, its venv module and CA certificates will do.
ARG BASE=docker.io/library/python:3.11.14-slim-bookworm

FROM ${BASE} AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
# Wheels only, each by its hash: nothing is compiled, here or later; a dependency without a wheel fails by name.
COPY requirements.lock ./
RUN python3 -m venv /opt/ops-mail \
    && /opt/ops-mail/bin/python -m pip install --quiet --no-deps --only-binary :all: --require-hashes -r requirements.lock
# What builds the package lives in an environment of its own, and stays behind.
COPY deploy/build.lock ./deploy/
RUN python3 -m venv /build \
    && /build/bin/python -m pip install --quiet --no-deps --only-binary :all: --require-hashes -r deploy/build.lock
COPY pyproject.toml README.md LICENSE ./
COPY ops_mail ./ops_mail
# All code is compiled to bytecode now: the root file system is read-only later. The final image installs nothing: pip goes.
RUN /build/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/ops-mail/bin/python -m pip install --quiet --no-deps --no-index /wheels/*.whl \
    && /opt/ops-mail/bin/python -m pip uninstall --quiet --yes setuptools pip \
    && find /opt/ops-mail/lib -type d -name tests -prune -exec rm -r {} + \
    && /opt/ops-mail/bin/python -m compileall -q /opt/ops-mail/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="ops-mail" \
      org.opencontainers.image.description="Every mail of an IMAP folder lands exactly once in your own tables, live" \
      org.opencontainers.image.licenses="GPL-3.0-or-later"
# By number, so that Kubernetes can see that it is not root.
RUN groupadd --gid 10001 ops-mail \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/ops-mail --shell /usr/sbin/nologin ops-mail \
    && install -d -m 750 -o 10001 -g 10001 /var/lib/ops-mail
COPY --from=build /opt/ops-mail /opt/ops-mail
ENV PATH=/opt/ops-mail/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    OPS_MAIL_LOG_FORMAT=json
# Two places are written to: /tmp (large mails are spooled) and, with SQLite alone, the working directory.
WORKDIR /var/lib/ops-mail
USER 10001:10001
EXPOSE 8080
# Alive, not ready: nothing remote that is down makes this fail.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-I", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('OPS_MAIL_HTTP_PORT', '8080') + '/healthz', timeout=4)"]
# Exec form: the process itself is PID 1 and hears SIGTERM, but for the first 50 ms, while Python itself starts: process 1
# has no default for it. A stop just then takes the whole grace period and is harmless; `docker run --init` avoids it.
STOPSIGNAL SIGTERM
ENTRYPOINT ["ops-mail"]
CMD ["run"]
