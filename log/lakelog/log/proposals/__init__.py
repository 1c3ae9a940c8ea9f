"""Changes that one client proposes and another one commits, and what both need: see docs/design/group-commit.md.

`courier` is the thread of a process that proposes and waits, `pending` is what waits there, and `combining` is what it
does while it commits for others. `inbox` puts and reads proposals, and `window` says which of them may be committed
next. `judging` makes one version of many changes, and `waiting` is one whose thread waits: threads that share versions
use both. `refusals` are errors as the log keeps them. `pace` has the times, on which no outcome depends.
"""
