"""Images for the pods of examples/ and of the demo, under the names that they use: there is no registry.

Each is crdkeeper's own image, which contains a shell and a Python, with programs that behave like the real
ones as far as Kubernetes can see. The layers of crdkeeper's image have to be on the node already.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

from tests.node.archives import Archive, digest, layer
from tests.node.cluster import NodeCluster

WEB_SERVER = b"""#!/usr/bin/env python3
import http.server, os, signal, socket, sys

signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # the first process of a container ignores it otherwise

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(socket.gethostname().encode())

http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
"""

POSTGRES = b"""#!/usr/bin/env python3
# Sends its data to clients that know the password. The data is made once, in PGDATA, as by the real one.
import os, pathlib, secrets, signal, socketserver

signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
data = pathlib.Path(os.environ["PGDATA"], "table")
if not data.exists():
    data.parent.mkdir(exist_ok=True)
    data.write_text(secrets.token_hex())

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        if self.rfile.readline().strip().decode() == os.environ["POSTGRES_PASSWORD"]:
            self.wfile.write(data.read_bytes())

socketserver.ThreadingTCPServer(("", 5432), Handler).serve_forever()
"""

PG_DUMP = b"""#!/usr/bin/env python3
import os, pathlib, socket, sys

given = dict(each.removeprefix("--").split("=", 1) for each in sys.argv[1:] if each.startswith("--"))
with socket.create_connection((given["host"], 5432), timeout=5) as connection:
    connection.sendall(os.environ["PGPASSWORD"].encode() + b"\\n")
    received = connection.makefile("rb").read()
if not received:
    sys.exit("wrong password")
pathlib.Path(given["file"]).write_bytes(received)
"""

PROGRAMS = {
    "usr/local/bin/web-server": WEB_SERVER,
    "usr/local/bin/postgres": POSTGRES,
    "usr/local/bin/pg_dump": PG_DUMP,
}
IMAGES = {
    "registry.example.com/shop:1": ["web-server", "8080"],
    "registry.example.com/search:1": ["web-server", "9000"],
    "registry.example.com/postgres:16": ["postgres"],
    "registry.example.com/database:16": ["web-server", "5432"],
    "registry.example.com/database:17": ["web-server", "5432"],
}


def load(cluster: NodeCluster, crdkeeper: Path, folder: Path) -> None:
    """Puts all of them on the nodes of a cluster; the folder is for what is written on the way."""
    archive = write(folder / "standins.tar", crdkeeper)
    for each in cluster.nodes:
        each.import_image(archive)


def write(path: Path, crdkeeper: Path) -> Path:
    """Writes an archive with all of them; returns its path.

    Args:
        path: the file to write.
        crdkeeper: the archive with crdkeeper's image.
    """
    with tarfile.open(crdkeeper) as tar:

        def read(name: str) -> Any:
            file = tar.extractfile(name)
            assert file is not None, name
            return json.load(file)

        (image,) = read("index.json")["manifests"]
        manifest = read(f"blobs/{image['digest'].replace(':', '/')}")
        configuration = read(f"blobs/{manifest['config']['digest'].replace(':', '/')}")
    programs = layer(PROGRAMS)
    root = configuration["rootfs"]
    with Archive(path) as archive:
        layers = [*manifest["layers"], archive.blob("layer.v1.tar", programs)]
        for name, command in IMAGES.items():
            changed = {
                **configuration,
                "config": {**configuration["config"], "Entrypoint": command},
                "rootfs": {**root, "diff_ids": [*root["diff_ids"], digest(programs)]},
            }
            del changed["history"]
            archive.image(name, changed, layers)
    return path
