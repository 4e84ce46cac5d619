"""A handler as careless as they come: the secret it was given is in its locals, its log and its errors' texts."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import structlog

from ops_mail.handlers import Mail, Permanent

SECRET_FILE = Path("mounted/database-url")


def handle(mail: Mail) -> None:
    secret = SECRET_FILE.read_text().strip()
    logging.getLogger("leaky").error("connecting with %s failed", secret)
    for name, value in os.environ.items():
        if name.startswith("AWS_"):
            logging.getLogger("leaky").info("%s is %s", name, value)
    structlog.get_logger("leaky").warning("connecting", url=secret, all_of_it={"in": [secret]}, raw=secret.encode())
    if mail.uid == 1:
        raise Permanent(f"cannot connect to {secret}")
    try:
        raise ConnectionError(secret)
    except ConnectionError as error:
        logging.getLogger("leaky").exception("no connection")
        raise RuntimeError({"url": secret}, error) from error
