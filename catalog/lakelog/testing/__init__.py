"""Servers and pytest fixtures for tests with lakelog: see `fixtures`, `moto_server`, `versitygw`, `s3a`,
`memory_catalog`."""
