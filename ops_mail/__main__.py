"""`python -m ops_mail` is `ops-mail run`; with arguments it is `ops-mail` itself."""

from __future__ import annotations

import sys

from ops_mail.cli import main

if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.argv.append("run")
    main()
