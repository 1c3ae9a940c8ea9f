"""Tables of other formats and folders of Parquet files, as sources of a lakelog table, where their files are.

Rule: a source is read and never written, and no file of it is copied. It says everything in lakelog's words: `source`
has them, and a folder for each format has what knows that format.
It must not know names of tables, sessions or who asks for an import.
"""

__all__ = []
