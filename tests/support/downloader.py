"""Downloads from a hub, and prints how many bytes are there: ``python -m tests.support.downloader HUB REPO FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

from models.download.model_download import DownloadRequest, ModelDownload
from models.download.progress import DownloadOptions
from models.hub.client import Hub
from models.hub.settings import HubSettings

OPTIONS = DownloadOptions(piece_bytes=1 << 17, record_bytes=1 << 14, reserve_bytes=0)

if __name__ == "__main__":
    address, repo, folder = sys.argv[1:]
    download = ModelDownload(Hub(HubSettings(address)), DownloadRequest(repo), Path(folder), OPTIONS)
    done = download.run(lambda progress: print(progress.n_done, flush=True))
    print("was there" if done.was_there else "done", flush=True)
