"""The `lakelog` command: the contents and the history of a warehouse, and the work on its tables.

Only this room reads environment variables and prints for people. It decides nothing about tables.
"""
