"""The `lakelog` command: what a warehouse holds and what happened to it, told from its logs alone.

The one room that reads environment variables and writes for people. It decides nothing about tables.
"""
