"""Operations that users run as a command and as a Spark procedure: each is declared once, here.

A declaration has the names, the parameters, the columns of the answer, and the effect on data. The command
makes its options and its help from it. The procedure makes its parameters and columns, and the site its page
of reference.

Rule: an operation that loses something for good reports first, and acts only on request. It must not know
click, Spark, or the work of an operation. This package imports no other package of the catalog.
"""
