"""Writes kubeconfig files: one cluster, one user with a token."""

import json
from pathlib import Path


def write(path: Path, *, url: str, ca_file: Path | None, token: str) -> Path:
    """A self-contained kubeconfig; as JSON, which is YAML. Returns the path."""
    cluster = {"server": url, **({"certificate-authority": str(ca_file)} if ca_file else {})}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": path.stem, "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": path.stem}}],
        "current-context": "test",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=2))
    return path
