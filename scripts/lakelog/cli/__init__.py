"""The `lakelog` command: what a warehouse holds and what happened to it, from its logs alone.

The only room that reads environment variables and prints for people. It decides nothing about tables.
"""
