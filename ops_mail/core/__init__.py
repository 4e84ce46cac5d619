"""Pure decisions: no asyncio, no clock, no randomness, no I/O."""
