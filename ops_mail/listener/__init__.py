"""One supervised listener for each mailbox: stand by, lead, sync, wait, and start again after any fault.

Imports nothing itself: a command that needs one part of it loads neither parser nor metrics.
"""
