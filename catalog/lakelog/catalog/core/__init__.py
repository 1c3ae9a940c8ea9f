"""What every client of a warehouse needs: tables' definitions, files, states, logs, reads, writes and names.

Rule: a room imports from those below it, and none from the other packages. Reading and writing load this and no more.
"""
