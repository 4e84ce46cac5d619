"""What every test may use, and what no test may leave behind."""

from __future__ import annotations
