"""What shows a warehouse: who did what, how rows changed, tables about tables, and pictures.

Rule: loaded when something is to be shown. It changes nothing.
"""
