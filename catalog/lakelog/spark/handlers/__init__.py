"""How requests are answered: a function for each, by subject, thin over `lakelog.catalog.Catalog`.

The one list of them is in `table`. A handler gets the open catalog and the request, and returns the answer, or the
answer and bytes. LakelogError is for whatever the user should know about. Nothing here knows frames or pipes.
"""
