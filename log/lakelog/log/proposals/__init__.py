"""Changes that a client proposes and another client commits: see docs/design/group-commit.md.

`courier` is the thread of a process that proposes and waits. `pending` has the changes that wait there, and
`combining` commits for others. Both use the steps of a round (`rounds`). `inbox` puts and reads proposals,
and `window` decides which of them may be committed next. `refusals` are errors as the log keeps them. `watch`
is how a winning writer notices others. `pace` has the times, on which no outcome depends.
"""
