"""A stand-in for the hub, on the loopback address."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub:
    """Repositories in memory: for each branch the files of its commit."""

    def __init__(self):
        self.repos = {}
        self.is_private = {}

    def handler(self):
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def answer(self, status, content=b"", **headers):
                if not isinstance(content, bytes):
                    content = json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": len(content), **headers}.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            def read(self):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def do_POST(self):
                hub.post(self, self.path, self.read())

            def do_GET(self):
                hub.get(self, self.path.partition("?")[0])

            do_HEAD = do_GET

        return Handler

    def post(self, request, path, body):
        if path == "/api/repos/create":
            given = json.loads(body)
            name = f"{given.get('organization') or 'me'}/{given['name']}"
            reply = {"url": f"{self.url}/{name}", "name": name}
            if name in self.repos:
                request.answer(409, {**reply, "error": "exists"})
                return
            # Older clients say whether it is private, newer ones how visible it is.
            self.is_private[name] = given.get("private") or given.get("visibility") == "private"
            self.repos[name] = {"main": {}}
            request.answer(200, reply)
        elif path == "/api/validate-yaml":  # Of the header of the model card.
            request.answer(200, {"errors": [], "warnings": []})
        elif match := re.fullmatch(r"/api/models/(.+?)/branch/(.+)", path):
            name, branch = match.groups()
            self.repos[name].setdefault(branch, dict(self.repos[name]["main"]))
            request.answer(200, {})
        elif match := re.fullmatch(r"/api/models/(.+?)/preupload/(.+)", path):
            files = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in files]
            request.answer(200, {"files": modes})
        elif match := re.fullmatch(r"/api/models/(.+?)/commit/(.+)", path):
            name, branch = match.groups()
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    self.repos[name][branch][line["value"]["path"]] = content
                elif line["key"] == "deletedFile":
                    del self.repos[name][branch][line["value"]["path"]]
            url = f"{self.url}/{name}/commit/{self.commit(name, branch)}"
            request.answer(200, {"commitUrl": url, "commitOid": self.commit(name, branch)})
        else:
            request.answer(404, {"error": path})

    def get(self, request, path):
        if path == "/api/whoami-v2":
            request.answer(200, {"name": "me", "type": "user", "orgs": []})
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(?:revision|tree)/(.+))?", path):
            name, branch = match[1], match[2] or "main"
            branch = self.branch(name, branch)
            if branch is None:
                request.answer(404, {"error": "not found"}, X_Error_Code="RepoNotFound")
                return
            files = self.repos[name][branch]
            if "/tree/" in path:
                tree = [
                    {"type": "file", "path": p, "size": len(c), "oid": hashlib.sha1(c).hexdigest()}
                    for p, c in files.items()
                ]
                request.answer(200, tree)
                return
            siblings = [{"rfilename": p} for p in files]
            sha = self.commit(name, branch)
            request.answer(200, {"id": name, "sha": sha, "siblings": siblings, "private": False})
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            name, revision, file = match.groups()
            branch = self.branch(name, revision)
            content = self.repos[name][branch][file]
            etag = f'"{hashlib.sha1(content).hexdigest()}"'
            request.answer(200, content, ETag=etag, X_Repo_Commit=self.commit(name, branch))
        else:
            request.answer(404, {"error": path})

    def branch(self, name, revision):
        branches = self.repos.get(name, {})
        known = {self.commit(name, branch): branch for branch in branches}
        return revision if revision in branches else known.get(revision)

    def commit(self, name, branch):
        files = sorted(self.repos[name][branch].items())
        return hashlib.sha1(repr((branch, files)).encode()).hexdigest()

    @contextmanager
    def running(self):
        server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
