"""Servers and pytest fixtures for tests with lakelog.

See `fixtures`, `moto_server`, `versitygw`, `s3a` and `memory_catalog`.
"""
