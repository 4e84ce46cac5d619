"""The composition root: settings in, running process out."""

from ops_mail.app.process import Hooks, run, serve

__all__ = ["Hooks", "run", "serve"]
