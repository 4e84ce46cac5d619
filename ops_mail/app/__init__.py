"""The composition root: settings in, running process out.

Imports nothing itself: a command that needs one part of it does not load the web server.
"""
