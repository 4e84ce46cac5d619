# The image of one ops-mail process. Build:  docker build -t ops-mail .
# What is installed is what the lock files name, by hash; the base can be replaced: --build-arg BASE=registry.example/python:3.11-slim
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /build && python3 -m venv /opt/ops-mail
COPY requirements.lock ./
COPY deploy/build.lock deploy/
# No compiler: a dependency without a wheel fails here, at once and by name.
RUN /opt/ops-mail/bin/pip install --no-cache-dir --no-deps --only-binary :all: --require-hashes -r requirements.lock \
    && /build/bin/pip install --no-cache-dir --no-deps --only-binary :all: --require-hashes -r deploy/build.lock
COPY pyproject.toml README.md LICENSE ./
COPY ops_mail ops_mail
RUN /build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/ops-mail/bin/pip install --no-cache-dir --no-deps --no-index /wheels/*.whl \
    && /opt/ops-mail/bin/pip uninstall --yes pip

FROM ${BASE}
RUN useradd --system --uid 10001 --home-dir /var/lib/ops-mail --create-home --shell /usr/sbin/nologin ops-mail
COPY --from=build /opt/ops-mail /opt/ops-mail
ENV PATH=/opt/ops-mail/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# The folder of the default SQLite database and of spooled large mails (TMPDIR): mount a volume or a tmpfs as needed.
WORKDIR /var/lib/ops-mail
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python3", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ.get(\"OPS_MAIL_HTTP_PORT\", \"8080\")}/healthz', timeout=4)"]
ENTRYPOINT ["ops-mail"]
CMD ["run"]
