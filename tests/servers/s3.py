"""As much of S3 as an object store needs, on a port of 127.0.0.1: objects, listing, uploads in parts, deletion."""

from __future__ import annotations

import asyncio
import re
import threading
import uuid
from datetime import UTC, datetime
from xml.sax.saxutils import escape, unescape

from aiohttp import web


class S3Server:
    """Runs in a thread. `objects` by bucket and name, with the times of their last writes; `failing` answers 503."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, datetime]] = {}
        self.failing = False
        self.requests = 0
        self._parts: dict[str, dict[int, bytes]] = {}
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0

    def start(self) -> None:
        self._thread.start()
        self._started.wait(10)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def environment(self) -> dict[str, str]:
        """What points a client here."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = self._loop.run_until_complete(self._serve())
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _serve(self) -> web.AppRunner:
        application = web.Application(client_max_size=256 * 1024 * 1024)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        self._started.set()
        return runner

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        response = await self._answer(request)
        response.force_close()  # a client's idle connections would count as left behind by a test
        return response

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        if self.failing:
            return web.Response(status=503, text="<Error><Code>SlowDown</Code></Error>")
        name, query = request.match_info["path"], request.query
        if request.method == "GET" and "list-type" in query:
            return self._list(name.strip("/"), query.get("prefix", ""))
        if request.method == "POST" and "uploads" in query:
            upload = uuid.uuid4().hex
            self._parts[upload] = {}
            return _xml(f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>")
        if request.method == "PUT" and "uploadId" in query:
            self._parts[query["uploadId"]][int(query["partNumber"])] = await request.read()
            return web.Response(headers={"ETag": f'"{query["partNumber"]}"'})
        if request.method == "POST" and "uploadId" in query:
            parts = self._parts.pop(query["uploadId"])
            self._keep(name, b"".join(parts[number] for number in sorted(parts)))
            return _xml('<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>')
        if request.method == "POST" and "delete" in query:
            keys = re.findall(r"<Key>(.*?)</Key>", (await request.read()).decode())
            for key in keys:
                self.objects.pop(f"{name.strip('/')}/{unescape(key)}", None)
            return _xml(
                "<DeleteResult>" + "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys) + "</DeleteResult>"
            )
        if request.method == "PUT":
            self._keep(name, await request.read())
            return web.Response(headers={"ETag": '"x"'})
        if request.method == "DELETE":
            self.objects.pop(name, None)
            return web.Response(status=204)
        return self._get(name)

    def _keep(self, name: str, content: bytes) -> None:
        self.objects[name] = (content, datetime.now(UTC))

    def _get(self, name: str) -> web.Response:
        if name not in self.objects:
            return web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>")
        content, written = self.objects[name]
        stamp = written.strftime("%a, %d %b %Y %H:%M:%S GMT")
        return web.Response(body=content, headers={"ETag": '"x"', "Last-Modified": stamp})

    def _list(self, bucket: str, prefix: str) -> web.Response:
        found = sorted(name for name in self.objects if name.startswith(f"{bucket}/{prefix}"))
        rows = "".join(
            f"<Contents><Key>{escape(name.partition('/')[2])}</Key><Size>{len(self.objects[name][0])}</Size>"
            f"<LastModified>{self.objects[name][1]:%Y-%m-%dT%H:%M:%S.000Z}</LastModified><ETag>x</ETag></Contents>"
            for name in found
        )
        return _xml(f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>")


def _xml(text: str) -> web.Response:
    return web.Response(text=f'<?xml version="1.0" encoding="UTF-8"?>{text}', content_type="application/xml")
