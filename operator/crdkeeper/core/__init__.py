"""The decisions: pure functions over plain values. No I/O, no clock, no framework, no API client."""
