"""Handlers of requests: a function for each, by subject, thin over the catalog's two doors.

`entries` has the only list of them. A handler gets the open catalog and the request. It returns the answer,
or the answer and bytes. It raises LakelogError for all errors that the user should know. Nothing here knows
frames or pipes.
"""
