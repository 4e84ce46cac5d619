"""The whole of ops-mail at work on an embedded IMAP server and SQLite: nothing to configure, nothing left behind.

Importing it raises ModuleNotFoundError where the extra `demo` is not installed.
"""

from ops_mail.demo.run import DemoOptions, run_demo

__all__ = ["DemoOptions", "run_demo"]
