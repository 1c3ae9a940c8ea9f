"""The needs of every client of a warehouse: table definitions, files, states, logs, reads, writes and names.

Rule: a room imports from the rooms below it, and never from the other packages. Reading and writing load this
package and no more.
"""
